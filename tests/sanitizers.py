"""Run the tests of the device under the checkers of CUDA's toolkit, and append what they report to a record.

    python -m tests.sanitizers [--tool memcheck]... [--record [FILE]] [paths and options of pytest]

The first case of every test runs, about fifty times slower than by itself; paths choose some tests, and
the page adds up what several commands ran. Exit status: 0 if tests pass and no checker reports anything.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpu_kernels.runtime._loader import SOURCES
from tests.runs import add_record_option, append_run, read_runs
from tests.source_tree import ROOT

TOOLS = ("memcheck", "racecheck", "synccheck")
FAILED = 9
# racecheck has reports of a kernel within CuPy's nonzero, which is not ours to mend.
NOT_OURS = ("--kernel-name-exclude", "kns=cupy_nonzero")
# It counts the bytes of CuPy's pool, and a checker has allocations of its own.
COUNTS_BYTES = ("--ignore", "tests/hybrid/matrix/gpu/test_allocations.py")
_SUMMARY = re.compile(r"(?:ERROR SUMMARY: (?P<errors>\d+) error|RACECHECK SUMMARY: (?P<hazards>\d+) hazard)")


def reported(log: str) -> dict[str, int] | None:
    """Return the errors or hazards that a checker counted over all its processes; None without a summary."""
    found = [match.groupdict() for match in _SUMMARY.finditer(log)]
    if not found:
        return None
    names = [name for name in ("errors", "hazards") if any(one[name] is not None for one in found)]
    return {name: sum(int(one[name] or 0) for one in found) for name in names}


def checked(tool: str, arguments: list[str], folder: Path) -> tuple[int, dict[str, Any] | None]:
    """Run tests under a checker; return the exit status and the run, None if it did not come to its end."""
    log, record = folder / f"{tool}.log", folder / f"{tool}.json"
    checker = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(FAILED), *NOT_OURS]
    checker += ["--log-file", str(log), sys.executable]
    tests = ["-m", "pytest", "-m", "gpu", "--first-cases", *COUNTS_BYTES, f"--record-to={record}"]
    environment = {**os.environ, "HYBRID_REQUIRE_GPU": "1"}
    status = subprocess.run([*checker, *tests, *arguments], cwd=ROOT, env=environment).returncode
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    print(text, end="", flush=True)
    counts, runs = reported(text), read_runs(record)
    if counts is None or not runs:
        return status or 1, None
    return status, {**runs[-1], "tool": tool, "kernel_files": len(SOURCES), **counts}


def main(arguments: list[str] | None = None) -> int:
    """Run every checker, append its run, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.sanitizers", description=__doc__)
    parser.add_argument(
        "--tool", action="append", choices=(*TOOLS, "initcheck"), help=f"default: {', '.join(TOOLS)}"
    )
    add_record_option(parser, "sanitizers")
    options, others = parser.parse_known_args(arguments)
    if shutil.which("compute-sanitizer") is None:
        parser.error("compute-sanitizer is not on PATH; it comes with CUDA's toolkit")
    worst = 0
    for tool in options.tool or TOOLS:
        with tempfile.TemporaryDirectory(prefix="hybrid-sanitizers-") as folder:
            status, run = checked(tool, others, Path(folder))
        if run is None:
            print(f"error: {tool} did not come to its end: nothing is recorded", file=sys.stderr)
        elif options.record is not None:
            append_run(options.record, **run)
        worst = max(worst, status)
    return worst


if __name__ == "__main__":
    sys.exit(main())
