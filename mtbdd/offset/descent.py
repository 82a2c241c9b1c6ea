"""Paths carried down by one level of an offset-labelled MTBDD, all at once."""

from __future__ import annotations

from typing import Any

from mtbdd.offset.offset import OffsetMTBDD

Array = Any
"""A NumPy or CuPy array."""


def descend(
    xp: Any, matrix: OffsetMTBDD, k: int, node: Array, row: Array, column: Array, *carried: Array
) -> tuple[Array, ...]:
    """Replace every path by its continuations over the else edge and the then edge of its node.

    Parameters
    ----------
    xp : module
        Array module of the paths; the diagram's level is copied to it.
    matrix : OffsetMTBDD
    k : int
        Level of the nodes; even levels test row bits, odd ones column bits.
    node : array, shape (paths,), integers
        Node of level k in which each path ends.
    row, column : array, shape (paths,), integers
        Sums of the offsets of the nodes left by their then edges.
    *carried : array, shape (paths,)
        Whatever else belongs to a path.

    Returns
    -------
    tuple of arrays
        `node` of level k + 1, `row`, `column` and what is carried, for all paths over else edges and then for
        all paths over then edges. Paths to zero are left out.

    Notes
    -----
    Time: O(paths) and the copy of the level.
    """
    level = matrix.levels[k]
    low, high = xp.asarray(level.low)[node], xp.asarray(level.high)[node]
    left, right = (xp.flatnonzero(xp.greater_equal(child, 0)) for child in (low, high))
    step = xp.asarray(level.offset)[node[right]]
    both = xp.concatenate((left, right))
    row, column = row[both], column[both]
    moved = row if k % 2 == 0 else column
    moved[len(left) :] += step.astype(moved.dtype)
    return xp.concatenate((low[left], high[right])), row, column, *(array[both] for array in carried)
