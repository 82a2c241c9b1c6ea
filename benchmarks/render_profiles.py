"""Sections on hardware counters of products, on whole processes, and on the first use on a machine."""

from __future__ import annotations

from typing import Any

from markdown_text import made, milliseconds, not_measured, table

__all__ = ["counters_table", "first_use", "kernel_counters", "processes_table", "whole_run"]

LINK = "[`{0}.json`](../benchmarks/results/{0}.json), {1}"


def counters_table(record: dict[str, Any]) -> str:
    """Return the counters of every product, what they mean, and where they come from."""
    rows = []
    for r in record["rows"]:
        sectors, stall = r["global_sectors"], r["l1tex_stall_cycles"]
        units = {"DRAM": r["dram_percent"], "L2": r["l2_percent"], "L1": r["l1_percent"]}
        busiest = max(units, key=lambda name: units[name])
        rows.append(
            [
                f"{r['model']} {r['constants'].replace(',', ', ')}",
                milliseconds(r["seconds"]),
                *(
                    f"**{busy:.0f} %**" if name == busiest else f"{busy:.0f} %"
                    for name, busy in units.items()
                ),
                f"{r['l1_hit_percent']:.0f} %",
                f"{r['l2_hit_percent']:.0f} %",
                "" if sectors is None else f"{32 * sectors / r['entries']:.1f}",
                f"{r['issue_slots_busy_percent']:.0f} %",
                f"{r['occupancy_percent']:.0f} of {r['occupancy_limit_percent']:.0f} %",
                f"{r['registers_a_thread']}",
                f"{r['blocks']:,}",
                f"{r['waves']:.1f}",
                f"{r['cycles_an_instruction']:.1f}",
                "" if stall is None else f"{stall:.1f}",
            ]
        )
    columns = ["matrix", "ms", "DRAM busy", "L2 busy", "L1 busy", "L1 hits", "L2 hits", "bytes an entry"]
    columns += ["issue slots", "occupancy", "registers", "blocks", "waves", "cycles an instruction"]
    columns.append("waiting for L1")
    return "\n\n".join(
        [
            "Counters of one product a matrix, the busiest unit in bold: how busy device memory and the "
            "caches are, in percent of their peak; L1 is the first-level cache and shared memory, one unit.  "
            "`bytes an entry` are those of the sectors of 32 bytes that warps ask the first level for, y "
            "included.  `cycles an instruction` pass between two instructions of a warp, `waiting for L1` "
            "those of them in which it waits for a load.",
            table(columns, rows),
            LINK.format("kernel_counters", _made(record)),
        ]
    )


def kernel_counters(record: dict[str, Any]) -> str:
    """Return the section on hardware counters."""
    return f"## Counters of a product on the GPU\n\n{counters_table(record)}"


def whole_run(record: dict[str, Any]) -> str:
    """Return the section on whole processes."""
    return f"## Whole processes\n\n{processes_table(record)}"


def processes_table(record: dict[str, Any]) -> str:
    """Return what runs of the command line took, which they were, and where they were made."""
    rows = []
    for r in record["rows"]:
        if "error" in r:
            continue
        waits = r["synchronisations"]
        rows.append(
            [
                r["name"],
                f"{r['states']:,}",
                f"{r['transitions']:,}",
                f"{r['wall_seconds']:.1f}",
                f"{r['iteration_seconds_total']:.1f}",
                f"{r['iterations']:,}",
                f"{waits:,}",
                f"{r['iterations'] / waits:.1f}" if waits else "",
                f"{r['peak_rss_bytes'] / 1e9:.1f}",
                "" if r["peak_device_bytes"] is None else f"{r['peak_device_bytes'] / 1e9:.1f}",
                f"{r['representation_memory_bytes'] / 1e6:.1f}",
                f"{r['value']!r}",
            ]
        )
    columns = ["run", "states", "transitions", "wall s", "of it iterations", "iterations", "host waits"]
    columns += ["iterations a wait", "host GB", "device GB", "matrix MB", "answer"]
    commands = dict.fromkeys(f"`{r['command']}`" for r in record["rows"])
    parts = [
        "The command line from start to exit, in a process of its own: the model's text is read, the "
        "diagram built, the level chosen, the matrix laid out, kernels loaded, and the answer printed.  "
        "Memory is the most that the process held, on the host and on the device.",
        table(columns, rows),
        "  ".join(commands),
    ]
    parts += not_measured(record, lambda r: r["name"])
    parts.append(LINK.format("whole_run", _made(record)))
    return "\n\n".join(part for part in parts if part)


def first_use(record: dict[str, Any]) -> str:
    """Return the section on the first use on a machine."""
    rows = [
        [
            r["name"],
            r["backend"] or "",
            f"{r['first_seconds']:.2f}",
            f"{r['again_seconds']:.2f}",
            f"{r['device_kernels']}",
            f"{r['host_kernels']}",
        ]
        for r in record["rows"]
        if "error" not in r
    ]
    columns = ["process", "backend", "first s", "again s", "kernels for the device", "for the host"]
    parts = [
        "## The first use on a machine",
        "Whole processes from start to exit.  Numba, NVRTC and CuPy compile what they need once and keep it "
        "in the user's folders; `first` finds these empty, `again` (the median of "
        f"{record['repeat']} runs) finds what the first run left there.",
        table(columns, rows),
    ]
    parts += not_measured(record, lambda r: f"{r['name']} {r['backend'] or ''}")
    return "\n\n".join([*parts, LINK.format("first_use", _made(record))])


def _made(record: dict[str, Any]) -> str:
    """Return where and when a record was made, as far as it knows."""
    known = record["environment"]
    if "processor" in known:
        return made(record)
    return f"{known['date'][:10]}, commit {known['commit']}, {record['device']['name']}."
