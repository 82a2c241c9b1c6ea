"""Which matrices have long rows, and a cost model of their two-stage product, without building anything.

A thread of the tile kernel runs down a whole row, which takes as long as the row is long, whatever else the
device has to do. The two-stage product spreads rows over threads, and multiplies each pair (a class of
submatrices and the column where a member begins) once. The pairs of all levels are listed by one sweep: a
row bit takes a pair to its children at the same column, a column bit moves the then child.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybrid.matrix.injection.block_classes import BlockClasses
from hybrid.matrix.injection.row_types import RowTypes, TypedMatrix
from hybrid.matrix.space.base import LEAST_VECTORS
from mtbdd.offset.row_entries import row_entries
from mtbdd.offset.tuples import distinct_rows

LONG_ROW = 32
"""Entries of a row, on average, from which a lane a row leaves the device waiting for its longest rows."""

LONGEST_ROW = 1024
"""Entries of a single row from which everything else waits for it."""

PAIR_LIMIT = 1 << 21
"""Pairs of a level beyond which deeper levels are not looked at."""

SECONDS_SERIAL_ENTRY = 0.1e-6
"""Latency of an entry for the thread that runs down its row, tables of terms included."""

_SECONDS_SERIAL_SLOT = 0.1e-6
_SECONDS_ENTRY = 1.0e-12
_SECONDS_PRODUCT = 2.0e-12
_SECONDS_SLOT_ROW = 1.6e-12
_SECONDS_SLOT = 6e-12
_SECONDS_ITEM = 1.3e-9
_SECONDS_START = 8e-6

_CLASS_ENTRIES = 1 << 28
"""Entries of all classes beyond which a level is not offered: building would need tens of gigabytes."""

_BYTES_PER_ENTRY = 110
_BYTES_PER_SLOT = 160


@dataclass(frozen=True)
class PairCounts:
    """Sizes of the two stages at a level.

    Attributes
    ----------
    pairs : int
        Distinct submatrices with their columns.
    entries : int
        Entries of all pairs: multiplications of the first stage.
    products : int
        Rows of all pairs.
    """

    pairs: int
    entries: int
    products: int


def has_long_rows(curve: TypedMatrix) -> bool:
    """Tell whether a matrix has rows too long for one thread each."""
    if curve.nonzeros >= LONG_ROW * max(1, curve.shape[0]):
        return True
    if row_entries(curve.plain.classes.matrix) < LONGEST_ROW:
        return False  # without a look at the deepest row types
    return longest_row(curve.plain) >= LONGEST_ROW


def longest_row(types: RowTypes) -> float:
    """Return the length of the longest row, or a lower bound.

    It is the greatest mean length among the row types of the deepest level, which have one row each unless
    the types became too many to be followed so far.
    """
    k = len(types) - 1
    level = types[k]
    if level.n_types == 0:
        return 0.0
    return float((level.entries / level.rows).max())


def count_pairs(classes: BlockClasses) -> list[PairCounts]:
    """Count the pairs of every level.

    Parameters
    ----------
    classes : BlockClasses

    Returns
    -------
    list of PairCounts
        Of the levels from the root down to the last one with at most `PAIR_LIMIT` pairs.

    Notes
    -----
    Time: O(pairs log pairs) a level.
    """
    matrix = classes.matrix
    size = matrix.nodes[0]
    own, base = np.asarray(classes.classes[0], np.int64), np.zeros(size, np.int64)
    counts: list[PairCounts] = []
    for k in range(matrix.n_levels + 1):
        chosen = classes.representative[k]
        entries, rows = classes.entries(k)[own].sum(), matrix.rows[k][chosen][own].sum()
        counts.append(PairCounts(len(own), int(entries), int(rows)))
        if k == matrix.n_levels:
            break
        low, high = (child[own].astype(np.int64) for child in classes.children(k))
        step = matrix.levels[k].offset[chosen][own] if k % 2 == 1 else 0
        child, column = np.concatenate((low, high)), np.concatenate((base, base + step))
        kept = child >= 0
        child, column = child[kept], column[kept]
        first, _ = distinct_rows([child, column])
        if len(first) > PAIR_LIMIT:
            break
        own, base = child[first], column[first]
    return counts


def pair_seconds(types: RowTypes, k: int, counts: PairCounts) -> float | None:
    """Predict the seconds of one two-stage product.

    Parameters
    ----------
    types : RowTypes
        Row types of the matrix; level k must be among them.
    k : int
        Level.
    counts : PairCounts
        Of the level.

    Returns
    -------
    float or None
        None if the classes have too many entries to be built.

    Notes
    -----
    Time: O(slots of the row types). The constants are estimates from the bytes moved and the latencies of a
    load; they need only rank levels, which :mod:`hybrid.matrix.levels.probe` then times.
    """
    level = types[k]
    if level.n_types == 0:
        return _SECONDS_START
    classes = types.classes
    chosen = classes.representative[k]
    entries = classes.entries(k).astype(np.float64)
    if entries.sum() > _CLASS_ENTRIES:
        return None
    class_rows = classes.matrix.rows[k][chosen].astype(np.float64)
    rows = level.rows.astype(np.float64)
    slots, groups = level.lengths.astype(np.float64), level.groups.astype(np.float64)
    # A block has 256 threads: rows side by side, the rest shares the slots.
    together = np.minimum(rows, 32.0)
    parts = 256.0 / together
    # Rows of a class are shared by up to 32 lanes, a lane having some entries at least.
    mean = float((entries / class_rows).max())
    serial = max(mean / 32.0, min(mean, 4.0)) * SECONDS_SERIAL_ENTRY
    serial += float(np.ceil(slots / parts).max()) * _SECONDS_SERIAL_SLOT
    items = float((groups * np.ceil(rows / together)).sum()) + counts.products / 128.0 + counts.pairs / 4.0
    return (
        _SECONDS_START
        + serial
        + counts.entries * _SECONDS_ENTRY
        + counts.products * _SECONDS_PRODUCT
        + float((groups * slots * rows).sum()) * _SECONDS_SLOT_ROW
        + level.group_slots * _SECONDS_SLOT
        + items * _SECONDS_ITEM
    )


def pair_build_bytes(types: RowTypes, k: int) -> int:
    """Return the most memory that building the pairs of level k and solving with them takes, in bytes.

    Parameters
    ----------
    types : RowTypes
    k : int
        Level. All nodes are expanded where classes are scaled.
    """
    classes, level = types.classes, types[k]
    matrix = classes.matrix
    entries = int((matrix.entries_below[k] if classes.scaled else classes.entries(k)).sum())
    vectors = 8 * (LEAST_VECTORS - 1) * matrix.n_rows + 8 * matrix.n_columns
    # No pair has more rows than the slots that meet it.
    products = 8 * int((level.groups * level.lengths * level.rows).sum())
    rows = 100 * matrix.n_rows
    slots = _BYTES_PER_SLOT * (level.group_slots + level.n_groups)
    return vectors + _BYTES_PER_ENTRY * entries + slots + products + rows
