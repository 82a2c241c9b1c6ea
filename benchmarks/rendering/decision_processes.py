"""Sections of the page of results on graphs and on decision processes."""

from __future__ import annotations

from benchmarks.rendering.markdown import (
    Row,
    columns_where,
    measured,
    milliseconds,
    name_of,
    number,
    section,
    table,
    table_of,
)

__all__ = ["mdp_agreement", "mdp_sweep", "symbolic_components"]


def mdp_sweep(record: Row) -> str:
    """Return the section on a sweep of value iteration on a card."""
    return section(
        "A sweep of value iteration on the GPU",
        record,
        "One step of the least probability to reach a set, with its differences measured: all layers of "
        "choices in one launch, beside our kernel on the choices written out, in the same run ([BESW10]'s "
        "M1, and M2 where it was measured: products, a segmented scan, the first sum of each choice).  All "
        "have the same vectors; bytes are those of matrices and gains.  Times are of a sweep alone, from a "
        "recorded graph; `set-up` is choosing a level by timing some (`--level min-time`) and laying the "
        "layers out, kernels that were compiled for the first time included.  `auto` is the level predicted, "
        "laid out after it; `pays after` are the sweeps after which its set-up has been won back if writing "
        "the choices out took no time at all, which was not measured.",
        table_of(
            measured(record),
            ("model", name_of),
            ("states", "states"),
            ("transitions", "transitions"),
            ("layers", "layers"),
            ("hybrid ms", lambda r: milliseconds(r["seconds"])),
            ("explicit ms", lambda r: milliseconds(r["explicit_seconds"])),
            *columns_where(
                measured(record), "scan_seconds", ("M2 ms", lambda r: milliseconds(r["scan_seconds"]))
            ),
            ("gain", lambda r: number(r["speedup"])),
            ("set-up s", lambda r: f"{r['set_up_seconds']:.1f}"),
            ("auto ms", lambda r: milliseconds(r["predicted_seconds"])),
            ("auto set-up s", lambda r: f"{r['predicted_set_up_seconds']:.2f}"),
            ("pays after", _sweeps_to_pay),
            ("hybrid MB", lambda r: f"{r['bytes'] / 1e6:.1f}"),
            ("of explicit", lambda r: f"{100 * r['bytes_share']:.2f} %"),
        ),
    )


def _sweeps_to_pay(row: Row) -> str:
    """Return after how many sweeps the set-up of the level predicted is won back."""
    gained = row["explicit_seconds"] - row["predicted_seconds"]
    return f"{row['predicted_set_up_seconds'] / gained:,.0f}" if gained > 0.0 else "never"


def mdp_agreement(record: Row) -> str:
    """Return the section on counts and values of decision processes."""
    counts = [row for row in record["rows"] if row["part"] == "counts"]
    values = [row for row in record["rows"] if row["part"] == "values"]
    parts = _values_text(values, record) if values else []
    parts += _counts_text(counts) if counts else []
    return section("Decision processes: values and counts", record, *parts)


def _values_text(values: list[Row], record: Row) -> list[str]:
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


def _reason(entry: Row) -> str:
    """Return why a property has no answer, without the place in the file."""
    return str(entry["runs"][0]["error"]).splitlines()[0].split(": ", 1)[-1]


def _runs(values: list[Row]) -> list[Row]:
    entries = [entry for row in values for entry in row.get("properties", [])]
    return [run for entry in entries for run in entry["runs"]]


def _counts_text(counts: list[Row]) -> list[str]:
    """Return the table of counts."""
    finished = sorted((row for row in counts if "error" not in row), key=lambda row: int(row["transitions"]))
    text = (
        "Counts of graphs beside those of Storm and SciPy on the same models, as many as were at hand: "
        f"{sum(row['agrees'] for row in finished)} of {len(finished)} models agree in all of them.  Seconds "
        "are processor time of one thread, once each, without building model and graph: of both "
        "decompositions of the graph, and of the symbolic ones, both kinds of components together."
    )
    own = table_of(
        finished,
        ("model", lambda r: f"{r['model'].split('/')[1]} {r['constants']}".strip()),
        ("states", "states"),
        ("choices", "choices"),
        ("transitions", "transitions"),
        ("SCCs", "sccs"),
        ("MECs", "mecs"),
        ("states in MECs", "mec_states"),
        ("equal", lambda r: f"{sum(r['equal'].values())} of {len(r['equal'])}"),
        ("SCC s", lambda r: number(r["scc_seconds"])),
        ("MEC s", lambda r: number(r["mec_seconds"])),
        ("symbolic s", lambda r: number(r["symbolic_seconds"])),
    )
    return [text, own]


def symbolic_components(record: Row) -> str:
    """Return the section on components found without the graph."""
    return section(
        "Components without the graph",
        record,
        "Strongly connected and maximal end components on decision diagrams.  The graph written out is "
        "refused where it does not fit in memory, and decomposed as well where it does.  Seconds of the "
        "decompositions are one thread's processor time, once each.",
        table_of(
            measured(record),
            ("model", name_of),
            ("states", "states"),
            ("transitions", "transitions"),
            ("GB of the graph", lambda r: f"{r['graph_bytes'] / 1e9:,.1f}"),
            (
                "the graph",
                lambda r: "refused" if r["refused"] else "the same components" if r.get("same") else "",
            ),
            ("SCCs", "sccs"),
            ("MECs", "mecs"),
            ("build s", lambda r: number(r["build_seconds"])),
            ("SCC s", lambda r: number(r["scc_seconds"])),
            ("MEC s", lambda r: number(r["mec_seconds"])),
        ),
    )


def _written_out(row: Row) -> str:
    """Return what became of the graph."""
    return "refused" if row["refused"] else "the same components" if row.get("same") else ""
