"""Sliced ELL: 32 rows a slice, a lane a row, each slice as wide as its longest row; rows sorted on request.

Source of the format: M. Kreutzer et al., "A unified sparse matrix data format for efficient general sparse
matrix-vector multiplication on modern processors with wide SIMD units", SIAM J. Sci. Comput. 36(5), 2014
(SELL-C-sigma). Here C is a warp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from gpu_kernels._launch import blocks_for
from gpu_kernels.csr import CsrArrays
from gpu_kernels.device import Device
from gpu_kernels.formats.arrays import index_for, longest_of
from gpu_kernels.formats.matrix import THREADS, ExplicitMatrix, with_dictionary
from gpu_kernels.ragged import array_module, owners, pointers

Array = Any

LANES = 32
"""Rows of a slice."""

SORT_WINDOW = 256
"""Rows that sorted formats sort together: as many as a block of the product has threads."""

_NULL = np.uint64(0)

_ROW_BYTES, _SORTING_BYTES = 24, 88
"""A row: its length, thrice; where rows are sorted, keys and numbers as well, with copies to sort between."""

_ORDER_BYTES = 14
"""A row of a sorted layout: its lane, its number, and its part of a slice."""

PLACE_BYTES, _PLACING_BYTES = 8, 32
"""An entry's place, and what finding it takes: row, rank, and two steps of the way."""


def rows_by_length(lengths: Array, window: int) -> Array:
    """Return the rows, sorted from long to short within windows of consecutive rows; shape (n_rows,), int32.

    Rows of the same length keep their order. Time: O(n log n).
    """
    xp = array_module(lengths)
    if not len(lengths):
        return xp.zeros(0, np.int32)
    longest = int(lengths.max())
    key = xp.arange(len(lengths)) // window * (longest + 1) + (longest - lengths)
    return xp.argsort(key, kind="stable").astype(np.int32)


@dataclass(frozen=True, eq=False)
class SellLayout:
    """Where the entries of a matrix lie in sliced ELL.

    Attributes
    ----------
    starts : ndarray, shape (slices + 1,), int64
        First element of every slice, and the end.
    order : ndarray, shape (n_rows,), int32, or None
        Row of every lane; None if lane i has row i.
    """

    starts: Array
    order: Array | None

    @classmethod
    def of(cls, csr: CsrArrays, window: int) -> SellLayout:
        """Return the layout with rows sorted within windows of ``window`` rows; 1 for not sorted."""
        lengths = csr.lengths()
        order = rows_by_length(lengths, window) if window > 1 else None
        if order is not None:
            lengths = lengths[order]
        xp = array_module(lengths)
        return cls(pointers(xp, xp.multiply(longest_of(lengths, LANES), LANES)), order)

    @staticmethod
    def peak_bytes(n_rows: int, entries: int, window: int) -> tuple[int, int]:
        """Return the most bytes that making a layout and then finding places takes, and what layouts keep."""
        in_order = window > 1
        kept = _ORDER_BYTES * n_rows if in_order else n_rows
        making = (_SORTING_BYTES if in_order else _ROW_BYTES) * n_rows
        return max(making, kept + _PLACING_BYTES * entries), kept

    @property
    def n_elements(self) -> int:
        """Elements, padding included. Synchronises: yes."""
        return int(self.starts[-1])

    def places(self, csr: CsrArrays) -> Array:
        """Return the element that every entry becomes, shape (entries,), int64."""
        # In place: a temporary array takes as much room as two thirds of the matrix.
        rows, places = csr.ranks()
        xp = array_module(rows)
        if self.order is not None:
            lanes = xp.empty(csr.shape[0], np.int64)
            lanes[self.order] = xp.arange(csr.shape[0])
            rows = lanes[rows]
        places *= LANES
        places += xp.remainder(rows, LANES)
        rows //= LANES
        places += self.starts[rows]
        return places

    def element_rows(self, n_rows: int) -> Array:
        """Return the row of every element, shape (elements,), int64; lanes without a row repeat the last."""
        xp, elements = array_module(self.starts), self.n_elements
        lanes = owners(xp, self.starts, elements) * LANES + xp.arange(elements) % LANES
        lanes = xp.minimum(lanes, n_rows - 1)
        return lanes if self.order is None else self.order[lanes].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Sell(ExplicitMatrix):
    """Sliced ELL over plain values; the product takes a thread a row.

    Attributes
    ----------
    slice_starts : ndarray, shape (slices + 1,), int32 or int64
    columns : ndarray, shape (elements,), int32
        -1 for padding.
    order : ndarray, shape (n_rows,), int32, or None
        Row of every lane; None if lane i has row i.
    """

    window: ClassVar[int] = 1
    """Rows sorted together (sigma); 1 for not sorted."""

    slice_starts: Array
    columns: Array
    order: Array | None

    @classmethod
    def conversion_bytes(cls, n_rows: int, entries: int, elements: int) -> int:
        """Return the bytes of the layout while it is made, or of layout, places and elements."""
        making, kept = SellLayout.peak_bytes(n_rows, entries, cls.window)
        storing = PLACE_BYTES * entries + 4 * elements + cls._stored_bytes(entries, elements)
        return max(making, kept + storing)

    @classmethod
    def _convert(cls, device: Device, csr: CsrArrays) -> Self:
        layout = SellLayout.of(csr, cls.window)
        elements = layout.n_elements
        cls._require(device, csr, elements)
        places = layout.places(csr)
        columns = device.xp.full(elements, -1, np.int32)
        columns[places] = csr.columns
        values = cls._store_values(device, csr, places, elements)
        return cls(csr.shape, values, layout.starts.astype(index_for(csr, elements)), columns, layout.order)

    def _layout(self) -> SellLayout:
        return SellLayout(self.slice_starts.astype(np.int64), self.order)

    def element_rows(self) -> Array:
        """Return the row of every element."""
        return self._layout().element_rows(self.shape[0])

    def element_columns(self) -> Array:
        """Return the columns as they are."""
        return self.columns

    def _places(self, csr: CsrArrays) -> Array:
        return self._layout().places(csr)

    def _launch(self, device: Device, x: Array, out: Array) -> None:
        index = self.slice_starts.dtype
        kernel = device.kernel(
            "sell.cu", "multiply_slices", self._macros(index, SORTED=int(self.order is not None))
        )
        order = _NULL if self.order is None else self.order
        arguments = (
            index.type(self.shape[0]), self.slice_starts, self.columns, *self._value_arguments(), order, x,
            out,
        )  # fmt: skip
        kernel((blocks_for(self.shape[0], THREADS),), (THREADS,), arguments)


CSell = with_dictionary("CSell", Sell)


@dataclass(frozen=True, eq=False)
class SellSorted(Sell):
    """Sliced ELL with rows sorted by length within windows: less padding, results written out of order."""

    window: ClassVar[int] = SORT_WINDOW


CSellSorted = with_dictionary("CSellSorted", SellSorted)
