"""Explicit submatrices of chosen nodes of a level, in coordinate form (003 sections 4.2.1 and 4.3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.block_classes import BlockClasses
from hybrid.ragged import concatenated_ranges, pointers
from mtbdd.offset import OffsetMTBDD

__all__ = ["CooBlocks", "class_submatrices", "expand_nodes"]

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
Float64Array = NDArray[np.float64]

_MAX_ULP = 4


@dataclass(frozen=True, eq=False)
class CooBlocks:
    """Submatrices as coordinate lists with local indices, sorted by row, then by column.

    Attributes
    ----------
    ptr : ndarray, shape (blocks + 1,), int64
        Entries of block i are ``ptr[i] .. ptr[i + 1]``.
    row, column : ndarray, shape (entries,), int32 (int64 where a block needs it)
        Indices local to the block.
    value : ndarray, shape (entries,), float64
        Values.
    n_rows, n_columns : ndarray, shape (blocks,), int64
        Shapes of the blocks.
    """

    ptr: Int64Array
    row: NDArray[np.integer]
    column: NDArray[np.integer]
    value: Float64Array
    n_rows: Int64Array
    n_columns: Int64Array

    def __len__(self) -> int:
        return len(self.ptr) - 1


def expand_nodes(matrix: OffsetMTBDD, k: int, nodes: NDArray[np.integer]) -> CooBlocks:
    """Expand nodes of level k to explicit submatrices.

    Parameters
    ----------
    matrix : OffsetMTBDD
        The matrix.
    k : int
        Level, 0 .. 2n.
    nodes : ndarray, shape (blocks,), integers
        Node numbers of that level.

    Returns
    -------
    CooBlocks
        One block a node, in the given order.

    Notes
    -----
    Time: O(entries * (levels below k) + entries log entries), array sweeps only.
    """
    narrow = _fits_int32(matrix.rows[k]) and _fits_int32(matrix.columns[k])
    index = np.int32 if narrow else np.int64
    block = np.arange(len(nodes), dtype=np.int64)
    node = nodes.astype(np.int32)
    row, column = np.zeros(len(nodes), index), np.zeros(len(nodes), index)
    for depth in range(k, matrix.n_levels):
        level = matrix.levels[depth]
        low, high = level.low[node], level.high[node]
        left, right = np.flatnonzero(low >= 0), np.flatnonzero(high >= 0)
        step = level.offset[node[right]].astype(index)
        both = np.concatenate((left, right))
        block, row, column = block[both], row[both], column[both]
        moved = row if depth % 2 == 0 else column
        moved[len(left) :] += step
        node = np.concatenate((low[left], high[right]))
    order = np.lexsort((column, row, block))
    counts = np.bincount(block, minlength=len(nodes))
    return CooBlocks(
        pointers(counts),
        row[order],
        column[order],
        matrix.terminals[node[order]],
        matrix.rows[k][nodes],
        matrix.columns[k][nodes],
    )


def _fits_int32(counts: Int64Array) -> bool:
    return int(counts.max(initial=0)) < 2**31


def class_submatrices(classes: BlockClasses, k: int) -> CooBlocks | None:
    """Expand one normalised submatrix per class of level k.

    Parameters
    ----------
    classes : BlockClasses
        Classes of the matrix.
    k : int
        Level.

    Returns
    -------
    CooBlocks or None
        Values are those of the representative, divided by its leading value if the classes are scaled.
        None if some member of a class, rebuilt as its own leading value times these values, would differ by
        more than 4 units in the last place from its exact values: then nothing must be shared up to a scale.

    Notes
    -----
    Time: O(entries of all nodes of the level * levels below it) with scaling, of one node a class without.
    """
    chosen = classes.representative[k]
    blocks = expand_nodes(classes.matrix, k, chosen)
    if not classes.scaled:
        return blocks
    counts = np.diff(blocks.ptr)
    value = blocks.value / np.repeat(classes.leading[k][chosen], counts)
    alone = np.ones(len(classes.classes[k]), bool)
    alone[chosen] = False
    others = np.flatnonzero(alone)
    members = expand_nodes(classes.matrix, k, others)
    twin = classes.classes[k][others]
    rebuilt = value[concatenated_ranges(blocks.ptr[twin], counts[twin])]
    rebuilt *= np.repeat(classes.leading[k][others], counts[twin])
    if np.any(np.abs(rebuilt - members.value) > _MAX_ULP * np.spacing(np.abs(members.value))):
        return None
    return CooBlocks(blocks.ptr, blocks.row, blocks.column, value, blocks.n_rows, blocks.n_columns)
