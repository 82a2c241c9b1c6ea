"""The rows of a compressed matrix in block rows, by the components of the graph of its groups.

Groups of rows are the states that share a prefix, and so are the columns of their submatrices. A group leads
to those in whose columns it has a submatrix. Components of this graph hold the components of the matrix.
Where no component of groups has many rows, as in protocols that count messages, block rows of such components
are solved one after another.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.base.arrays import concatenated_ranges
from hybrid.base.components import components_from_bottom
from hybrid.matrix.cpu.csr import CsrMatrix, find_components
from hybrid.matrix.injection.row_types import RowGroups, RowTypes, enumerate_groups, group_arrows
from hybrid.matrix.injection.submatrices import CooBlocks, class_submatrices
from mtbdd.base.records import Record
from mtbdd.offset.offset import OffsetMTBDD

if TYPE_CHECKING:
    from hybrid.matrix.gpu.repeated_steps import DeviceBlockRows

# Groups of rows of a compressed matrix, written out where they are requested.

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


# Groups of states that are solved together, in the order of their solution, and block rows of them.


class Units(Record, eq=False):
    """The components of a graph of groups, each after those it leads to.

    Attributes
    ----------
    members : ndarray, shape (groups,), int64
        The groups, one component after another.
    ptr : ndarray, shape (units + 1,), int64
        Members of unit i are ``ptr[i] .. ptr[i + 1]``.
    """

    members: Int64Array
    ptr: Int64Array

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def sizes(self, size: Int64Array) -> Int64Array:
        """Return the states of every unit, from those of every group."""
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(size[self.members])))
        found: Int64Array = np.diff(ends[self.ptr])
        return found


def ordered_units(graph: CsrMatrix) -> Units:
    """Return the components of the graph of groups.  Time: O(edges + n log n) for n groups."""
    found = find_components(graph)
    levels = np.arange(len(found.single_ptr) - 1)
    level = np.concatenate([levels.repeat(np.diff(ptr)) for ptr in (found.single_ptr, found.joined_ptr)])
    is_joined = np.arange(len(level)) >= len(found.single)
    # Components of one level do not lead to each other: those of one group first, then the others.
    own = np.concatenate((np.arange(len(found.single)), found.component))
    order = np.lexsort((own, is_joined, level))
    keys = level[order], is_joined[order], own[order]
    starts = np.ones(len(order), np.bool_)
    starts[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    members = np.concatenate((found.single, found.joined)).astype(np.int64)[order]
    return Units(members, np.append(np.flatnonzero(starts), len(order)))


def units_from_bottom(groups: int, source: Int64Array, target: Int64Array) -> Units:
    """Return the components of a graph of few groups, without SciPy or compiled code to load.

    Parameters
    ----------
    groups : int
    source, target : ndarray, shape (edges,), int64
        The sources ascending.

    Notes
    -----
    Time: O(edges + n log n) for n groups, in Python.
    """
    ends = np.searchsorted(source, np.arange(1, groups))
    component = components_from_bottom([part.tolist() for part in np.split(target, ends)])
    members = np.argsort(component, kind="stable")
    return Units(members, pointers(np, np.bincount(component)))


def block_rows_of_units(units: Units, size: Int64Array, least: int) -> list[Int64Array]:
    """Return block rows of `least` states or more, but for the last: units in order, ascending in each."""
    ends = np.cumsum(units.sizes(size))
    cuts = [0]
    while cuts[-1] < len(units):
        before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(min(int(np.searchsorted(ends, before + least)) + 1, len(units)))
    return [np.sort(units.members[units.ptr[begin] : units.ptr[end]]) for begin, end in pairwise(cuts)]


_MOST_GROUPS = 1 << 18
"""Groups of a level beyond which it is not examined."""

_LEAST_GROUP = 8
"""Rows of a group, on average, below which its level is not examined."""

_DEEPER = 4
"""Levels to the next one that is examined."""

_MOST_SHARE = 0.25
"""Of all rows in what is solved together: beyond it there is too little to gain."""

_BLOCK_ROW_SIZE = 1 << 16
"""Rows of a block row, about."""

_MOST_BLOCK_ROWS = 32
"""Block rows at most, about: each takes a share of epsilon."""


class MatrixBlockRows:
    """See `hybrid.solvers.block_rows.BlockRows`.

    Parameters
    ----------
    matrix : OffsetMTBDD
    written : WrittenGroups
        Its groups.
    units : Units
        Groups that are solved together, in the order of their solution.

    Notes
    -----
    Time: O(entries) for what is written; memory: the groups, and the submatrices of their level.
    """

    def __init__(self, matrix: OffsetMTBDD, written: WrittenGroups, units: Units) -> None:
        self._written, self._groups, self._size = written, written.groups, written.size
        self._n = matrix.n_rows
        self.entries, self.nbytes = matrix.n_entries, 0
        self._block_rows = block_rows_of_units(
            units, self._size, max(_BLOCK_ROW_SIZE, self._n // _MOST_BLOCK_ROWS)
        )

    @classmethod
    def where_they_pay(cls, types: RowTypes, k: int) -> MatrixBlockRows | None:
        """Return the block rows of a matrix; None where too many rows belong together.  See `find_units`."""
        found = find_units(types, k)
        return None if found is None else cls(types.classes.matrix, *found[:2])

    def __len__(self) -> int:
        return len(self._block_rows) + 1

    def rows(self, number: int) -> Int64Array:
        """See `BlockRows.rows`; the first block row is the rows without entries."""
        if number == 0:
            is_free = np.ones(self._n, np.bool_)
            is_free[concatenated_ranges(self._groups.row, self._size)] = False
            return np.flatnonzero(is_free)
        chosen = self._block_rows[number - 1]
        return concatenated_ranges(self._groups.row[chosen], self._size[chosen])

    def written(self, number: int) -> CsrMatrix:
        """See `BlockRows.written`."""
        # Here: most answers need no SciPy.
        from scipy.sparse import csr_array

        if number == 0:
            return CsrMatrix(csr_array((self.rows(0).size, self._n)))
        chosen = self._block_rows[number - 1]
        size = self._size[chosen]
        row, column, value = self._written.write(chosen, np.cumsum(size) - size)
        return CsrMatrix(csr_array((value, (row, column)), shape=(int(size.sum()), self._n)))


def find_units(
    types: RowTypes, k: int, most_groups: int = _MOST_GROUPS, is_small: bool = False
) -> tuple[WrittenGroups, Units, int] | None:
    """Return groups of a matrix, which of them are solved together, and their level.

    Parameters
    ----------
    types : RowTypes
        Of a square matrix without diagonal, blocks shared when equal.
    k : int
        Level to begin with.  Where its groups have components, but large ones, deeper levels are tried.
    most_groups : int
        Of a level that is examined.
    is_small : bool
        Whether to do without SciPy and compiled code: to load them takes longer than to order few groups.

    Returns
    -------
    groups : WrittenGroups
    units : Units
    level : int
        One None for all where too many rows belong together.

    Notes
    -----
    Time: O(slots of all groups) a level.
    """
    matrix = types.classes.matrix
    for level in range(k, matrix.n_levels + 1, _DEEPER):
        if not types.reaches(level):
            return None
        count = int(types[level].groups.sum())
        if not 0 < count <= min(most_groups, matrix.n_rows // _LEAST_GROUP):
            return None
        written = WrittenGroups(types, level)
        size = written.size
        arrows = group_arrows(written.groups, size, matrix.columns[level])
        units = units_from_bottom(count, *arrows) if is_small else ordered_units(_graph(count, *arrows))
        if len(units) == 1:
            return None
        if int(units.sizes(size).max()) <= _MOST_SHARE * matrix.n_rows:
            return written, units, level
    return None


def _graph(groups: int, source: Int64Array, target: Int64Array) -> CsrMatrix:
    from scipy.sparse import csr_array

    return CsrMatrix(csr_array((np.ones(len(source)), (source, target)), shape=(groups, groups)))


# The rows of a compressed matrix on a device in block rows, where its groups have an order.

_LEAST_ROWS = 1 << 20
"""Rows of a matrix below which a step over all of them takes hardly longer than one over a block row."""

_DEVICE_BLOCK_ROW_SIZE = 1 << 14
"""Rows of a block row, at least: a step over fewer takes as long, the time of a launch."""

_MOST_ORDERED_GROUPS = 1 << 14
"""Groups of a level that is examined: they are put in order in Python."""

_FEWEST_BLOCK_ROWS = 8
"""With fewer block rows a failed attempt costs more than a successful one gains."""


def device_block_rows(types: RowTypes, k: int) -> DeviceBlockRows | None:
    """Return block rows of a matrix, each of which refers to itself and to those before it alone.

    Parameters
    ----------
    types : RowTypes
        Of a square matrix without diagonal, blocks shared when equal.
    k : int
        Level to begin with, see `hybrid.matrix.operators.matrix_block_rows.find_units`.

    Returns
    -------
    DeviceBlockRows or None
        None where too many rows belong together, or too few are there.

    Raises
    ------
    MemoryError
        The device has no room for them.
    """
    from hybrid.matrix.gpu.repeated_steps import build_block_rows

    n = types.classes.matrix.n_rows
    found = find_units(types, k, _MOST_ORDERED_GROUPS, is_small=True) if n >= _LEAST_ROWS else None
    if found is None:
        return None
    written, units, level = found
    block_rows = block_rows_of_units(units, written.size, max(_DEVICE_BLOCK_ROW_SIZE, n // _MOST_BLOCK_ROWS))
    if len(block_rows) < _FEWEST_BLOCK_ROWS:
        return None
    block_row = np.zeros(len(written.groups), np.int64)
    for number, groups in enumerate(block_rows):
        block_row[groups] = number
    shares = [max(int(written.size[groups].sum()), _DEVICE_BLOCK_ROW_SIZE) / n for groups in block_rows]
    return build_block_rows(types, level, block_row, shares)
