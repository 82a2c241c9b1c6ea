"""Plots and measures of matrices before and after breadth-first numbering."""

from __future__ import annotations

from typing import Any

from markdown_text import made, table

__all__ = ["structure_table"]

LINK = "[`{0}.json`](../benchmarks/results/{0}.json), {1}"


def structure_table(record: dict[str, Any]) -> str:
    """Return the measures of both orders, and the plots."""
    rows, plots = [], []
    for r in record["rows"]:
        if "error" in r:
            continue
        name = ", ".join([f"{r['model']} {r['size']}", *(f"{k}={v}" for k, v in r["constants"].items())])
        before, after = r["original"], r["bfs"]
        rows.append(
            [
                name,
                f"{r['states']:,}",
                f"{r['entries']:,}",
                *(f"{order['bandwidth']:,}" for order in (before, after)),
                *(f"{order['mean_distance']:,.0f}" for order in (before, after)),
                *(f"{order['bytes_per_warp']:,.0f}" for order in (before, after)),
                *(f"{order['least_bytes_per_warp']:,.0f}" for order in (before, after)),
            ]
        )
        plots.append(f"![{name}: original order and breadth-first order](images/{r['image']})")
    columns = [
        "model",
        "states",
        "entries",
        "bandwidth",
        "BFS",
        "mean distance",
        "BFS",
        "x a warp, bytes",
        "BFS",
    ]
    columns += ["at least", "BFS"]
    return "\n\n".join([table(columns, rows), *plots, LINK.format("structure_plots", made(record))])
