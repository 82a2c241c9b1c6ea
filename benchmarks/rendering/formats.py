"""Explicit formats beside the hybrid engine and their bytes, and structures before and after reordering."""

from __future__ import annotations

from typing import Any

from benchmarks.rendering.markdown import (
    Row,
    measured,
    milliseconds,
    name_of,
    section,
    source,
    table_of,
)

__all__ = ["TAKEN_OUT", "byte_traffic", "explicit_formats", "structure_table"]

CHOSEN = ("msr", "cmsr", "msr-wl", "cmsr-wl", "sell", "csell")

PUBLISHED = {
    "msr": "M1, MSR",
    "cmsr": "M1, CMSR",
    "msr-wl": "WL, MSR",
    "cmsr-wl": "WL, CMSR",
    "msr-hwl": "HWL, MSR",
    "cmsr-hwl": "HWL, CMSR",
    "msr-scan": "M2, MSR",
    "cmsr-scan": "M2, CMSR",
}
"""The papers' kernels by the names of our formats."""

TAKEN_OUT = (
    "msr-subwarp",
    "cmsr-subwarp",
    "sell-sorted",
    "csell-sorted",
    "delta-sell",
    "delta-csell",
    "delta-sell-sorted",
    "delta-csell-sorted",
)
"""Formats that records have and the package no longer: pages leave them out."""

WITHIN = 1.1
"""Times the least time that counts as close."""


def _formats(row: Row) -> dict[str, Row]:
    """Return the formats of a matrix that were measured and are still there, by name."""
    return {f["format"]: f for f in row["formats"] if "seconds" in f and f["format"] not in TAKEN_OUT}


def _fastest(row: Row, cusparse: bool) -> Row | None:
    """Return the fastest of cuSPARSE's algorithms, or of our formats."""
    found = [f for name, f in _formats(row).items() if name.startswith("cusparse") == cusparse]
    return min(found, key=lambda f: float(f["seconds"]), default=None)


def _both(entry: Row | None) -> str:
    """Return time and bytes an entry."""
    if entry is None:
        return ""
    each = entry["bytes"] / max(1.0, entry["entries_per_second"] * entry["seconds"])
    return f"{milliseconds(entry['seconds'])} / {each:.2g} B"


def explicit_formats(record: Row) -> str:
    """Return the section on explicit formats beside the hybrid engine."""

    def best(row: Row) -> str:
        own = _fastest(row, False)
        return "" if own is None else f"{own['format']} {milliseconds(own['seconds'])}"

    def gain(row: Row, other: Row | None) -> str:
        library = _fastest(row, True)
        return "" if library is None or other is None else f"{library['seconds'] / other['seconds']:.2f}"

    def share(name: str) -> Any:
        return lambda row: f"{100 * f['share_of_copy']:.0f} %" if (f := _formats(row).get(name)) else ""

    rows = measured(record)
    libraries = [f for row in rows if (f := _fastest(row, True)) is not None]
    prepared = all(f.get("preprocessed") for f in libraries)
    return section(
        "Explicit formats beside the hybrid engine",
        record,
        "Milliseconds of a product and bytes an entry, on the same card and in one run, without converting "
        "or laying out.  Gains are over the fastest of cuSPARSE's algorithms for CSR, called "
        f"{'after' if prepared else 'without'} `cusparseSpMV_preprocess`.  A copy within the device moves "
        f"{record['copy_bytes_per_second'] / 1e9:,.0f} GB/s.",
        table_of(
            rows,
            ("model", name_of),
            ("entries", "entries"),
            ("hybrid", lambda r: _both(r["hybrid"])),
            *((name, lambda r, n=name: _both(_formats(r).get(n))) for name in CHOSEN),
            ("cuSPARSE ms", lambda r: milliseconds((_fastest(r, True) or {}).get("seconds"))),
            ("fastest explicit", best),
            ("gain of that", lambda r: gain(r, _fastest(r, False))),
            ("gain of hybrid", lambda r: gain(r, r["hybrid"])),
        ),
        "Bytes that a format has to move at least (itself, x and y once each), as a share of that rate:",
        table_of(rows, ("model", name_of), *((name, share(name)) for name in CHOSEN)),
    )


def byte_traffic(record: Row) -> str:
    """Return how far each published kernel is from the least time that its bytes allow."""

    def factor(name: str) -> Any:
        def show(row: Row) -> str:
            if (found := _formats(row).get(name)) is None:
                return ""
            times = 1 / found["share_of_copy"]
            text = f"{times:,.0f}" if times >= 100 else f"{times:.2f}"
            return f"**{text}**" if times <= WITHIN else text

        return show

    def of(name: str, show: Any) -> Any:
        return lambda row: show(row, found) if (found := _formats(row).get(name)) else ""

    def padding(row: Row, found: Row) -> str:
        return f"{found['elements_an_entry']:.2f}"

    def gathered(row: Row, found: Row) -> str:
        return f"{8 * row['entries'] / found['traffic_bytes']:.2f}"

    rows = measured(record)
    return "\n\n".join(
        [
            "How many times the least time a product takes.  The least time is that of moving the format's "
            f"arrays, x and the result once each at the {record['copy_bytes_per_second'] / 1e9:,.0f} GB/s of "
            "a copy within the device (for M2 the products, too: written, read, and written and read again); "
            "bold is within 10 %.  `sell` and `csell` have the arrays of WL and another loop.",
            table_of(
                rows,
                ("model", name_of),
                *(
                    (head, factor(name))
                    for name, head in (PUBLISHED | {"sell": "sell", "csell": "csell"}).items()
                ),
            ),
            "What the matrices are like: elements an entry with padding, megabytes that M1 on MSR moves at "
            "least, and the bytes of x that lanes ask for, 8 an entry, as a multiple of those counted above.",
            table_of(
                rows,
                ("model", name_of),
                ("entries a row", lambda r: f"{r['entries'] / r['states']:,.1f}"),
                ("padding WL", of("msr-wl", padding)),
                ("padding HWL", of("msr-hwl", padding)),
                ("MB of M1", of("msr", lambda r, f: f"{f['traffic_bytes'] / 1e6:,.0f}")),
                ("x of M1, MSR", of("msr", gathered)),
                ("x of M1, CMSR", of("cmsr", gathered)),
            ),
            source(record),
        ]
    )


def structure_table(record: Row) -> str:
    """Return the measures of both orders, and the plots."""
    rows = measured(record)
    heads = {"bandwidth": "bandwidth", "mean_distance": "mean distance"}
    heads |= {"bytes_per_warp": "x a warp, bytes", "least_bytes_per_warp": "at least"}
    columns = [
        (text, lambda r, o=order, k=key: f"{r[o][k]:,.0f}")
        for key, head in heads.items()
        for order, text in (("original", head), ("bfs", "BFS"))
    ]
    plots = [f"![{name_of(r)}: original order and breadth-first order](images/{r['image']})" for r in rows]
    own = table_of(rows, ("model", name_of), ("states", "states"), ("entries", "entries"), *columns)
    return "\n\n".join([own, *plots, source(record)])
