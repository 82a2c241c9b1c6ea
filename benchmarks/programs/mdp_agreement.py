"""Decision processes: counts and values beside what other checkers published, and beside each other.

Counts: every row of the table (columns `model`, `const`, `status`, `states`, `choices`, `transitions`,
`mecs`, `mec_states`, `sccs`, those that are not empty) whose model lies in the folder is written out and
decomposed on one thread of the host, and symbolically.  Values: every property file of `mdp_values` by
every engine, beside the exact value: a known one, else, up to about a thousand states, one in rational
numbers by policy iteration, which shares with the engines the symbolic model alone.  Where there is none,
the engines are compared with each other: values within 1e-6, bounds that meet.  Exit status 1 if anything
disagrees.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import hybrid
from benchmarks.library.arguments import existing, parser
from benchmarks.library.mdp_counts import mark, run_counts
from benchmarks.library.records import Records
from benchmarks.published.decision_processes import CASES, Case, known_value
from hybrid.analysis.exact.formulas import ExactFormulas
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import NotExactError
from hybrid.checking.checker import Checker
from hybrid.properties import (
    Filter,
    Probability,
    Properties,
    Property,
    Reward,
    load_properties,
    parse_properties,
    resolve_properties,
)
from mtbdd.build.model import SymbolicModel
from mtbdd.language import parse_constants

Row = dict[str, Any]

TOLERANCE = 1e-6
"""Relative: far above the precision asked for, far below an error that stops too early makes."""

EXACT_STATES = 1_100
"""States up to which values are also found in rational numbers."""


# ------------------------------------------------------------------ values


def properties_of(case: Case, folder: Path, model: SymbolicModel) -> Iterator[tuple[str, Properties]]:
    """Yield the properties to check, by file or text, resolved; faulty ones stay in, with their faults."""
    constants = parse_constants(case.constants)
    for name in (*case.files, *case.texts):
        path = folder / case.family / name
        parsed = parse_properties(name) if name in case.texts else load_properties(path)
        own = {c.name: constants[c.name] for c in parsed.constants if c.name in constants}
        yield name, resolve_properties(parsed, model.source, own, keep_faults=True)


def check_case(row: Row, case: Case, options: argparse.Namespace) -> None:
    """Check all properties of a case by every engine."""
    started = time.perf_counter()
    model = hybrid.load(options.models / case.model, parse_constants(case.constants), ignore_unknown=True)
    row["build_seconds"] = time.perf_counter() - started
    row["states"], row["transitions"] = model.n_states, model.n_transitions
    row["properties"] = []
    for name, properties in properties_of(case, options.models, model):
        found: list[Row] = [
            {"file": name, "index": i, "property": None, "runs": []}
            for i in range(len(properties.properties))
        ]
        row["properties"] += found
        for engine, backend in product(options.engines.split(","), options.backends.split(",")):
            answers = hybrid.check_all(
                model, properties, engine=engine, backend=backend, epsilon=options.epsilon
            )
            for entry, answer in zip(found, answers, strict=True):
                entry["property"] = answer.property
                entry["runs"].append(
                    {
                        "engine": engine,
                        "backend": backend,
                        "value": _plain(answer.value),
                        "lower": _plain(answer.lower),
                        "upper": _plain(answer.upper),
                        "error": answer.error and answer.error.replace(f"{options.models}/", ""),
                        "method": answer.statistics.method,
                        "iterations": answer.statistics.iterations,
                        "seconds": answer.seconds,
                    }
                )
        for entry, prop in zip(found, properties.properties, strict=True):
            known, source = known_value(case, entry["file"], entry["index"]), case.source
            if known is None:
                known, source = rational_value(model, prop), "rational"
            entry |= {"source": None if known is None else source, **judge(entry["runs"], known)}
    row["agrees"] = all(entry["agrees"] for entry in row["properties"])


def rational_value(model: SymbolicModel, prop: Property) -> Fraction | None:
    """Return a quantitative property's exact value; None if it has none, or the model is too large."""
    formula, members, choose = prop.formula, model.initial, min
    checker = Checker(model, CheckOptions())
    if isinstance(formula, Filter) and formula.operator in ("min", "max") and formula.states is not None:
        members, choose = checker.states(formula.states), min if formula.operator == "min" else max
        formula = formula.operand
    if not isinstance(formula, Probability | Reward) or formula.comparison is not None:
        return None
    if model.n_states > EXACT_STATES:
        return None
    try:
        values = ExactFormulas(model, checker.states).values(formula)
    except NotExactError:
        return None
    inside = model.indicator(members & model.reachable)
    value = choose(v for v, member in zip(values, inside, strict=True) if member)
    return value if isinstance(value, Fraction) else None


def judge(runs: list[Row], known: Fraction | bool | None) -> Row:
    """Compare the answers to a property with the known value, and with each other.

    Parameters
    ----------
    runs : list of dict
        Each with ``value``, ``lower``, ``upper`` and ``error``.
    known : Fraction, bool or None

    Returns
    -------
    dict
        ``known``, ``relative_error`` (the greatest), ``inside`` (the known value lies between all bounds),
        ``meet`` (bounds of every two runs meet), ``answered``, and ``agrees``.  A property that no engine
        answers counts as agreeing if they give the same reason.
    """
    answered = [run for run in runs if run["value"] is not None]
    verdict: Row = {
        "known": None if known is None else str(known).lower(),
        "answered": len(answered),
        "relative_error": None,
        "inside": None,
        "meet": None,
    }
    if not answered:
        return verdict | {"agrees": known is None and len({run["error"] for run in runs}) == 1}
    values = [run["value"] for run in answered]
    if isinstance(known, bool) or isinstance(values[0], bool):
        same = all(value is (values[0] if known is None else known) for value in values)
        return verdict | {"agrees": same and len(answered) == len(runs)}
    points = [float(known)] if known is not None else [float(value) for value in values]
    verdict["relative_error"] = max(_distance(float(value), point) for value in values for point in points)
    bounded = [run for run in answered if run["lower"] is not None]
    verdict["meet"] = all(_meet(one, other) for one, other in combinations(bounded, 2))
    if known is not None:
        verdict["inside"] = all(_between(run, float(known)) for run in bounded)
    close = verdict["relative_error"] <= TOLERANCE
    fine = close and verdict["meet"] and verdict["inside"] is not False
    return verdict | {"agrees": bool(fine and len(answered) == len(runs))}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    return value if value is None or isinstance(value, bool) else float(value)


def _distance(value: float, point: float) -> float:
    """Return the error relative to a value, absolute where that is 0."""
    if value == point:
        return 0.0
    return abs(value - point) / (abs(point) or 1.0)


def _slack(value: float) -> float:
    """Return how far a double may be from the number that it stands for, after a few operations."""
    return 1e-13 * abs(value)


def _between(run: Row, value: float) -> bool:
    return bool(run["lower"] - _slack(value) <= value <= run["upper"] + _slack(value))


def _meet(one: Row, other: Row) -> bool:
    low, high = max(one["lower"], other["lower"]), min(one["upper"], other["upper"])
    return bool(low <= high + _slack(high))


def run_values(records: Records, options: argparse.Namespace) -> None:
    """Check every case."""
    for case in CASES:
        if (options.only and case.family not in options.only) or (case.large and not options.large):
            continue
        if not (options.models / case.model).is_file():
            print(f"    {case.model}: no such file, left out", flush=True)
            continue

        identity = {"part": "values", "model": case.model, "constants": case.constants}
        row = records.run(identity, check_case, case, options)
        print(mark(row), f"{case.model:32} {case.constants:20} {row['row_seconds']:7.1f} s", flush=True)
        for entry in row.get("properties", []):
            if not entry.get("agrees"):
                print("      ", entry["file"], entry["index"], entry, flush=True)


def main() -> int:
    """Run and write the record."""
    arguments = parser(__doc__, "seconds", "resume")
    arguments.add_argument("--models", type=existing, required=True, help="a folder for each family")
    arguments.add_argument("--counts", type=existing, help="table with the counts of other checkers (CSV)")
    arguments.add_argument("--engines", default="hybrid,explicit")
    arguments.add_argument("--backends", default="cpu", help="cpu, gpu, or both with a comma")
    arguments.add_argument("--only", action="append", help="a family, such as wlan; may be repeated")
    arguments.add_argument("--large", action="store_true", help="cases of more than about 10^5 states too")
    arguments.add_argument("--epsilon", type=float, default=1e-8)
    options = arguments.parse_args()
    facts = {"epsilon": options.epsilon, "tolerance": TOLERANCE}
    records = Records("mdp_agreement", options, **facts)
    run_values(records, options)
    if options.counts:
        run_counts(records, options.models, options.counts, options.only)
    wrong = [row for row in records.rows if not row.get("agrees")]
    print(f"{len(records.rows) - len(wrong)} of {len(records.rows)} rows agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
