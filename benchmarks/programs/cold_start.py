"""A start: how long whole processes take once files are in memory and functions are compiled.

Each command is run once to compile what it needs, then --repeat times. Byte code is written, as it is where
the package is installed. On a loaded machine wall times say little; processor times are given beside them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from typing import Any

from benchmarks.library.arguments import parser
from benchmarks.library.models import ROOT
from benchmarks.library.processes import child_environment
from benchmarks.library.records import Records

_KANBAN = ("examples/kanban.prism", "examples/kanban.props", "--const", "t=3")

STARTS: dict[str, tuple[tuple[str, ...], float | None]] = {
    "Python alone": (("-c", "pass"), None),
    "import numba": (("-c", "import numba"), None),
    "import hybrid": (("-c", "import hybrid"), 0.03),
    "hybrid --help": (("-m", "hybrid", "--help"), 0.06),
    "hybrid info kanban t=3": (("-m", "hybrid", "info", _KANBAN[0], *_KANBAN[2:]), None),
    "hybrid check kanban t=3": (("-m", "hybrid", "check", *_KANBAN), 1.0),
}
"""Arguments of Python by name, and the wall seconds that they should not exceed."""


def measure(row: dict[str, Any], arguments: tuple[str, ...], repeat: int, goal: float | None) -> None:
    """Run a command of Python's, once to compile and then to measure, and fill a row.

    Raises
    ------
    RuntimeError
        If the command fails.
    """
    environment = child_environment()
    wall, processor = [], []
    for _ in range(1 + repeat):
        before, begin = os.times(), time.perf_counter()
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        wall.append(time.perf_counter() - begin)
        after = os.times()
        used = after.children_user + after.children_system
        processor.append(used - before.children_user - before.children_system)
        if done.returncode != 0:
            raise RuntimeError(f"{row['command']} ended with {done.returncode}: {done.stderr[-500:]}")
    row.update(
        first_seconds=wall[0],
        wall_seconds=statistics.median(wall[1:]),
        processor_seconds=statistics.median(processor[1:]),
        all_wall_seconds=wall[1:],
        all_processor_seconds=processor[1:],
        goal_seconds=goal,
        load=os.getloadavg()[0],
    )


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "seconds")
    arguments.add_argument("--only", action="append", choices=tuple(STARTS), help="this one; may be repeated")
    arguments.add_argument("--repeat", type=int, default=11, metavar="N", help="runs after the first")
    options = arguments.parse_args()
    records = Records("cold_start", options, repeat=options.repeat)
    for name in options.only or STARTS:
        command, goal = STARTS[name]
        identity = {"name": name, "command": " ".join(["python", *command])}
        records.run(identity, measure, command, options.repeat, goal)
    records.show()


if __name__ == "__main__":
    main()
