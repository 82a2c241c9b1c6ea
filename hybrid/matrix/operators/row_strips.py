"""The rows of a compressed matrix in strips, by the components of the graph of its groups.

Groups of rows are the states that share a prefix, and so are the columns of their submatrices: a group leads
to those in whose columns it has a submatrix.  Components of this graph hold the components of the matrix.
Where no component of groups has many rows, as where a protocol counts what it has sent, strips of such
components are solved one after another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.base.lists import concatenated_ranges
from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.injection.groups import group_arrows
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.operators.group_units import Units, ordered_units, strips_of_units, units_from_bottom
from hybrid.matrix.operators.written_groups import WrittenGroups
from mtbdd.offset.offset import OffsetMTBDD

Int64Array = NDArray[np.int64]

_MOST_GROUPS = 1 << 18
"""Groups of a level beyond which it is not looked at."""

_LEAST_GROUP = 8
"""Rows of a group, on average, below which its level is not looked at."""

_DEEPER = 4
"""Levels to the next one that is looked at."""

_MOST_SHARE = 0.25
"""Of all rows in what is solved together: beyond it there is too little to gain."""

_STRIP_ROWS = 1 << 16
"""Rows of a strip, about."""

_MOST_STRIPS = 32
"""Strips at most, about: each takes a share of epsilon."""


class RowStrips:
    """See `hybrid.solvers.topological_strips.Strips`.

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
        self.entries = matrix.n_entries
        self._strips = strips_of_units(units, self._size, max(_STRIP_ROWS, self._n // _MOST_STRIPS))

    @classmethod
    def where_they_pay(cls, types: RowTypes, k: int) -> RowStrips | None:
        """Return the strips of a matrix; None where too many rows belong together.  See `find_units`."""
        found = find_units(types, k)
        return None if found is None else cls(types.classes.matrix, *found[:2])

    def __len__(self) -> int:
        return len(self._strips) + 1

    def rows(self, number: int) -> Int64Array:
        """See `Strips.rows`; the first strip is the rows without entries."""
        if number == 0:
            is_free = np.ones(self._n, np.bool_)
            is_free[concatenated_ranges(self._groups.row, self._size)] = False
            return np.flatnonzero(is_free)
        chosen = self._strips[number - 1]
        return concatenated_ranges(self._groups.row[chosen], self._size[chosen])

    def written(self, number: int) -> CsrMatrix:
        """See `Strips.written`."""
        # Here: most answers need no SciPy.
        from scipy.sparse import csr_array

        if number == 0:
            return CsrMatrix(csr_array((self.rows(0).size, self._n)))
        chosen = self._strips[number - 1]
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
        Of a level that is looked at.
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
