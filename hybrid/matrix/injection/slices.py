"""Slices: eight consecutive rows of a row type, stored as a list of short diagonals.

In the matrices of probabilistic models most entries lie on diagonals: neighbouring states take the same
command to targets that are the same distance away. So the rows of a row type are cut into slices of eight,
the width of a vector register. The entries of a slice with equal slot and equal ``column - row`` form one
*term*: eight coefficients, zero where a row has no such entry. It multiplies eight consecutive elements of x.

A term says nothing about where it lies, so equal terms and equal lists of terms are stored once for the whole
matrix. The coefficient vectors are in one dictionary, the lists (*patterns*) in another. What remains of a
row type is one pattern number for every eight rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.base.arrays import concatenated_ranges, distinct_lists
from hybrid.base.errors import OptionError
from hybrid.matrix.injection.row_types import RowTypeLevel
from hybrid.matrix.injection.submatrices import CooBlocks
from mtbdd.base.records import Record
from mtbdd.offset.tuples import distinct_rows

WIDTH = 8
"""Rows of a slice: one 512-bit register of doubles, two of 256 bits, four of 128."""

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
Float64Array = NDArray[np.float64]


class SliceTable(Record, eq=False):
    """The rows of all row types of one level, in slices.

    Attributes
    ----------
    rows : ndarray, shape (types,), int64
        Rows of each type.
    ptr : ndarray, shape (types + 1,), int64
        Slices of type t are ``ptr[t] .. ptr[t + 1]``.
    pattern : ndarray, shape (slices,), int32
        Pattern of every slice.
    pattern_ptr : ndarray, shape (patterns + 1,), int64
        Terms of pattern p are ``pattern_ptr[p] .. pattern_ptr[p + 1]``.
    slot : ndarray, shape (terms,), int32
        Slot of the group whose column base a term uses.
    shift : ndarray, shape (terms,), int32
        Local column minus local row of a term.
    vector : ndarray, shape (terms,), int32
        Coefficient vector of a term.
    coefficients : ndarray, shape (vectors, 8), float64
        The distinct coefficient vectors.
    reach : ndarray, shape (classes, 2), int64
        The half-open range of local columns, dead lanes included, that the terms of a class touch.
    """

    rows: Int64Array
    ptr: Int64Array
    pattern: Int32Array
    pattern_ptr: Int64Array
    slot: Int32Array
    shift: Int32Array
    vector: Int32Array
    coefficients: Float64Array
    reach: Int64Array

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (
            self.rows,
            self.ptr,
            self.pattern,
            self.pattern_ptr,
            self.slot,
            self.shift,
            self.vector,
            self.coefficients,
        )
        return sum(a.nbytes for a in arrays)

    @property
    def terms_of_slices(self) -> Int64Array:
        """Terms of every slice, shape (slices,)."""
        return np.diff(self.pattern_ptr)[self.pattern]


def build_slices(level: RowTypeLevel, rows: Int64Array, blocks: CooBlocks) -> SliceTable:
    """Cut the row types of a level into slices.

    Parameters
    ----------
    level : RowTypeLevel
        Row types of the level.
    rows : ndarray, shape (types,), int64
        Rows of each type.
    blocks : CooBlocks
        Contents of the classes of the level, indexed by class.

    Returns
    -------
    SliceTable
        Slices, patterns, terms and coefficient vectors.

    Raises
    ------
    ValueError
        If a submatrix has 2**31 or more rows or columns.

    Notes
    -----
    Time: O(E log E + S log S) for E entries of all classes and S slices summed over the slots of all types:
    the slices of a class are made once and serve every type that has the class in a slot.
    """
    widest = max(int(blocks.n_rows.max(initial=0)), int(blocks.n_columns.max(initial=0)))
    if widest >= 2**31:
        raise OptionError(
            f"a submatrix of this level has {widest} rows or columns and slices hold fewer than 2**31; "
            "choose a deeper level"
        )
    parts = _slices_of_classes(blocks)
    counts = -(-rows // WIDTH)
    ptr = pointers(np, counts)
    # One item per (type, slice, slot), in that order.
    lengths = level.lengths
    owner = np.repeat(np.arange(level.n_types), counts)
    within = np.arange(len(owner)) - ptr[owner]
    item_counts = lengths[owner]
    items = concatenated_ranges(level.ptr[owner], item_counts)
    slice_of = np.repeat(np.arange(len(owner)), item_counts)
    part = parts.pattern[parts.slice_ptr[level.blocks[items]] + within[slice_of]]
    kept = np.flatnonzero(part != parts.empty)
    slot = (items - level.ptr[owner[slice_of]])[kept].astype(np.int32)
    part = part[kept]
    list_ptr = pointers(np, np.bincount(slice_of[kept], minlength=len(owner)))
    first, pattern = distinct_lists(list_ptr, (slot, part))
    list_lengths = np.diff(list_ptr)[first]
    chosen = concatenated_ranges(list_ptr[first], list_lengths)
    term_counts = np.diff(parts.pattern_ptr)[part[chosen]]
    terms = concatenated_ranges(parts.pattern_ptr[part[chosen]], term_counts)
    per_pattern = np.bincount(
        np.repeat(np.arange(len(first)), list_lengths), weights=term_counts, minlength=len(first)
    )
    return SliceTable(
        rows=rows,
        ptr=ptr,
        pattern=pattern.astype(np.int32),
        pattern_ptr=pointers(np, per_pattern.astype(np.int64)),
        slot=np.repeat(slot[chosen], term_counts),
        shift=parts.shift[terms].astype(np.int32),
        vector=parts.vector[terms],
        coefficients=parts.coefficients,
        reach=parts.reach,
    )


class _ClassSlices(Record, eq=False):
    """Slices of the classes: like a SliceTable, with one slot."""

    slice_ptr: Int64Array
    pattern: Int64Array
    empty: int
    pattern_ptr: Int64Array
    shift: Int64Array
    vector: Int32Array
    coefficients: Float64Array
    reach: Int64Array


def _slices_of_classes(blocks: CooBlocks) -> _ClassSlices:
    slice_ptr = pointers(np, -(-blocks.n_rows // WIDTH))
    n_slices = int(slice_ptr[-1])
    block = np.repeat(np.arange(len(blocks)), np.diff(blocks.ptr))
    local_row = blocks.row.astype(np.int64)
    own_slice = slice_ptr[block] + local_row // WIDTH
    shift = blocks.column.astype(np.int64) - local_row
    first, term = distinct_rows((own_slice, shift))
    lanes = np.zeros((len(first), WIDTH))
    lanes[term, local_row % WIDTH] = blocks.value
    coefficients, vector = _distinct_vectors(lanes)
    term_slice, term_shift = own_slice[first], shift[first]
    list_ptr = pointers(np, np.bincount(term_slice, minlength=n_slices))
    chosen, pattern = distinct_lists(list_ptr, (term_shift, vector))
    lengths = np.diff(list_ptr)[chosen]
    kept = concatenated_ranges(list_ptr[chosen], lengths)
    empty = np.flatnonzero(lengths == 0)
    # The columns that a term touches run from the first lane's to the last lane's, live or not.
    begin = term_shift + (term_slice - slice_ptr[block[first]]) * WIDTH
    reach = np.zeros((len(blocks), 2), np.int64)
    if len(blocks):
        starts = np.flatnonzero(np.diff(block[first], prepend=-1))
        reach[:, 0] = np.minimum.reduceat(begin, starts)
        reach[:, 1] = np.maximum.reduceat(begin, starts) + WIDTH
    return _ClassSlices(
        slice_ptr,
        pattern,
        int(empty[0]) if len(empty) else -1,
        pointers(np, lengths),
        term_shift[kept],
        vector[kept].astype(np.int32),
        coefficients,
        reach,
    )


def _distinct_vectors(lanes: Float64Array) -> tuple[Float64Array, Int64Array]:
    """Return the distinct rows of an array of doubles and the number of every row's."""
    if len(lanes) == 0:
        return np.zeros((0, WIDTH)), np.zeros(0, np.int64)
    values, number = np.unique(lanes, return_inverse=True)
    number = number.reshape(lanes.shape)
    first, inverse = distinct_rows([number[:, lane] for lane in range(WIDTH)])
    return values[number[first]], inverse
