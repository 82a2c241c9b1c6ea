"""The diagonal of a symbolic matrix, found on the diagram without any submatrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbdd.offset.offset import OffsetMTBDD


def diagonal_of(symbolic: OffsetMTBDD) -> NDArray[np.float64]:
    """Return the diagonal of a square matrix, shape (n,).

    Raises
    ------
    ValueError
        If rows and columns stand for different sets of states.

    Notes
    -----
    Time: O(n), array sweeps over the levels: only paths whose row bits equal their column bits are followed.
    """
    node = np.zeros(symbolic.nodes[0], np.int32)
    row = np.zeros(len(node), np.int64)
    for k in range(0, symbolic.n_levels, 2):
        outer, inner = symbolic.levels[k], symbolic.levels[k + 1]
        step = outer.offset[node]
        parts = []
        for first, second in ((outer.low, inner.low), (outer.high, inner.high)):
            middle = first[node]
            there = np.flatnonzero(middle >= 0)
            middle = middle[there]
            if np.any(inner.offset[middle] != step[there]):
                raise ValueError(
                    "diagonal: rows and columns stand for different sets of states; "
                    "take the diagonal of the whole matrix before restricting it"
                )
            below = second[middle]
            kept = below >= 0
            parts.append((below[kept], there[kept]))
        (low, left), (high, right) = parts
        node = np.concatenate((low, high))
        row = np.concatenate((row[left], row[right] + step[right]))
    result = np.zeros(symbolic.shape[0])
    result[row] = symbolic.terminals[node]
    return result


def has_diagonal(symbolic: OffsetMTBDD) -> bool:
    """Tell whether a square matrix has an entry on its diagonal.

    Parameters
    ----------
    symbolic : OffsetMTBDD
        Rows and columns stand for the same set of states.

    Notes
    -----
    Time: O(nodes), array sweeps over the levels, down to the first one that no path to the diagonal reaches.
    """
    node = np.arange(symbolic.nodes[0])
    for k in range(0, symbolic.n_levels, 2):
        outer, inner = symbolic.levels[k], symbolic.levels[k + 1]
        below = np.zeros(symbolic.nodes[k + 2], np.bool_)
        for first, second in ((outer.low, inner.low), (outer.high, inner.high)):
            middle = first[node]
            child = second[middle[middle >= 0]]
            below[child[child >= 0]] = True
        node = np.flatnonzero(below)
        if node.size == 0:
            return False
    return bool(node.size)
