"""Groups: one entry for every row prefix of a level, with its row type and the place of its submatrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers, ranges
from hybrid.base.arrays import Array
from hybrid.base.lists import concatenated_ranges
from hybrid.matrix.injection.row_types import RowTypes


@dataclass(frozen=True, eq=False)
class RowGroups:
    """All groups of one level in the order of their rows.

    Attributes
    ----------
    row : array, shape (groups,), int64
        First row of each group.
    type : array, shape (groups,), int32
        Its row type.
    ptr : array, shape (groups + 1,), int64
        Slots of group g are ``ptr[g] .. ptr[g + 1]``.
    base : array, shape (slots,), int64
        Column at which each slot's submatrix begins.
    node : array, shape (slots,), int32
        Node of the level that is each slot's submatrix.
    """

    row: Array
    type: Array
    ptr: Array
    base: Array
    node: Array

    def __len__(self) -> int:
        return len(self.row)


def enumerate_groups(xp: Any, types: RowTypes, k: int) -> RowGroups:
    """List the groups of level k with their rows, types, column bases and nodes.

    Parameters
    ----------
    xp : module
        Array module of the groups.
    types : RowTypes
        Row types of the matrix; level k must be among them.
    k : int
        The level.

    Returns
    -------
    RowGroups
        In the order of their first rows.

    Raises
    ------
    ValueError
        If ``types`` does not reach level k.

    Notes
    -----
    Time and memory: O(groups and their slots, summed over the levels down to k), array sweeps only.
    Synchronises: yes, twice a level, for the sizes.
    """
    if not types.reaches(k):
        raise ValueError(
            f"row types are known for the levels 0..{len(types) - 1}, got level {k}; "
            "choose a level in that range"
        )
    size = types[0].n_types
    state = RowGroups(
        xp.zeros(size, np.int64),
        xp.zeros(size, np.int32),
        xp.arange(size + 1, dtype=np.int64),
        xp.zeros(size, np.int64),
        xp.zeros(size, np.int32),
    )
    for depth in range(k):
        state = _descend(xp, types, depth, state)
    return state


def _descend(xp: Any, types: RowTypes, depth: int, state: RowGroups) -> RowGroups:
    above, below = types[depth], types[depth + 1]
    level = types.classes.matrix.levels[depth]
    offset = xp.asarray(level.offset)
    table = xp.asarray(below.edges_of(above.n_types))
    if depth % 2 == 0:
        # Else and then side by side keeps the groups in the order of their rows. All submatrices of a group
        # split at the same row, so the first one tells where.
        edge = table[state.type].ravel()
        step = offset[state.node[state.ptr[:-1]]]
        row = xp.stack((state.row, state.row + step), axis=1).ravel()
        kept = xp.flatnonzero(xp.greater_equal(edge, 0))
        edge, row, group = edge[kept], row[kept], xp.right_shift(kept, 1)
    else:
        edge, row, group = table[state.type, 0], state.row, xp.arange(len(state), dtype=np.int64)
    ptr = pointers(xp, xp.asarray(np.diff(below.edge_ptr))[edge])
    items, owner = ranges(xp, xp.asarray(below.edge_ptr)[edge], ptr, int(ptr[-1]))
    source = state.ptr[group][owner] + xp.asarray(below.source)[items]
    side = xp.asarray(below.side)[items]
    node, base = state.node[source], state.base[source]
    if depth % 2 == 1:
        base = base + xp.where(side, offset[node], 0)
    node = xp.where(side, xp.asarray(level.high)[node], xp.asarray(level.low)[node])
    return RowGroups(row, xp.asarray(below.child)[edge].astype(np.int32), ptr, base, node)


def find_gaps(xp: Any, row: Array, rows: Array, n_rows: int) -> tuple[Array, Array]:
    """Return the first rows of the ranges that no group covers, and pointers of their lengths.

    Parameters
    ----------
    xp : module
    row, rows : ndarray, shape (groups,), int64
        First row and rows of every group, in the order of the rows.
    n_rows : int
        Rows of the matrix.

    Returns
    -------
    begin : ndarray, shape (gaps,), int64
    ptr : ndarray, shape (gaps + 1,), int64

    Notes
    -----
    Time: O(groups). Synchronises: yes.
    """
    begin = xp.concatenate((xp.zeros(1, np.int64), row + rows))
    end = xp.concatenate((row, xp.full(1, n_rows, np.int64)))
    kept = begin < end
    return begin[kept], pointers(xp, end[kept] - begin[kept])


def group_arrows(
    groups: RowGroups, size: NDArray[np.int64], width: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which group of a square matrix leads to which other ones, once for every submatrix.

    Parameters
    ----------
    groups : RowGroups
        On the host.
    size : ndarray, shape (groups,), int64
        Rows of every group.
    width : ndarray, shape (nodes,), int64
        Columns of every node of the level.

    Returns
    -------
    source, target : ndarray, shape (arrows,), int64
        The sources ascending.
    """
    owner = np.repeat(np.arange(len(groups)), np.diff(groups.ptr))
    first = np.searchsorted(groups.row + size, groups.base, "right")
    end = np.searchsorted(groups.row, groups.base + width[groups.node], "left")
    count: NDArray[np.int64] = np.maximum(end - first, 0)
    source, target = np.repeat(owner, count), concatenated_ranges(np.asarray(first), count)
    other = source != target
    return source[other], target[other]
