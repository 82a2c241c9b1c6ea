"""Explicit submatrices of chosen nodes of a level, in coordinate form ([Tealdi13] §§4.2.1 and 4.3.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import owners, pointers
from hybrid.base.arrays import Array, counts
from mtbdd.base.records import Record
from mtbdd.offset.convert import descend
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.tuples import distinct_rows, stable_order

# Classes of equal submatrices, equal exactly or up to a scale.
#
# State-dependent rates make submatrices that differ by a constant factor only. Divided by its leading value
# (the value at the end of its else-most path) every submatrix becomes normalised, and submatrices with equal
# normalised contents form a class: the explicit contents are kept once a class, and each instance carries its
# own scale, which is the leading value of its node and therefore exact. Without scaling, a class holds equal
# submatrices.
#
# Classes are found bottom-up, one sweep over a level. Two nodes belong to one class when their children do,
# their shapes and offsets agree and, with scaling, the ratio of the children's leading values is the same up
# to rounding. Rounding is settled afterwards:
# :func:`hybrid.matrix.injection.submatrices.class_submatrices` compares every
# value that sharing would produce with the exact one.

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
Float64Array = NDArray[np.float64]

_RATIO_BITS = 46
"""Mantissa bits that two ratios must share: rounding disturbs the last two or three of 53."""


class BlockClasses(Record, eq=False):
    """The class of every node of every level.

    Attributes
    ----------
    matrix : OffsetMTBDD
        The matrix.
    scaled : bool
        Whether the members of a class may differ by a factor.
    classes : tuple of ndarray, shape (nodes of the level,), int32
        2n + 1 arrays: class of every node.
    representative : tuple of ndarray, shape (classes of the level,), int64
        2n + 1 arrays: one member of every class.
    leading : tuple of ndarray, shape (nodes of the level,), float64
        2n + 1 arrays: the value at the end of every node's else-most path, which is the node's scale.
    """

    matrix: OffsetMTBDD
    scaled: bool
    classes: tuple[Int32Array, ...]
    representative: tuple[Int64Array, ...]
    leading: tuple[Float64Array, ...]

    def entries(self, k: int) -> Int64Array:
        """Return the entries of one submatrix of every class of level k, shape (classes,)."""
        return self.matrix.entries_below[k][self.representative[k]]

    def children(self, k: int) -> tuple[Int32Array, Int32Array]:
        """Return the classes of the else and the then children of the classes of level k, -1 for zero."""
        level, chosen, below = self.matrix.levels[k], self.representative[k], self.classes[k + 1]
        padded = np.append(below, np.int32(-1))
        return padded[level.low[chosen]], padded[level.high[chosen]]


def find_block_classes(matrix: OffsetMTBDD, scaled: bool) -> BlockClasses:
    """Group the nodes of every level into classes of equal submatrices.

    Parameters
    ----------
    matrix : OffsetMTBDD
        The matrix.
    scaled : bool
        Whether submatrices that differ by a constant factor count as equal.

    Returns
    -------
    BlockClasses
        Classes of all 2n + 1 levels.

    Notes
    -----
    Time: O(nodes log nodes).
    """
    size = len(matrix.terminals)
    classes = [np.zeros(size, np.int32) if scaled else np.arange(size, dtype=np.int32)]
    representative = [np.arange(min(size, 1) if scaled else size, dtype=np.int64)]
    leading = [matrix.terminals]
    for k in reversed(range(matrix.n_levels)):
        level = matrix.levels[k]
        below = np.append(classes[0], np.int32(-1))
        values = np.append(leading[0], 0.0)
        own = np.where(level.low >= 0, values[level.low], values[level.high])
        key: list[NDArray[np.integer]] = [below[level.low], below[level.high]]
        key += [level.offset, matrix.rows[k], matrix.columns[k]]
        both = (level.low >= 0) & (level.high >= 0)
        if scaled and both.any():  # without two children there is no ratio
            with np.errstate(over="ignore", under="ignore"):  # whether scales are accurate is asked later
                ratio = np.divide(values[level.high], own, out=np.ones(len(level)), where=both)
            key.append(_rounded_bits(ratio))
        first, inverse = distinct_rows(key)
        classes.insert(0, inverse.astype(np.int32))
        representative.insert(0, first)
        leading.insert(0, own)
    return BlockClasses(matrix, scaled, tuple(classes), tuple(representative), tuple(leading))


def _rounded_bits(values: Float64Array) -> Int64Array:
    """Numbers that agree exactly when the values agree in their leading mantissa bits, rounded to nearest."""
    drop = 52 - _RATIO_BITS
    bits: Int64Array = values.view(np.int64)
    rounded = (bits + (1 << (drop - 1))) >> drop
    # Ranks instead of bit patterns keep the packed keys of distinct_rows short.
    ranks: Int64Array = np.unique(rounded, return_inverse=True)[1].astype(np.int64)
    return ranks


_MAX_ULP = 4

FEW_ENTRIES = 1 << 16
"""Entries that are written out as one submatrix sooner than a diagram is weighed, cut or put in classes."""


class Submatrix(Record, eq=False):
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


class CooBlocks(Record, eq=False):
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


def level_blocks(matrix: OffsetMTBDD, k: int) -> CooBlocks:
    """Return the submatrices of all nodes of level k on the host; of level 0 the whole matrix, if not empty.

    Time: that of `expand_nodes`, unless the entries are written out and k is 0.
    """
    found = matrix.entries if k == 0 else None
    if found is None or max(matrix.shape) >= 2**31:
        return expand_nodes(np, matrix, k, np.arange(matrix.nodes[k]))
    blocks = min(matrix.n_entries, 1)
    sizes = (np.full(blocks, size, np.int64) for size in matrix.shape)
    return CooBlocks(np.array([0, matrix.n_entries][: blocks + 1]), *found, *sizes)


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
