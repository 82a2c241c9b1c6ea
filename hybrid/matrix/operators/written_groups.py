"""Groups of rows of a compressed matrix, written out where they are asked for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.base.lists import concatenated_ranges
from hybrid.matrix.injection.groups import RowGroups, enumerate_groups
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.injection.submatrices import CooBlocks, class_submatrices

Int64Array = NDArray[np.int64]


class WrittenGroups:
    """The groups of one level: what they hold, and where they lead to.

    Parameters
    ----------
    types : RowTypes
        Of the matrix, blocks shared when equal.
    k : int
        The level.

    Attributes
    ----------
    groups : RowGroups
    size : ndarray, shape (groups,), int64
        Rows of each group.
    entries : ndarray, shape (groups,), int64
        Its entries.

    Notes
    -----
    Time and memory: O(slots of all groups), and, once something is written, the submatrices of level k.
    """

    def __init__(self, types: RowTypes, k: int) -> None:
        self._types, self._k = types, k
        self.groups: RowGroups = enumerate_groups(np, types, k)
        self.size: Int64Array = types[k].rows[self.groups.type].astype(np.int64)
        self.entries: Int64Array = types[k].entries[self.groups.type].astype(np.int64)
        self._blocks: CooBlocks | None = None

    def write(
        self, chosen: Int64Array, first: Int64Array
    ) -> tuple[Int64Array, Int64Array, NDArray[np.float64]]:
        """Return row, column and value of all entries of some groups.

        Parameters
        ----------
        chosen : ndarray, shape (k,), int64
            The groups.
        first : ndarray, shape (k,), int64
            The number that the first row of each shall have.

        Notes
        -----
        Time: O(entries).
        """
        if self._blocks is None:
            self._blocks = class_submatrices(np, self._types.classes, self._k)
        groups, blocks = self.groups, self._blocks
        assert blocks is not None, "blocks that are equal are shared exactly"
        slots_of = groups.ptr[chosen + 1] - groups.ptr[chosen]
        slots = concatenated_ranges(groups.ptr[chosen], slots_of)
        block = self._types.classes.classes[self._k][groups.node[slots]]
        count: Int64Array = np.asarray(blocks.ptr[block + 1] - blocks.ptr[block])
        entry = concatenated_ranges(blocks.ptr[block], count)
        row = np.repeat(np.repeat(first, slots_of), count) + blocks.row[entry]
        return row, np.repeat(groups.base[slots], count) + blocks.column[entry], blocks.value[entry]
