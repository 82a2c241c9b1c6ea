"""Sections of the page of results on graphs and on decision processes."""

from __future__ import annotations

from typing import Any

from markdown_text import made, milliseconds, number, table

__all__ = ["mdp_sweep", "scc_mec"]


def scc_mec(record: dict[str, Any]) -> str:
    """Return the section on components of graphs."""
    cases = record["cases"]
    facts = [
        [
            case["name"],
            f"{case['states']:,}",
            f"{case['choices']:,}",
            f"{case['transitions']:,}",
            f"{case['sccs']:,}",
            f"{case['trivial_sccs']:,}",
            f"{case['mecs']:,}",
            milliseconds(case["scipy_seconds"]),
            milliseconds(case["compiled_mec_seconds"]),
        ]
        for case in cases
    ]
    columns = ["graph", "states", "choices", "transitions", "SCCs", "of one state", "MECs"]
    parts = [
        "## Components of graphs",
        "Strongly connected components beside SciPy's, and maximal end components beside a compiled "
        "decomposition, both on one thread of the CPU, in milliseconds.",
        table([*columns, "SciPy SCC", "CPU MEC"], facts),
    ]
    for kind, title in (("scc", "Strongly connected components"), ("mec", "Maximal end components")):
        names = list(dict.fromkeys(name for case in cases for name in case[kind]))
        lines = [[name, *(_cell(case[kind].get(name)) for case in cases)] for name in names]
        if lines:
            note = "milliseconds on the card, and how many times as fast as the CPU without and with transfer"
            parts += [f"**{title}**: {note}", table(["variant", *(case["name"] for case in cases)], lines)]
    parts.append(f"[`scc_mec.json`](../benchmarks/results/scc_mec.json), {made(record)}")
    return "\n\n".join(parts)


def _cell(run: dict[str, Any] | None) -> str:
    """Return a variant's time on a graph."""
    if run is None:
        return ""
    gains = f"{run['times_faster']:.1f}×, {run['times_faster_with_transfer']:.1f}×"
    return f"{milliseconds(run['seconds'])} ({gains})"


def mdp_sweep(record: dict[str, Any]) -> str:
    """Return the section on a sweep of value iteration on a card."""
    rows = [
        [
            f"{r['model']} {r['constants']}",
            f"{r['states']:,}",
            f"{r['transitions']:,}",
            str(r["layers"]),
            milliseconds(r["seconds"]),
            milliseconds(r["explicit_seconds"]),
            number(r["speedup"]),
            f"{r['bytes'] / 1e6:.1f}",
            f"{100 * r['bytes_share']:.2f} %",
        ]
        for r in record["rows"]
    ]
    columns = ["model", "states", "transitions", "layers", "hybrid ms", "explicit ms", "gain", "hybrid MB"]
    return "\n\n".join(
        [
            "## A sweep of value iteration on the GPU",
            "One step of the least probability to reach a set, with its differences measured: all layers of "
            "choices in one launch, beside our kernel on the choices written out, in the same run.  Both "
            "have the same vectors; bytes are those of matrices and gains.",
            table([*columns, "of explicit"], rows),
            f"[`mdp_sweep.json`](../benchmarks/results/mdp_sweep.json), {made(record)}",
        ]
    )
