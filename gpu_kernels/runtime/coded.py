"""Vectors held by dictionary: one or two bytes an element where a vector has few distinct values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from gpu_kernels.runtime.device import Device, Place

# Ragged lists in flat arrays: list i holds the items ``ptr[i] .. ptr[i + 1]``.
#
# Row types, slices, submatrices and rows of explicit matrices are all lists of varying length. Whole levels
# of them are gathered and expanded here without a Python loop, on NumPy and on CuPy arrays; the array module
# is the first argument.

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


_CHUNK = 1 << 24
"""Elements processed together: bounds the temporary memory."""

_LONG = 1 << 30
"""Elements of a reduction."""

_FEW = 1 << 17
"""Elements of a vector of the host that are coded there: kernels take longer to compile."""

_LIMIT = 1 << 16

_FRAGMENTS = 1 << 27
"""Elements from which on the numbers of a vector's values leave no vector room in a block that they split."""


def give_back_blocks(xp: Any) -> None:
    """Give unused blocks of CuPy's pool back to the card; NumPy has none."""
    pool = getattr(xp, "get_default_memory_pool", None)
    if pool is not None:
        pool().free_all_blocks()


@dataclass(frozen=True, eq=False)
class CodedVector:
    """A vector of doubles on the device, plain or by dictionary.

    Attributes
    ----------
    size : int
        Elements.
    bits : int
        0: all elements are zero and nothing is stored; 8 or 16: ``elements`` are numbers of values; 64: they
        are the values.
    elements : ndarray, shape (size,), uint8, uint16 or float64, or None
    table : ndarray, shape (values,), float64, or None
        The distinct values.
    """

    size: int
    bits: int
    elements: Any
    table: Any

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(int(array.nbytes) for array in (self.elements, self.table) if array is not None)

    def scaled(self, factor: float) -> CodedVector:
        """Return the vector times a number; a dictionary's numbers are shared, only its values are new."""
        if self.table is not None:
            return replace(self, table=array_module(self.table).multiply(self.table, factor))
        if self.bits == 0:
            return self
        return replace(self, elements=array_module(self.elements).multiply(self.elements, factor))

    def __len__(self) -> int:
        return self.size

    def min(self) -> Any:
        """Return the least element, shape ()."""
        return _extreme(self.elements, "min") if self.table is None else self.table.min()

    def max(self) -> Any:
        """Return the greatest element, shape ()."""
        return _extreme(self.elements, "max") if self.table is None else self.table.max()

    def argmax(self) -> int:
        """Return the place of the greatest element, of several the first.  Synchronises: yes."""
        if self.table is None:
            return 0 if self.bits == 0 else int(self.elements.argmax())
        greatest = self.table.argmax()
        for begin in range(0, self.size, _CHUNK):
            first = int((self.elements[begin : begin + _CHUNK] == greatest).argmax())
            if self.elements[begin + first] == greatest:
                return begin + first
        raise AssertionError("the dictionary has a value that no element has")

    def expand(self, device: Device) -> Any:
        """Return the plain vector, shape (size,), float64."""
        if self.bits == 0:
            return device.xp.zeros(self.size)
        return self.elements if self.bits == 64 else self.table[self.elements]

    def times(self, x: Any, out: Any) -> None:
        """Queue ``out = self * x`` for vectors on the device, which may be one; 16 million at a time."""
        xp = array_module(x)
        if self.bits == 64:
            xp.multiply(self.elements, x, out=out)
            return
        if self.bits == 0:
            out[...] = 0.0
            return
        for begin in range(0, self.size, _CHUNK):
            part = slice(begin, begin + _CHUNK)
            xp.multiply(self.table[self.elements[part]], x[part], out=out[part])


def _extreme(elements: Any, name: Literal["min", "max"]) -> Any:
    """Return the least or the greatest element, part by part: reductions count by 32 bits."""
    found = [getattr(elements[begin : begin + _LONG], name)() for begin in range(0, len(elements), _LONG)]
    return found[0] if len(found) == 1 else min(found) if name == "min" else max(found)


def compress(place: Place, vector: Any) -> CodedVector:
    """Put a vector in a place, by dictionary if it has at most 65,536 distinct values.

    Parameters
    ----------
    place : Place
    vector : ndarray, shape (n,), float64, or None
        On the host or on the device; one with all elements in one place (`numpy.broadcast_to`) is not read.
        None stands for zeros; the size of the result is then 0.

    Returns
    -------
    CodedVector
        Bit for bit the same numbers.

    Notes
    -----
    Time: O(n log k) for k values; temporary memory for 16 million elements. A vector with more values is
    recognised by a part of it. Synchronises: yes.
    """
    if vector is None:
        return CodedVector(0, 0, None, None)
    size = len(vector)
    if size and vector.strides == (0,):
        return CodedVector(size, 8, place.xp.zeros(size, np.uint8), place.xp.asarray(vector[:1].copy()))
    if size >= _FRAGMENTS:
        give_back_blocks(place.xp)
    # Ten kernels would be compiled for a vector that the host codes in a few milliseconds.
    xp = np if isinstance(vector, np.ndarray) and size <= _FEW else place.xp
    table = _values(xp, vector)
    if table is None:
        return CodedVector(size, 64, place.xp.ascontiguousarray(place.xp.asarray(vector)), None)
    bits = 8 if len(table) <= 256 else 16
    elements = xp.empty(size, np.uint8 if bits == 8 else np.uint16)
    keys = table.view(np.int64)
    for begin in range(0, size, _CHUNK):
        part = xp.asarray(vector[begin : begin + _CHUNK]).view(np.int64)
        elements[begin : begin + _CHUNK] = xp.searchsorted(keys, part)
    return CodedVector(size, bits, place.xp.asarray(elements), place.xp.asarray(table))


def _values(xp: Any, vector: Any) -> Any:
    """Return the distinct values in the order of their bits, or None if they are too many to pay."""
    found = xp.zeros(0, np.int64)
    # A dictionary must be much shorter than the vector to be worth its indirection.
    limit = min(_LIMIT, max(16, len(vector) // 8))
    for begin in range(0, len(vector), _CHUNK):
        # Bits instead of values: minus zero is not zero here, and equal values stay bit for bit the same.
        bits = xp.asarray(vector[begin : begin + _CHUNK]).view(np.int64)
        found = xp.unique(xp.concatenate((found, xp.unique(bits))))
        if len(found) > limit:
            return None
    return found.view(np.float64)
