"""The table that Nsight Compute prints (page "details", as CSV), read into a few counters a kernel."""

from __future__ import annotations

import csv
import re
from typing import Any

__all__ = ["COUNTERS", "kernels_of"]

COUNTERS = {
    "seconds": ("GPU Speed Of Light Throughput", "Duration"),
    "dram_percent": ("GPU Speed Of Light Throughput", "DRAM Throughput"),
    "l2_percent": ("GPU Speed Of Light Throughput", "L2 Cache Throughput"),
    "l1_percent": ("GPU Speed Of Light Throughput", "L1/TEX Cache Throughput"),
    "dram_bytes_per_second": ("Memory Workload Analysis", "Memory Throughput"),
    "l1_hit_percent": ("Memory Workload Analysis", "L1/TEX Hit Rate"),
    "l2_hit_percent": ("Memory Workload Analysis", "L2 Hit Rate"),
    "issue_slots_busy_percent": ("Compute Workload Analysis", "Issue Slots Busy"),
    "instructions": ("Instruction Statistics", "Executed Instructions"),
    "occupancy_percent": ("Occupancy", "Achieved Occupancy"),
    "occupancy_limit_percent": ("Occupancy", "Theoretical Occupancy"),
    "registers_a_thread": ("Launch Statistics", "Registers Per Thread"),
    "threads_a_block": ("Launch Statistics", "Block Size"),
    "blocks": ("Launch Statistics", "Grid Size"),
    "waves": ("Launch Statistics", "Waves Per SM"),
    "cycles_an_instruction": ("Warp State Statistics", "Warp Cycles Per Issued Instruction"),
}
"""Section and metric of every counter, by its key in the record."""

UNITS = {
    "ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3, "s": 1.0,
    "second": 1.0, "byte/s": 1.0, "Kbyte/s": 1e3, "Mbyte/s": 1e6, "Gbyte/s": 1e9, "Tbyte/s": 1e12,
}  # fmt: skip
"""What quantities with a unit are multiplied by; all others are plain numbers or percent."""

_STALL = re.compile(r"spends ([\d.]+) cycles being stalled (?:waiting for )?(.*?)\.(?: |$)")
_GLOBAL = re.compile(
    r"global accesses resulting in a total of (\d+) excessive sectors \(\d+% of the total (\d+)"
)
_L1 = "L1TEX (local, global, surface, texture)"


def kernels_of(text: str) -> list[dict[str, Any]]:
    """Return the counters of every kernel, in the order of their launches.

    Parameters
    ----------
    text : str
        Output of the profiler; lines that are no part of the table may lie between.

    Returns
    -------
    list of dict
        ``kernel``, its name; the counters of `COUNTERS`, in seconds, bytes a second, percent and counts;
        ``main_stall``, what warps wait for most, and ``main_stall_cycles`` of the cycles an instruction;
        ``l1tex_stall_cycles``, the same where that is the first-level cache, else None;
        ``global_sectors`` of 32 bytes asked for in device memory's address space, and
        ``excessive_sectors`` of them that side-by-side accesses would save, None where the tool names none.

    Raises
    ------
    ValueError
        If there is no table, or a kernel lacks a counter.
    """
    lines = list(csv.reader(line for line in text.splitlines() if line.startswith('"')))
    if not lines or lines[0][:1] != ["ID"]:
        raise ValueError(
            'expected a table of the profiler with the column "ID" first; use --csv --page details'
        )
    columns = lines[0]
    kernels: dict[int, dict[str, Any]] = {}
    for line in lines[1:]:
        # Rows of metrics end before the columns of rules.
        entry = dict(zip(columns, line, strict=False))
        kernel = kernels.setdefault(
            int(entry["ID"]), {"name": entry["Kernel Name"], "metrics": {}, "rules": []}
        )
        if entry["Metric Name"]:
            key = entry["Section Name"], entry["Metric Name"]
            kernel["metrics"][key] = entry["Metric Value"], entry["Metric Unit"]
        elif entry.get("Rule Description"):
            kernel["rules"].append(entry["Rule Description"])
    return [_counters(kernel) for _, kernel in sorted(kernels.items())]


def _counters(kernel: dict[str, Any]) -> dict[str, Any]:
    """Return the counters of one kernel."""
    missing = [name for section, name in COUNTERS.values() if (section, name) not in kernel["metrics"]]
    if missing:
        raise ValueError(
            f"kernel {kernel['name']}: no {', '.join(missing)} in the table; profile with --set full"
        )
    found: dict[str, Any] = {"kernel": kernel["name"]}
    for key, place in COUNTERS.items():
        found[key] = _number(*kernel["metrics"][place])
    stalls = [match.groups() for rule in kernel["rules"] if (match := _STALL.search(rule))]
    cycles, reason = max(((float(c), r) for c, r in stalls), default=(None, None))
    sectors = next((match.groups() for rule in kernel["rules"] if (match := _GLOBAL.search(rule))), None)
    return found | {
        "main_stall": reason,
        "main_stall_cycles": cycles,
        "l1tex_stall_cycles": cycles if reason is not None and _L1 in reason else None,
        "global_sectors": None if sectors is None else int(sectors[1]),
        "excessive_sectors": None if sectors is None else int(sectors[0]),
    }


def _number(value: str, unit: str) -> float | int:
    """Return a number of the table in basic units."""
    number = float(value.replace(",", "")) * UNITS.get(unit, 1.0)
    return int(number) if number.is_integer() and unit not in UNITS and unit != "%" else number
