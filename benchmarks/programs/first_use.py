"""The first use on a machine: `hybrid` as a whole process, with no kernel compiled yet, and again.

Bytecode is there, as an installer leaves it. For every command: one run with empty folders for the kernels
that CuPy and Numba keep, then --repeat runs with what the first one left there. The folders are the script's
own; those of the user are not touched.
Importing the package is measured as well, to tell what of the rest it is.  With --parts the checks on the CPU
are run as they are, without the processes that compile ahead, and with Numba's own cache in place of ours,
too, and processor time of the process alone is measured: what it would take with cores to spare.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.library.arguments import parser
from benchmarks.library.device import has_device, require_device
from benchmarks.library.models import ROOT
from benchmarks.library.processes import (
    CODE_FOLDERS,
    child_environment,
    compile_bytecode,
    kernel_files,
)
from benchmarks.library.records import Records

CHECKS: dict[str, tuple[str, ...]] = {
    "kanban t=4": ("kanban", "--const", "t=4", "--property", "throughput"),
    "tandem c=1023": ("tandem", "--const", "c=1023", "--property", "customers"),
    "kanban t=5": ("kanban", "--const", "t=5", "--property", "throughput"),
    "coin K=4": ("coin", "--const", "K=4", "--property", "heads"),
}
"""Commands by name: the example, and arguments besides its files."""


_TIMED = """
import atexit, sys, time
atexit.register(lambda: print("processor", time.process_time(), file=sys.stderr))
"""
_ALONE = """
import hybrid.app.cli.check
hybrid.app.cli.check.compile_ahead = lambda: False
"""
_NUMBA = """
import mtbdd.base.compiled, numba.core.caching
mtbdd.base.compiled._KernelCache = numba.core.caching.FunctionCache
"""
_MAIN = """
from hybrid.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
PARTS = {"as it is": "", "nothing compiled ahead": _ALONE, "Numba's cache, nothing ahead": _ALONE + _NUMBA}
"""What is changed before a command begins, by name."""


def command_of(name: str, backend: str) -> list[str]:
    """Return the arguments of `hybrid` for a check."""
    example, *arguments = CHECKS[name]
    return ["check", f"examples/{example}.prism", f"examples/{example}.props", *arguments,
            "--backend", backend]  # fmt: skip


def measure(row: dict[str, Any], arguments: list[str], repeat: int) -> None:
    """Run a command of Python's with empty folders for kernels, and again, and fill a row.

    Raises
    ------
    RuntimeError
        If the command fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = child_environment(**{name: str(Path(folder) / name) for name in CODE_FOLDERS})
        seconds, processor = [], []
        for _ in range(1 + repeat):
            begin = time.perf_counter()
            done = subprocess.run(
                [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
            )
            seconds.append(time.perf_counter() - begin)
            if done.returncode != 0:
                raise RuntimeError(f"{row['command']} ended with {done.returncode}: {done.stderr[-500:]}")
            processor += [float(t.split()[1]) for t in done.stderr.splitlines() if t.startswith("processor ")]
        row.update(
            first_seconds=seconds[0],
            again_seconds=statistics.median(seconds[1:]),
            all_seconds=seconds,
            **_of_processor(processor),
            **{f"{place}_kernels": count for place, count in kernel_files(environment).items()},
        )


def _of_processor(seconds: list[float]) -> dict[str, float]:
    """Return processor times of the first run and of later ones, where the processes told theirs."""
    if not seconds:
        return {}
    return {"first_processor_seconds": seconds[0], "again_processor_seconds": statistics.median(seconds[1:])}


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "seconds")
    arguments.add_argument("--backend", action="append", choices=("gpu", "cpu"), help="both by default")
    arguments.add_argument(
        "--only", action="append", choices=tuple(CHECKS), help="this check; may be repeated"
    )
    arguments.add_argument("--repeat", type=int, default=3, metavar="N", help="runs after the first")
    arguments.add_argument(
        "--parts", action="store_true", help="what parts of the machinery gain, on the cpu"
    )
    options = arguments.parse_args()
    if options.parts:
        options.backend = ["cpu"]
    backends = options.backend or (["cpu", "gpu"] if has_device() else ["cpu"])
    if "gpu" in backends:
        require_device("use --backend cpu")
    compile_bytecode()
    records = Records("first_use", options, repeat=options.repeat)
    runs: list[tuple[str, str | None, list[str]]] = [("import hybrid", None, ["-c", "import hybrid"])]
    for backend in backends:
        for name in options.only or CHECKS:
            runs.append((name, backend, ["-m", "hybrid", *command_of(name, backend)]))
    if options.parts:
        runs = [
            (f"{name}, {part}", "cpu", ["-c", _TIMED + change + _MAIN, *command_of(name, "cpu"), "--quiet"])
            for name in options.only or CHECKS
            for part, change in PARTS.items()
        ]
    for name, backend, command in runs:
        shown = command if command[0] == "-m" or not options.parts else ["-m", "hybrid", *command[2:]]
        identity = {"name": name, "backend": backend, "command": " ".join(["python", *shown])}
        records.run(identity, measure, command, options.repeat)
    records.show()


if __name__ == "__main__":
    main()
