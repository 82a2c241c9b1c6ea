"""Whole runs of other checkers, from tables of runs that were made elsewhere.

A run counts if it came to its end by its own rule; one that was stopped by a limit of time counts as longer
than that; one that was given too few iterations, or broken off, does not count.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

__all__ = ["peer_runs"]

_SIZES = {
    "tandem": r"c=(\d+)", "kanban": r"t=(\d+)", "fms": r"n=(\d+)", "cluster": r"N=(\d+)",
    "brp": r"N=(\d+),MAX=50",
}  # fmt: skip
"""Constants of a study's sizes."""

_PRISM = {
    ("brp", "p1"): "brp", ("cluster", "premium_steady"): "cluster", ("fms", "productivity"): "fms",
    ("kanban", "throughput"): "kanban", ("tandem", "customers"): "tandem", ("polling", "s1"): "polling-s1",
    ("polling", "s1_before_s2"): "polling-before",
}  # fmt: skip
"""Studies by folder of the model and property file."""

_STORM = {
    "brp1": "brp", "cluster": "cluster", "fms": "fms", "kanban": "kanban", "tandem": "tandem",
    "pollS": "polling-s1", "pollU": "polling-before",
}  # fmt: skip
"""Studies by the first part of the name of a run, which the size follows."""

Runs = dict[str, dict[str, list[dict[str, Any]]]]


def peer_runs(prism: Path | None, storm: Path | None) -> Runs:
    """Return runs by question and engine: ``settings``, ``value``, and ``seconds`` or ``over_seconds``.

    Parameters
    ----------
    prism : Path or None
        Columns ``model``, ``const``, ``prop``, ``flags``, ``wall_s``, ``result``, ``timeout``, ``status``
        and ``epsilon``; runs at 1e-6 of its hybrid and sparse engines are taken.
    storm : Path or None
        Columns ``id``, ``engine``, ``method``, ``wall_s``, ``value``, ``status`` and ``timeout_s``; runs of
        the sparse engine are taken.
    """
    found: Runs = {}
    for path, read in ((prism, _prism_run), (storm, _storm_run)):
        if path is None:
            continue
        with path.open() as lines:
            for row in csv.DictReader(lines):
                run = read(row)
                if run is not None:
                    name, engine, facts = run
                    found.setdefault(name, {}).setdefault(engine, []).append(facts)
    return found


def _prism_run(row: dict[str, str]) -> tuple[str, str, dict[str, Any]] | None:
    """Return question, engine and facts of a line of PRISM's table; None if it does not count."""
    model, flags = Path(row["model"]), row["flags"].split()
    study = _PRISM.get((model.parent.name, Path(row["prop"]).stem))
    engine = next((name for name in ("hybrid", "sparse") if f"-{name}" in flags), None)
    if study is None or engine is None or row["epsilon"] != "1e-6":
        return None
    size = _size(r"poll(\d+)", model.stem) if "polling" in study else _size(_SIZES[study], row["const"])
    facts = _facts(row["flags"], row["wall_s"], row["result"], row["status"] == "converged")
    if size is None or facts is None:
        return None
    return f"{study} {size}", f"prism_{engine}", facts


def _storm_run(row: dict[str, str]) -> tuple[str, str, dict[str, Any]] | None:
    """Return question, engine and facts of a line of Storm's table; None if it does not count."""
    first, size, *_ = [*row["id"].split("_"), ""]
    if first not in _STORM or row["engine"] != "sparse":
        return None
    facts: dict[str, Any] | None
    if row["status"].startswith("timeout"):
        facts = {"settings": row["method"], "over_seconds": float(row["timeout_s"]), "value": None}
    else:
        facts = _facts(row["method"], row["wall_s"], row["value"], row["status"] == "ok")
    return None if facts is None else (f"{_STORM[first]} {size}", "storm_sparse", facts)


def _facts(settings: str, seconds: str, value: str, ended: bool) -> dict[str, Any] | None:
    """Return the facts of a run that came to its end; None of another one."""
    if not ended or not seconds or not value:
        return None
    return {"settings": settings, "seconds": float(seconds), "value": float(value)}


def _size(pattern: str, text: str) -> str | None:
    """Return the size that a text names."""
    match = re.fullmatch(pattern, text)
    return None if match is None else match[1]
