"""Sections of the page of results on graphs and on decision processes."""

from __future__ import annotations

from typing import Any

from markdown_text import made, milliseconds, number, table
from render_components import scc_mec

__all__ = ["mdp_agreement", "mdp_sweep", "scc_mec", "symbolic_components"]


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


def mdp_agreement(record: dict[str, Any]) -> str:
    """Return the section on counts and values of decision processes."""
    counts = [row for row in record["rows"] if row["part"] == "counts"]
    values = [row for row in record["rows"] if row["part"] == "values"]
    parts = ["## Decision processes: values and counts"]
    if values:
        parts += _values_text(values, record)
    if counts:
        parts += _counts_text(counts)
    unfinished = [f"{r['model']} {r['constants']}: {r['error']}" for r in record["rows"] if "error" in r]
    if unfinished:
        parts.append("Not finished: " + "; ".join(unfinished) + ".")
    parts.append(f"[`mdp_agreement.json`](../benchmarks/results/mdp_agreement.json), {made(record)}")
    return "\n\n".join(parts)


def _values_text(values: list[dict[str, Any]], record: dict[str, Any]) -> list[str]:
    """Return the table of values, by family."""
    rows = []
    families = dict.fromkeys(row["model"].split("/")[0] for row in values)
    for family in families:
        own = [row for row in values if row["model"].split("/")[0] == family and "error" not in row]
        found = [entry for row in own for entry in row["properties"] if entry["answered"]]
        sizes = ", ".join(f"{row['states']:,}" for row in own)
        errors = [entry["relative_error"] for entry in found if entry["relative_error"] is not None]
        inside = [entry["inside"] for entry in found if entry["inside"] is not None]
        rows.append(
            [
                family,
                sizes,
                f"{sum(entry['agrees'] for entry in found)} of {len(found)}",
                str(sum(entry["source"] in ("published", "protocol") for entry in found)),
                str(sum(entry["source"] == "rational" for entry in found)),
                number(max(errors, default=None), 2),
                f"{sum(inside)} of {len(inside)}",
            ]
        )
    runs = {run["engine"] + " on " + run["backend"]: None for run in _runs(values)}
    refused = [
        (row["model"].split("/")[0], entry)
        for row in values
        for entry in row.get("properties", [])
        if entry["runs"] and not entry["answered"]
    ]
    reasons = {f"`{e['property']}` ({family}): {_reason(e)}": None for family, e in refused}
    text = (
        f"Every property file by {' and '.join(runs)}, epsilon {record['epsilon']:g}.  Values published are "
        "the exact ones of the Quantitative Verification Benchmark Set; others are found here in rational "
        "numbers where the model is small, and otherwise the engines are compared with each other: within "
        f"{record['tolerance']:g}, with bounds that meet."
    )
    if reasons:
        text += "  Refused by every engine: " + "; ".join(reasons) + "."
    columns = ["models", "states", "agree", "published", "rational", "greatest error", "between the bounds"]
    return [text, table(columns, rows)]


def _reason(entry: dict[str, Any]) -> str:
    """Return why a property has no answer, without the place in the file."""
    return str(entry["runs"][0]["error"]).splitlines()[0].split(": ", 1)[-1]


def _runs(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    entries = [entry for row in values for entry in row.get("properties", [])]
    return [run for entry in entries for run in entry["runs"]]


def _counts_text(counts: list[dict[str, Any]]) -> list[str]:
    """Return the table of counts."""
    finished = sorted((row for row in counts if "error" not in row), key=lambda row: int(row["transitions"]))
    rows = [
        [
            f"{row['model'].split('/')[1]} {row['constants']}".strip(),
            *(
                f"{row[name]:,}"
                for name in ("states", "choices", "transitions", "sccs", "mecs", "mec_states")
            ),
            f"{sum(row['equal'].values())} of {len(row['equal'])}",
            number(row["scc_seconds"]),
            number(row["mec_seconds"]),
            number(row["symbolic_seconds"]),
        ]
        for row in finished
    ]
    text = (
        "Counts of graphs beside those of Storm and SciPy on the same models, as many as were at hand: "
        f"{sum(row['agrees'] for row in finished)} of {len(finished)} models agree in all of them.  Seconds "
        "are processor time of one thread: of both decompositions of the graph, and of the symbolic ones, "
        "both kinds of components together."
    )
    columns = ["model", "states", "choices", "transitions", "SCCs", "MECs", "states in MECs", "equal"]
    return [text, table([*columns, "SCC s", "MEC s", "symbolic s"], rows)]


def symbolic_components(record: dict[str, Any]) -> str:
    """Return the section on components found without the graph."""
    rows = [
        [
            f"{row['model']} {row['size']}",
            f"{row['states']:,}",
            f"{row['transitions']:,}",
            f"{row['graph_bytes'] / 1e9:,.1f}",
            "refused" if row["refused"] else "the same components" if row.get("same") else "",
            f"{row['sccs']:,}",
            f"{row['mecs']:,}",
            number(row["build_seconds"]),
            number(row["scc_seconds"]),
            number(row["mec_seconds"]),
        ]
        for row in record["rows"]
        if "error" not in row
    ]
    columns = ["model", "states", "transitions", "GB of the graph", "the graph", "SCCs", "MECs"]
    return "\n\n".join(
        [
            "## Components without the graph",
            "Strongly connected and maximal end components on decision diagrams.  The graph written out is "
            "refused where it does not fit in memory, and decomposed as well where it does.  Seconds of the "
            "decompositions are one thread's processor time.",
            table([*columns, "build s", "SCC s", "MEC s"], rows),
            "[`symbolic_components.json`](../benchmarks/results/symbolic_components.json), " + made(record),
        ]
    )
