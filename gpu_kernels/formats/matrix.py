"""What all explicit formats offer: made from and back to compressed sparse rows, bytes, products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from gpu_kernels._launch import check_vector
from gpu_kernels._loader import Macros
from gpu_kernels.coded import CodedVector
from gpu_kernels.csr import CsrArrays
from gpu_kernels.device import Device
from gpu_kernels.formats.arrays import read_csr, reading_bytes, require_memory
from gpu_kernels.formats.dictionary import dictionary_bytes, encode_values, scatter_values
from gpu_kernels.ragged import array_module, pointers

Array = Any

THREADS = 256
"""Threads of a block of all kernels here."""

_NULL = np.uint64(0)

Format = TypeVar("Format", bound="ExplicitMatrix")


@dataclass(frozen=True, eq=False)
class ExplicitMatrix(ABC):
    """An explicit matrix on a device, in one format.

    A format is an order of the entries, with padding where it needs some. Values are plain doubles, or
    numbers of the distinct values where the class says ``compact``.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    values : CodedVector
        Values of all elements, padding included.
    """

    compact: ClassVar[bool] = False

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
        converting = cls.conversion_bytes(max(n_rows, 0), entries, entries)
        require_memory(device, stay + max(meanwhile, converting), f"{cls.__name__} of {entries} entries")
        return cls._convert(device, read_csr(device, row_starts, columns, values, width, wide))

    @classmethod
    @abstractmethod
    def conversion_bytes(cls, n_rows: int, entries: int, elements: int) -> int:
        """Return the most bytes that a conversion takes, besides the matrix in compressed sparse rows.

        Parameters
        ----------
        n_rows, entries : int
        elements : int
            Entries and padding.

        Returns
        -------
        int
            Result and temporary arrays as CuPy makes them, for a dictionary with numbers of up to 32 bits.
        """

    @classmethod
    @abstractmethod
    def _convert(cls, device: Device, csr: CsrArrays) -> Self:
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

    @classmethod
    def _store_values(cls, device: Device, csr: CsrArrays, places: Array | None, size: int) -> CodedVector:
        """Return the values at their places among ``size`` elements; None leaves them in order."""
        if cls.compact:
            values = encode_values(device, csr.values)
        else:
            values = CodedVector(len(csr.values), 64, csr.values, None)
        return values if places is None else scatter_values(device, values, places, size)

    @classmethod
    def _stored_bytes(cls, entries: int, elements: int | None = None) -> int:
        """Return the most bytes that storing values takes; at places among elements, or left in order."""
        numbers, width = (4 * entries, 4) if cls.compact else (0, 8)
        coding = numbers + dictionary_bytes(entries) if cls.compact else 0
        return coding if elements is None else max(coding, numbers + width * elements)

    @classmethod
    def _require(cls, device: Device, csr: CsrArrays, elements: int) -> None:
        """Refuse a conversion whose padding, which nobody knew of before, does not fit."""
        entries = len(csr.columns)
        if elements > entries:
            needed = cls.conversion_bytes(csr.shape[0], entries, elements)
            require_memory(device, needed, f"{cls.__name__} with {elements} elements")

    def _macros(self, index: Any, **others: int) -> Macros:
        """Return the specialisation for the type of indices and of values."""
        values = {"INDEX_BITS": 8 * int(index.itemsize), "VALUE_BITS": self.values.bits, **others}
        return tuple(sorted(values.items()))

    def _value_arguments(self) -> tuple[Any, Any]:
        """Return elements and table as kernel arguments."""
        table = self.values.table
        return self.values.elements, _NULL if table is None else table


def with_dictionary(name: str, kind: type[Format]) -> type[Format]:
    """Return a format that differs from another one only in its values: numbers of the distinct ones."""
    own = {
        "compact": True,
        "__module__": kind.__module__,
        "__doc__": f"{kind.__name__} over a dictionary of values.",
    }
    return type(name, (kind,), own)


def _bytes_of(item: Any) -> int:
    """Return the bytes of arrays, however they are grouped."""
    if isinstance(item, tuple):
        return sum(_bytes_of(part) for part in item)
    return int(getattr(item, "nbytes", 0))
