"""The first use on a machine: `hybrid` as a whole process, with no kernel compiled yet, and again.

Usage: python benchmarks/first_use.py [--backend gpu|cpu ...] [--only NAME ...] [--repeat N] [--seconds S]
       [--out FILE.json]

For every command: one run with empty folders for the kernels that CuPy and Numba keep, then --repeat runs
with what the first one left there. The folders are the script's own; those of the user are not touched.
Importing the package is measured as well, to tell what of the rest it is.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from runs import ROOT, Records, child_environment, has_device

CHECKS: dict[str, tuple[str, ...]] = {
    "kanban t=4": ("kanban", "--const", "t=4", "--property", "throughput"),
    "tandem c=1023": ("tandem", "--const", "c=1023", "--property", "customers"),
    "kanban t=5": ("kanban", "--const", "t=5", "--property", "throughput"),
    "coin K=4": ("coin", "--const", "K=4", "--property", "heads"),
}
"""Commands by name: the example, and arguments besides its files."""


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
        kept = {name: Path(folder) / name for name in ("CUPY_CACHE_DIR", "NUMBA_CACHE_DIR")}
        environment = child_environment(**{name: str(path) for name, path in kept.items()})
        seconds = []
        for _ in range(1 + repeat):
            begin = time.perf_counter()
            done = subprocess.run(
                [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
            )
            seconds.append(time.perf_counter() - begin)
            if done.returncode != 0:
                raise RuntimeError(f"{row['command']} ended with {done.returncode}: {done.stderr[-500:]}")
        row.update(
            first_seconds=seconds[0],
            again_seconds=statistics.median(seconds[1:]),
            all_seconds=seconds,
            device_kernels=_files(kept["CUPY_CACHE_DIR"], "*"),
            host_kernels=_files(kept["NUMBA_CACHE_DIR"], "*.nbc"),
        )


def _files(folder: Path, pattern: str) -> int:
    return sum(path.is_file() for path in folder.rglob(pattern))


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", action="append", choices=("gpu", "cpu"), help="both by default")
    parser.add_argument("--only", action="append", choices=tuple(CHECKS), help="this check; may be repeated")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs after the first")
    parser.add_argument("--seconds", type=float, help="begin no row after this time")
    parser.add_argument("--out", type=Path, help="where to write the JSON record")
    options = parser.parse_args()
    backends = options.backend or (["cpu", "gpu"] if has_device() else ["cpu"])
    if "gpu" in backends and not has_device():
        raise SystemExit("no CUDA device: use --backend cpu")
    records = Records("first_use", options.out, options.seconds, repeat=options.repeat)
    runs: list[tuple[str, str | None, list[str]]] = [("import hybrid", None, ["-c", "import hybrid"])]
    for backend in backends:
        for name in options.only or CHECKS:
            runs.append((name, backend, ["-m", "hybrid", *command_of(name, backend)]))
    for name, backend, arguments in runs:
        identity = {"name": name, "backend": backend, "command": " ".join(["python", *arguments])}
        row = records.run(identity, functools.partial(measure, arguments=arguments, repeat=options.repeat))
        label = f"{name:14s} {backend or '':3s}"
        if "error" in row:
            print(f"{label} {row['error']}", flush=True)
            continue
        print(
            f"{label} first {row['first_seconds']:6.2f} s, again {row['again_seconds']:5.2f} s, "
            f"{row['device_kernels']} kernels for the device, {row['host_kernels']} for the host",
            flush=True,
        )


if __name__ == "__main__":
    main()
