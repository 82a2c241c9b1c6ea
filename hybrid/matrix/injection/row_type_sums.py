"""Sums of the rows of a matrix, from its row types alone: no level is chosen and nothing is injected."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.injection.block_classes import find_block_classes
from hybrid.matrix.injection.row_types import SLOT_LIMIT, RowTypes
from mtbdd.offset.offset import OffsetMTBDD


def row_type_sums(matrix: OffsetMTBDD, slot_limit: int = SLOT_LIMIT) -> NDArray[np.float64] | None:
    """Return the sums of the rows.

    Parameters
    ----------
    matrix : OffsetMTBDD
        With some entry.
    slot_limit : int
        See :func:`hybrid.matrix.injection.row_types.RowTypes`.

    Returns
    -------
    ndarray, shape (n_rows,), float64, or None
        None if the row types are too many to be found.  A sum of m entries has at most m - 1 roundings.

    Notes
    -----
    The row types of the last level are lists of terminals: each is added up once, and its sum is written to
    all rows of the type.  Time: one sweep over the row types, and O(rows) for every row bit.  A product with
    ones needs both sweeps of a level curve first, and a layout.
    """
    types = RowTypes(find_block_classes(matrix, scaled=False), slot_limit)
    if not types.reaches(matrix.n_levels):
        return None
    classes, last = types.classes, types[matrix.n_levels]
    sums = np.add.reduceat(matrix.terminals[classes.representative[-1][last.blocks]], last.ptr[:-1])
    row, kind = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for depth in range(matrix.n_levels):
        above, below = types[depth], types[depth + 1]
        edge = below.edges_of(above.n_types)
        if depth % 2 == 1:
            kind = below.child[edge[kind, 0]]
            continue
        # All submatrices of a group split at the same row, so the first one tells where.
        first = classes.representative[depth][above.blocks[above.ptr[:-1]]]
        step = matrix.levels[depth].offset[first]
        row = np.stack((row, row + step[kind]), axis=1).ravel()
        taken = edge[kind].ravel()
        kept = np.flatnonzero(taken >= 0)
        row, kind = row[kept], below.child[taken[kept]]
    found = np.zeros(matrix.n_rows)
    found[row] = sums[kind]
    return found
