"""Products on a card: beside explicit forms and the published kernel, beside a copy, and their counters."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks.rendering.markdown import (
    Column,
    Row,
    measured,
    milliseconds,
    name_of,
    number,
    section,
    table_of,
)

__all__ = [
    "EXPLICIT_KEYS", "UNCOMPRESSED", "gains", "gpu_product", "kernel_counters", "limits",
    "mean_gains", "mean_gains_text",
]  # fmt: skip

UNCOMPRESSED = ("cusparse", "sell", "csr_warp")
"""Explicit products in the record gpu_product that keep a value and a column for every entry."""

EXPLICIT_KEYS = (*UNCOMPRESSED, "csell", "delta_csell")
"""All explicit products that a record may have; `csr_warp` and `delta_csell` are no longer measured."""

DECISION = "[why](design/decisions.md#explicit-formats-on-the-gpu)"
"""Where a page says why forms were taken out."""

_FORMS = {
    "cusparse": "cuSPARSE",
    "sell": "SELL",
    "csr_warp": "CSR by 2 to 32 lanes a row",
    "csell": "CSELL",
    "delta_csell": "delta-CSELL",
}
"""Their names."""

PAYS_FOR = {
    "tandem": "few entries a row, almost only vectors move; the second-level cache is the limit: an element "
    "of x is asked for several times, and most of the requests are not found in the first",
    "brp": "the shortest rows: no unit is far over half busy, warps wait for loads; a few waves of short "
    "blocks",
    "cluster": "the first-level cache and shared memory are the limit: terms, the factors of blocks shared "
    "up to a scale, and x, most of whose requests are found there",
    "polling": "entries at great distances: the first-level cache and shared memory are the limit, for terms "
    "are looked up and many of the requests for x are found there",
    "kanban": "the second-level cache is the limit: most of the requests for x are not found in the first, "
    "because groups that share parts of x are not always at work at the same time",
    "fms": "many terms a tile: looking up terms and reading x in more pieces keep both caches busy, and "
    "warps wait for loads",
}
"""What a product pays for beyond its vectors, by model; read from the record kernel_counters."""


def gains(row: Row) -> tuple[float, float, float] | None:
    """Return how many times longer others take than the hybrid product; None without explicit forms.

    Returns
    -------
    tuple of float, optional
        Of cuSPARSE's CSR, of the fastest uncompressed form, and of the fastest of all explicit forms.
    """
    if "cusparse_seconds" not in row:
        return None
    fastest = (
        min(row[f"{key}_seconds"] for key in keys if f"{key}_seconds" in row)
        for keys in (("cusparse",), UNCOMPRESSED, EXPLICIT_KEYS)
    )
    cusparse, uncompressed, explicit = (seconds / row["seconds"] for seconds in fastest)
    return cusparse, uncompressed, explicit


def mean_gains(rows: list[Row]) -> list[tuple[str, tuple[float, float, float]]]:
    """Return geometric means over the models, one row each.

    Parameters
    ----------
    rows : list of dict
        Of the record gpu_product; a model may have several sizes.

    Returns
    -------
    list of (str, tuple of three floats)
        What they are over, and the means of `gains`. Two of them where a model has several sizes with
        explicit forms: with its largest, and with its smallest.
    """
    models: dict[str, list[Row]] = {}
    for row in rows:
        if "error" not in row and gains(row) is not None:
            models.setdefault(row["model"], []).append(row)
    found: list[tuple[str, tuple[float, float, float]]] = []
    for place in (-1, 0):
        chosen = [sorted(sizes, key=lambda row: int(row["entries"]))[place] for sizes in models.values()]
        several = [name_of(r) for r in chosen if len(models[r["model"]]) > 1]
        name = f"the {len(chosen)} models" + (f" with {', '.join(several)}" if several else "")
        columns = zip(*(gains(row) or () for row in chosen), strict=True)
        means = [statistics.geometric_mean(column) for column in columns]
        if means and all(name != other for other, _ in found):
            found.append((name, (means[0], means[1], means[2])))
    return found


def mean_gains_text(rows: list[Row]) -> str:
    """Return the means as sentences; compressed forms are spoken of only where they were measured."""
    plain, compressed = _forms(rows, UNCOMPRESSED), _forms(rows, EXPLICIT_KEYS[len(UNCOMPRESSED) :])
    sentences = []
    for name, means in mean_gains(rows):
        text = f"Geometric means over {name}: {means[0]:.2f} times as fast as cuSPARSE's CSR, "
        text += f"{means[1]:.2f} times as fast as the fastest uncompressed form ({plain})"
        if compressed:
            text += f", {means[2]:.2f} times as fast as the fastest explicit form ({compressed}, too)"
        sentences.append(f"{text}.")
    return "  ".join(sentences)


def _measured_keys(rows: list[Row], keys: tuple[str, ...]) -> list[str]:
    """Return those of the explicit products that some row has."""
    return [key for key in keys if any(f"{key}_seconds" in row for row in rows)]


def _forms(rows: list[Row], keys: tuple[str, ...]) -> str:
    """Return the names of those that some row has."""
    return ", ".join(_FORMS[key] for key in _measured_keys(rows, keys))


def _conditions(rows: list[Row]) -> str:
    """Return what the rivals' times were measured under."""
    with_rivals = [row for row in rows if "cusparse_seconds" in row]
    prepared = sum(bool(row.get("cusparse_preprocessed")) for row in with_rivals)
    edge = [name_of(row) for row in rows if _at_the_edge(row["baseline"])]
    parts = [
        "Times are of products alone, without choosing a level and laying the matrix out.",
        "cuSPARSE is called with its default algorithm, without `cusparseSpMV_preprocess`."
        if prepared == 0
        else "cuSPARSE has the fastest of its algorithms for CSR, after `cusparseSpMV_preprocess`"
        + ("" if prepared == len(with_rivals) else f" on {prepared} of {len(with_rivals)} matrices")
        + ".",
    ]
    parts.append("Its own sliced ELL was not measured: the other forms are kernels of this project.")
    if _measured_keys(rows, ("csr_warp", "delta_csell")):
        parts.append(f"Since then {_FORMS['csr_warp']} and delta-CSELL were taken out ({DECISION}).")
    if edge:
        parts.append(
            "The published kernel was fastest at the highest or lowest level tried, and may be faster "
            f"beyond it, on {', '.join(edge)}."
        )
    return "  ".join(parts)


def _at_the_edge(levels: list[Row]) -> bool:
    """Return whether the fastest of the levels measured is the first or the last of them."""
    if len(levels) < 2:
        return False
    ordered = sorted(levels, key=lambda row: int(row["level"]))
    fastest = min(ordered, key=lambda row: float(row["seconds"]))
    return fastest in (ordered[0], ordered[-1])


def _gain(place: int) -> Callable[[Row], str]:
    return lambda row: "" if (found := gains(row)) is None else f"{found[place]:.2f}"


def gpu_product(record: Row) -> str:
    """Return the section on products beside others and beside a copy of the vectors."""
    rows = measured(record)
    forms: list[Column] = [
        (_FORMS[key], lambda r, k=f"{key}_seconds": milliseconds(r.get(k)))  # type: ignore[misc]
        for key in _measured_keys(rows, EXPLICIT_KEYS)
    ]
    own = table_of(
        rows,
        ("matrix", name_of),
        ("states", "states"),
        ("entries", "entries"),
        ("level", "level"),
        ("product ms", lambda r: milliseconds(r["seconds"])),
        ("10⁹ entries/s", lambda r: f"{r['entries_per_second'] / 1e9:,.0f}"),
        ("MB", lambda r: f"{r['bytes'] / 1e6:.2f}"),
        ("of CSR", lambda r: f"{100 * r['bytes'] / r['csr_bytes']:.2f} %" if "csr_bytes" in r else ""),
        *forms,
        ("block tasks", lambda r: milliseconds(min((b["seconds"] for b in r["baseline"]), default=None))),
        ("gain on cuSPARSE", _gain(0)),
        ("on uncompressed", _gain(1)),
        ("on explicit", _gain(2)),
        ("Jacobi step ms", lambda r: milliseconds(r["jacobi_compressed_seconds"])),
        ("copy ms", lambda r: milliseconds(r["copy_seconds"])),
        ("times that", lambda r: number(r["seconds"] / r["copy_seconds"])),
        ("times best level", lambda r: f"{r['seconds'] / r['best_level_seconds']:.2f}"),
        ("choice of a level s", lambda r: f"{r['choice_seconds']:.1f}"),
        ("layout of a level s", lambda r: f"{r['build_seconds']:.2f}"),
    )
    text = (
        "Milliseconds of one product on the device, medians of event times.  `block tasks` is the thesis's "
        "kernel ([Tealdi13] §4.4.2.1) at the fastest of the levels measured.  Gains are over cuSPARSE's CSR, "
        f"the fastest uncompressed form ({_forms(rows, UNCOMPRESSED)}) and the fastest explicit form.  "
        "`copy` is one of x to y on the same card: what a product would take if nothing but the vectors "
        "moved.  `times best level`: how much longer the level that the engine chose takes than the fastest "
        "of the levels measured.  Choosing a level by timing some lays each of them out.  "
        f"{_conditions(rows)}"
    )
    return section("A product on the GPU", record, text, mean_gains_text(rows), own)


def limits(record: Row) -> str:
    """Return how far the products are from a copy of their vectors, and why."""
    rows = [row for row in measured(record) if gains(row) is not None]
    return table_of(
        sorted(rows, key=lambda r: float(r["seconds"] / r["copy_seconds"])),
        ("matrix", name_of),
        ("times the copy", lambda r: f"{r['seconds'] / r['copy_seconds']:.1f}"),
        ("what it pays for", lambda r: PAYS_FOR.get(r["model"], "")),
    )


def kernel_counters(record: Row, products: Row | None) -> str:
    """Return the section on hardware counters.

    Parameters
    ----------
    record : dict
        Record kernel_counters.
    products : dict, optional
        Record gpu_product, to say which counters are of other levels than its times.
    """

    def busy(unit: str) -> Any:
        def show(row: Row) -> str:
            text = f"{row[unit]:.0f} %"
            highest = max(row[key] for key in ("dram_percent", "l2_percent", "l1_percent"))
            return f"**{text}**" if row[unit] == highest else text

        return show

    levels = {name_of(row): row["level"] for row in measured(products)} if products else {}
    elsewhere = [
        f"{name} ({levels[name]} there)"
        for row in record["rows"]
        if (name := name_of(row)) in levels and levels[name] != row["level"]
    ]
    note = (
        "  They were taken at other levels than the times of the products above on "
        f"{', '.join(elsewhere)}, and explain those of their own column only."
        if elsewhere
        else ""
    )
    return section(
        "Counters of a product on the GPU",
        record,
        "Counters of one product a matrix, the busiest unit in bold: how busy device memory and the "
        "caches are, in percent of their peak; L1 is the first-level cache and shared memory, one unit.  "
        "`bytes an entry` are those of the sectors of 32 bytes that warps ask the first level for, y "
        "included.  `cycles an instruction` pass between two instructions of a warp, `waiting for L1` "
        f"those of them in which it waits for a load.{note}",
        table_of(
            record["rows"],
            ("matrix", name_of),
            ("level", "level"),
            ("ms", lambda r: milliseconds(r["seconds"])),
            ("DRAM busy", busy("dram_percent")),
            ("L2 busy", busy("l2_percent")),
            ("L1 busy", busy("l1_percent")),
            ("L1 hits", lambda r: f"{r['l1_hit_percent']:.0f} %"),
            ("L2 hits", lambda r: f"{r['l2_hit_percent']:.0f} %"),
            ("bytes an entry", _bytes_an_entry),
            ("issue slots", lambda r: f"{r['issue_slots_busy_percent']:.0f} %"),
            (
                "occupancy",
                lambda r: f"{r['occupancy_percent']:.0f} of {r['occupancy_limit_percent']:.0f} %",
            ),
            ("registers", "registers_a_thread"),
            ("blocks", "blocks"),
            ("waves", lambda r: f"{r['waves']:.1f}"),
            ("cycles an instruction", lambda r: f"{r['cycles_an_instruction']:.1f}"),
            ("waiting for L1", lambda r: number(r["l1tex_stall_cycles"])),
        ),
    )


def _bytes_an_entry(row: Row) -> str:
    sectors = row["global_sectors"]
    return "" if sectors is None else f"{32 * sectors / row['entries']:.1f}"
