"""The first use on a machine: `hybrid` as a whole process, with no kernel compiled yet, and again.

Bytecode is there, as an installer leaves it. For every command: one run with empty folders for the kernels
that CuPy and Numba keep, then --repeat runs with what the first one left there. The folders are the script's
own; those of the user are not touched.
Importing the package is measured as well, to tell what of the rest it is.
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
            **{f"{place}_kernels": count for place, count in kernel_files(environment).items()},
        )


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "seconds")
    arguments.add_argument("--backend", action="append", choices=("gpu", "cpu"), help="both by default")
    arguments.add_argument(
        "--only", action="append", choices=tuple(CHECKS), help="this check; may be repeated"
    )
    arguments.add_argument("--repeat", type=int, default=3, metavar="N", help="runs after the first")
    options = arguments.parse_args()
    backends = options.backend or (["cpu", "gpu"] if has_device() else ["cpu"])
    if "gpu" in backends:
        require_device("use --backend cpu")
    compile_bytecode()
    records = Records("first_use", options, repeat=options.repeat)
    runs: list[tuple[str, str | None, list[str]]] = [("import hybrid", None, ["-c", "import hybrid"])]
    for backend in backends:
        for name in options.only or CHECKS:
            runs.append((name, backend, ["-m", "hybrid", *command_of(name, backend)]))
    for name, backend, command in runs:
        identity = {"name": name, "backend": backend, "command": " ".join(["python", *command])}
        records.run(identity, measure, command, options.repeat)
    records.show()


if __name__ == "__main__":
    main()
