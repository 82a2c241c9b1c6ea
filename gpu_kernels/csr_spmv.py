"""Plain products with an explicit matrix, for comparison: a warp a row, and sliced ELL (cuda/csr_spmv.cu)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels._launch import blocks_for, check_vector, index_bits, index_type, macros
from gpu_kernels.device import Device

__all__ = ["SellMatrix", "csr_spmv", "sell_from_csr", "sell_spmv"]

_THREADS = 256
_LANES = 32

Array = Any


def csr_spmv(device: Device, indptr: Array, indices: Array, data: Array, x: Array, out: Array) -> None:
    """Queue ``out = M x`` for a matrix in compressed sparse rows, a warp a row.

    Parameters
    ----------
    device : Device
    indptr : ndarray, shape (n_rows + 1,), int32 or int64
    indices : ndarray, shape (entries,), int32
    data : ndarray, shape (entries,), float64
    x : ndarray, shape (n_columns,), float64
    out : ndarray, shape (n_rows,), float64
        Overwritten; must not overlap x.

    Notes
    -----
    Synchronises: no. Deterministic.
    """
    n_rows = len(indptr) - 1
    check_vector(device, x, len(x), "x")
    check_vector(device, out, n_rows, "out")
    check_vector(device, indices, len(data), "indices", np.int32)
    bits = 8 * int(indptr.dtype.itemsize)
    kernel = device.kernel("csr_spmv.cu", "csr_spmv", macros(INDEX_BITS=bits))
    blocks = min(blocks_for(n_rows * _LANES, _THREADS), 1 << 24)
    kernel((blocks,), (_THREADS,), (index_type(bits)(n_rows), indptr, indices, data, x, out))


@dataclass(frozen=True, eq=False)
class SellMatrix:
    """A matrix in sliced ELL: 32 rows a slice, as wide as the longest of them.

    Attributes
    ----------
    n_rows : int
    slice_ptr : ndarray, shape (slices + 1,), int32 or int64
        Elements of every slice, padding included.
    indices : ndarray, shape (elements,), int32
        Columns; -1 is padding.
    data : ndarray, shape (elements,), float64
    """

    n_rows: int
    slice_ptr: Array
    indices: Array
    data: Array

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return int(self.slice_ptr.nbytes + self.indices.nbytes + self.data.nbytes)


def sell_from_csr(device: Device, indptr: Array, indices: Array, data: Array) -> SellMatrix:
    """Copy a matrix in compressed sparse rows to sliced ELL, on the device.

    Raises
    ------
    MemoryError
        If it does not fit in the free memory.

    Notes
    -----
    Synchronises: yes, for the number of elements.
    """
    xp, n_rows = device.xp, len(indptr) - 1
    slices = -(-n_rows // _LANES)
    lengths = xp.zeros(slices * _LANES, np.int64)
    lengths[:n_rows] = indptr[1:] - indptr[:-1]
    slice_ptr = xp.zeros(slices + 1, np.int64)
    slice_ptr[1:] = xp.cumsum(lengths.reshape(slices, _LANES).max(axis=1) * _LANES)
    elements = int(slice_ptr[-1])
    if 12 * elements > device.free_bytes():
        raise MemoryError(
            f"sliced ELL needs {12 * elements} bytes and {device.free_bytes()} are free on {device.name}; "
            "use the compressed matrix"
        )
    bits = index_bits(max(elements, len(data)))
    index = index_type(bits)
    result = SellMatrix(n_rows, slice_ptr.astype(index), xp.empty(elements, np.int32), xp.empty(elements))
    if slices:
        kernel = device.kernel("csr_spmv.cu", "sell_fill", macros(INDEX_BITS=bits))
        arguments = (
            index(n_rows), indptr.astype(index, copy=False), indices, data, result.slice_ptr, result.indices,
            result.data,
        )  # fmt: skip
        kernel((blocks_for(slices * _LANES, _THREADS),), (_THREADS,), arguments)
    return result


def sell_spmv(device: Device, matrix: SellMatrix, x: Array, out: Array) -> None:
    """Queue ``out = M x`` for a matrix in sliced ELL, a thread a row. Synchronises: no."""
    check_vector(device, x, len(x), "x")
    check_vector(device, out, matrix.n_rows, "out")
    bits = 8 * int(matrix.slice_ptr.dtype.itemsize)
    kernel = device.kernel("csr_spmv.cu", "sell_spmv", macros(INDEX_BITS=bits))
    arguments = (index_type(bits)(matrix.n_rows), matrix.slice_ptr, matrix.indices, matrix.data, x, out)
    kernel((blocks_for(matrix.n_rows, _THREADS),), (_THREADS,), arguments)
