"""Array sweeps that run alike on NumPy and CuPy arrays; the array module is always the first argument.

CuPy offers a subset of NumPy: no ``repeat`` with an array of counts, no ``reduceat`` for all types, no
``lexsort`` on lists of columns. What the GPU backend needs of these is written here once, from sorting,
prefix sums and scattered additions alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any
"""A NumPy or CuPy array."""

_PART = 1 << 28
"""Elements of a sum or another reduction: libraries count them by 32 bits."""

_ONE_BY_ONE = 32
"""Elements of a vector on a device that are read one after the other."""


def counts(xp: Any, numbers: Array, n: int) -> Array:
    """Return how often each of 0, ..., n - 1 occurs among some numbers, shape (n,), int64."""
    if n == 0 or len(numbers) == 0:
        return xp.zeros(n, xp.int64)
    if isinstance(numbers, np.ndarray):
        return np.bincount(numbers, minlength=n)
    # CuPy's bincount compiles a search for negative numbers, which takes four seconds.
    found = xp.zeros(n, xp.uint64)
    xp.add.at(found, numbers, xp.ones((), xp.uint64))
    return found.view(xp.int64)


def distinct(xp: Any, columns: Sequence[Array]) -> tuple[Array, Array]:
    """Give every distinct tuple, formed by equally long columns of integers, a number.

    Returns
    -------
    first : ndarray, shape (m,), int64
        Position of the first occurrence of each distinct tuple, in lexicographic order of the tuples.
    inverse : ndarray, shape (n,), int64
        Number of every tuple.

    Notes
    -----
    Time: O(c n log n) for c columns. Synchronises: yes, once a column.
    """
    size = len(columns[0])
    if size == 0:
        return xp.zeros(0, xp.int64), xp.zeros(0, xp.int64)
    return numbered(xp, _packed(xp, columns))


def numbered(xp: Any, keys: Array) -> tuple[Array, Array]:
    """Return what `distinct` does, of one column that has a number at least; numbers go by their order.

    CuPy's `unique`, asked for places, loads sparse matrices.
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
    return xp.argsort(_packed(xp, columns), kind="stable")


def _packed(xp: Any, columns: Sequence[Array]) -> Array:
    """Return one 62-bit key a tuple, in the order of the tuples."""
    key = xp.zeros(len(columns[0]), xp.int64)
    span = 1
    for column in columns:
        low, high = int(column.min()), int(column.max())
        width = high - low + 1
        if width == 1:
            continue
        values = xp.subtract(column.astype(xp.int64), low)
        if span * width >= 2**62:
            key, span = _ranks(xp, key)
        if span * width >= 2**62:
            values, width = _ranks(xp, values)
        key *= width
        key += values
        span *= width
    return key


def _ranks(xp: Any, key: Array) -> tuple[Array, int]:
    first, inverse = numbered(xp, key)
    return inverse, len(first)


def to_host(array: Array) -> Any:
    """Return an array as a NumPy array, copied from the device if it lies there."""
    return array.get() if hasattr(array, "get") else array


def elements(x: Array, places: Any) -> Any:
    """Return some elements as a NumPy array.

    Parameters
    ----------
    x : array, shape (n,)
        Of NumPy or CuPy.
    places : ndarray of int64 or bool, or slice
        Of a vector on a device, numbers.
    """
    if isinstance(x, np.ndarray):
        return x[places]
    if len(places) <= _ONE_BY_ONE:
        # A kernel takes longer to compile than these to be read.
        return np.array([to_host(x[place : place + 1])[0] for place in places.tolist()], dtype=x.dtype)
    return to_host(x.take(places))


def extremes(x: Array) -> tuple[float, float]:
    """Return the least and the greatest element; infinite the wrong way round where there is none.

    Part by part, but of a `gpu_kernels.CodedVector`, which looks at its values alone.
    """
    if len(x) <= _PART or not hasattr(x, "ndim"):
        return (float(x.min()), float(x.max())) if len(x) else (math.inf, -math.inf)
    parts = [x[begin : begin + _PART] for begin in range(0, len(x), _PART)]
    return float(np.min([float(p.min()) for p in parts])), float(np.max([float(p.max()) for p in parts]))


def total(x: Array) -> float:
    """Return the sum of all elements."""
    return sum((float(x[begin : begin + _PART].sum()) for begin in range(0, len(x), _PART)), 0.0)


def inner(x: Array, y: Array) -> float:
    """Return the sum of products of two vectors in one place."""
    parts = (slice(begin, begin + _PART) for begin in range(0, len(x), _PART))
    return sum((float(x[part] @ y[part]) for part in parts), 0.0)


def distinct_values(xp: Any, values: Array) -> tuple[Array, Array]:
    """Return the distinct values and, for each value, its number among them."""
    if len(values) == 0:
        return values, xp.zeros(0, xp.int64)
    first, number = numbered(xp, values)
    return values[first], number


def scramble(xp: Any, key: Array) -> Array:
    """Scramble 64-bit words (multiply-xorshift rounds) so that sums of them rarely agree by accident."""
    shift, multiply = xp.right_shift, xp.multiply
    key = multiply(key ^ shift(key, xp.uint64(30)), xp.uint64(0xBF58476D1CE4E5B9))
    key = multiply(key ^ shift(key, xp.uint64(27)), xp.uint64(0x94D049BB133111EB))
    return key ^ shift(key, xp.uint64(31))
