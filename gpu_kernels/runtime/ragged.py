"""Ragged lists in flat arrays: list i holds the items ``ptr[i] .. ptr[i + 1]``.

Row types, slices, submatrices and rows of explicit matrices are all lists of varying length. Whole levels of
them are gathered and expanded here without a Python loop, on NumPy and on CuPy arrays; the array module is
the first argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
"""A NumPy or CuPy array."""


def array_module(array: Array) -> Any:
    """Return NumPy, or CuPy for an array on the device."""
    # Asked of the type: the interface itself is a property that takes its time.
    if not hasattr(type(array), "__cuda_array_interface__"):
        return np
    import cupy

    return cupy


def shares(xp: Any, sizes: Array, most: int) -> Array:
    """Return how many parts of at most so many elements sizes make: quotients, rounded up."""
    return xp.floor_divide(xp.add(sizes, most - 1), most)


def pointers(xp: Any, lengths: Array) -> Array:
    """Return the list pointers, shape (n + 1,), int64, of n lists with the given lengths."""
    ptr = xp.zeros(len(lengths) + 1, xp.int64)
    xp.cumsum(lengths, out=ptr[1:])
    return ptr


def owners(xp: Any, ptr: Array, total: int) -> Array:
    """Return, for each of ``total`` items, the number of the list that it lies in, shape (total,), int64.

    Parameters
    ----------
    xp : module
    ptr : array, shape (n + 1,), integers
        List pointers that begin with 0 and end with ``total``; lists may be empty.
    total : int
        The last pointer, known to the caller so that nothing waits for the device.

    Notes
    -----
    Time: O(n + total). CuPy repeats by arrays on the host only, so that a device adds up marks instead.
    """
    if xp is np:
        return np.repeat(np.arange(len(ptr) - 1, dtype=np.int64), np.diff(ptr))
    marks = xp.zeros(total + 1, xp.int64)
    # Lists may be empty: several begin at the same item.
    xp.add.at(marks, ptr[1:-1], 1)
    return xp.cumsum(marks[:total])


def ranges(xp: Any, starts: Array, ptr: Array, total: int) -> tuple[Array, Array]:
    """Return the numbers start[i], start[i] + 1, ... of range after range, and the range of each.

    Parameters
    ----------
    xp : module
    starts : array, shape (n,), integers
        First number of every range.
    ptr : array, shape (n + 1,), int64
        Pointers of the ranges' lengths.
    total : int
        The last pointer.
    """
    owner = owners(xp, ptr, total)
    return xp.arange(total, dtype=xp.int64) + (starts - ptr[:-1])[owner], owner
