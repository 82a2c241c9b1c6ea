"""Starts, builds, whole answers and products of this tree beside those of another commit, in turn.

Every row runs the same command with the packages of both trees, in turn and in either order, as often as
--rounds says, after a run of each that does not count.  Processes are whole ones, with bytecode and compiled
functions kept; products are timed within a process.  What counts is the median of the ratios of neighbouring
runs, this tree's time over the other's.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.library.arguments import parser
from benchmarks.library.models import EXAMPLES, ROOT
from benchmarks.library.processes import child_environment, run_python, tree_of
from benchmarks.library.records import Records, Row

COMMANDS = {
    "help": ["--help"],
    "levels of kanban, t=10": ["levels", "kanban.prism", "--const", "t=10"],
    "build of kanban, t=5": ["info", "kanban.prism", "--const", "t=5"],
    "build of coin, K=8": ["info", "coin.prism", "--const", "K=8"],
    "kanban, t=3": ["check", "kanban.prism", "kanban.props", "--const", "t=3"],
    "cluster, N=32": ["check", "cluster.prism", "cluster.props", "--const", "N=32"],
    "tandem, c=63": ["check", "tandem.prism", "tandem.props", "--const", "c=63"],
    "brp, N=64": ["check", "brp.prism", "brp.props", "--const", "N=64,MAX=5"],
    "coin, K=4": ["check", "coin.prism", "coin.props", "--const", "K=4"],
    "jobs, N=2, explicit": ["check", "jobs.prism", "jobs.props", "--const", "N=2", "--engine", "explicit"],
}
"""Arguments of `hybrid`; models are those of the examples."""

PRODUCTS = {"kanban, t=4": ("kanban.prism", {"t": 4}), "tandem, c=255": ("tandem.prism", {"c": 255})}

PRODUCT = """
import json, sys, time
import numpy as np
import hybrid

path, constants, count = json.loads(sys.argv[1])
matrix = hybrid.inject(hybrid.load(path, constants=constants).transitions, backend="cpu")
x, out = np.random.default_rng(0).random(matrix.shape[1]), np.empty(matrix.shape[0])
for _ in range(5):
    matrix.multiply(x, out)
begin = time.perf_counter()
for _ in range(count):
    matrix.multiply(x, out)
print(json.dumps({"seconds": time.perf_counter() - begin, "digest": float(out.sum()).hex()}))
"""

_COUNT = 200


def command_run(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Run a command with the packages of a folder; return its wall and processor seconds."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "hybrid", *arguments],
        cwd=EXAMPLES,
        env=child_environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise RuntimeError(f"hybrid {' '.join(arguments)} ended with {done.returncode}: {done.stderr[-300:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def product_run(case: tuple[str, dict[str, int]], folder: Path) -> tuple[float, float]:
    """Multiply with the packages of a folder; return the seconds twice."""
    path, constants = case
    found = run_python(PRODUCT, [str(EXAMPLES / path), constants, _COUNT], folder)
    return found["seconds"], found["seconds"]


def measure(row: Row, run: Callable[..., tuple[float, float]], case: Any, other: Path, rounds: int) -> None:
    """Run a case with both trees in turn, after a run of each that does not count."""
    trees = ROOT, other
    for tree in trees:
        run(case, tree)
    wall: list[list[float]] = [[], []]
    processor: list[list[float]] = [[], []]
    for number in range(rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            seconds, used = run(case, trees[which])
            wall[which].append(seconds)
            processor[which].append(used)
    row.update(
        seconds=statistics.median(wall[0]),
        other_seconds=statistics.median(wall[1]),
        ratio=statistics.median(own / theirs for own, theirs in zip(*wall, strict=True)),
        processor_ratio=statistics.median(own / theirs for own, theirs in zip(*processor, strict=True)),
        all_seconds=wall[0],
        all_other_seconds=wall[1],
        load=os.getloadavg()[0],
    )


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "only", "seconds", "resume")
    arguments.add_argument(
        "--against", metavar="COMMIT", required=True, help="whose packages are the other ones"
    )
    arguments.add_argument("--rounds", type=int, default=7, metavar="N", help="runs of each")
    options = arguments.parse_args()
    with tree_of(options.against) as other:
        records = Records("commit_pairs", options, against=options.against, rounds=options.rounds)
        for kind, run, cases in (("process", command_run, COMMANDS), ("products", product_run, PRODUCTS)):
            for name, case in cases.items():
                if not options.only or name in options.only:
                    records.run({"name": name, "kind": kind}, measure, run, case, other, options.rounds)
        records.show()


if __name__ == "__main__":
    main()
