"""Section of the page of results on the thesis's tables."""

from __future__ import annotations

import statistics
from typing import Any

from markdown_text import made, milliseconds, table

__all__ = ["thesis_tables"]

LINK = "[`{0}.json`](../benchmarks/results/{0}.json), {1}"


def thesis_tables(record: dict[str, Any]) -> str:
    """Return the section on the thesis's figures 5.4 to 5.10."""
    parts = [
        "## The thesis's case studies",
        "Whole solutions by Jacobi's method, relaxed with 0.9 for steady states, to a relative difference "
        f"of {record['epsilon']:g} ([Tealdi13] figs 5.4–5.10).  Seconds are those of the iterations, `whole "
        "s` those of the check once the model is built: analysis, level choice, set-up, and compiling a "
        "kernel where it is needed for the first time.  `~` marks a CPU time extrapolated from some "
        "iterations; the CPU uses all cores.  In brackets what the thesis measured, on one core of a Core i7 "
        "950 and on a Tesla K20.  MemB are the vectors, MemR the matrix.  `host waits` is how often the host "
        "waited for the device in the iterations.",
    ]
    first = record["rows"][0]
    parts[-1] += (
        f"  The row of {first['study']} {first['size']} was measured first; on a machine without kernels "
        "of earlier runs, its `whole s` holds the compilation of CuPy's own."
    )
    if "warm_iterations" in record:
        parts.append(
            f"At each level {record['warm_iterations']} iterations that do not count go before; then both "
            "levels are solved at in turn, in one order and in the other, and the better time of each is "
            "kept."
        )
    studies: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in record["rows"]:
        studies.setdefault((row["figure"], row["study"]), []).append(row)
    columns = ["size", "states", "iterations", "CPU s", "GPU min-memory s", "GPU min-time s"]
    columns += ["speed-up min-memory", "speed-up min-time", "ms an iteration", "host waits"]
    columns += ["whole s min-memory", "whole s min-time", "MemB MB", "MemR min-memory", "MemR min-time"]
    columns += ["differs from CPU"]
    for (figure, study), members in sorted(studies.items(), key=lambda item: float(item[0][0][2:])):
        rows = [_thesis_row(row, len(columns)) for row in sorted(members, key=lambda row: row["size"])]
        parts += [f"**{study}** (figure {figure})", table(columns, rows)]
    for policy in ("min_memory", "min_time"):
        gains = [row[f"speedup_{policy}"] for row in record["rows"] if f"speedup_{policy}" in row]
        if gains:
            name = policy.replace("_", "-")
            mean = statistics.geometric_mean(gains)
            parts.append(f"Geometric mean of the speed-up at the level of {name}: {mean:.1f}.")
    places = sorted({where for row in record["rows"] for where in _places(row)})
    if places:
        parts.append(f"`*`: a CPU run to the end elsewhere ({'; '.join(places)}), by the same method.")
    parts.append(LINK.format("thesis_tables", made(record)))
    return "\n\n".join(parts)


def _places(row: dict[str, Any]) -> list[str]:
    """Return where CPU runs were made whose values or times a row shows, other than its own machine."""
    shown = [row.get("agreement"), None if "cpu" in row else row.get("cpu_elsewhere")]
    return [found["where"] for found in shown if found is not None and "where" in found]


def _thesis_row(row: dict[str, Any], width: int) -> list[str]:
    """Return one size of a case study."""
    if "error" in row:
        return [str(row["size"]), row["error"], *([""] * (width - 2))]
    slow, fast = row["gpu_min_memory"], row["gpu_min_time"]
    cpu, mark = row.get("cpu"), "~" if row.get("cpu", {}).get("extrapolated") else ""
    if cpu is None:
        cpu, mark = row.get("cpu_elsewhere"), "*"
    paper: Any = row.get("thesis_seconds") or (None, None, None)
    failed = fast["error"] or slow["error"]

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
        timed(cpu, mark, paper[0]),
        timed(slow, "", paper[1]),
        timed(fast, "", paper[2]),
        gain("min_memory", paper[1]),
        gain("min_time", paper[2]),
        milliseconds(fast["iteration_seconds"]),
        f"{fast['synchronisations']:,}" if "synchronisations" in fast else "",
        *(f"{run['total_seconds']:.1f}" if "total_seconds" in run else "" for run in (slow, fast)),
        f"{fast['base_memory_bytes'] / 1e6:.1f}",
        f"{slow['representation_memory_bytes'] / 1e6:.2f}",
        f"{fast['representation_memory_bytes'] / 1e6:.2f}",
        failed or _differs(row.get("agreement")),
    ]


def _differs(agreement: dict[str, Any] | None) -> str:
    """Return the relative difference from the CPU's answer, marked if that was found elsewhere."""
    if agreement is None:
        return ""
    return f"{agreement['relative_difference']:.1e}" + ("*" if "where" in agreement else "")
