"""What the hybrid product on a card is measured against: explicit forms and the published block tasks."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from typing import Any

import gpu_kernels
from benchmarks.library.device import best_seconds, relative_difference
from benchmarks.library.formats import measure_formats
from benchmarks.library.records import Row
from hybrid.matrix.gpu.product import GpuProduct, tasks_on_device
from hybrid.matrix.injection.injected import cut_tasks, inject_level
from hybrid.matrix.levels.curve import LevelCurve
from hybrid.matrix.levels.table import CandidateLevel
from mtbdd.offset.offset import OffsetMTBDD

__all__ = ["baseline_levels", "baseline_rows", "explicit_rows"]

EXPLICIT = {"sell": "sell", "csell": "csell", "cusparse": "cusparse"}
"""Explicit formats by their key in the record."""

_BASELINE_ENTRIES = tuple(1 << k for k in (14, 16, 18, 20, 22, 24))
_INSTANCE_LIMIT = 60_000_000
_ENTRY_LIMIT = 40_000_000
_STEP = 3
"""Levels between two that are tried beyond the fastest so far."""


def explicit_rows(device: Any, product: GpuProduct, x: Any, y: Any) -> Row:
    """Measure the explicit formats; the matrix is made from the tiles on the device.

    cuSPARSE has the fastest of its algorithms, after `cusparseSpMV_preprocess` where the library has it.
    """
    if not isinstance(product.matrix, gpu_kernels.TileMatrix):
        raise TypeError("expected a matrix in tiles; matrices with long rows are held as pairs")
    csr = gpu_kernels.explicit_csr(device, product.matrix)
    result: Row = {"csr_bytes": sum(int(a.nbytes) for a in csr), "difference": 0.0}
    timer = functools.partial(best_seconds, device.xp)
    for key, name in EXPLICIT.items():
        found = list(measure_formats(device, csr, x, y, [name], timer))
        best = min(found, key=lambda row: float(row.get("seconds", math.inf)))
        if "error" in best:
            result[f"{key}_error"] = best["error"]
            continue
        result |= {f"{key}_bytes": best["bytes"], f"{key}_seconds": best["seconds"]}
        result["difference"] = max(result["difference"], *(row["difference"] for row in found))
        if key == "cusparse":
            result["cusparse_algorithms"] = {row["format"]: row["seconds"] for row in found}
            result["cusparse_preprocessed"] = best["preprocessed"]
    return result


def baseline_rows(device: Any, curve: LevelCurve, matrix: OffsetMTBDD, x: Any, y: Any) -> list[Row]:
    """Measure the published kernel at the level of minimum memory and at others; the fastest is marked.

    As long as the fastest is the last of those measured at one end, levels beyond it are measured, too.
    """
    by_memory, levels = baseline_levels(curve.levels)
    times: dict[int, Row] = {}
    while levels:
        for level in levels:
            start = time.perf_counter()
            tasks = tasks_on_device(device, matrix.shape, cut_tasks(inject_level(matrix, level)))
            z = device.xp.empty_like(y)
            built = time.perf_counter() - start
            call = functools.partial(gpu_kernels.block_spmv, device, tasks, x, z)
            times[level] = {
                "level": level,
                "is_min_memory": level == by_memory,
                "seconds": best_seconds(device.xp, call),
                "bytes": tasks.nbytes,
                "build_seconds": built,
                "difference": relative_difference(z, y),
            }
            del tasks, z, call
        levels = further_levels({level: row["seconds"] for level, row in times.items()}, curve.levels)
    fastest = min((row["seconds"] for row in times.values()), default=None)
    return [times[level] | {"is_min_time": times[level]["seconds"] == fastest} for level in sorted(times)]


def _fits(level: CandidateLevel) -> bool:
    return level.instances_worst_case <= _INSTANCE_LIMIT and level.submatrix_nonzeros <= _ENTRY_LIMIT


def baseline_levels(levels: Sequence[CandidateLevel]) -> tuple[int | None, list[int]]:
    """Return the published kernel's level of minimum memory, and the levels to measure, that one included.

    Larger submatrices are fewer and faster, until they leave the caches, and where that is depends on the
    card: the levels taken are those whose submatrices come nearest to some sizes.
    """
    fits = [candidate for candidate in levels if _fits(candidate)]
    if not fits:
        return None, []
    by_memory = min(fits, key=lambda c: c.bytes_worst_case).level
    chosen = {by_memory}
    for size in _BASELINE_ENTRIES:
        chosen.add(min(fits, key=lambda c: abs(math.log2(max(1, c.submatrix_nonzeros) / size))).level)
    return by_memory, sorted(chosen)


def further_levels(seconds: dict[int, float], levels: Sequence[CandidateLevel]) -> list[int]:
    """Return a level beyond the fastest one where that is at an end of those measured; none if it is not."""
    fits = {candidate.level for candidate in levels if _fits(candidate)}
    best = min(seconds, key=lambda level: seconds[level])
    found = []
    for end, sign in ((max(seconds), 1), (min(seconds), -1)):
        beyond = [level for d in range(_STEP, 0, -1) if (level := end + sign * d) in fits]
        found += beyond[:1] if best == end else []
    return found
