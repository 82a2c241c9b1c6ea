"""Checks of what products are given: real vectors of the right length, and room for the result."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float64Array = NDArray[np.float64]


PIECE = 1 << 13
"""Elements of a scalar product at once: too few for a library to start threads, which would wait for ours."""

LINE = 64
"""Bytes of a cache line: eight doubles."""


def aligned_empty(n_rows: int, n_columns: int) -> Float64Array:
    """Return an array whose first row begins at a cache line, shape (n_rows, n_columns), not written to."""
    size = 8 * n_rows * n_columns
    room = np.empty(size + LINE, np.uint8)
    begin = -room.ctypes.data % LINE
    return room[begin : begin + size].view(np.float64).reshape(n_rows, n_columns)


def check_real(array: NDArray[Any], name: str) -> None:
    """Refuse numbers that are not real, with a TypeError."""
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name}: expected real numbers, got dtype {array.dtype}")


def as_vector(x: ArrayLike, size: int, name: str) -> Float64Array:
    """Return a real vector as contiguous float64, copied if it is not.

    Raises
    ------
    TypeError
        If it is not real.
    ValueError
        If its shape is not (size,).
    """
    array = np.asarray(x)
    check_real(array, name)
    if array.shape != (size,):
        raise ValueError(f"{name}: expected shape ({size},), got {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def as_columns(x: ArrayLike, size: int, name: str) -> Float64Array:
    """Return real vectors side by side, shape (size, k), as float64 contiguous in rows; copied if need be.

    Raises
    ------
    TypeError
        If they are not real.
    ValueError
        If the shape is not (size, k).
    """
    array = np.asarray(x)
    check_real(array, name)
    if array.ndim != 2:
        raise ValueError(f"{name}: expected shape ({size}, k), got {array.shape}")
    if array.shape[0] != size:
        raise ValueError(f"{name}: expected {size} rows, one a column of the matrix, got shape {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def check_out(out: Float64Array, size: int, x: Float64Array) -> Float64Array:
    """Return the array for a result, made sure to be contiguous, writeable and apart from x.

    Raises
    ------
    TypeError
        If it is no float64 array.
    ValueError
        If its shape is not (size,), or it is not contiguous, or shares memory with x.
    """
    if not isinstance(out, np.ndarray) or out.dtype != np.float64:
        raise TypeError(f"out: expected a float64 array, got {getattr(out, 'dtype', type(out).__name__)}")
    if out.shape != (size,):
        raise ValueError(f"out: expected shape ({size},), got {out.shape}")
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise ValueError("out: expected a contiguous writeable array; pass np.empty(n_rows) or leave it out")
    if np.may_share_memory(out, x):
        raise ValueError("out: shares memory with x, which is read while out is written; pass another array")
    return out
