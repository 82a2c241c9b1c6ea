"""Counting paths on an offset-labelled MTBDD: entries below and paths above every node, one sweep each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mtbdd.offset.level import Level

Int64Array = NDArray[np.int64]

MAX_COUNT = 2**62 - 1
"""Largest number of states or transitions; twice as many still fit 64 bits."""


def count_entries_below(levels: Sequence[Level], terminals: int) -> tuple[Int64Array, ...]:
    """Count the non-zeros of every node's submatrix.

    Parameters
    ----------
    levels : sequence of Level
        The 2n levels.
    terminals : int
        Nodes of level 2n.

    Returns
    -------
    tuple of ndarray, each shape (nodes of its level,), int64
        2n + 1 arrays; the entry of the root is the number of non-zeros of the matrix.

    Raises
    ------
    OverflowError
        There are more than 2^62.

    Notes
    -----
    Time: O(nodes). A node's count is the sum of its children's, and 1 for a terminal ([Tealdi13] 4.4.1.1).
    """
    counts = [np.ones(terminals, np.int64)]
    for level in reversed(levels):
        below = np.append(counts[0], 0)
        total = below[level.low] + below[level.high]
        # A sum of two counts below 2^62 does not wrap.
        if np.any(total > MAX_COUNT):
            raise OverflowError("the matrix has more than 2^62 non-zero entries: expected a smaller model")
        counts.insert(0, total)
    return tuple(counts)


def count_paths_above(levels: Sequence[Level], nodes: Sequence[int]) -> tuple[Int64Array, ...]:
    """Count the paths from the root to every node.

    Parameters
    ----------
    levels : sequence of Level
        The 2n levels.
    nodes : sequence of int
        Nodes of each of the 2n + 1 levels.

    Returns
    -------
    tuple of ndarray, each shape (nodes of its level,), int64
        2n + 1 arrays; level 2n together has as many paths as the matrix has non-zeros.

    Raises
    ------
    OverflowError
        There are more than 2^62.

    Notes
    -----
    Time: O(nodes).
    """
    counts = [np.ones(nodes[0], np.int64)]
    for k, level in enumerate(levels):
        total = np.zeros(nodes[k + 1], np.int64)
        for child in (level.low, level.high):
            there = child >= 0
            np.add.at(total, child[there], counts[k][there])
        if float(counts[k].sum(dtype=np.float64)) > MAX_COUNT:
            raise OverflowError(f"more than 2^62 paths lead to level {k}: expected a smaller model")
        counts.append(total)
    return tuple(counts)
