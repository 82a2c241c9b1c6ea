"""The base of all explicit formats: conversion from and to compressed sparse rows, values, bytes, products.

Values are plain, or numbers of the distinct ones in a dictionary ([WB13] §5, "compact MSR").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from gpu_kernels.runtime._launch import INDEX_LIMIT, check_vector, index_bits, index_type
from gpu_kernels.runtime._loader import Macros
from gpu_kernels.runtime.coded import CodedVector, array_module, pointers
from gpu_kernels.runtime.csr import CsrArrays
from gpu_kernels.runtime.device import Device

Array = Any

THREADS = 256
"""Threads of a block of all kernels of formats."""

_NULL = np.uint64(0)

INDEX_MARGIN = 1 << 15
"""Rows and elements that threads of a launch may reach behind the end before they notice."""

_CHUNK = 1 << 24
"""Elements sorted together: bounds the temporary memory."""

_SORTED_BYTES = 34
"""Of temporary arrays an element: two copies to sort between, marks, their prefix sums, what is distinct."""


@dataclass(frozen=True, eq=False)
class ExplicitMatrix(ABC):
    """An explicit matrix on a device, in one format.

    A format is an order of the entries, with padding where it needs some. Values are plain doubles, or
    numbers of the distinct values where the matrix is ``compact``.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    values : CodedVector
        Values of all elements, padding included.
    """

    shape: tuple[int, int]
    values: CodedVector

    @classmethod
    def from_csr(
        cls,
        device: Device,
        row_starts: Array,
        columns: Array,
        values: Array,
        n_columns: int | None = None,
        wide: bool = False,
        compact: bool = False,
    ) -> Self:
        """Convert a matrix in compressed sparse rows, on the device.

        Parameters
        ----------
        device : Device
        row_starts : array_like, shape (n_rows + 1,), integers
        columns : array_like, shape (entries,), integers
            Fewer than 2**31 columns.
        values : array_like, shape (entries,), float64
            All three on the host or on the device.
        n_columns : int, optional
            As many columns as rows unless given.
        wide : bool
            Use 64-bit indices although 32 bits would do.
        compact : bool
            Store values by a dictionary.

        Raises
        ------
        ValueError
            If the arrays are no matrix.
        MemoryError
            If the result and what is needed on the way do not fit in the free memory; asked before anything
            is allocated, and again once the padding is known.

        Notes
        -----
        Time: O(entries + padding), with a dictionary O(entries log(values)). Synchronises: yes.
        """
        n_rows, entries = len(row_starts) - 1, len(columns)
        width = n_rows if n_columns is None else n_columns
        stay, meanwhile = reading_bytes(device, row_starts, columns, values, width, wide)
        converting = cls.conversion_bytes(max(n_rows, 0), entries, entries, compact)
        require_memory(device, stay + max(meanwhile, converting), f"{cls.__name__} of {entries} entries")
        return cls._convert(device, read_csr(device, row_starts, columns, values, width, wide), compact)

    @classmethod
    @abstractmethod
    def conversion_bytes(cls, n_rows: int, entries: int, elements: int, compact: bool) -> int:
        """Return the most bytes that a conversion takes, besides the matrix in compressed sparse rows.

        Parameters
        ----------
        n_rows, entries : int
        elements : int
            Entries and padding.
        compact : bool
            With a dictionary.

        Returns
        -------
        int
            Result and temporary arrays as CuPy makes them, for a dictionary with numbers of up to 32 bits.
        """

    @classmethod
    @abstractmethod
    def _convert(cls, device: Device, csr: CsrArrays, compact: bool) -> Self:
        """Make the matrix from checked arrays on the device."""

    @abstractmethod
    def element_rows(self) -> Array:
        """Return the row of every element, shape (elements,), int64; any row for padding."""

    @abstractmethod
    def element_columns(self) -> Array:
        """Return the column of every element, shape (elements,), integers; -1 for padding."""

    @abstractmethod
    def _places(self, csr: CsrArrays) -> Array:
        """Return the element that every entry of compressed sparse rows becomes; values are not asked."""

    @abstractmethod
    def _launch(self, device: Device, x: Array, out: Array) -> None:
        """Queue the product; operands are checked, and there are rows."""

    @property
    def nbytes(self) -> int:
        """Bytes on the device, of the matrix and of scratch that the product needs."""
        return sum(_bytes_of(getattr(self, field.name)) for field in fields(self))

    @property
    def traffic_bytes(self) -> int:
        """Bytes that a product moves at least: the matrix, x and out once each."""
        return self.nbytes + 8 * sum(self.shape)

    @property
    def n_elements(self) -> int:
        """Elements, padding included."""
        return self.values.size

    def multiply(self, device: Device, x: Array, out: Array) -> None:
        """Queue ``out = M x``.

        Parameters
        ----------
        device : Device
            The one that the matrix lies on.
        x : ndarray, shape (n_columns,), float64
        out : ndarray, shape (n_rows,), float64
            Overwritten; must not overlap x.

        Raises
        ------
        TypeError, ValueError
            If a vector does not fit.

        Notes
        -----
        Synchronises: no. Deterministic: no atomic additions.
        """
        check_vector(device, x, self.shape[1], "x")
        check_vector(device, out, self.shape[0], "out")
        if device.xp.may_share_memory(x, out):
            raise ValueError(
                "out: shares memory with x, which is read while out is written; pass another array"
            )
        if self.shape[0]:
            self._launch(device, x, out)

    def plain_values(self) -> Array:
        """Return the values of all elements, shape (n_elements,), float64; zeros or any value for padding."""
        table = self.values.table
        return self.values.elements if table is None else table[self.values.elements]

    def to_csr(self) -> tuple[Array, Array, Array]:
        """Return the matrix in compressed sparse rows, where it lies.

        Returns
        -------
        row_starts : ndarray, shape (n_rows + 1,), int32 or int64
        columns : ndarray, shape (entries,), int32
        values : ndarray, shape (entries,), float64
            In the order and with the bits that the matrix was made from.

        Notes
        -----
        Time: O(elements). Synchronises: yes.
        """
        rows, columns = self.element_rows(), self.element_columns()
        xp = array_module(columns)
        live = columns >= 0
        lengths = xp.bincount(rows[live], minlength=self.shape[0])
        starts = pointers(xp, lengths)
        blank = xp.zeros(int(live.sum()), np.int32)
        places = self._places(CsrArrays(self.shape, starts, blank, blank))
        index = np.int32 if len(blank) < 2**31 else np.int64
        return starts.astype(index), columns[places].astype(np.int32), self.plain_values()[places]

    @staticmethod
    def _store_values(
        device: Device, csr: CsrArrays, places: Array | None, size: int, compact: bool
    ) -> CodedVector:
        """Return the values at their places among ``size`` elements; None leaves them in order."""
        if compact:
            values = encode_values(device, csr.values)
        else:
            values = CodedVector(len(csr.values), 64, csr.values, None)
        return values if places is None else scatter_values(device, values, places, size)

    @staticmethod
    def _stored_bytes(entries: int, elements: int | None, compact: bool) -> int:
        """Return the most bytes that storing values takes; at places among elements, or left in order."""
        numbers, width = (4 * entries, 4) if compact else (0, 8)
        coding = numbers + dictionary_bytes(entries) if compact else 0
        return coding if elements is None else max(coding, numbers + width * elements)

    @classmethod
    def _require(cls, device: Device, csr: CsrArrays, elements: int, compact: bool) -> None:
        """Refuse a conversion whose padding, known only now, does not fit."""
        entries = len(csr.columns)
        if elements > entries:
            needed = cls.conversion_bytes(csr.shape[0], entries, elements, compact)
            require_memory(device, needed, f"{cls.__name__} with {elements} elements")

    def _macros(self, index: Any, **others: int) -> Macros:
        """Return the specialisation for the type of indices and of values."""
        values = {"INDEX_BITS": 8 * int(index.itemsize), "VALUE_BITS": self.values.bits, **others}
        return tuple(sorted(values.items()))

    def _value_arguments(self) -> tuple[Any, Any]:
        """Return elements and table as kernel arguments."""
        table = self.values.table
        return self.values.elements, _NULL if table is None else table


@dataclass(frozen=True)
class Format:
    """A format by name: an order of the entries, and whether values go by a dictionary.

    Attributes
    ----------
    kind : type of ExplicitMatrix
    compact : bool
    """

    kind: type[ExplicitMatrix]
    compact: bool = False

    def from_csr(
        self,
        device: Device,
        row_starts: Array,
        columns: Array,
        values: Array,
        n_columns: int | None = None,
        wide: bool = False,
    ) -> ExplicitMatrix:
        """Convert a matrix in compressed sparse rows; see `ExplicitMatrix.from_csr`."""
        return self.kind.from_csr(device, row_starts, columns, values, n_columns, wide, self.compact)

    def conversion_bytes(self, n_rows: int, entries: int, elements: int) -> int:
        """Return the most bytes that a conversion takes; see `ExplicitMatrix.conversion_bytes`."""
        return self.kind.conversion_bytes(n_rows, entries, elements, self.compact)


def _bytes_of(item: Any) -> int:
    """Return the bytes of arrays, however they are grouped."""
    if isinstance(item, tuple):
        return sum(_bytes_of(part) for part in item)
    return int(getattr(item, "nbytes", 0))


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


def dictionary_bytes(entries: int) -> int:
    """Return the bytes of temporary arrays while a dictionary of few values is made of so many entries."""
    return _SORTED_BYTES * min(entries, _CHUNK)


def encode_values(device: Device, values: Array) -> CodedVector:
    """Put values on the device as numbers of the distinct ones, of the narrowest unsigned type.

    Parameters
    ----------
    device : Device
    values : ndarray, shape (entries,), float64
        On the host or on the device.

    Returns
    -------
    CodedVector
        With 8, 16 or 32 bits an element. Bit for bit the same numbers: minus zero is kept.

    Raises
    ------
    MemoryError
        If there are more distinct values than the device has room to sort; that there is room for few of
        them, :func:`dictionary_bytes`, is the caller's to ask.

    Notes
    -----
    Time: O(n log k) for k distinct values. Synchronises: yes.
    """
    xp, size = device.xp, len(values)
    keys = xp.zeros(0, np.int64)
    for begin in range(0, size, _CHUNK):
        part = xp.asarray(values[begin : begin + _CHUNK]).view(np.int64)
        found = xp.unique(part)
        if len(keys):
            both = len(keys) + len(found)
            require_memory(device, (8 + _SORTED_BYTES) * both, f"a dictionary of up to {both} values")
            found = xp.unique(xp.concatenate((keys, found)))
        keys = found
    bits = 8 if len(keys) <= 1 << 8 else 16 if len(keys) <= 1 << 16 else 32
    elements = xp.empty(size, f"uint{bits}")
    for begin in range(0, size, _CHUNK):
        part = xp.asarray(values[begin : begin + _CHUNK]).view(np.int64)
        elements[begin : begin + _CHUNK] = xp.searchsorted(keys, part)
    return CodedVector(size, bits, elements, keys.view(np.float64))


def scatter_values(device: Device, values: CodedVector, places: Array, size: int) -> CodedVector:
    """Return values moved to places in a longer vector; what lies between are zeros or number 0.

    Parameters
    ----------
    device : Device
    values : CodedVector
    places : ndarray, shape (values.size,), integers
    size : int
        Elements of the result.
    """
    elements = device.xp.zeros(size, values.elements.dtype)
    elements[places] = values.elements
    return CodedVector(size, values.bits, elements, values.table)
