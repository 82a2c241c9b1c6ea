"""Ragged lists of NumPy arrays, numbered by contents: list i holds the items ``ptr[i] .. ptr[i + 1]``.

Row types, slice patterns and submatrices are all lists of varying length. These few helpers gather, expand
and number whole levels without a Python loop. Those that run on a device, too, are in
:mod:`gpu_kernels.runtime.coded`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hybrid.base.arrays import scramble

Int64Array = NDArray[np.int64]

_FEW_ITEMS = 64
"""Up to so many lists and items, a dictionary numbers lists sooner than arrays are hashed."""

_SEEDS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)


def positions_in_lists(ptr: NDArray[np.integer]) -> Int64Array:
    """Return, for every item of all lists, its position within its list."""
    counts = np.diff(ptr)
    starts = (ptr[:-1] - ptr[0]).astype(np.int64)
    positions = np.arange(int(ptr[-1]) - int(ptr[0]), dtype=np.int64)
    positions -= np.repeat(starts, counts)
    return positions


def concatenated_ranges(starts: NDArray[np.integer], counts: NDArray[np.integer]) -> Int64Array:
    """Return start[0], start[0] + 1, ..., then the same for every further range, counts[i] numbers each.

    Used to gather lists: ``items[concatenated_ranges(ptr[chosen], lengths[chosen])]``.
    """
    counts = counts.astype(np.int64)
    total = int(counts.sum())
    shift: Int64Array = starts.astype(np.int64) - (counts.cumsum() - counts)
    return np.arange(total, dtype=np.int64) + shift.repeat(counts)


def distinct_lists(
    ptr: NDArray[np.integer], columns: Sequence[NDArray[np.integer]]
) -> tuple[Int64Array, Int64Array]:
    """Give every distinct list a number.

    Returns the first occurrence of each, ascending, and the number of every list. Both are int64. List i has
    the items from ``ptr[i]``, shape (n + 1,); item k is the tuple of the k-th members of all columns,
    integers, shape (items,). Lists are compared by a 64-bit hash, and every list that has another's is then
    checked against it, so the answer is exact. Raises RuntimeError where four independent hashes in a row
    collide, which chance does not bring about. Time: O(items + n log n).
    """
    n = len(ptr) - 1
    if n == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if n + int(ptr[-1]) - int(ptr[0]) <= _FEW_ITEMS:
        return _distinct_few(ptr, columns)
    lengths = np.diff(ptr).astype(np.int64)
    positions = positions_in_lists(ptr)
    for seed in _SEEDS:
        hashes = _hash_lists(ptr, lengths, positions, columns, seed)
        _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        first, inverse = first.astype(np.int64), inverse.astype(np.int64)
        if _have_twins(ptr, lengths, columns, first[inverse]):
            # Numbers in the order of first occurrence keep lists that are used together close in memory.
            is_first = np.zeros(n, np.bool_)
            is_first[first] = True
            return np.flatnonzero(is_first), (np.cumsum(is_first) - 1)[first][inverse]
    raise RuntimeError("four 64-bit hashes of the lists collided in a row; the input looks adversarial")


def _have_twins(
    ptr: NDArray[np.integer],
    lengths: Int64Array,
    columns: Sequence[NDArray[np.integer]],
    representative: Int64Array,
) -> bool:
    """Return whether every list is equal to its representative."""
    copy = np.flatnonzero(representative != np.arange(len(representative)))
    original, length = representative[copy], lengths[copy]
    if not np.array_equal(length, lengths[original]):
        return False
    own, twin = (concatenated_ranges(ptr[lists], length) for lists in (copy, original))
    return all(np.array_equal(column[own], column[twin]) for column in columns)


def _distinct_few(
    ptr: NDArray[np.integer], columns: Sequence[NDArray[np.integer]]
) -> tuple[Int64Array, Int64Array]:
    ends = ptr.tolist()
    items = list(zip(*(column[ends[0] : ends[-1]].tolist() for column in columns), strict=True))
    number: dict[tuple[tuple[int, ...], ...], int] = {}
    first: list[int] = []
    inverse: list[int] = []
    for i in range(len(ends) - 1):
        own = tuple(items[ends[i] - ends[0] : ends[i + 1] - ends[0]])
        found = number.setdefault(own, len(number))
        if found == len(first):
            first.append(i)
        inverse.append(found)
    return np.array(first, np.int64), np.array(inverse, np.int64)


def _hash_lists(
    ptr: NDArray[np.integer],
    lengths: Int64Array,
    positions: Int64Array,
    columns: Sequence[NDArray[np.integer]],
    seed: int,
) -> NDArray[np.uint64]:
    # A sum of items, scrambled, times words of their positions: order counts, and sums of lists are
    # differences of one running sum, which wraps around harmlessly.
    begin, end = int(ptr[0]), int(ptr[-1])
    key = _scrambled(columns[0][begin:end])
    for column in columns[1:]:
        key = scramble(np, key ^ column[begin:end].astype(np.int64).view(np.uint64))
    words = scramble(np, np.arange(int(lengths.max()), dtype=np.uint64) + np.uint64(seed)) | np.uint64(1)
    key *= words[positions]
    running = np.zeros(len(key) + 1, np.uint64)
    np.cumsum(key, out=running[1:])
    offsets = (ptr - begin).astype(np.int64)
    hashes: NDArray[np.uint64] = running[offsets[1:]] - running[offsets[:-1]]
    hashes += scramble(np, lengths.view(np.uint64))
    return hashes


def _scrambled(items: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return a new array of scrambled items; each number below their count is scrambled once."""
    if items.size and 0 <= int(items.min()) and int(items.max()) < items.size:
        table = np.asarray(scramble(np, np.arange(1, int(items.max()) + 2, dtype=np.uint64)))
        return np.asarray(table[items])
    return np.asarray(scramble(np, items.astype(np.int64).view(np.uint64) + np.uint64(1)))
