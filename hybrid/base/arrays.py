"""Array sweeps on NumPy and CuPy arrays alike, the array module first among the arguments; ragged lists.

CuPy offers a subset of NumPy: no ``repeat`` with an array of counts, no ``reduceat`` for all types, no
``lexsort`` on lists of columns. What the GPU backend needs of these is written here once, from sorting,
prefix sums and scattered additions alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.sorting import sorted_values
from mtbdd.offset.tuples import numbered

# The distinct values of an array that mostly has few.

_SAMPLE = 1 << 16
_FEW = 1 << 12
_CHUNK = 1 << 18


def few_values(array: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.integer]]:
    """Return the distinct values of an array without NaN, ascending, and every element's place among them.

    Places are uint16 or int64. Time: O(n log m) for m values while they are few: new ones are gathered from
    samples until none is left; otherwise O(n log n).
    """
    found = sorted_values(array[:_SAMPLE])
    places = np.empty(len(array), dtype=np.uint16)
    begin = moved = 0
    while len(found) <= _FEW and begin < len(array):
        part = array[begin : begin + _CHUNK]
        own = np.searchsorted(found, part)
        new = np.take(found, own, mode="clip") != part
        if bool(new.any()):
            found = np.union1d(found, part[new])
            moved = begin  # the places of all before have
        else:
            places[begin : begin + _CHUNK] = own
            begin += _CHUNK
    if len(found) > _FEW:
        found, numbers = np.unique(array, return_inverse=True)
        return found, numbers.reshape(-1)
    for begin in range(0, moved, _CHUNK):
        places[begin : begin + _CHUNK] = np.searchsorted(found, array[begin : begin + _CHUNK])
    return found, places


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


def sums(xp: Any, numbers: Array, amounts: Array, n: int) -> Array:
    """Return the sums of the non-negative integers that go with each of 0, ..., n - 1, shape (n,), int64."""
    found = xp.zeros(n, xp.uint64)
    if len(numbers):
        xp.add.at(found, numbers, amounts.astype(xp.uint64))
    return found.view(xp.int64)


def to_host(array: Array) -> Any:
    """Return an array as a NumPy array, copied from the device if it lies there."""
    return array.get() if hasattr(array, "get") else array


def elements(x: Array, places: Any) -> Any:
    """Return some elements of a vector of NumPy or CuPy as a NumPy array.

    Places are int64, a mask or a slice; of a vector on a device, numbers.
    """
    if isinstance(x, np.ndarray):
        return x[places]
    if len(places) <= _ONE_BY_ONE:
        # A kernel takes longer to compile than these to be read.
        return np.array([to_host(x[place : place + 1])[0] for place in places.tolist()], dtype=x.dtype)
    return to_host(x.take(places))


def extremes(x: Array) -> tuple[float, float]:
    """Return the least and the greatest element; infinite the wrong way round where there is none.

    Part by part, but of a `gpu_kernels.CodedVector`, which compares its values alone.
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
    # In place: a long array takes longer to be made than to be gone through.
    part = xp.right_shift(key, xp.uint64(30))
    key = key ^ part
    for factor, places in ((0xBF58476D1CE4E5B9, 27), (0x94D049BB133111EB, 31)):
        key *= xp.uint64(factor)
        xp.right_shift(key, xp.uint64(places), out=part)
        key ^= part
    return key


# Arrays of other libraries at the border: those of NumPy and CuPy, and any with DLPack.

_HOST_KINDS = (1, 3)
"""DLPack's numbers for memory that the host reads: its own, and pinned by CUDA."""


def lies_on_device(x: Any) -> bool:
    """Return whether an array lies where the host cannot read it.

    Asked by DLPack first: PyTorch's type has the CUDA interface also for tensors on the host.
    """
    if isinstance(x, np.ndarray):
        return False
    where = getattr(x, "__dlpack_device__", None)
    if where is not None:
        kind, _ = where()
        return int(kind) not in _HOST_KINDS
    return hasattr(x, "__cuda_array_interface__")


def on_host(x: Any) -> Any:
    """Return an array that lies on the host as a NumPy array, without a copy where there is a buffer.

    Raises TypeError where its elements are of a type that NumPy does not have.
    """
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "__dlpack__"):
        try:
            return np.from_dlpack(x)
        except (BufferError, RuntimeError) as error:
            raise TypeError(f"x: expected an array that NumPy can take by DLPack: {error}") from error
    return np.asarray(x)


def through_host(work: Callable[[Any], Array], x: Any) -> Array:
    """Return what `work` makes of a device array for a matrix on the host: copied there, and the result back.

    Synchronises: yes. Two copies a call.
    """
    import cupy

    result: Array = cupy.asarray(work(cupy.asarray(x).get()))
    return result


# Ragged lists of NumPy arrays, numbered by contents: list i holds the items ``ptr[i] .. ptr[i + 1]``.
#
# Row types, slice patterns and submatrices are all lists of varying length. These few helpers gather, expand
# and number whole levels without a Python loop. Those that run on a device, too, are in
# :mod:`gpu_kernels.runtime.coded`.

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
