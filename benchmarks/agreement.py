"""Values of the engines beside reference values obtained elsewhere, on every backend and both levels.

Usage: python benchmarks/agreement.py --models FOLDER --values values.csv [--set thesis] [--quick]
       [--engines hybrid,explicit] [--backends cpu,reference] [--levels min-memory,min-time] [--epsilon 1e-10]
       [--out FILE.json]

The table has one row a value: set, model and property file (below the folder; or the property's text),
constants, place of the property in its file, value, relative tolerance.  Commas separate several sets.  The
explicit engine has no levels and runs on the cpu alone.  Exit status 1 if any value disagrees.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from record import environment

from hybrid import check_all, load
from hybrid.properties import load_properties, parse_properties, resolve_properties
from mtbdd.language import parse_constants


def compare(
    row: dict[str, str], folder: Path, runs: list[tuple[str, str, str]], epsilon: float
) -> list[dict[str, Any]]:
    """Check one row with every engine, backend and level of `runs`."""
    constants = parse_constants(row["const"])
    model = load(folder / row["model"], constants, ignore_unknown=True)
    path = folder / row["property"]
    properties = load_properties(path) if path.is_file() else parse_properties(row["property"])
    own = {c.name: constants[c.name] for c in properties.constants if c.name in constants}
    resolved = resolve_properties(properties, model.source, own)
    expected, tolerance = float(row["value"]), float(row["rel"])
    results = []
    for engine, backend, level in runs:
        start = time.perf_counter()
        options = {"engine": engine, "backend": backend, "level": level, "epsilon": epsilon}
        answer = check_all(model, resolved, **options)[int(row["index"])]
        error = None
        if answer.value is not None:
            error = abs(float(answer.value) - expected) / abs(expected) if expected else abs(answer.value)
        results.append(
            {
                "model": row["model"],
                "constants": row["const"],
                "property": row["property"],
                "engine": engine,
                "backend": backend,
                "policy": level,
                "level": answer.statistics.level,
                "value": answer.value,
                "lower": answer.lower,
                "upper": answer.upper,
                "method": answer.statistics.method,
                "expected": expected,
                "inside": _inside(expected, answer.lower, answer.upper),
                "relative_error": error,
                "agrees": error is not None and error <= tolerance,
                "error": answer.error,
                "iterations": answer.statistics.iterations,
                "seconds": time.perf_counter() - start,
            }
        )
    return results


def _inside(expected: float, lower: Any, upper: Any) -> bool | None:
    """Whether the expected value lies between the bounds, give or take its rounding; None without bounds."""
    if lower is None or upper is None:
        return None
    slack = 1e-13 * abs(expected)
    return bool(float(lower) - slack <= expected <= float(upper) + slack)


def main() -> int:
    """Run and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--values", type=Path, required=True)
    parser.add_argument("--set", default="thesis")
    parser.add_argument("--quick", action="store_true", help="only rows marked quick")
    parser.add_argument("--engines", default="hybrid")
    parser.add_argument("--backends", default="cpu,reference")
    parser.add_argument("--levels", default="min-memory,min-time")
    parser.add_argument("--epsilon", type=float, default=1e-10)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with options.values.open() as lines:
        rows = [r for r in csv.DictReader(lines) if r["set"] in options.set.split(",")]
    if options.quick:
        rows = [r for r in rows if r["quick"] == "1"]
    runs = []
    for engine in options.engines.split(","):
        if engine == "explicit":
            runs.append((engine, "cpu", "auto"))
            continue
        runs += [
            (engine, b, level) for b in options.backends.split(",") for level in options.levels.split(",")
        ]
    results: list[dict[str, Any]] = []
    for row in rows:
        for result in compare(row, options.models, runs, options.epsilon):
            results.append(result)
            mark = "ok " if result["agrees"] else "OFF"
            error = "-" if result["relative_error"] is None else f"{result['relative_error']:.1e}"
            place = f"{result['model']} {result['constants']} {result['property']}"
            print(
                f"{mark} {place:62} {result['engine']:8} {result['backend']:9} {result['policy']:10} "
                f"level {result['level']!s:>4} {result['method']!s:14} "
                f"error {error:>8} {result['iterations']:>7} iterations {result['seconds']:8.2f} s "
                f"{result['error'] or ''}",
                flush=True,
            )
    wrong = sum(not r["agrees"] for r in results)
    bounded = [r for r in results if r["inside"] is not None]
    outside = sum(not r["inside"] for r in bounded)
    print(
        f"{len(results) - wrong} of {len(results)} values agree; "
        f"{len(bounded) - outside} of {len(bounded)} lie between their bounds"
    )
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        record = {"environment": environment(), "epsilon": options.epsilon, "rows": results}
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
