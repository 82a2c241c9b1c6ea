"""Sliced ELL with columns of one or two bytes: each as a distance from the least of its 32 neighbours.

Entry p of 32 neighbouring rows is a cell. In matrices of models neighbouring rows mostly do the same, so
the columns of a cell often differ by less than 255. A cell stores its least column in four bytes and the
distances from it in one, two or four bytes each, as its greatest distance needs; the greatest number of that
width stands for no entry. With a dictionary of values an entry then takes two to four bytes instead of
twelve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from gpu_kernels._launch import blocks_for
from gpu_kernels.csr import CsrArrays
from gpu_kernels.device import Device
from gpu_kernels.formats.arrays import index_for
from gpu_kernels.formats.matrix import THREADS, ExplicitMatrix, with_dictionary
from gpu_kernels.formats.sell import LANES, PLACE_BYTES, SORT_WINDOW, SellLayout
from gpu_kernels.ragged import array_module, pointers

Array = Any

_NULL = np.uint64(0)

WIDTHS = (1, 2, 4)
"""Bytes that a distance can take."""

_ENCODING_BYTES = 36
"""An element's column in full, its distance in full twice and as it is stored, and marks."""


def encode_columns(columns: Array) -> tuple[Array, Array, Array]:
    """Store the columns of every cell as distances from the least one.

    Parameters
    ----------
    columns : ndarray, shape (32 * cells,), int32
        -1 for no entry; every cell has an entry.

    Returns
    -------
    bases : ndarray, shape (cells,), int32
        Least column of every cell.
    units : ndarray, shape (cells + 1,), int64
        Where its distances begin, in units of 32 bytes; the width of a distance is the number of units.
    distances : ndarray, shape (32 * units,), uint8
        Little-endian numbers of one, two or four bytes; all bits set for no entry.

    Notes
    -----
    Time: O(elements). Synchronises: yes.
    """
    xp = array_module(columns)
    if not len(columns):
        return xp.zeros(0, np.int32), xp.zeros(1, np.int64), xp.zeros(0, np.uint8)
    cells = columns.reshape(-1, LANES)
    live = cells >= 0
    bases = xp.where(live, cells, np.int32(2**31 - 1)).min(axis=1)
    spans = cells.max(axis=1) - bases
    widths = xp.where(spans < 2**8 - 1, 1, xp.where(spans < 2**16 - 1, 2, 4))
    units = pointers(xp, widths)
    distances = xp.empty((int(units[-1]), LANES), np.uint8)
    for width in WIDTHS:
        chosen = xp.flatnonzero(widths == width)
        number = np.dtype(f"<u{width}")
        if not len(chosen):
            continue
        differences = (cells[chosen] - bases[chosen, None]).astype(np.int64)
        found = xp.where(live[chosen], differences, 2 ** (8 * width) - 1)
        parts = xp.ascontiguousarray(found.astype(number)).view(np.uint8).reshape(-1, width, LANES)
        distances[units[chosen, None] + xp.arange(width)] = parts
    return bases, units, distances.reshape(-1)


def decode_columns(bases: Array, units: Array, distances: Array) -> Array:
    """Return the columns of :func:`encode_columns`, shape (32 * cells,), int32."""
    xp = array_module(bases)
    columns = xp.empty((len(bases), LANES), np.int32)
    rows = distances.reshape(-1, LANES)
    widths = units[1:] - units[:-1]
    for width in WIDTHS:
        chosen = xp.flatnonzero(widths == width)
        if not len(chosen):
            continue
        parts = xp.ascontiguousarray(rows[units[chosen, None] + xp.arange(width)]).reshape(-1)
        found = parts.view(np.dtype(f"<u{width}")).reshape(-1, LANES).astype(np.int64)
        empty = found == 2 ** (8 * width) - 1
        columns[chosen] = xp.where(empty, -1, found + bases[chosen, None])
    return columns.reshape(-1)


@dataclass(frozen=True, eq=False)
class DeltaSell(ExplicitMatrix):
    """Sliced ELL with distances between columns, over plain values; the product takes a thread a row.

    Attributes
    ----------
    slice_starts : ndarray, shape (slices + 1,), int32 or int64
        First cell of every slice of 32 rows, and the end; elements 32 c to 32 c + 31 belong to cell c.
    cells : ndarray, shape (cells + 1, 2), int32 or int64
        Base and first unit of every cell, and the end of the units.
    distances : ndarray, shape (bytes,), uint8
        See :func:`encode_columns`.
    order : ndarray, shape (n_rows,), int32, or None
        Row of every lane; None if lane i has row i.
    """

    window: ClassVar[int] = 1
    """Rows sorted together; 1 for not sorted."""

    slice_starts: Array
    cells: Array
    distances: Array
    order: Array | None

    @property
    def units(self) -> Array:
        """Where the distances of every cell begin, in units of 32 bytes, and the end; shape (cells + 1,)."""
        return self.cells[:, 1]

    @classmethod
    def conversion_bytes(cls, n_rows: int, entries: int, elements: int) -> int:
        """Return the bytes of layout and elements as in sliced ELL, or of columns while they are encoded."""
        making, kept = SellLayout.peak_bytes(n_rows, entries, cls.window)
        storing = PLACE_BYTES * entries + 4 * elements + cls._stored_bytes(entries, elements)
        encoding = ((4 if cls.compact else 8) + _ENCODING_BYTES) * elements
        return max(making, kept + max(storing, encoding))

    @classmethod
    def _convert(cls, device: Device, csr: CsrArrays) -> Self:
        layout = SellLayout.of(csr, cls.window)
        elements = layout.n_elements
        cls._require(device, csr, elements)
        places = layout.places(csr)
        columns = device.xp.full(elements, -1, np.int32)
        columns[places] = csr.columns
        values = cls._store_values(device, csr, places, elements)
        del places
        bases, units, distances = encode_columns(columns)
        index = index_for(csr, elements)
        cells = device.xp.zeros((len(units), 2), index)
        cells[:-1, 0], cells[:, 1] = bases, units
        starts = (layout.starts // LANES).astype(index)
        return cls(csr.shape, values, starts, cells, distances, layout.order)

    def _layout(self) -> SellLayout:
        return SellLayout(self.slice_starts.astype(np.int64) * LANES, self.order)

    def element_rows(self) -> Array:
        """Return the row of every element."""
        return self._layout().element_rows(self.shape[0])

    def element_columns(self) -> Array:
        """Return the columns, decoded."""
        return decode_columns(self.cells[:-1, 0], self.units.astype(np.int64), self.distances)

    def _places(self, csr: CsrArrays) -> Array:
        return self._layout().places(csr)

    def _launch(self, device: Device, x: Array, out: Array) -> None:
        index = self.slice_starts.dtype
        kernel = device.kernel(
            "delta_sell.cu", "multiply_cells", self._macros(index, SORTED=int(self.order is not None))
        )
        order = _NULL if self.order is None else self.order
        arguments = (
            index.type(self.shape[0]), self.slice_starts, self.cells, self.distances,
            *self._value_arguments(), order, x, out,
        )  # fmt: skip
        kernel((blocks_for(self.shape[0], THREADS),), (THREADS,), arguments)


CDeltaSell = with_dictionary("CDeltaSell", DeltaSell)


@dataclass(frozen=True, eq=False)
class DeltaSellSorted(DeltaSell):
    """The same with rows sorted by length within windows.

    Rows of equal length mostly do the same, so that there is less padding and distances are shorter still.
    """

    window: ClassVar[int] = SORT_WINDOW


CDeltaSellSorted = with_dictionary("CDeltaSellSorted", DeltaSellSorted)
