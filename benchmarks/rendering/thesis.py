"""Sections of the page of results on the thesis's tables and on its memory."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.rendering.markdown import Row, measured, milliseconds, section, table, table_of

__all__ = ["mean_speedup", "thesis_memory", "thesis_tables"]

COLUMNS = (
    "size", "states", "iterations", "CPU s", "GPU min-memory s", "GPU min-time s", "speed-up min-memory",
    "speed-up min-time", "ms an iteration", "host waits", "whole s min-memory", "whole s min-time", "MemB MB",
    "MemR min-memory", "MemR min-time", "differs from CPU",
)  # fmt: skip


def mean_speedup(record: Row, policy: str) -> float | None:
    """Return the geometric mean of the iterations' speed-up at the level of a policy."""
    found = [row[f"speedup_{policy}"] for row in record["rows"] if f"speedup_{policy}" in row]
    return statistics.geometric_mean(found) if found else None


def thesis_tables(record: Row) -> str:
    """Return the section on the thesis's figures 5.4 to 5.10."""
    first = record["rows"][0]
    cores = record["environment"]["cores"]
    conditions = (
        "Whole solutions by Jacobi's method, relaxed with 0.9 for steady states, to a relative difference "
        f"of {record['epsilon']:g} ([Tealdi13] figs 5.4–5.10); no bounds are computed.  Seconds are those of "
        "the iterations alone, `whole s` those of the check once the model is built: analysis, level choice, "
        "set-up, and compiling a kernel where it is needed for the first time.  Speed-ups are of the "
        f"iterations; the CPU's are the hybrid engine's own on all {cores} cores.  `~` marks a CPU time "
        f"extrapolated from some iterations{_extrapolated(record)}.  In brackets what the thesis measured, "
        "on one core of a Core i7 950 and on a Tesla K20.  MemB are the vectors, MemR the matrix.  `host "
        "waits` is how often the host waited for the device in the iterations.  The row of "
        f"{first['study']} {first['size']} was measured first; on a machine without kernels of earlier runs, "
        "its `whole s` holds the compilation of CuPy's own."
    )
    turns = ""
    if "warm_iterations" in record:
        turns = (
            f"At each level {record['warm_iterations']} iterations that do not count go before; then both "
            "levels are solved at in turn, in one order and in the other, and the better time of each is "
            "kept."
        )
    studies: dict[tuple[str, str], list[Row]] = {}
    for row in measured(record):
        studies.setdefault((row["figure"], row["study"]), []).append(row)
    parts = []
    for (figure, study), members in sorted(studies.items(), key=lambda item: float(item[0][0][2:])):
        rows = [_row(row) for row in sorted(members, key=lambda row: int(row["size"]))]
        parts += [f"**{study}** (figure {figure})", table(COLUMNS, rows)]
    for policy in ("min_memory", "min_time"):
        if (mean := mean_speedup(record, policy)) is not None:
            name = policy.replace("_", "-")
            parts.append(
                f"Geometric mean of the speed-up at the level of {name}, iterations alone: {mean:.1f}."
            )
    places = sorted({where for row in record["rows"] for where in _places(row)})
    if places:
        parts.append(f"`*`: a CPU run to the end elsewhere ({'; '.join(places)}), by the same method.")
    title = "The thesis's case studies"
    if record.get("representation") == "tasks":
        title += ", in tasks"
        conditions += (
            "  The matrix is held in tasks, the thesis's representation, and multiplied by its kernel."
        )
    return section(title, record, conditions, turns, *parts)


def thesis_memory(record: Row) -> str:
    """Return the section on the memory of the thesis's figures 5.2 to 5.10."""

    def megabytes(size: int, own: float | None = None) -> str:
        return f"{size / 1e6:.3g}" + ("" if own is None else f" ({own:g})")

    def printed(row: Row, place: int) -> float | None:
        found = row["thesis_megabytes"]
        return None if found is None else float(found[place])

    rows = sorted(measured(record), key=lambda r: (float(r["figure"][2:]), int(r["size"])))
    return section(
        "The thesis's memory",
        record,
        "Bytes of the transition matrices of the case studies in tasks, the thesis's representation, and in "
        "row types ([Tealdi13] figures 5.2 to 5.10), in brackets what the thesis printed.  `MemR` are "
        "submatrices and tasks in the worst case, which the thesis counts; `held` counts the instances that "
        "there are.  Levels stand behind bytes.  Least time is predicted for a device, and measured in the "
        "thesis.  MemB are the vectors; those of linear systems (polling-before, brp) are one more.  Row "
        "types are those of the CPU, of the levels that were built to weigh them.",
        table_of(
            rows,
            ("study", lambda r: str(r["study"])),
            ("size", lambda r: str(r["size"])),
            ("states", "states"),
            ("MemB MB", lambda r: megabytes(r["base_memory_bytes"], printed(r, 0))),
            ("least MemR MB", lambda r: megabytes(r["min_memr"]["bytes"], printed(r, 1))),
            ("at level", lambda r: str(r["min_memr"]["level"])),
            ("MemR at least time MB", lambda r: megabytes(r["min_time"]["bytes_worst_case"], printed(r, 2))),
            ("at level ", lambda r: str(r["min_time"]["level"])),
            ("tasks, least held MB", lambda r: megabytes(r["min_memory"]["bytes"])),
            ("of MemB", lambda r: f"{100 * r['min_memory']['bytes'] / r['base_memory_bytes']:.2g} %"),
            ("row types, least held MB", lambda r: megabytes(r["row_types"]["bytes"])),
            ("of MemB ", lambda r: f"{100 * r['row_types']['bytes'] / r['base_memory_bytes']:.2g} %"),
        ),
    )


def _extrapolated(record: Row) -> str:
    """Return how many CPU times are extrapolated, and from how many iterations."""
    cpu = [row["cpu"] for row in record["rows"] if "cpu" in row]
    made = [run["measured_iterations"] for run in cpu if run.get("extrapolated")]
    return f", {len(made)} of {len(cpu)}, from {min(made)} to {max(made)}" if made else ""


def _places(row: Row) -> list[str]:
    """Return where CPU runs were made whose values or times a row shows, other than its own machine."""
    shown = [row.get("agreement"), None if "cpu" in row else row.get("cpu_elsewhere")]
    return [found["where"] for found in shown if found is not None and "where" in found]


def _row(row: Row) -> list[str]:
    """Return one size of a case study."""
    slow, fast = row["gpu_min_memory"], row["gpu_min_time"]
    cpu, mark = row.get("cpu"), "~" if row.get("cpu", {}).get("extrapolated") else ""
    if cpu is None:
        cpu, mark = row.get("cpu_elsewhere"), "*"
    paper: Any = row.get("thesis_seconds") or (None, None, None)

    def timed(run: Row | None, mark: str, own: float | None) -> str:
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
        fast["error"] or slow["error"] or _differs(row.get("agreement")),
    ]


def _differs(agreement: Row | None) -> str:
    """Return the relative difference from the CPU's answer, marked if that was found elsewhere."""
    if agreement is None:
        return ""
    return f"{agreement['relative_difference']:.1e}" + ("*" if "where" in agreement else "")
