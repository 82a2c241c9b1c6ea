"""Sections of the page of results on the GPU: products, the thesis's tables, explicit formats."""

from __future__ import annotations

import statistics
from typing import Any

from markdown_text import made, milliseconds, number, table

__all__ = ["explicit_formats", "gpu_product", "thesis_tables"]

LINK = "[`{0}.json`](../benchmarks/results/{0}.json), {1}"


def gpu_product(record: dict[str, Any]) -> str:
    """Return the section on one product on a card."""
    rows, gains, best_gains = [], [], []
    for r in record["rows"]:
        seconds = r["seconds"]
        baseline = min((b["seconds"] for b in r["baseline"]), default=None)
        others = [r.get(f"{name}_seconds") for name in ("cusparse", "sell", "csr_warp")]
        measured = [s for s in others if s is not None]
        if measured:
            gains.append(r["cusparse_seconds"] / seconds)
            best_gains.append(min(measured) / seconds)
        share = f"{100 * r['bytes'] / r['csr_bytes']:.2f} %" if "csr_bytes" in r else ""
        rows.append(
            [
                f"{r['model']} {r['constants']}",
                f"{r['states']:,}",
                f"{r['entries']:,}",
                milliseconds(seconds),
                *(milliseconds(s) for s in others),
                milliseconds(baseline),
                number(r["cusparse_seconds"] / seconds) if measured else "",
                f"{r['bytes'] / 1e6:.2f}",
                share,
                milliseconds(r["copy_seconds"]),
                number(seconds / r["copy_seconds"]),
            ]
        )
    columns = ["model", "states", "entries", "hybrid ms", "cuSPARSE CSR", "SELL", "warp a row", "block tasks"]
    columns += ["gain on cuSPARSE", "hybrid MB", "of CSR", "vectors alone ms", "times that"]
    means = ""
    if gains:
        means = (
            f"  Geometric means: {statistics.geometric_mean(gains):.2f} times as fast as cuSPARSE's CSR, "
            f"{statistics.geometric_mean(best_gains):.2f} times as fast as the fastest explicit kernel here."
        )
    return "\n\n".join(
        [
            "## A product on the GPU",
            "Milliseconds of one product on the device, medians of event times.  `block tasks` is the "
            "thesis's kernel (003 section 4.4.2.1) at the better of its levels.  `vectors alone` is a copy "
            "of x to y on the same card: what a product would take if nothing but the vectors moved." + means,
            table(columns, rows),
            LINK.format("gpu_product", made(record)),
        ]
    )


def thesis_tables(record: dict[str, Any]) -> str:
    """Return the section on the thesis's figures 5.4 to 5.10."""
    parts = [
        "## The thesis's case studies",
        "Whole solutions by Jacobi's method, relaxed with 0.9 for steady states, to a relative difference "
        f"of {record['epsilon']:g} (003 figures 5.4 to 5.10).  Seconds are those of the iterations.  `~` "
        "marks a CPU time extrapolated from some iterations; the CPU uses all cores.  In brackets what the "
        "thesis measured, on one core of a Core i7 950 and on a Tesla K20.  MemB are the vectors, MemR the "
        "matrix.",
    ]
    studies: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in record["rows"]:
        studies.setdefault((row["figure"], row["study"]), []).append(row)
    columns = ["size", "states", "iterations", "CPU s", "GPU min-memory s", "GPU min-time s"]
    columns += ["speed-up min-memory", "speed-up min-time", "ms an iteration", "MemB MB", "MemR min-memory"]
    columns += ["MemR min-time", "differs from CPU"]
    for (figure, study), members in sorted(studies.items(), key=lambda item: float(item[0][0][2:])):
        rows = [_thesis_row(row, len(columns)) for row in sorted(members, key=lambda row: row["size"])]
        parts += [f"**{study}** (figure {figure})", table(columns, rows)]
    for policy in ("min_memory", "min_time"):
        gains = [row[f"speedup_{policy}"] for row in record["rows"] if f"speedup_{policy}" in row]
        if gains:
            name = policy.replace("_", "-")
            mean = statistics.geometric_mean(gains)
            parts.append(f"Geometric mean of the speed-up at the level of {name}: {mean:.1f}.")
    parts.append(LINK.format("thesis_tables", made(record)))
    return "\n\n".join(parts)


def _thesis_row(row: dict[str, Any], width: int) -> list[str]:
    """Return one size of a case study."""
    if "error" in row:
        return [str(row["size"]), row["error"], *([""] * (width - 2))]
    slow, fast, cpu = row["gpu_min_memory"], row["gpu_min_time"], row.get("cpu")
    paper = row.get("thesis_seconds") or (None, None, None)
    failed = fast["error"] or slow["error"]
    agreement = row.get("agreement")

    def timed(run: dict[str, Any] | None, mark: str, own: float | None) -> str:
        if run is None:
            return "" if own is None else f"({own:g})"
        return f"{mark}{run['solve_seconds']:.3g}" + ("" if own is None else f" ({own:g})")

    def gain(policy: str, own: float | None) -> str:
        text = f"{row[f'speedup_{policy}']:.1f}" if f"speedup_{policy}" in row else ""
        return text if own is None else f"{text} ({paper[0] / own:.1f})"

    return [
        str(row["size"]),
        f"{row['states']:,}",
        f"{fast['iterations']:,}",
        timed(cpu, "~" if cpu and cpu["extrapolated"] else "", paper[0]),
        timed(slow, "", paper[1]),
        timed(fast, "", paper[2]),
        gain("min_memory", paper[1]),
        gain("min_time", paper[2]),
        milliseconds(fast["iteration_seconds"]),
        f"{fast['base_memory_bytes'] / 1e6:.1f}",
        f"{slow['representation_memory_bytes'] / 1e6:.2f}",
        f"{fast['representation_memory_bytes'] / 1e6:.2f}",
        failed or ("" if agreement is None else f"{agreement['relative_difference']:.1e}"),
    ]


def explicit_formats(record: dict[str, Any]) -> str:
    """Return the section on explicit formats beside the hybrid engine."""
    chosen = ("msr", "msr-wl", "cmsr-wl", "sell", "csell-sorted", "delta-csell")
    rows = []
    for r in record["rows"]:
        formats = {f["format"]: f for f in r["formats"] if "seconds" in f}
        cusparse = [f["seconds"] for name, f in formats.items() if name.startswith("cusparse")]
        own = {name: f for name, f in formats.items() if not name.startswith("cusparse")}
        best = min(own, key=lambda name: own[name]["seconds"], default=None)
        hybrid = r["hybrid"]
        fastest = min(cusparse, default=None)
        rows.append(
            [
                f"{r['model']} {r['constants']}",
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
            _shares(record["rows"], chosen),
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
