"""Memory layout of the CPU backend: groups of one row type side by side, and the work cut into chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.base.arrays import concatenated_ranges
from hybrid.matrix.cpu.staged_product import find_ghost_columns
from hybrid.matrix.injection.row_types import RowGroups, RowTypes, enumerate_groups, find_empty_rows
from hybrid.matrix.injection.slices import WIDTH, SliceTable, build_slices
from hybrid.matrix.injection.submatrices import class_submatrices
from mtbdd.base.records import Record

# A cost model of the CPU backend's product, evaluated on row types without building anything.
#
# A product runs over the terms of the slices of every group; four groups of one row type share the
# reading of a term. The model counts terms as entries over a typical number of entries a term, and charges
#
# - for every group and term: one load of x and one multiplication;
# - for every batch of four groups and term: the reading of the term, which takes longer the larger the
# tables are,
#   because they are read again for every batch;
# - for every group, slot and slice: bookkeeping; a slot begins a new stream of x, and costs more where x
#   exceeds the fast caches.
#
# Its constants were fitted to measured products of the case studies at all levels. They need only rank
# levels.

_ENTRIES_PER_TERM = 4.5
_MEMBERS = 4
_SECONDS_TERM = 0.95e-9
_SECONDS_SCALE = 0.15e-9
_SECONDS_SHARED_TERM = 0.45e-9
_SECONDS_SLICE = 2.0e-9
_SECONDS_SHARED_SLICE = 8.0e-9
_SECONDS_GROUP = 12e-9
_SECONDS_SLOT = 3e-9
_SECONDS_FAR_SLOT = 10e-9
_FAR_BYTES = 1 << 23
"""Size of x from which a slot begins outside the fast caches, as a rule."""
_TERM_BYTES = 12
_DISTINCT_TERMS = 0.7
"""Share of the terms of all row types that remain when equal patterns are stored once."""
_FAST_BYTES = 1 << 17
_BUILD_SECONDS_ENTRY = 1e-6
_PRODUCTS = 1000
"""Products over which the time to build the tables is spread."""


def predict_seconds(types: RowTypes, k: int) -> float:
    """Predict the time of one product with the row types of level k, on one thread.

    Parameters
    ----------
    types : RowTypes
        Row types of the matrix; level k must be among them.
    k : int
        Level.

    Returns
    -------
    float
        Seconds.

    Notes
    -----
    Time: O(slots of the row types).
    """
    level = types[k]
    if level.n_types == 0:
        return 0.0
    rows = level.rows.astype(np.float64)
    slices = np.ceil(rows / WIDTH)
    entries = level.entries.astype(np.float64)
    # In a slice that is not full, a term has fewer entries.
    terms = entries / (1 + (_ENTRIES_PER_TERM - 1) * rows / (WIDTH * slices))
    groups = level.groups.astype(np.float64)
    batches = np.ceil(groups / _MEMBERS)
    table = _DISTINCT_TERMS * _TERM_BYTES * float(terms.sum())
    pressure = 1 + 0.15 * np.log2(1 + table / _FAST_BYTES)
    slot = _slot_seconds(types)
    each = groups * (
        terms * _term_seconds(types) + slices * _SECONDS_SLICE + level.lengths * slot + _SECONDS_GROUP
    )
    shared = batches * (terms * _SECONDS_SHARED_TERM * pressure + slices * _SECONDS_SHARED_SLICE)
    # Classes are cut into slices once, however many row types share them.
    contents = float(types.classes.entries(k).sum())
    build = contents * _BUILD_SECONDS_ENTRY / _PRODUCTS
    return float((each + shared).sum()) + build


def least_seconds(types: RowTypes, k: int) -> float:
    """Return what `predict_seconds` is not below, at level k and at all levels below it.

    Groups and their slots become more from level to level, and the rows of a group fewer, so that no term
    gets more entries.

    Notes
    -----
    Time: O(slots of the row types).
    """
    level = types[k]
    if level.n_types == 0:
        return 0.0
    full = np.minimum(level.rows / WIDTH, 1.0)
    terms = float((level.groups * level.entries / (1 + (_ENTRIES_PER_TERM - 1) * full)).sum())
    term = _term_seconds(types) + _SECONDS_SHARED_TERM / _MEMBERS
    group = _SECONDS_GROUP + _SECONDS_SLICE + _SECONDS_SHARED_SLICE / _MEMBERS
    return terms * term + level.n_groups * group + level.group_slots * _slot_seconds(types)


def _term_seconds(types: RowTypes) -> float:
    return _SECONDS_TERM + (_SECONDS_SCALE if types.classes.scaled else 0.0)


def _slot_seconds(types: RowTypes) -> float:
    far = min(1.0, 8 * types.classes.matrix.n_columns / _FAR_BYTES)
    return _SECONDS_SLOT + far * _SECONDS_FAR_SLOT


Int64Array = NDArray[np.int64]
Float64Array = NDArray[np.float64]

WINDOW_ROWS = 1 << 16
"""Groups of one type are multiplied together if they lie in the same window of rows, so that the parts of x
and y in use stay in the cache."""

_PIECE_SLICES = 256
_CHUNKS = 96


class CpuLayout(Record, eq=False):
    """Arrays of the compiled product, besides the vectors.

    Attributes
    ----------
    level : int
        The injection level.
    scaled : bool
        Whether slots carry factors.
    table : SliceTable
        Slices of the row types.
    row, row_type : ndarray, shape (groups,), int64
        First row and type of every group, in the order of the pieces.
    slot_ptr : ndarray, shape (groups + 1,), int64
        First slot of every group.
    base : ndarray, shape (slots,), int64
        Column at which the submatrix of each slot begins.
    scale : ndarray, shape (slots,) or (0,), float64
        Factor of each slot, if scaled.
    piece_group, piece_count, piece_begin, piece_end : ndarray, shape (pieces,), int64
        Slices begin .. end of ``count`` consecutive groups of one type; a count of 0 is one group near the
        border of x, whose dead lanes must not be read.
    chunk_ptr : ndarray, shape (chunks + 1,), int64
        Pieces of every chunk.
    gap_begin, gap_end : ndarray, shape (gaps,), int64
        Rows that no group covers.
    interior_chunks : int
        How many chunks, the first ones, read no ghost columns.
    stretches : ndarray, shape (stretches, 2), int64
        Own columns that the other chunks read, see :class:`hybrid.matrix.cpu.staged_product.GhostColumns`.
    """

    level: int
    scaled: bool
    table: SliceTable
    row: Int64Array
    row_type: Int64Array
    slot_ptr: Int64Array
    base: Int64Array
    scale: Float64Array
    piece_group: Int64Array
    piece_count: Int64Array
    piece_begin: Int64Array
    piece_end: Int64Array
    chunk_ptr: Int64Array
    gap_begin: Int64Array
    gap_end: Int64Array
    interior_chunks: int
    stretches: Int64Array

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of the compiled kernels that stand for the groups and the row types."""
        table = self.table
        return (
            self.row,
            self.row_type,
            self.slot_ptr,
            self.base,
            self.scale,
            self.scaled,
            table.rows,
            table.ptr,
            table.pattern,
            table.pattern_ptr,
            table.slot,
            table.shift,
            table.vector,
            table.coefficients,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (
            self.row,
            self.row_type,
            self.slot_ptr,
            self.base,
            self.scale,
            self.piece_group,
            self.piece_count,
            self.piece_begin,
            self.piece_end,
            self.chunk_ptr,
            self.gap_begin,
            self.gap_end,
        )
        return self.table.nbytes + sum(a.nbytes for a in arrays)


def build_cpu_layout(types: RowTypes, k: int, n_own: int | None = None) -> CpuLayout | None:
    """Lay out the row types and groups of level k for the compiled product.

    Parameters
    ----------
    types : RowTypes
        Row types of the matrix.
    k : int
        Level.
    n_own : int, optional
        Columns, the first ones, that are there before the others; groups that read no others come first.

    Returns
    -------
    CpuLayout or None
        None if the classes are scaled and sharing them would change some value by more than 4 units in the
        last place; build from unscaled classes then.

    Notes
    -----
    Time: that of :func:`hybrid.matrix.injection.slices.build_slices` and O(slots of all groups).
    """
    classes, level = types.classes, types[k]
    blocks = class_submatrices(np, classes, k)
    if blocks is None:
        return None
    rows = level.rows
    table = build_slices(level, rows, blocks)
    groups = enumerate_groups(np, types, k)
    reach = groups.base[:, None] + table.reach[classes.classes[k][groups.node]]
    is_safe = _stays_inside(groups, reach, classes.matrix.n_columns)
    ends = np.stack((groups.row, groups.row + rows[groups.type]), axis=1)
    found = find_ghost_columns(groups.ptr, ends, reach, n_own)
    order = np.lexsort((groups.row, groups.type, groups.row // WINDOW_ROWS, ~is_safe, found.is_boundary))
    row, kind = groups.row[order], groups.type[order].astype(np.int64)
    safe, boundary = is_safe[order], found.is_boundary[order]
    lengths = np.diff(groups.ptr)[order]
    slots = concatenated_ranges(groups.ptr[order], lengths)
    node = groups.node[slots]
    first, count = _batches(row, kind, safe, boundary)
    slices = np.diff(table.ptr)[kind[first]]
    pieces = -(-slices // _PIECE_SLICES)
    batch = np.repeat(np.arange(len(first)), pieces)
    begin = (np.arange(len(batch)) - np.repeat(pointers(np, pieces)[:-1], pieces)) * _PIECE_SLICES
    end = np.minimum(begin + _PIECE_SLICES, slices[batch])
    # Chunks go out in the order of their first rows, so that threads work on neighbouring parts of the
    # vectors.
    by_row = np.lexsort((row[first[batch]] // WINDOW_ROWS, boundary[first[batch]]))
    batch, begin, end = batch[by_row], begin[by_row], end[by_row]
    gap_begin, gap_ptr = find_empty_rows(np, groups.row, rows[groups.type], classes.matrix.n_rows)
    work = _work(table, kind[first[batch]], count[batch], end - begin)
    n_interior = int(np.count_nonzero(~boundary[first[batch]]))
    interior_ptr, boundary_ptr = _chunks(work[:n_interior]), n_interior + _chunks(work[n_interior:])
    return CpuLayout(
        level=k,
        scaled=classes.scaled,
        table=table,
        row=row,
        row_type=kind,
        slot_ptr=pointers(np, lengths),
        base=groups.base[slots],
        scale=classes.leading[k][node] if classes.scaled else np.zeros(0),
        piece_group=first[batch],
        piece_count=count[batch],
        piece_begin=begin,
        piece_end=end,
        chunk_ptr=interior_ptr
        if n_interior == len(work)
        else np.concatenate((interior_ptr, boundary_ptr[1:])),
        gap_begin=gap_begin,
        gap_end=gap_begin + np.diff(gap_ptr),
        interior_chunks=0 if n_own is None else len(interior_ptr) - 1,
        stretches=found.stretches,
    )


def _stays_inside(groups: RowGroups, reach: Int64Array, n_columns: int) -> NDArray[np.bool_]:
    """Return which groups can load eight elements for every term without leaving x."""
    if len(groups) == 0:
        return np.zeros(0, bool)
    inside = (reach[:, 0] >= 0) & (reach[:, 1] <= n_columns)
    return np.logical_and.reduceat(inside, groups.ptr[:-1])


def _batches(
    row: Int64Array, kind: Int64Array, safe: NDArray[np.bool_], boundary: NDArray[np.bool_]
) -> tuple[Int64Array, Int64Array]:
    """First group and size (4, 2 or 1, or 0 for one unsafe group) of the groups to multiply together."""
    size = len(row)
    window = row // WINDOW_ROWS
    new = np.ones(size, bool)
    new[1:] = (
        (kind[1:] != kind[:-1]) | (window[1:] != window[:-1]) | ~safe[1:] | (boundary[1:] != boundary[:-1])
    )
    run = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    length = np.diff(np.append(starts, size))[run]
    position = np.arange(size) - starts[run]
    quads = length // 4 * 4
    rest, behind = length - quads, position - quads
    is_first = np.where(behind < 0, position % 4 == 0, (behind == 0) | ((behind == 2) & (rest == 3)))
    count = np.where(behind < 0, 4, np.where((behind == 0) & (rest >= 2), 2, 1))
    first = np.flatnonzero(is_first)
    return first, np.where(safe, count, 0)[first]


def _work(table: SliceTable, kind: Int64Array, count: Int64Array, slices: Int64Array) -> Float64Array:
    """Return the approximate cost of every piece, without a unit."""
    if len(kind) == 0:
        return np.zeros(0)
    terms = np.add.reduceat(table.terms_of_slices, table.ptr[:-1]) / np.diff(table.ptr)
    work: Float64Array = slices * (4.0 + terms[kind] * (1.0 + np.maximum(count, 1)))
    return work


def _chunks(work: Float64Array) -> Int64Array:
    """Cut pieces into chunks of about equal cost; a chunk more where there is nothing but gaps."""
    if len(work) == 0:
        return np.zeros(2, np.int64)
    cuts = cuts_of_equal_cost(np.cumsum(work), _CHUNKS)
    return np.unique(np.concatenate(([0], cuts, [len(work)])).astype(np.int64))


def cuts_of_equal_cost(cost: NDArray[Any], parts: int) -> Int64Array:
    """Return where to cut work into parts of about equal cost, of which `cost` has the sums.

    Returns
    -------
    ndarray, shape (parts - 1,), int64
        Ascending; equal ones are parts without work.
    """
    if len(cost) == 0:
        return np.zeros(parts - 1, np.int64)
    return np.searchsorted(cost, np.linspace(0, cost[-1], parts + 1)[1:-1])
