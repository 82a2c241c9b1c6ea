"""Tables from records inside hand-written pages, between markers, so that text and figures stay together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from markdown_text import made, milliseconds, table
from render_components import auto_choice
from render_gpu import gains, mean_gains_text
from render_profiles import counters_table, processes_table
from render_structures import structure_table

__all__ = ["BLOCKS", "replace_block"]

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

WITHIN = 1.1
"""Times the least time that counts as close."""

PAYS_FOR = {
    "tandem": "three or four entries a row, almost only vectors move; the second-level cache is the limit: "
    "an element of x is asked for 3.5 times, and two thirds of the requests are not found in the first",
    "brp": "rows of 1.4 entries: no unit is half busy, warps wait for loads; a few waves of short blocks",
    "cluster": "the first-level cache and shared memory are the limit: terms, the factors of blocks shared "
    "up to a scale, and x, two thirds of whose requests are found there",
    "polling": "eleven entries a row at distances up to 2^20: the first-level cache and shared memory are "
    "the limit, for terms are looked up and half of the requests for x are found there",
    "kanban": "the second-level cache is the limit: two thirds of the requests for x are not found in the "
    "first, because groups that share parts of x are not always at work at the same time",
    "fms": "100 to 150 terms a tile and 4.3 cache lines a request: looking up terms and reading x in more "
    "pieces keep both caches busy, and warps wait for loads",
}
"""What a product pays for beyond its vectors, by model."""


def byte_traffic(record: dict[str, Any]) -> str:
    """Return how far each published kernel is from the least time that its bytes allow."""
    factors, structure = [], []
    for row in record["rows"]:
        if "formats" not in row:
            continue
        formats = {f["format"]: f for f in row["formats"] if "seconds" in f}
        name = f"{row['model']} {row['constants']}"
        own = [formats.get(key) for key in (*PUBLISHED, "sell", "csell")]
        factors.append([name, *(_factor(f) for f in own)])
        padded = [
            formats[key]["elements_an_entry"] if key in formats else None for key in ("msr-wl", "msr-hwl")
        ]
        gathered = [
            8 * row["entries"] / formats[key]["traffic_bytes"] if key in formats else None
            for key in ("msr", "cmsr")
        ]
        structure.append(
            [
                name,
                f"{row['entries'] / row['states']:,.1f}",
                *("" if p is None else f"{p:.2f}" for p in padded),
                f"{formats['msr']['traffic_bytes'] / 1e6:,.0f}" if "msr" in formats else "",
                *("" if g is None else f"{g:.2f}" for g in gathered),
            ]
        )
    rate = record["copy_bytes_per_second"]
    heads = [
        "model",
        "entries a row",
        "padding WL",
        "padding HWL",
        "MB of M1",
        "x of M1, MSR",
        "x of M1, CMSR",
    ]
    return "\n\n".join(
        [
            "How many times the least time a product takes.  The least time is that of moving the format's "
            f"arrays, x and the result once each at the {rate / 1e9:,.0f} GB/s of a copy within the device "
            "(for M2 the products, too: written, read, and written and read again); bold is within 10 %.  "
            "`sell` and `csell` have the arrays of WL and another loop.",
            table(["model", *PUBLISHED.values(), "sell", "csell"], factors),
            "What the matrices are like: elements an entry with padding, megabytes that M1 on MSR moves at "
            "least, and the bytes of x that lanes ask for, 8 an entry, as a multiple of those counted above.",
            table(heads, structure),
            _source("explicit_formats", record),
        ]
    )


def _factor(entry: dict[str, Any] | None) -> str:
    """Return how many times its least time a product takes."""
    if entry is None:
        return ""
    times = 1 / entry["share_of_copy"]
    text = f"{times:,.0f}" if times >= 100 else f"{times:.2f}"
    return f"**{text}**" if times <= WITHIN else text


def gpu_figures(record: dict[str, Any]) -> str:
    """Return the products of the GPU engine beside others, and beside a copy of the vectors."""
    rows, limits = [], []
    for r in record["rows"]:
        if "error" in r:
            continue
        name, seconds = f"{r['model']} {r['constants'].replace(',', ', ')}", r["seconds"]
        published = min((b["seconds"] for b in r["baseline"]), default=None)
        compared, gain = [""] * 5, gains(r)
        if gain is not None:
            share = f"{100 * r['bytes'] / r['csr_bytes']:.2f} %"
            compared = [share, *(f"{times:.1f}x" for times in gain)]
            compared.append("" if published is None else f"{published / seconds:.1f}x")
        rows.append(
            [
                name,
                f"{r['states']:,}",
                f"{r['entries']:,}",
                f"{milliseconds(seconds)} ms",
                f"{r['entries_per_second'] / 1e9:,.0f}",
                f"{r['bytes'] / 1e6:.2f}",
                *compared,
                f"{milliseconds(r['jacobi_compressed_seconds'])} ms",
                f"{r['build_seconds']:.2f} s",
            ]
        )
        if gain is not None:
            copy = r["copy_seconds"]
            limits.append(
                [name, milliseconds(copy), milliseconds(seconds), f"{seconds / copy:.1f}",
                 PAYS_FOR.get(r["model"], "")]
            )  # fmt: skip
    limits.sort(key=lambda line: float(line[3]))
    columns = ["matrix", "states", "entries", "product", "10⁹ entries/s", "MB", "share of CSR"]
    columns += ["cuSPARSE CSR", "best uncompressed", "best explicit", "published kernel", "Jacobi step"]
    columns.append("set-up")
    note = (
        'Columns with x say how many times longer the other product takes; "best uncompressed" is the '
        'fastest of cuSPARSE\'s CSR, a warp a row and SELL, "best explicit" that of all explicit forms in '
        'the record, "published kernel" the thesis\'s at the best of its levels.  '
        "Set-up is that of one level, on the device.  "
    ) + mean_gains_text(record["rows"])
    limit = (
        "**How far from the limit.**  Copying x to y is what a product would take if nothing but the vectors "
        "moved.  What stands in the last column is read from the counters below."
    )
    heads = ["matrix", "copy ms", "product ms", "times the copy", "what it pays for"]
    parts = [table(columns, rows), note.rstrip(), limit, table(heads, limits)]
    return "\n\n".join([*parts, _source("gpu_product", record)])


def _source(name: str, record: dict[str, Any]) -> str:
    return f"[`{name}.json`](../benchmarks/results/{name}.json), {made(record)}"


BLOCKS: dict[tuple[str, str], tuple[str, Callable[[dict[str, Any]], str]]] = {
    ("explicit.md", "byte traffic"): ("explicit_formats", byte_traffic),
    ("explicit.md", "structures"): ("structure_plots", structure_table),
    ("gpu.md", "products"): ("gpu_product", gpu_figures),
    ("graphs.md", "the choice"): ("scc_mec", auto_choice),
    ("gpu.md", "counters"): ("kernel_counters", counters_table),
    ("gpu.md", "whole processes"): ("whole_run", processes_table),
}
"""Record and renderer of every block, by page and name."""


def replace_block(page: str, name: str, text: str) -> str:
    """Return a page with the text between the markers of a block replaced.

    Raises
    ------
    ValueError
        If the page does not have each of the two markers once, in order.
    """
    first, last = f"<!-- rendered: {name} -->", f"<!-- end: {name} -->"
    if page.count(first) != 1 or page.count(last) != 1 or page.index(first) > page.index(last):
        raise ValueError(f"expected the lines {first} and {last} once each, in this order")
    before, after = page[: page.index(first) + len(first)], page[page.index(last) :]
    return f"{before}\n\n{text}\n\n{after}"
