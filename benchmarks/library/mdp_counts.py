"""Counts of decision processes: sizes and numbers of components beside those of other checkers."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

import numpy as np

import hybrid
from benchmarks.library.records import Records
from hybrid.analysis.graphs import ModelGraph, decompose, mec_decomposition, model_graph
from mtbdd.graph.components import model_components, model_end_components
from mtbdd.language import parse_constants

__all__ = ["COUNTS", "mark", "run_counts"]

Row = dict[str, Any]

COUNTS = ("states", "choices", "transitions", "sccs", "mecs", "mec_states")


def model_path(folder: Path, text: str) -> Path | None:
    """Return the file that a table names, which may lie in a folder of another name; None without one."""
    path = Path(text)
    parents = [parent.name for parent in path.parents if parent.name]
    return next((p for name in parents if (p := folder / name / path.name).is_file()), None)


def count(row: Row, path: Path, expected: dict[str, str]) -> None:
    """Add counts of a model, one thread's processor time and which counts equal the table's to the row."""
    started = time.perf_counter()
    model = hybrid.load(path, parse_constants(expected["const"]))
    row["build_seconds"] = time.perf_counter() - started
    graph = model_graph(model)
    started = time.process_time()
    components = decompose(graph)
    row["scc_seconds"] = time.process_time() - started
    started = time.process_time()
    ends = mec_decomposition(graph)
    row["mec_seconds"] = time.process_time() - started
    row |= {
        "states": graph.n_states,
        "choices": graph.n_choices,
        "transitions": graph.n_transitions,
        "sccs": components.count,
        "mecs": ends.count,
        "mec_states": int((ends.labels >= 0).sum()),
    }
    started = time.process_time()
    sets, end_sets = model_components(model), model_end_components(model)
    row["symbolic_seconds"] = time.process_time() - started
    row["symbolic"] = {
        "sccs": len(sets.sizes) + sets.n_trivial,
        "mecs": len(end_sets.sizes) + end_sets.n_single,
        "mec_states": sum(end_sets.sizes) + end_sets.n_single,
    }
    row["equal"] = {name: int(float(expected[name])) == row[name] for name in COUNTS if expected.get(name)}
    same = all(row[name] == number for name, number in row["symbolic"].items())
    row["agrees"] = same and all(row["equal"].values())


def run_counts(records: Records, models: Path, counts: Path, only: list[str] | None) -> None:
    """Decompose every model of a table that lies in a folder; only those of some families if given."""
    loop = np.array([0, 1], np.int32)
    tiny = ModelGraph(np.zeros(1, np.int32), loop, loop, np.zeros(1, np.uint8))
    # So that no time holds compilation.
    decompose(tiny)
    mec_decomposition(tiny)
    with counts.open() as lines:
        table = [row for row in csv.DictReader(lines) if row["status"] == "ok"]
    table.sort(key=lambda row: int(row["transitions"]))
    for expected in table:
        path = model_path(models, expected["model"])
        if path is None or (only and path.parent.name not in only):
            continue

        name = f"{path.parent.name}/{path.name}"
        identity = {"part": "counts", "model": name, "constants": expected["const"]}
        row = records.run(identity, count, path, expected)
        print(mark(row), f"{name:32} {expected['const']:20}", _counts_text(row), flush=True)


def _counts_text(row: Row) -> str:
    if "error" in row:
        return str(row["error"])
    numbers = ", ".join(f"{row[name]:,} {name}" for name in COUNTS)
    return f"{numbers}; MECs {row['mec_seconds']:.2f} s"


def mark(row: Row) -> str:
    """Return whether a row agrees, for the log."""
    return "ok " if row.get("agrees") else "OFF"
