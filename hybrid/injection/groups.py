"""Groups: one entry for every row prefix of a level, with its row type and the place of its submatrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.injection.ragged import concatenated_ranges, pointers
from hybrid.injection.row_types import RowTypes

__all__ = ["Groups", "enumerate_groups"]

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Groups:
    """All groups of one level in the order of their rows.

    Attributes
    ----------
    row : ndarray, shape (groups,), int64
        First row of each group.
    type : ndarray, shape (groups,), int32
        Its row type.
    ptr : ndarray, shape (groups + 1,), int64
        Slots of group g are ``ptr[g] .. ptr[g + 1]``.
    base : ndarray, shape (slots,), int64
        Column at which each slot's submatrix begins.
    node : ndarray, shape (slots,), int32
        Node of the level that is each slot's submatrix.
    """

    row: Int64Array
    type: Int32Array
    ptr: Int64Array
    base: Int64Array
    node: Int32Array

    def __len__(self) -> int:
        return len(self.row)


def enumerate_groups(types: RowTypes, k: int) -> Groups:
    """List the groups of level k with their rows, types, column bases and nodes.

    Parameters
    ----------
    types : RowTypes
        Row types of the matrix; level k must be among them.
    k : int
        The level.

    Returns
    -------
    Groups
        In the order of their first rows.

    Raises
    ------
    ValueError
        If ``types`` does not reach level k.

    Notes
    -----
    Time and memory: O(groups and their slots, summed over the levels down to k), array sweeps only.
    """
    if not 0 <= k < len(types):
        raise ValueError(
            f"row types are known for the levels 0..{len(types) - 1}, got level {k}; "
            "choose a level in that range"
        )
    size = types.levels[0].n_types
    state = Groups(
        np.zeros(size, np.int64),
        np.zeros(size, np.int32),
        np.arange(size + 1, dtype=np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int32),
    )
    for depth in range(k):
        state = _descend(types, depth, state)
    return state


def _descend(types: RowTypes, depth: int, state: Groups) -> Groups:
    above, below = types.levels[depth], types.levels[depth + 1]
    level = types.classes.matrix.levels[depth]
    # A type has at most two edges, found by a table [type, side].
    table = np.full((above.n_types, 2), -1, np.int64)
    table[below.parent, below.then.astype(np.int64)] = np.arange(len(below.parent))
    if depth % 2 == 0:
        # Else and then side by side keeps the groups in the order of their rows. All submatrices of a group
        # split at the same row, so the first one tells where.
        edge = table[state.type].ravel()
        step = level.offset[state.node[state.ptr[:-1]]]
        row = np.stack((state.row, state.row + step), axis=1).ravel()
        kept = np.flatnonzero(edge >= 0)
        edge, row, group = edge[kept], row[kept], kept >> 1
    else:
        edge, row, group = table[state.type, 0], state.row, np.arange(len(state))
    lengths = np.diff(below.edge_ptr)[edge]
    items = concatenated_ranges(below.edge_ptr[edge], lengths)
    source = np.repeat(state.ptr[group], lengths) + below.source[items]
    side = below.side[items]
    node, base = state.node[source], state.base[source]
    if depth % 2 == 1:
        base = base + np.where(side, level.offset[node], 0)
    node = np.where(side, level.high[node], level.low[node])
    return Groups(row, below.child[edge].astype(np.int32), pointers(lengths), base, node)
