"""Sections on whole processes, on the first use on a machine, and on starts."""

from __future__ import annotations

from benchmarks.rendering.markdown import Row, measured, name_of, section, table_of

__all__ = ["cold_start", "first_use", "whole_run"]


_TITLES = {
    "whole_run": "Whole processes",
    "whole_run_certified": "Whole processes: between bounds, kernels compiled",
    "whole_run_certified_large": "Whole processes: two billion states between bounds, in six vectors",
    "whole_run_large": "Whole processes: five and a half billion states",
}


def whole_run(record: Row) -> str:
    """Return the section on whole processes: what they took, and which they were."""

    def a_wait(row: Row) -> str:
        waits = row["synchronisations"]
        return f"{row['iterations'] / waits:.1f}" if waits else ""

    rows = measured(record)
    counted = all("compiled_kernels" in row for row in rows)
    return section(
        _TITLES[record.get("file", "whole_run")],
        record,
        "The command line from start to exit, in a process of its own: the model's text is read, the "
        "diagram built, the level chosen, the matrix laid out, kernels loaded, and the answer printed.  "
        "Memory is the most that the process held, on the host and on the device.  A method without bounds "
        "gives an estimate; the last column says so."
        + (
            ""
            if counted
            else "  Kernels had been compiled by earlier processes; the record does not count them."
        ),
        table_of(
            rows,
            ("run", name_of),
            ("states", "states"),
            ("transitions", "transitions"),
            ("wall s", lambda r: f"{r['wall_seconds']:.1f}"),
            ("of it iterations", lambda r: f"{r['iteration_seconds_total']:.1f}"),
            ("iterations", "iterations"),
            ("host waits", "synchronisations"),
            ("iterations a wait", a_wait),
            ("host GB", lambda r: f"{r['peak_rss_bytes'] / 1e9:.1f}"),
            ("device GB", lambda r: f"{b / 1e9:.1f}" if (b := r["peak_device_bytes"]) is not None else ""),
            ("matrix MB", lambda r: f"{r['representation_memory_bytes'] / 1e6:.1f}"),
            *((("kernels compiled", "compiled_kernels"),) if counted else ()),
            ("answer", lambda r: f"{r['value']!r}"),
            ("bounds", lambda r: "none" if r["lower"] is None else f"{r['lower']!r}, {r['upper']!r}"),
        ),
        "  ".join(dict.fromkeys(f"`{r['command']}`" for r in record["rows"])),
    )


def first_use(record: Row) -> str:
    """Return the section on the first use on a machine."""
    return section(
        "The first use on a machine",
        record,
        "Whole processes from start to exit.  Numba, NVRTC and CuPy compile what they need once and keep it "
        "in the user's folders; `first` finds these empty, `again` (the median of "
        f"{record['repeat']} runs) finds what the first run left there.",
        table_of(
            measured(record),
            ("process", name_of),
            ("backend", lambda r: r["backend"] or ""),
            ("first s", lambda r: f"{r['first_seconds']:.2f}"),
            ("again s", lambda r: f"{r['again_seconds']:.2f}"),
            ("kernels for the device", "device_kernels"),
            ("for the host", "host_kernels"),
        ),
    )


def cold_start(record: Row) -> str:
    """Return the section on how long a start takes."""

    def milliseconds(seconds: float) -> str:
        return f"{seconds * 1000:.0f}"

    return section(
        "A start",
        record,
        f"Processes from start to exit, the median of {record['repeat']}, with functions compiled before; "
        "processor time is that of all threads, user and system.  Peak memory is resident, the greatest of "
        "all runs, where it is more than the measuring process has.  The goal is one of wall time on a "
        "machine with nothing else to do; the load is the system's average over a minute as the row ended.",
        table_of(
            measured(record),
            ("process", name_of),
            ("wall ms", lambda r: milliseconds(r["wall_seconds"])),
            ("least", lambda r: milliseconds(min(r["all_wall_seconds"]))),
            ("processor ms", lambda r: milliseconds(r["processor_seconds"])),
            ("peak MB", lambda r: f"{r['peak_rss_bytes'] / 1e6:.0f}" if r.get("peak_rss_bytes") else ""),
            ("goal ms", lambda r: milliseconds(r["goal_seconds"]) if r["goal_seconds"] is not None else ""),
            ("load", lambda r: f"{r['load']:.1f}"),
        ),
    )
