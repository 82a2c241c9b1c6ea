"""Counting paths: non-zeros below and paths above every node of every level, each count made once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbdd.offset import OffsetMTBDD

__all__ = ["nonzeros_below", "paths_from_root"]

Int64Array = NDArray[np.int64]

_LIMIT = 2.0**63


def nonzeros_below(matrix: OffsetMTBDD) -> tuple[Int64Array, ...]:
    """Count the non-zeros of every node's submatrix.

    Parameters
    ----------
    matrix : OffsetMTBDD
        The matrix.

    Returns
    -------
    tuple of ndarray, each shape (nodes of its level,), int64
        2n + 1 arrays; the entry of the root is the number of non-zeros of the matrix.

    Raises
    ------
    OverflowError
        If a count does not fit 63 bits.

    Notes
    -----
    Time: O(nodes). A node's count is the sum of its children's, and 1 for a terminal (003 section 4.4.1.1).
    """
    counts = [np.ones(len(matrix.terminals), np.int64)]
    for k in reversed(range(matrix.n_levels)):
        level = matrix.levels[k]
        below = np.append(counts[0], 0)
        total = below[level.low] + below[level.high]
        # A sum of two 63-bit counts wraps around to a negative number at worst.
        if np.any(total < 0):
            raise OverflowError(
                f"the submatrices of level {k} have 2**63 or more non-zeros; counts have 63 bits"
            )
        counts.insert(0, total)
    return tuple(counts)


def paths_from_root(matrix: OffsetMTBDD) -> tuple[Int64Array, ...]:
    """Count the paths from the root to every node.

    Parameters
    ----------
    matrix : OffsetMTBDD
        The matrix.

    Returns
    -------
    tuple of ndarray, each shape (nodes of its level,), int64
        2n + 1 arrays; level 2n together has as many paths as the matrix has non-zeros.

    Raises
    ------
    OverflowError
        If a count does not fit 63 bits.

    Notes
    -----
    Time: O(nodes).
    """
    counts = [np.ones(matrix.nodes[0], np.int64)]
    for k, level in enumerate(matrix.levels):
        total = np.zeros(matrix.nodes[k + 1], np.int64)
        for child in (level.low, level.high):
            there = child >= 0
            np.add.at(total, child[there], counts[k][there])
        if 2.0 * float(counts[k].sum(dtype=np.float64)) >= _LIMIT:
            raise OverflowError(f"2**62 or more paths lead to level {k}; counts of paths have 63 bits")
        counts.append(total)
    return tuple(counts)
