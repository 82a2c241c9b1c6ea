"""Tuples of integers, given column by column, put in order and numbered; NumPy and CuPy arrays alike.

Columns are packed into one key a tuple.  Keys are sorted stably: they come in runs, as levels and lists are
made in order, and a stable sort merges runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any
"""A NumPy or CuPy array."""

Int64Array = NDArray[np.int64]

_FEW_TUPLES = 48
"""Up to so many, Python's own sort and dictionary number tuples sooner than arrays are sorted."""

_MOST = 2**62
"""Keys are less than this, so that sums and differences of two of them fit into 64 bits."""


def distinct_rows(columns: Sequence[NDArray[np.integer]]) -> tuple[Int64Array, Int64Array]:
    """Give every distinct tuple, formed by equally long columns of integers, a number, on the host.

    `columns` (sequence of ndarray, shape (n,), any integer dtype): column ``i`` holds the ``i``-th member of
    every tuple; at least one column. Returns `first` (ndarray, shape (m,), int64): position of the first of
    each distinct tuple, in lexicographic order of the tuples. `inverse` (ndarray, shape (n,), int64): number
    of every tuple, so that ``column[first][inverse]`` gives the columns back.

    Time: O(c n log n) for ``c`` columns.
    """
    size = len(columns[0])
    if 0 < size <= _FEW_TUPLES:
        tuples = list(zip(*(column.tolist() for column in columns), strict=True))
        place = dict(zip(reversed(tuples), range(size - 1, -1, -1), strict=True))
        order = sorted(place)
        number = {found: k for k, found in enumerate(order)}
        return np.array([place[t] for t in order], np.int64), np.array([number[t] for t in tuples], np.int64)
    return distinct(np, columns)


def distinct(xp: Any, columns: Sequence[Array]) -> tuple[Array, Array]:
    """Give every distinct tuple, formed by equally long columns of integers, a number.

    Returns first, inverse: as of `distinct_rows`, arrays of `xp`. Time: O(c n log n) for c columns; O(c n) on
    the host where at most n different tuples are possible. Synchronises: yes, once a column.
    """
    if len(columns[0]) == 0:
        return xp.zeros(0, xp.int64), xp.zeros(0, xp.int64)
    keys, span = packed(xp, columns)
    if xp is np and span <= len(keys):
        return _counted(keys, span)
    return numbered(xp, keys)


def _counted(keys: Int64Array, span: int) -> tuple[Int64Array, Int64Array]:
    """Return what `distinct` does, of keys less than `span`, without sorting. Time: O(n + span)."""
    first = np.full(span, len(keys), np.int64)
    np.minimum.at(first, keys, np.arange(len(keys)))
    there = first < len(keys)
    number = np.cumsum(there) - 1
    return first[there], number[keys]


def packed(xp: Any, columns: Sequence[Array]) -> tuple[Array, int]:
    """Return one key a tuple, in the order of the tuples, and what all keys are less than.

    `columns` (sequence of array, shape (n,), integers): with an element at least; the first one leads.
    Returns `keys` (array, shape (n,), int64): at least 0. `span`: at most 2^62: what is packed so far is
    renumbered where more would be needed.

    Time: O(n) a column, and O(n log n) where keys are renumbered. Synchronises: yes, once a column.
    """
    keys, span = xp.zeros(len(columns[0]), xp.int64), 1
    for column in columns:
        low, high = int(column.min()), int(column.max())
        width = high - low + 1
        if width == 1:
            continue
        values = xp.subtract(column.astype(xp.int64), low)
        if span * width >= _MOST:
            keys, span = _ranks(xp, keys)
        if span * width >= _MOST:
            values, width = _ranks(xp, values)
        keys *= width
        keys += values
        span *= width
    return keys, span


def numbered(xp: Any, keys: Array) -> tuple[Array, Array]:
    """Return what `distinct` does, of one column that has an element at least, of any type.

    CuPy's `unique` with indices loads sparse matrices.
    """
    order = xp.argsort(keys, kind="stable")
    keys = keys[order]
    new = xp.ones(len(keys), bool)
    new[1:] = keys[1:] != keys[:-1]
    inverse = xp.empty(len(keys), xp.int64)
    inverse[order] = xp.subtract(xp.cumsum(new), 1)
    return order[new].astype(xp.int64), inverse


def stable_order(xp: Any, columns: Sequence[Array]) -> Array:
    """Return the positions that sort the tuples formed by the columns, the first column leading."""
    if len(columns[0]) == 0:
        return xp.zeros(0, xp.int64)
    return xp.argsort(packed(xp, columns)[0], kind="stable")


def _ranks(xp: Any, keys: Array) -> tuple[Array, int]:
    first, inverse = numbered(xp, keys)
    return inverse, len(first)
