"""The section of the page of results on strongly connected and maximal end components."""

from __future__ import annotations

from typing import Any

from markdown_text import made, milliseconds, table

__all__ = ["scc_mec"]


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
