"""Values of the engines beside reference values obtained elsewhere, on every backend and both levels.

The table has one row a value: set, model and property file (below the folder; or the property's text),
constants, place of the property in its file, value, relative tolerance.  Commas separate several sets.  The
explicit engine has no levels and runs on the cpu alone.  Exit status 1 if any value disagrees.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.library.arguments import existing, parser
from benchmarks.library.records import Records, Row
from hybrid import check_all, load
from hybrid.base.option_types import BackendName, Engine, LevelOption
from hybrid.properties import load_properties, parse_properties, resolve_properties
from mtbdd.language import parse_constants


def compare(
    row: Row,
    given: dict[str, str],
    folder: Path,
    run: tuple[Engine, BackendName, LevelOption],
    epsilon: float,
) -> None:
    """Check one row of the table with an engine, a backend and a level."""
    constants = parse_constants(given["const"])
    model = load(folder / given["model"], constants, ignore_unknown=True)
    path = folder / given["property"]
    properties = load_properties(path) if path.is_file() else parse_properties(given["property"])
    own = {c.name: constants[c.name] for c in properties.constants if c.name in constants}
    resolved = resolve_properties(properties, model.source, own)
    expected, tolerance = float(given["value"]), float(given["rel"])
    engine, backend, level = run
    start = time.perf_counter()
    answer = check_all(model, resolved, engine=engine, backend=backend, level=level, epsilon=epsilon)[
        int(given["index"])
    ]
    error = None
    if answer.value is not None:
        error = abs(float(answer.value) - expected) / (abs(expected) or 1.0)
    row.update(
        level=answer.statistics.level,
        value=answer.value,
        lower=answer.lower,
        upper=answer.upper,
        method=answer.statistics.method,
        expected=expected,
        inside=_inside(expected, answer.lower, answer.upper),
        relative_error=error,
        agrees=error is not None and error <= tolerance,
        reason=answer.error,
        iterations=answer.statistics.iterations,
        seconds=time.perf_counter() - start,
    )


def _inside(expected: float, lower: Any, upper: Any) -> bool | None:
    """Whether the expected value lies between the bounds, give or take its rounding; None without bounds."""
    if lower is None or upper is None:
        return None
    slack = 1e-13 * abs(expected)
    return bool(float(lower) - slack <= expected <= float(upper) + slack)


def runs_of(options: argparse.Namespace) -> list[tuple[str, str, str]]:
    """Return engine, backend and level of every run."""
    found: list[tuple[str, str, str]] = []
    for engine in options.engines.split(","):
        places = product(options.backends.split(","), options.levels.split(","))
        found += [("explicit", "cpu", "auto")] if engine == "explicit" else [(engine, *p) for p in places]
    return found


def main() -> int:
    """Run and write the record."""
    arguments = parser(__doc__, "seconds", "resume")
    arguments.add_argument("--models", type=existing, required=True, metavar="FOLDER")
    arguments.add_argument("--values", type=existing, required=True, metavar="FILE.csv")
    arguments.add_argument("--set", default="thesis", help="with commas")
    arguments.add_argument("--quick", action="store_true", help="only rows marked quick")
    arguments.add_argument("--engines", default="hybrid", help="with commas: hybrid, explicit")
    arguments.add_argument("--backends", default="cpu,reference", help="with commas")
    arguments.add_argument("--levels", default="min-memory,min-time", help="with commas")
    arguments.add_argument("--epsilon", type=float, default=1e-10)
    options = arguments.parse_args()
    with options.values.open() as lines:
        table = [r for r in csv.DictReader(lines) if r["set"] in options.set.split(",")]
    records = Records("agreement", options, epsilon=options.epsilon)
    for given, run in product([r for r in table if not options.quick or r["quick"] == "1"], runs_of(options)):
        identity = {"model": given["model"], "constants": given["const"], "property": given["property"]}
        identity |= {"index": given["index"], **dict(zip(("engine", "backend", "policy"), run, strict=True))}
        row = records.run(identity, compare, given, options.models, run, options.epsilon)
        mark = "ok " if row.get("agrees") else "OFF"
        print(
            mark,
            *identity.values(),
            row.get("relative_error"),
            row.get("error") or row["reason"] or "",
            flush=True,
        )
    wrong = sum(not row.get("agrees") for row in records.rows)
    bounded = [row["inside"] for row in records.measured if row["inside"] is not None]
    print(
        f"{len(records.rows) - wrong} of {len(records.rows)} values agree; "
        f"{sum(bounded)} of {len(bounded)} lie between their bounds"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
