"""Array sweeps that the conversions share; NumPy and CuPy alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels._launch import INDEX_LIMIT, index_bits, index_type
from gpu_kernels.csr import CsrArrays
from gpu_kernels.device import Device
from gpu_kernels.ragged import array_module

Array = Any

INDEX_MARGIN = 1 << 15
"""Rows and elements that threads of a launch may reach behind the end before they notice."""


def index_for(csr: CsrArrays, elements: int) -> type[np.signedinteger[Any]]:
    """Return the type of indices where ``elements`` are stored: 64 bits where row starts have 64."""
    return _index(max(elements, csr.nnz, *csr.shape), bool(csr.row_starts.dtype == np.int64))


def _index(largest: int, wide: bool) -> type[np.signedinteger[Any]]:
    """Return the type of indices for the largest of all counts, which launches reach behind."""
    return index_type(index_bits(largest + INDEX_MARGIN, wide))


def read_csr(
    device: Device, row_starts: Array, columns: Array, values: Array, n_columns: int, wide: bool = False
) -> CsrArrays:
    """Copy a matrix to the device where it is not there yet, and check it.

    Parameters
    ----------
    device : Device
    row_starts : array_like, shape (n_rows + 1,), integers
    columns : array_like, shape (entries,), integers
    values : array_like, shape (entries,), float64
        All three on the host or on the device.
    n_columns : int
    wide : bool
        Use 64-bit row starts although 32 bits would do.

    Returns
    -------
    CsrArrays
        On the device.

    Raises
    ------
    ValueError
        If the arrays are no matrix; the message says what is wrong.

    Notes
    -----
    Synchronises: yes.
    """
    xp = device.xp
    row_starts, columns = xp.asarray(row_starts), xp.asarray(columns)
    values = xp.ascontiguousarray(xp.asarray(values, dtype=np.float64))
    n_rows, entries = len(row_starts) - 1, len(columns)
    if n_rows < 0 or row_starts.ndim != 1:
        raise ValueError(f"row_starts: expected shape (n_rows + 1,), got {row_starts.shape}")
    if len(values) != entries:
        raise ValueError(f"values: expected one for each of {entries} columns, got {len(values)}")
    first, last = int(row_starts[0]), int(row_starts[-1])
    if first != 0 or last != entries or (n_rows and bool((row_starts[1:] < row_starts[:-1]).any())):
        raise ValueError(
            f"row_starts: expected numbers from 0 to {entries}, the entries, that never decrease; "
            f"got first {first}, last {last}"
        )
    if n_columns >= INDEX_LIMIT:
        raise ValueError(f"an explicit matrix has fewer than 2**31 columns, this one has {n_columns}")
    if entries:
        low, high = int(columns.min()), int(columns.max())
        if low < 0 or high >= n_columns:
            raise ValueError(f"columns: expected 0 to {n_columns - 1}, got {low} to {high}")
    columns = xp.ascontiguousarray(columns.astype(np.int32, copy=False))
    index = _index(max(n_rows, entries, n_columns), wide)
    starts = xp.ascontiguousarray(row_starts.astype(index, copy=False))
    return CsrArrays((n_rows, int(n_columns)), starts, columns, values)


def reading_bytes(
    device: Device, row_starts: Array, columns: Array, values: Array, n_columns: int, wide: bool
) -> tuple[int, int]:
    """Return what :func:`read_csr` allocates: bytes that stay, and bytes besides while it runs.

    Arrays that lie on the device with the right type are not copied.
    """
    n_rows, entries = max(len(row_starts) - 1, 0), len(columns)
    index = np.dtype(_index(max(n_rows, entries, n_columns), wide))
    stay, meanwhile = 0, n_rows
    for array, dtype in ((row_starts, index), (columns, np.dtype(np.int32)), (values, np.dtype(np.float64))):
        own = getattr(array, "dtype", np.dtype(np.int64))
        is_there = isinstance(array, device.xp.ndarray)
        if own == dtype:
            stay += 0 if is_there else len(array) * dtype.itemsize
        else:
            stay += len(array) * dtype.itemsize
            meanwhile += 0 if is_there else len(array) * own.itemsize
    return stay, meanwhile


def longest_of(lengths: Array, group: int) -> Array:
    """Return the greatest of every ``group`` consecutive lengths; the last group may be short."""
    xp = array_module(lengths)
    if not len(lengths):
        return xp.zeros(0, np.int64)
    padded = xp.zeros(-(-len(lengths) // group) * group, np.int64)
    padded[: len(lengths)] = lengths
    return padded.reshape(-1, group).max(axis=1)


def require_memory(device: Device, needed: int, what: str) -> None:
    """Refuse a conversion whose result does not fit.

    Raises
    ------
    MemoryError
        With the bytes needed and the bytes free.
    """
    free = device.free_bytes()
    if needed > free:
        raise MemoryError(
            f"{what} needs {needed} bytes and {free} are free on {device.name}; use a format with fewer "
            "bytes an entry, parts of the matrix, or the compressed matrix"
        )
