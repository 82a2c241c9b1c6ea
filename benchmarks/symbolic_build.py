"""Time of the symbolic build, from text to offset-labelled matrix, beside PRISM's model construction.

Usage: python benchmarks/symbolic_build.py [--models FOLDER --prism prism.csv] [--out FILE.json]

With the two options every distinct model of the table is built from the folder's files, and the
table's construction time stands beside; without them the project's examples are built.  Each model
is built three times in one process after one warm-up build; the median counts.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from record import environment

from mtbdd.build import build_model
from mtbdd.language import load_model, parse_constants, resolve

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
OWN = (
    ("tandem.prism", "c=1023"),
    ("kanban.prism", "t=6"),
    ("fms.prism", "n=6"),
    ("cluster.prism", "N=256"),
    ("brp.prism", "N=512,MAX=50"),
)


def cases(models: Path | None, prism: Path | None) -> Iterator[tuple[Path, str, dict[str, str]]]:
    """Yield file, constants and PRISM's row."""
    if models is None or prism is None:
        for name, constants in OWN:
            yield EXAMPLES / name, constants, {}
        return
    best: dict[tuple[str, str], dict[str, str]] = {}
    with prism.open() as lines:
        for row in csv.DictReader(lines):
            key = (row["model"], row["const"])
            if row["t_model_construction_s"] and (
                key not in best
                or float(row["t_model_construction_s"]) < float(best[key]["t_model_construction_s"])
            ):
                best[key] = row
    for (model, constants), row in best.items():
        path = Path(*Path(model).parts[1:])
        yield models / path, constants, row


def measure(path: Path, constants: str, row: dict[str, str], repeats: int) -> dict[str, Any]:
    """Build one model several times."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        model = build_model(resolve(load_model(path), parse_constants(constants)))
        times.append(time.perf_counter() - start)
    found = model.statistics
    result: dict[str, Any] = {
        "model": path.name,
        "constants": constants,
        "seconds": statistics.median(times),
        "states": found.states,
        "transitions": found.transitions,
        "mtbdd_nodes": found.mtbdd_nodes,
    }
    if row:
        prism = float(row["t_model_construction_s"])
        result["prism_seconds"] = prism
        result["ratio"] = prism / result["seconds"] if result["seconds"] else None
        result["same_sizes"] = [found.states, found.transitions, found.mtbdd_nodes] == [
            int(row[k]) for k in ("states", "transitions", "mtbdd_nodes")
        ]
    return result


def main() -> None:
    """Run and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", type=Path, help="folder of the model files that the table names")
    parser.add_argument("--prism", type=Path, help="table with PRISM's construction times (CSV)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="where to write the JSON record")
    options = parser.parse_args()
    build_model(resolve(load_model(EXAMPLES / "kanban.prism"), {"t": 2}))
    rows = []
    for path, constants, row in cases(options.models, options.prism):
        if not path.exists():
            print(f"{path.name:14} {constants:14}  no such file, left out", flush=True)
            continue
        result = measure(path, constants, row, options.repeats)
        rows.append(result)
        beside = f"  PRISM {result['prism_seconds']:.3f} s" if row else ""
        print(f"{path.name:14} {constants:14} {result['seconds']:8.3f} s{beside}", flush=True)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"environment": environment(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
