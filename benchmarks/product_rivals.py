"""What the hybrid product on a card is measured against: explicit forms and the published block tasks."""

from __future__ import annotations

import functools
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from device_timing import best_seconds, relative_difference
from runs import free_device_memory

import gpu_kernels
from hybrid.gpu.baseline import build_block_tasks
from hybrid.gpu.product import GpuProduct
from hybrid.levels.curve import LevelCurve
from hybrid.levels.table import CandidateLevel
from mtbdd.offset import OffsetMTBDD

__all__ = ["baseline_levels", "baseline_rows", "explicit_rows"]

EXPLICIT = {"csr_warp": "msr-subwarp", "sell": "sell", "csell": "csell", "delta_csell": "delta-csell"}
"""Explicit formats measured beside cuSPARSE, by their key in the record."""

_BASELINE_ENTRIES = tuple(1 << k for k in (14, 16, 18, 20, 22, 24))
_INSTANCE_LIMIT = 60_000_000
_ENTRY_LIMIT = 40_000_000


def cusparse_product(cupy: Any, matrix: Any, x: Any, y: Any) -> Callable[[], None]:
    """Return cuSPARSE's product y = A x with descriptors and buffer made beforehand."""
    from cupy._core import _dtype
    from cupy_backends.cuda.libs import cusparse
    from cupyx.cusparse import DnVecDescriptor, SpMatDescriptor

    handle = cupy.cuda.get_device_handle() if hasattr(cupy.cuda, "get_device_handle") else None
    if handle is None:
        handle = cupy.cuda.device.get_cusparse_handle()
    a, vx, vy = SpMatDescriptor.create(matrix), DnVecDescriptor.create(x), DnVecDescriptor.create(y)
    one, zero = np.array(1.0), np.array(0.0)
    kind, algorithm = _dtype.to_cuda_dtype(np.dtype(np.float64)), cusparse.CUSPARSE_MV_ALG_DEFAULT
    arguments = (handle, cusparse.CUSPARSE_OPERATION_NON_TRANSPOSE, one.ctypes.data, a.desc, vx.desc,
                 zero.ctypes.data, vy.desc, kind, algorithm)  # fmt: skip
    size = cusparse.spMV_bufferSize(*arguments)
    buffer = cupy.empty(max(int(size), 1), np.int8)
    keep = (a, vx, vy, one, zero, buffer, matrix)

    def call() -> None:
        assert keep
        cusparse.spMV(*arguments, buffer.data.ptr)

    return call


def explicit_rows(cupy: Any, device: Any, product: GpuProduct, x: Any, y: Any) -> dict[str, Any]:
    """Measure the explicit formats; the matrix is made from the tiles on the device."""
    if not isinstance(product.matrix, gpu_kernels.TileMatrix):
        raise TypeError("expected a matrix in tiles; matrices with long rows are held as pairs")
    csr = gpu_kernels.explicit_csr(device, product.matrix)
    z = cupy.empty_like(y)
    result: dict[str, Any] = {"csr_bytes": sum(int(a.nbytes) for a in csr)}
    difference = 0.0
    for key, name in EXPLICIT.items():
        try:
            matrix = gpu_kernels.FORMATS[name].from_csr(device, *csr, n_columns=len(x))
        except MemoryError as error:
            result[f"{key}_error"] = str(error)
        else:
            multiply = functools.partial(matrix.multiply, device, x, z)
            result |= {f"{key}_bytes": matrix.nbytes, f"{key}_seconds": best_seconds(cupy, multiply)}
            difference = max(difference, relative_difference(z, y))
            # Before the next format is made: large matrices fit the card once or twice only.
            del matrix, multiply
        free_device_memory(collect=False)
    result |= cusparse_rows(cupy, csr, x, y)
    result["difference"] = max(result["difference"], difference)
    return result


def cusparse_rows(cupy: Any, csr: tuple[Any, Any, Any], x: Any, y: Any) -> dict[str, Any]:
    """Measure cuSPARSE's CSR product, by its own call if CuPy offers it and by ``csr @ x`` otherwise."""
    import cupyx.scipy.sparse as sparse

    indptr, indices, data = csr
    matrix = sparse.csr_matrix((data, indices, indptr), shape=(len(y), len(x)))
    z = cupy.empty_like(y)
    try:
        call, kind = cusparse_product(cupy, matrix, x, z), "spMV"
        call()
    except Exception as error:
        print(f"  low-level cuSPARSE call failed ({error!r}); measuring csr @ x", file=sys.stderr)
        call, kind = (lambda: cupy.copyto(z, matrix @ x)), "csr @ x"
    seconds = best_seconds(cupy, call)
    return {"cusparse_call": kind, "cusparse_seconds": seconds, "difference": relative_difference(z, y)}


def baseline_rows(
    cupy: Any, device: Any, curve: LevelCurve, matrix: OffsetMTBDD, x: Any, y: Any
) -> list[dict[str, Any]]:
    """Measure the published kernel at the level of minimum memory and at others; the fastest is marked."""
    rows = []
    by_memory, levels = baseline_levels(curve.levels)
    for level in levels:
        start = time.perf_counter()
        tasks = build_block_tasks(device, matrix, level)
        z = cupy.empty_like(y)
        built = time.perf_counter() - start
        seconds = best_seconds(cupy, functools.partial(gpu_kernels.block_spmv, device, tasks, x, z))
        rows.append(
            {
                "level": level,
                "is_min_memory": level == by_memory,
                "seconds": seconds,
                "bytes": tasks.nbytes,
                "build_seconds": built,
                "difference": relative_difference(z, y),
            }
        )
        del tasks, z
    fastest = min((row["seconds"] for row in rows), default=None)
    return [row | {"is_min_time": row["seconds"] == fastest} for row in rows]


def baseline_levels(levels: Sequence[CandidateLevel]) -> tuple[int | None, list[int]]:
    """Return the published kernel's level of minimum memory, and the levels to measure, that one included.

    Larger submatrices are fewer and faster, until they leave the caches, and where that is depends on the
    card: the levels taken are those whose submatrices come nearest to some sizes.
    """
    fits = [
        c for c in levels
        if c.instances_worst_case <= _INSTANCE_LIMIT and c.submatrix_nonzeros <= _ENTRY_LIMIT
    ]  # fmt: skip
    if not fits:
        return None, []
    by_memory = min(fits, key=lambda c: c.bytes_worst_case).level
    chosen = {by_memory}
    for size in _BASELINE_ENTRIES:
        chosen.add(min(fits, key=lambda c: abs(math.log2(max(1, c.submatrix_nonzeros) / size))).level)
    return by_memory, sorted(chosen)
