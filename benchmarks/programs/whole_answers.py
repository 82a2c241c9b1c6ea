"""Time to answer: `hybrid check` from start to exit for [Tealdi13]'s rows and for decision processes.

A row is a question and a backend: cpu and gpu are the hybrid engine (`--engine hybrid`), gpu-explicit is the
explicit one with the format that it chooses.  Methods are the command's own, with bounds.  Bytecode is there
from the beginning, as installers leave it.  Every row is measured once before any is repeated, cheap
questions first; a run after which more compiled kernels are kept than before does not count, and is made
again.  Then all rows are repeated in turn until each has --repeat runs or the time is over, but for those of
more than --repeat-seconds; the median counts.  A process that takes longer than --limit is ended, and its row
says so; with --past F also one that takes F times as long as the same question with the first backend (15 s
at least).  Bounds of all backends have to meet.

Runs of other checkers, made elsewhere, are taken over from tables with --prism and --storm; --peers-where
says on what they were made.
"""

from __future__ import annotations

import statistics
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

from benchmarks.library.arguments import existing, parser
from benchmarks.library.device import require_device
from benchmarks.library.peer_runs import peer_runs
from benchmarks.library.processes import check_whole, compile_bytecode
from benchmarks.library.records import Records, Row
from benchmarks.library.whole_cases import Question, questions

BACKENDS: dict[str, tuple[str, ...]] = {
    "cpu": ("--engine", "hybrid", "--backend", "cpu"),
    "gpu": ("--engine", "hybrid", "--backend", "gpu"),
    "gpu-explicit": ("--engine", "explicit", "--backend", "gpu"),
}
"""Arguments by column."""

LEAST_PAST = 15.0
"""Seconds that --past leaves every process."""

MOST_COMPILING = 3
"""Runs of a row, in vain, in which kernels are compiled."""

_OF_ANSWER = (
    "value", "lower", "upper", "kind", "method", "level", "storage", "iterations", "products",
    "seconds_per_iteration", "representation_memory_bytes",
)  # fmt: skip


def measure(row: Row, question: Question, limit: float, options: Namespace, records: Records) -> None:
    """Answer a question with one backend, with kernels that are compiled, and fill a row."""
    arguments = _command(question, row["backend"], options)
    row["place"] = question.place
    row["command"] = f"hybrid check {question.shown(options.models)} {' '.join(BACKENDS[row['backend']])}"
    first: list[float] = []
    while True:
        run = check_whole(arguments, limit)
        if not run["compiled_kernels"] or len(first) == MOST_COMPILING:
            break
        first.append(run["wall_seconds"])
    if first:
        row["first_seconds"] = first
    row.update(all_seconds=[], loads=[], compiled_kernels=run["compiled_kernels"])
    if "printed" not in run:
        row["over_seconds"] = limit
        row["loads"].append(run["load"])
        _sizes(row, check_whole(("info", *question.info_arguments, "--json"), limit).get("printed"))
        return
    (result,) = run["printed"]["results"]
    _sizes(row, run["printed"])
    if result["error"] is not None:
        row["refused"] = result["error"]
    row.update({name: result[name] for name in _OF_ANSWER}, check_seconds=result["seconds"])
    _count(row, run)
    _compare(row, records.rows)


def repeat(rows: list[tuple[Row, Question]], options: Namespace, records: Records) -> None:
    """Measure the rows again in turn, until each has so many runs or the time is over."""
    for runs in range(1, options.repeat):
        for row, question in rows:
            seconds = row.get("wall_seconds")
            if "error" in row or "refused" in row or seconds is None or len(row["all_seconds"]) > runs:
                continue
            if seconds > options.repeat_seconds or records.seconds_left < seconds:
                continue
            try:
                run = check_whole(_command(question, row["backend"], options), options.limit)
                if "printed" not in run:
                    raise RuntimeError(f"took {seconds:.1f} s, and more than {options.limit:g} s again")
                _count(row, run)
            except RuntimeError as error:
                row["error"] = str(error)
            records.write()


def _count(row: Row, run: Row) -> None:
    """Add a run to its row."""
    row["all_seconds"].append(run["wall_seconds"])
    row["loads"].append(run["load"])
    row["wall_seconds"] = statistics.median(row["all_seconds"])
    row["runs"] = len(row["all_seconds"])
    row["peak_rss_bytes"] = max(row.get("peak_rss_bytes", 0), run["peak_rss_bytes"])
    row["cpu_seconds"] = run["cpu_seconds"]


def _command(question: Question, backend: str, options: Namespace) -> tuple[str, ...]:
    """Return the arguments of `hybrid`."""
    return (
        "check",
        *question.check_arguments,
        *BACKENDS[backend],
        "--epsilon",
        f"{options.epsilon:g}",
        "--json",
    )


def _sizes(row: Row, printed: Row | None) -> None:
    """Add the sizes of the model, if they are known."""
    if printed is not None:
        model = printed["model"]
        row.update(states=model["states"], transitions=model["transitions"], type=model["type"])
        row["model_build_seconds"] = model["build_seconds"]


def _compare(row: Row, rows: list[Row]) -> None:
    """Compare an answer with those of other backends to the same question.

    Raises
    ------
    ArithmeticError
        If their bounds have nothing in common.
    """
    for other in rows:
        if other is row or other["name"] != row["name"] or None in (row["lower"], other.get("lower")):
            continue
        if max(row["lower"], other["lower"]) > min(row["upper"], other["upper"]):
            raise ArithmeticError(f"the bounds do not meet those of {other['backend']}")


def limit_of(name: str, options: Namespace, records: Records) -> float:
    """Return the seconds that a process may take."""
    longest = float(options.limit)
    for row in records.measured if options.past is not None else ():
        if row["name"] == name and row["backend"] == options.backends[0] and "wall_seconds" in row:
            longest = min(longest, max(LEAST_PAST, options.past * row["wall_seconds"]))
    return round(longest, 1)


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "only", "seconds", "resume")
    add = arguments.add_argument
    add("--backends", nargs="+", choices=tuple(BACKENDS), default=["cpu"], help="columns (default cpu)")
    add(
        "--models",
        type=existing,
        metavar="FOLDER",
        help="published models; without it their rows are left out",
    )
    add("--limit", type=float, default=60.0, metavar="S", help="longest process (default 60)")
    add("--past", type=float, metavar="F", help="end others after F times the first backend's time")
    add("--repeat", type=int, default=3, metavar="N", help="runs that count (default 3)")
    add("--repeat-seconds", type=float, default=10.0, metavar="S", help="count longer ones once (default 10)")
    add("--epsilon", type=float, default=1e-8, help="precision (default 1e-8, as the command's own)")
    add("--prism", type=existing, metavar="FILE.csv", help="runs of PRISM, made elsewhere")
    add("--storm", type=existing, metavar="FILE.csv", help="runs of Storm, made elsewhere")
    add("--peers-where", default="another machine", metavar="TEXT", help="the machine of these runs")
    options = arguments.parse_args()
    if any(backend.startswith("gpu") for backend in options.backends):
        require_device("use --backends cpu to try the program")
    with tempfile.TemporaryDirectory() as folder:
        known = questions(options.models, Path(folder))
        names = [question.name for question in known]
        if unknown := set(options.only or ()) - set(names):
            raise SystemExit(f"--only: expected one of {', '.join(names)}, got {', '.join(sorted(unknown))}")
        peers = peer_runs(options.prism, options.storm)
        facts: dict[str, Any] = {"backends": options.backends, "epsilon": options.epsilon}
        facts |= {"limit": options.limit, "past": options.past, "repeat_seconds": options.repeat_seconds}
        if peers:
            own = {name: peers[name] for name in names if name in peers}
            facts["peers"] = {"where": options.peers_where, "runs": own}
        compile_bytecode()
        records = Records("whole_answers", options, **facts)
        rows: list[tuple[Row, Question]] = []
        for question in sorted(known, key=lambda question: question.cost):
            if options.only is not None and question.name not in options.only:
                continue
            for backend in options.backends:
                limit = limit_of(question.name, options, records)
                identity = {"name": question.name, "backend": backend}
                rows.append((records.run(identity, measure, question, limit, options, records), question))
        repeat(rows, options, records)
        records.write()
    records.show()


if __name__ == "__main__":
    main()
