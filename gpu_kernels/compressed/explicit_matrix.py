"""The explicit matrix of a matrix in tiles, made on the device (cuda/explicit.cu)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.compressed.tiles import TileMatrix
from gpu_kernels.runtime._launch import macros
from gpu_kernels.runtime.device import Device

_THREADS = 256


def explicit_csr(device: Device, matrix: TileMatrix) -> tuple[Any, Any, Any]:
    """Return a matrix in compressed sparse rows, sorted by column within each row.

    Parameters
    ----------
    device : Device
    matrix : TileMatrix
        With fewer than 2**31 columns.

    Returns
    -------
    indptr : ndarray, shape (n_rows + 1,), int64 (int32 where that is enough)
    indices : ndarray, shape (entries,), int32
    data : ndarray, shape (entries,), float64

    Raises
    ------
    ValueError
        If the matrix is too wide.
    MemoryError
        If the matrix does not fit in the free memory; the message says what is needed and what is there.

    Notes
    -----
    Synchronises: yes, for the number of entries.
    """
    if matrix.n_columns >= 2**31:
        raise ValueError(f"an explicit matrix has fewer than 2**31 columns, this one has {matrix.n_columns}")
    xp = device.xp
    indptr = xp.zeros(matrix.n_rows + 1, np.int64)
    kernel = device.kernel("explicit.cu", "expand_rows", macros(**matrix.macros()))
    null = np.uint64(0)
    launch = ((len(matrix.items),), (_THREADS,)) if len(matrix.items) else None
    if launch is not None:
        kernel(*launch, (*matrix.arguments(), indptr, null, null, null))
    indptr = xp.cumsum(indptr)
    entries = int(indptr[-1])
    if 12 * entries > device.free_bytes():
        raise MemoryError(
            f"the explicit matrix needs {12 * entries} bytes for {entries} entries and "
            f"{device.free_bytes()} are free on {device.name}; use the compressed matrix"
        )
    indices, data = xp.empty(entries, np.int32), xp.empty(entries)
    if launch is not None:
        kernel(*launch, (*matrix.arguments(), null, indptr, indices, data))
    return (indptr.astype(np.int32) if entries < 2**31 else indptr), indices, data
