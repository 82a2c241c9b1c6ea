"""Sections of the page of results on the GPU: products and explicit formats."""

from __future__ import annotations

import statistics
from typing import Any

from markdown_text import made, milliseconds, not_measured, number, table

__all__ = [
    "EXPLICIT_KEYS", "UNCOMPRESSED", "explicit_formats", "gains", "gpu_product", "mean_gains",
    "mean_gains_text",
]  # fmt: skip

UNCOMPRESSED = ("cusparse", "sell", "csr_warp")
"""Explicit products in the record gpu_product that keep a value and a column for every entry."""

EXPLICIT_KEYS = (*UNCOMPRESSED, "csell", "delta_csell")
"""All explicit products in that record."""

LINK = "[`{0}.json`](../benchmarks/results/{0}.json), {1}"


def gains(row: dict[str, Any]) -> tuple[float, float, float] | None:
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


def mean_gains(rows: list[dict[str, Any]]) -> list[tuple[str, tuple[float, float, float]]]:
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
    models: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if "error" not in row and gains(row) is not None:
            models.setdefault(row["model"], []).append(row)
    found: list[tuple[str, tuple[float, float, float]]] = []
    for place in (-1, 0):
        chosen = [sorted(sizes, key=lambda row: row["entries"])[place] for sizes in models.values()]
        several = [f"{r['model']} {r['constants']}" for r in chosen if len(models[r["model"]]) > 1]
        name = f"the {len(chosen)} models" + (f" with {', '.join(several)}" if several else "")
        columns = zip(*(gains(row) or () for row in chosen), strict=True)
        means = [statistics.geometric_mean(column) for column in columns]
        if means and all(name != other for other, _ in found):
            found.append((name, (means[0], means[1], means[2])))
    return found


def mean_gains_text(rows: list[dict[str, Any]]) -> str:
    """Return the means as sentences; compressed forms are spoken of only where they were measured."""
    compressed = set(EXPLICIT_KEYS) - set(UNCOMPRESSED)
    measured = any(f"{key}_seconds" in row for row in rows for key in compressed)
    sentences = []
    for name, means in mean_gains(rows):
        text = f"Geometric means over {name}: {means[0]:.2f} times as fast as cuSPARSE's CSR, "
        text += (
            f"{means[1]:.2f} times as fast as the fastest uncompressed form (cuSPARSE, a warp a row, SELL)"
        )
        if measured:
            text += f", {means[2]:.2f} times as fast as the fastest explicit form (CSELL, delta-CSELL, too)"
        sentences.append(f"{text}.")
    return "  ".join(sentences)


def _name(row: dict[str, Any]) -> str:
    """Return what a row is about."""
    return f"{row['model']} {row['constants']}"


def gpu_product(record: dict[str, Any]) -> str:
    """Return the section on one product on a card."""
    rows = []
    for r in record["rows"]:
        if "error" in r:
            continue
        seconds, gain = r["seconds"], gains(r)
        rows.append(
            [
                _name(r),
                f"{r['states']:,}",
                f"{r['entries']:,}",
                milliseconds(seconds),
                f"{r['entries_per_second'] / 1e9:,.0f}",
                *(milliseconds(r.get(f"{name}_seconds")) for name in EXPLICIT_KEYS),
                milliseconds(min((b["seconds"] for b in r["baseline"]), default=None)),
                *(("", "", "") if gain is None else (f"{g:.2f}" for g in gain)),
                f"{r['bytes'] / 1e6:.2f}",
                f"{100 * r['bytes'] / r['csr_bytes']:.2f} %" if "csr_bytes" in r else "",
                milliseconds(r["jacobi_compressed_seconds"]),
                milliseconds(r["copy_seconds"]),
                number(seconds / r["copy_seconds"]),
                f"{seconds / r['best_level_seconds']:.2f}",
            ]
        )
    columns = [
        "model",
        "states",
        "entries",
        "hybrid ms",
        "10⁹ entries/s",
        "cuSPARSE CSR",
        "SELL",
        "warp a row",
    ]
    columns += ["CSELL", "delta-CSELL", "block tasks", "gain on cuSPARSE", "on uncompressed", "on explicit"]
    columns += ["hybrid MB", "of CSR", "Jacobi step ms", "vectors alone ms", "times that", "times best level"]
    parts = [
        "## A product on the GPU",
        "Milliseconds of one product on the device, medians of event times.  `block tasks` is the thesis's "
        "kernel ([Tealdi13] §4.4.2.1) at the fastest of the levels measured.  SELL, CSELL and delta-CSELL "
        "are this project's kernels.  `vectors alone` is a copy of x to y on the same card: what a product "
        "would take if nothing but the vectors moved.  `times best level`: how much longer the level "
        "that the engine chose takes than the fastest of the levels measured.",
        mean_gains_text(record["rows"]),
        table(columns, rows),
    ]
    parts += not_measured(record, _name)
    parts.append(LINK.format("gpu_product", made(record)))
    return "\n\n".join(part for part in parts if part)


def explicit_formats(record: dict[str, Any]) -> str:
    """Return the section on explicit formats beside the hybrid engine."""
    chosen = ("msr", "msr-wl", "cmsr-wl", "sell", "csell-sorted", "delta-csell")
    rows = []
    measured = [r for r in record["rows"] if "error" not in r]
    for r in measured:
        formats = {f["format"]: f for f in r["formats"] if "seconds" in f}
        cusparse = [f["seconds"] for name, f in formats.items() if name.startswith("cusparse")]
        own = {name: f for name, f in formats.items() if not name.startswith("cusparse")}
        best = min(own, key=lambda name: own[name]["seconds"], default=None)
        hybrid = r["hybrid"]
        fastest = min(cusparse, default=None)
        rows.append(
            [
                _name(r),
                f"{r['entries']:,}",
                _both(hybrid),
                *(_both(formats.get(name)) for name in chosen),
                milliseconds(fastest),
                "" if best is None else f"{best} {milliseconds(own[best]['seconds'])}",
                "" if best is None or fastest is None else f"{fastest / own[best]['seconds']:.2f}",
                "" if hybrid is None or fastest is None else f"{fastest / hybrid['seconds']:.2f}",
            ]
        )
    columns = ["model", "entries", "hybrid", *chosen, "cuSPARSE ms", "fastest explicit", "gain of that"]
    columns.append("gain of hybrid")
    bandwidth = record["copy_bytes_per_second"]
    return "\n\n".join(
        [
            "## Explicit formats beside the hybrid engine",
            "Milliseconds of a product and bytes an entry, on the same card and in one run.  Gains are over "
            "the faster of cuSPARSE's algorithms for CSR.  A copy within the device moves "
            f"{bandwidth / 1e9:,.0f} GB/s.",
            table(columns, rows),
            _shares(measured, chosen),
            *not_measured(record, _name),
            LINK.format("explicit_formats", made(record)),
        ]
    )


def _shares(rows: list[dict[str, Any]], chosen: tuple[str, ...]) -> str:
    """Return which share of the bandwidth of a copy each format's least traffic comes to."""
    lines = []
    for r in rows:
        formats = {f["format"]: f for f in r["formats"] if "seconds" in f}
        shares = [formats[name]["share_of_copy"] if name in formats else None for name in chosen]
        lines.append(
            [f"{r['model']} {r['constants']}", *("" if s is None else f"{100 * s:.0f} %" for s in shares)]
        )
    note = "Bytes that a format has to move at least (itself, x and y once each), as a share of that rate:"
    return f"{note}\n\n{table(['model', *chosen], lines)}"


def _both(entry: dict[str, Any] | None) -> str:
    """Return time and bytes an entry."""
    if entry is None:
        return ""
    each = entry["bytes"] / max(1.0, entry["entries_per_second"] * entry["seconds"])
    return f"{milliseconds(entry['seconds'])} / {each:.2g} B"
