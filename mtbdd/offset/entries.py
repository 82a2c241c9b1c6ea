"""The non-zeros of a small matrix, written out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]


class Entries(NamedTuple):
    """The non-zeros of a matrix, sorted by row, then by column.

    `row`, `column`: ndarray, shape (entries,), int32. `value`: ndarray, shape (entries,), float64.
    """

    row: Int32Array
    column: Int32Array
    value: NDArray[np.float64]

    def part(
        self,
        size: int,
        rows: Int64Array | None,
        columns: Int64Array | None,
        chosen: Int64Array | None = None,
        diagonal: bool = True,
    ) -> Entries:
        """Return the entries in some rows and columns, numbered among these.

        `size`: rows and columns of the matrix. `rows`, `columns`, `chosen`: which rows and columns the part
        has, and which of the rows keep their entries; None: all. `diagonal`: whether entries of a row in the
        column of its own number stay.
        """
        row, column = (_renumbered(*pair, size) for pair in ((self.row, rows), (self.column, columns)))
        kept = (row >= 0) & (column >= 0)
        if chosen is not None:
            kept &= _renumbered(self.row, chosen, size) >= 0
        if not diagonal:
            kept &= self.row != self.column
        return Entries(row[kept], column[kept], self.value[kept])

    def transpose(self) -> Entries:
        """Return the entries of the transposed matrix."""
        order = np.argsort(self.column, kind="stable")
        return Entries(self.column[order], self.row[order], self.value[order])


def _renumbered(numbers: Int32Array, kept: Int64Array | None, size: int) -> Int32Array:
    """Return the place of every number among those kept, -1 for others."""
    if kept is None:
        return numbers
    place = np.full(size, -1, np.int32)
    place[kept] = np.arange(kept.size, dtype=np.int32)
    found: Int32Array = place[numbers]
    return found
