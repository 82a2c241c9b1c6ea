"""A start: how long whole processes take, and their memory, once files are read and functions are compiled.

Each command is run once to compile what it needs, then --repeat times. Byte code is written, as it is where
the package is installed. On a loaded machine wall times say little; processor times are given beside them.
Peak memory is known of processes that have more than the one that starts them.
"""

from __future__ import annotations

import os
import statistics
import sys
from typing import Any

from benchmarks.library.arguments import parser
from benchmarks.library.processes import run_whole
from benchmarks.library.records import Records


def _small(name: str, constants: str) -> tuple[str, ...]:
    """Return the arguments of a check of an example, of all its properties."""
    files = (f"examples/{name}.prism", f"examples/{name}.props")
    return ("-m", "hybrid", "check", *files, *(("--const", constants) if constants else ()))


_KANBAN = ("examples/kanban.prism", "examples/kanban.props", "--const", "t=3")

STARTS: dict[str, tuple[tuple[str, ...], float | None]] = {
    "Python alone": (("-c", "pass"), None),
    "import numba": (("-c", "import numba"), None),
    "import hybrid": (("-c", "import hybrid"), 0.03),
    "hybrid --help": (("-m", "hybrid", "--help"), 0.06),
    "hybrid info kanban t=3": (("-m", "hybrid", "info", _KANBAN[0], *_KANBAN[2:]), None),
    "hybrid levels kanban t=10": (("-m", "hybrid", "levels", _KANBAN[0], "--const", "t=10"), 1.5),
    **{
        f"hybrid check {name} {constants}": (_small(name, constants), 0.6)
        for name, constants in (("kanban", "t=3"), ("cluster", "N=20"), ("tandem", "c=90"))
    },
    **{
        f"hybrid check {name} {constants}".rstrip(): (_small(name, constants), 0.4)
        for name, constants in (
            ("biased_die", "N=20,first=0"),
            ("brp", "N=16,MAX=2"),
            ("cluster", "N=8"),
            ("coin", "K=2"),
            ("fms", "n=1"),
            ("herman", ""),
            ("jobs", "N=3"),
            ("kanban", "t=1"),
            ("philosophers", ""),
            ("polling", ""),
            ("relay", "H=4,M=3"),
            ("tandem", "c=15"),
        )
    },
}
"""Arguments of Python by name, and the wall seconds that they should not exceed."""


def measure(row: dict[str, Any], arguments: tuple[str, ...], repeat: int, goal: float | None) -> None:
    """Run a command of Python's, once to compile and then to measure, and fill a row.

    Raises
    ------
    RuntimeError
        If the command fails.
    """
    runs = []
    for _ in range(1 + repeat):
        run = run_whole([sys.executable, *arguments])
        if run.status != 0:
            text = (run.printed + run.errors)[-500:]
            raise RuntimeError(f"{row['command']} ended with {run.status}: {text}")
        runs.append(run)
    first, *others = runs
    peaks = [run.known_peak for run in others]
    row.update(
        first_seconds=first.wall_seconds,
        wall_seconds=statistics.median(run.wall_seconds for run in others),
        processor_seconds=statistics.median(run.cpu_seconds for run in others),
        all_wall_seconds=[run.wall_seconds for run in others],
        all_processor_seconds=[run.cpu_seconds for run in others],
        peak_rss_bytes=None if None in peaks else max(run.peak_rss_bytes for run in others),
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
