"""Explicit submatrices of chosen nodes of a level, in coordinate form ([Tealdi13] 4.2.1 and 4.3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.ragged import owners, pointers
from hybrid.base.arrays import Array, counts
from hybrid.matrix.injection.block_classes import BlockClasses
from mtbdd.offset.descent import descend
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.tuples import distinct_rows, stable_order

Int64Array = NDArray[np.int64]

_MAX_ULP = 4


@dataclass(frozen=True, eq=False)
class Submatrix:
    """One injected submatrix: local indices, sorted by row, then by column.

    Attributes
    ----------
    row, column : ndarray, shape (entries,), integers
        Local indices.
    value : ndarray, shape (entries,), float64
        Values.
    n_rows, n_columns : int
        Shape.
    """

    row: NDArray[np.integer]
    column: NDArray[np.integer]
    value: NDArray[np.float64]
    n_rows: int
    n_columns: int

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return len(self.value)

    def toarray(self) -> NDArray[np.float64]:
        """Return the dense submatrix, shape (n_rows, n_columns)."""
        dense = np.zeros((self.n_rows, self.n_columns))
        dense[self.row, self.column] = self.value
        return dense


@dataclass(frozen=True, eq=False)
class CooBlocks:
    """Submatrices as coordinate lists with local indices, sorted by row, then by column.

    Attributes
    ----------
    ptr : array, shape (blocks + 1,), int64
        Entries of block i are ``ptr[i] .. ptr[i + 1]``.
    row, column : array, shape (entries,), int32 or int64
        Indices local to the block.
    value : array, shape (entries,), float64
        Values.
    n_rows, n_columns : ndarray, shape (blocks,), int64
        Shapes of the blocks, on the host.
    """

    ptr: Array
    row: Array
    column: Array
    value: Array
    n_rows: Int64Array
    n_columns: Int64Array

    @property
    def nbytes(self) -> int:
        """Bytes of what a product reads: entries and pointers to them."""
        return int(self.ptr.nbytes + self.row.nbytes + self.column.nbytes + self.value.nbytes)

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def __getitem__(self, number: int) -> Submatrix:
        """Return a view of one submatrix."""
        if not 0 <= number < len(self):
            raise IndexError(f"number: expected a submatrix 0..{len(self) - 1}, got {number}")
        kept = slice(int(self.ptr[number]), int(self.ptr[number + 1]))
        shape = int(self.n_rows[number]), int(self.n_columns[number])
        return Submatrix(self.row[kept], self.column[kept], self.value[kept], *shape)


def expand_nodes(
    xp: Any, matrix: OffsetMTBDD, k: int, nodes: NDArray[np.integer], index: Any = None
) -> CooBlocks:
    """Expand nodes of level k to explicit submatrices.

    Parameters
    ----------
    xp : module
        Array module of the entries.
    matrix : OffsetMTBDD
        The matrix.
    k : int
        Level, 0 .. 2n.
    nodes : ndarray, shape (blocks,), integers
        Node numbers of that level, on the host.
    index : dtype, optional
        Of rows and columns; default int32, and int64 where a submatrix needs it.

    Returns
    -------
    CooBlocks
        One block a node, in the given order.

    Notes
    -----
    Time: O(entries * (levels below k) + entries log entries), array sweeps only. Synchronises: yes.
    """
    if index is None:
        narrow = _fits_int32(matrix.rows[k]) and _fits_int32(matrix.columns[k])
        index = np.int32 if narrow else np.int64
    block = xp.arange(len(nodes), dtype=np.int64)
    node = xp.asarray(nodes).astype(np.int32)
    row, column = xp.zeros(len(nodes), index), xp.zeros(len(nodes), index)
    for depth in range(k, matrix.n_levels):
        node, row, column, block = descend(xp, matrix, depth, node, row, column, block)
    order = stable_order(xp, (block, row, column))
    return CooBlocks(
        pointers(xp, counts(xp, block, len(nodes))),
        row[order],
        column[order],
        xp.asarray(matrix.terminals)[node[order]],
        matrix.rows[k][nodes],
        matrix.columns[k][nodes],
    )


def _fits_int32(counts: Int64Array) -> bool:
    return int(counts.max(initial=0)) < 2**31


def class_submatrices(xp: Any, classes: BlockClasses, k: int, index: Any = None) -> CooBlocks | None:
    """Expand one normalised submatrix per class of level k.

    Parameters
    ----------
    xp : module
        Array module of the entries.
    classes : BlockClasses
        Classes of the matrix.
    k : int
        Level.
    index : dtype, optional
        As for `expand_nodes`.

    Returns
    -------
    CooBlocks or None
        Values are those of the representative, divided by its leading value if the classes are scaled.
        None if some member of a class, rebuilt as its own leading value times these values, would differ by
        more than 4 units in the last place from its exact values: then nothing must be shared up to a scale.

    Notes
    -----
    Time: O(entries of one node a class * levels below k), and the comparison of values with scaling, on the
    diagram. Synchronises: yes.
    """
    chosen = classes.representative[k]
    if classes.scaled and not _scales_are_accurate(classes, k):
        return None
    blocks = expand_nodes(xp, classes.matrix, k, chosen, index)
    if not classes.scaled:
        return blocks
    owner = owners(xp, blocks.ptr, len(blocks.value))
    value = blocks.value / xp.asarray(classes.leading[k][chosen])[owner]
    return CooBlocks(blocks.ptr, blocks.row, blocks.column, value, blocks.n_rows, blocks.n_columns)


def _scales_are_accurate(classes: BlockClasses, k: int) -> bool:
    """Compare every value of every member of a class of level k with the value that sharing would give.

    Members are compared with their representatives on the diagram: pairs of nodes descend together, and
    pairs that meet again under the same two leading values are followed once. No member is expanded.
    Representatives are compared with themselves, for their own values may lie so far from the leading one
    that the quotient overflows or underflows.
    """
    matrix, leading = classes.matrix, classes.leading[k]
    mine = np.arange(matrix.nodes[k], dtype=np.int64)
    twin = classes.representative[k][classes.classes[k]]
    # A pair of leading values is all that its members' values depend on besides the two terminals.
    number = np.unique(leading, return_inverse=True)[1]
    first, pair = distinct_rows((number[mine], number[twin]))
    own_leading, twin_leading = leading[mine[first]], leading[twin[first]]
    for depth in range(k, matrix.n_levels + 1):
        first, _ = distinct_rows((pair, mine, twin))
        pair, mine, twin = pair[first], mine[first], twin[first]
        if depth == matrix.n_levels:
            break
        level = matrix.levels[depth]
        below = np.concatenate((level.low[mine], level.high[mine])).astype(np.int64)
        there = np.flatnonzero(below >= 0)
        twins = np.concatenate((level.low[twin], level.high[twin])).astype(np.int64)
        pair, mine, twin = np.concatenate((pair, pair))[there], below[there], twins[there]
    exact = matrix.terminals[mine]
    with np.errstate(over="ignore", under="ignore"):
        rebuilt = own_leading[pair] * (matrix.terminals[twin] / twin_leading[pair])
    return bool(np.all(np.abs(rebuilt - exact) <= _MAX_ULP * np.spacing(np.abs(exact))))
