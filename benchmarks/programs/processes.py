"""Several processes on this machine: time of an iteration and memory against one process.

Every row is `hybrid check --json` of one model: one process with one thread, one with --cores threads, and as
many processes with one thread each, in turns.  On a loaded machine they mean little; its load is in the row.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.library.arguments import parser
from benchmarks.library.models import ROOT
from benchmarks.library.processes import child_environment
from benchmarks.library.records import Records

MODELS: dict[str, tuple[str, ...]] = {
    "kanban t=5": ("examples/kanban.prism", "--const", "t=5", "examples/kanban.props"),
    "fms n=5": ("examples/fms.prism", "--const", "n=5", "examples/fms.props"),
    "cluster N=128": ("examples/cluster.prism", "--const", "N=128", "examples/cluster.props"),
    "tandem c=511": ("examples/tandem.prism", "--const", "c=511", "examples/tandem.props"),
    "coin K=24": ("examples/coin.prism", "--const", "K=24", "examples/coin.props", "--prop", "2"),
}
"""Arguments of the check by name."""


def launcher() -> str:
    """Return the program that starts processes.

    Raises
    ------
    RuntimeError
        There is none.
    """
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise RuntimeError("mpiexec is not here: pip install '.[mpi]'")
    return found


def checked(command: tuple[str, ...], processes: int, threads: int, epsilon: float) -> dict[str, float]:
    """Run a check once; return what its first answer took.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    environment = child_environment() | {"HYBRID_NUM_THREADS": str(threads)}
    check = [sys.executable, "-m", "hybrid", "check", *command, "--json", "--epsilon", repr(epsilon)]
    if processes > 1:
        check = [launcher(), "-n", str(processes), *check, "--distributed"]
    begin = time.perf_counter()
    done = subprocess.run(check, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - begin
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(check)} ended with {done.returncode}: {done.stderr[-500:]}")
    answer = json.loads(done.stdout)["results"][0]
    return {
        "iteration_seconds": answer["seconds"] / max(answer["iterations"], 1),
        "iterations": answer["iterations"],
        "vector_bytes": answer["base_memory_bytes"],
        "matrix_bytes": answer["representation_memory_bytes"],
        "wall_seconds": wall,
    }


def measure(row: dict[str, Any], command: tuple[str, ...], cores: int, repeat: int, epsilon: float) -> None:
    """Run all forms of a check in turns, and fill a row."""
    forms = {"one": (1, 1), "threads": (1, cores), "processes": (cores, 1)}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in forms}
    for _ in range(repeat):
        for name, (processes, threads) in forms.items():
            found[name].append(checked(command, processes, threads, epsilon))
    for name, runs in found.items():
        for key in runs[0]:
            row[f"{name}_{key}"] = statistics.median(run[key] for run in runs)
    row["threads_speedup"] = row["one_iteration_seconds"] / row["threads_iteration_seconds"]
    row["processes_speedup"] = row["one_iteration_seconds"] / row["processes_iteration_seconds"]
    row["load"] = os.getloadavg()[0]


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "seconds")
    arguments.add_argument("--only", action="append", choices=tuple(MODELS), help="this one; may be repeated")
    arguments.add_argument("--cores", type=int, default=2, metavar="P", help="processes, or threads")
    arguments.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of every form")
    arguments.add_argument(
        "--epsilon", type=float, default=1e-4, metavar="E", help="precision of the answers"
    )
    options = arguments.parse_args()
    records = Records("processes", options, cores=options.cores, repeat=options.repeat)
    for name in options.only or MODELS:
        records.run({"model": name}, measure, MODELS[name], options.cores, options.repeat, options.epsilon)
    records.show()


if __name__ == "__main__":
    main()
