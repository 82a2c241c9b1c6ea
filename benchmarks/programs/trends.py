"""Main figures of the records at every commit that kept one: from the history of git, nothing is measured.

The page docs/trends.md shows them. Versions of a record that lack a figure's field are left out.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.library.arguments import parser
from benchmarks.library.records import Records, Row
from benchmarks.rendering.figures import FigureError, evaluate

ROOT = Path(__file__).resolve().parents[2]
RESULTS = "benchmarks/results"

FIGURES: tuple[tuple[str, str, str], ...] = (
    (
        "product with two threads over SciPy's, speed-up (geometric mean, over a million transitions)",
        "cpu_iteration",
        'geomean(cpu_iteration.rows["transitions>1000000"].speedup)',
    ),
    (
        "products until bounds hold, over those of value iteration (geometric mean)",
        "certified_products",
        "geomean(certified_products.rows.ratio)",
    ),
    (
        "building a model, seconds (geometric mean)",
        "symbolic_build",
        "geomean(symbolic_build.rows.seconds)",
    ),
    (
        "kanban of a billion states between bounds on a card, seconds of the process",
        "whole_run_certified",
        "whole_run_certified.rows[0].wall_seconds",
    ),
    (
        "import hybrid, seconds of the process, compiled before",
        "first_use",
        "first_use.rows[0].again_seconds",
    ),
)
"""Figure, record, and the expression of `benchmarks.rendering.figures` that reads the one from the other."""


def versions(record: str) -> Iterator[Row]:
    """Yield a record as it stood after each commit that changed it, the oldest first."""
    path = f"{RESULTS}/{record}.json"
    for commit in _git("log", "--reverse", "--format=%H", "--", path).split():
        try:
            yield {**json.loads(_git("show", f"{commit}:{path}")), "file": record}
        except subprocess.CalledProcessError:
            continue  # the commit took it away


def points(record: str, expression: str) -> list[Row]:
    """Return the value of a figure in every version of its record: date and commit of the measurement."""
    found: dict[tuple[str, str], Row] = {}
    for version in versions(record):
        made = version["environment"]
        try:
            value = float(evaluate(expression, {record: version}.get))
        except FigureError:
            continue
        point = {"date": made["date"][:10], "commit": made["commit"], "processor": made.get("processor")}
        # A record that was committed row by row counts as it was in the end.
        found[point["date"], point["commit"]] = {**point, "value": value}
    return list(found.values())


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> int:
    """Write the record; return the exit status."""
    arguments = parser(__doc__)
    arguments.set_defaults(out=ROOT / RESULTS / "trends.json")
    records = Records("trends", arguments.parse_args())
    for name, record, expression in FIGURES:

        def collect(row: Row, record: str = record, expression: str = expression) -> None:
            row["points"] = points(record, expression)

        records.run({"name": name, "record": record}, collect)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
