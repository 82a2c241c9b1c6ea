"""Late rows: those that read late columns, which other processes send; they are multiplied last.

Early columns are those of a process's own states: their elements of x need not be received.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]

_BLOCK = 1 << 10
"""Elements that are copied or not as one."""


@dataclass(frozen=True, eq=False)
class LateColumns:
    """Which groups of rows are late, and which early columns these groups read besides.

    Attributes
    ----------
    is_late : ndarray, shape (groups,), bool
    stretches : ndarray, shape (stretches, 2), int64
        Half-open ranges of early columns, ascending: those that late groups read, and those with the numbers
        of their rows, whose old values a relaxation reads.
    """

    is_late: NDArray[np.bool_]
    stretches: Int64Array


def find_late_columns(ptr: Int64Array, rows: Int64Array, reach: Int64Array, early: int | None) -> LateColumns:
    """Tell groups of rows that read late columns from others.

    Parameters
    ----------
    ptr : ndarray, shape (groups + 1,), int64
        Submatrices of every group.
    rows : ndarray, shape (groups, 2), int64
        Half-open range of the rows of every group.
    reach : ndarray, shape (submatrices, 2), int64
        Half-open range of the columns that are loaded for every submatrix.  What is loaded only to be
        multiplied by zero counts, since it must not be infinite by chance.
    early : int or None
        Number of early columns, which are the first ones; None where all are.

    Notes
    -----
    Time: O(submatrices + columns / 1024).
    """
    groups = len(ptr) - 1
    if early is None:
        return LateColumns(np.zeros(groups, bool), np.zeros((0, 2), np.int64))
    owner = np.repeat(np.arange(groups), np.diff(ptr))
    is_late = np.zeros(groups, bool)
    is_late[owner[reach[:, 1] > early]] = True
    ranges = np.clip(np.concatenate((reach[is_late[owner]], rows[is_late])), 0, early)
    ranges = ranges[ranges[:, 0] < ranges[:, 1]]
    blocks = -(-early // _BLOCK)
    steps = np.zeros(blocks + 1, np.int64)
    np.add.at(steps, ranges[:, 0] // _BLOCK, 1)
    np.add.at(steps, -(-ranges[:, 1] // _BLOCK), -1)
    edges = np.diff(np.cumsum(steps[:-1]) > 0, prepend=False, append=False)
    return LateColumns(is_late, np.minimum(np.flatnonzero(edges).reshape(-1, 2) * _BLOCK, early))
