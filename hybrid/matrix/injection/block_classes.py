"""Classes of equal submatrices, equal exactly or up to a scale.

State-dependent rates make submatrices that differ by a constant factor only. Divided by its leading value
(the value at the end of its else-most path) every submatrix becomes normalised, and submatrices with equal
normalised contents form a class: the explicit contents are kept once a class, and each instance carries its
own scale, which is the leading value of its node and therefore exact. Without scaling, a class holds equal
submatrices.

Classes are found bottom-up, one sweep over a level. Two nodes belong to one class when their children do,
their shapes and offsets agree and, with scaling, the ratio of the children's leading values is the same up
to rounding. Rounding is settled afterwards:
:func:`hybrid.matrix.injection.submatrices.class_submatrices` compares every
value that sharing would produce with the exact one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.tuples import distinct_rows

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
Float64Array = NDArray[np.float64]

_RATIO_BITS = 46
"""Mantissa bits that two ratios must share: rounding disturbs the last two or three of 53."""


@dataclass(frozen=True, eq=False)
class BlockClasses:
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
