"""The tiles of all row types: the stages put together, from entries of classes to a table of arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu_kernels import Tuning
from gpu_kernels.compressed.tiles import LANES, PAD
from gpu_kernels.runtime.coded import owners, pointers, ranges, shares
from hybrid.base.arrays import Array, counts, scramble, to_host
from hybrid.matrix.gpu.tile_terms import (
    LayerSegments,
    Rounds,
    TileCuts,
    TileTerms,
    cut_types,
    fill_rounds,
    first_slices,
    form_segments,
    list_terms,
    slice_entries,
    split_tiles,
)
from hybrid.matrix.gpu.tuning import (
    FEW_TERMS,
    MANY_TERMS,
    LayoutOptions,
    TileShape,
    choose_shape,
    choose_slices,
)
from hybrid.matrix.injection.row_types import RowGroups, RowTypes, enumerate_groups
from hybrid.matrix.injection.submatrices import CooBlocks, class_submatrices
from mtbdd.base.records import Record
from mtbdd.offset.distributed import StackedLayers
from mtbdd.offset.states import is_all
from mtbdd.offset.tuples import numbered, stable_order

# Groups of rows that wait for elements of others, and so share no item with those that do not.


def boundary_groups(xp: Any, types: RowTypes, k: int, groups: RowGroups, own_columns: int) -> Array:
    """Return which groups of level k have a slot that ends behind the own columns, shape (groups,), bool."""
    width = xp.asarray(types.classes.matrix.columns[k])[groups.node]
    late_ptr = pointers(xp, xp.greater(groups.base + width, own_columns).astype(xp.int64))
    return late_ptr[groups.ptr[1:]] > late_ptr[groups.ptr[:-1]]


def group_counts(xp: Any, types: RowTypes, k: int, own_columns: int | None) -> list[Array]:
    """Return the number of groups of every type in each set of groups that share items.

    Returns
    -------
    list of ndarray, shape (types,), int64
        On the host: of the boundary groups and of the others, or of all groups where all columns are own
        ones.

    Notes
    -----
    Time: that of `enumerate_groups`, whose result is freed, since tiles are made before it is needed again.
    """
    level = types[k]
    if own_columns is None:
        return [level.groups]
    groups = enumerate_groups(xp, types, k)
    late = boundary_groups(xp, types, k, groups, own_columns)
    return [to_host(counts(xp, groups.type[which], level.n_types)) for which in (late, ~late)]


# The third stage of a tile: cells, the numbers of terms slice by slice, equal ones stored once.
#
# Many row types differ in values and column bases only, which live in the terms; the numbers of the terms,
# slice by slice, are then the same. With layers every unit of a cell has a *mark*: the first term of its
# layer segment in the round, whether it is the last of its segment, and of which layer, and whether it is the
# last of its cell.

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_SEEDS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)

_LAST_OF_CELL = 1 << 15
_LAYER_SHIFT = 16
"""A mark as cuda/choices.cu reads it."""


class Cells(Record, eq=False):
    """Cells and their units.

    Attributes
    ----------
    first, units : ndarray, shape (cells,), int64
        First unit and units of every cell.
    codes : ndarray, shape (units * 32 * unit,), uint8 or uint16
        Numbers of terms within their segment, [unit][lane][unit]; the largest number stands for no entry.
    marks : ndarray, shape (units,), int64, or None
        What goes with every unit; None for a single matrix. With marks one unit more than there are is at the
        end, because units are read ahead.
    """

    first: Array
    units: Array
    codes: Array
    marks: Array | None


def place_entries(
    xp: Any, tiles: TileTerms, term: Array, segments: LayerSegments, rounds: Rounds
) -> tuple[Array, Array]:
    """Return the lanes of all entries, 32 to a fine cell, ascending, and their codes, ascending in a lane.

    ``term``, shape (entries,): term of every entry. Time: O(entries log entries). Synchronises: yes.
    """
    n_terms, n_segments = len(segments.order), len(segments)
    owner, number = owners(xp, rounds.first_segment, n_segments), xp.empty(n_terms, xp.int64)
    number[segments.order] = xp.arange(n_terms) - segments.first_term[segments.owner]
    code = number[term]
    # The first slice's cell; those of other slices follow, with as many in between as the round has segments.
    first = rounds.fine[owner] + xp.arange(n_segments) - rounds.first_segment[owner]
    number[segments.order] = first[segments.owner]
    lane = number[term]
    local = tiles.row - tiles.begin[tiles.tile]
    if segments.layer is None:
        lane += xp.floor_divide(local, LANES)
    else:
        number[segments.order] = rounds.segments[owner][segments.owner]
        lane += xp.floor_divide(local, LANES) * number[term]
    lane *= LANES
    lane += xp.remainder(local, LANES)
    del local
    order = stable_order(xp, (lane, code))
    return lane[order], code[order]


def fill_cells(
    xp: Any, lane: Array, code: Array, segments: LayerSegments, rounds: Rounds, unit: int
) -> Cells:
    """Write the codes of all cells, with layers their marks, and keep one copy of equal ones.

    Parameters
    ----------
    xp : module
    lane, code : ndarray, shape (entries,), int64
        From :func:`place_entries`.
    segments : LayerSegments
    rounds : Rounds
    unit : int
        Codes that a lane reads at once: 1, 2 or 4.

    Notes
    -----
    Time: O(entries + codes + cells log cells). Synchronises: yes.
    """
    cell_ptr, codes = _write_codes(xp, lane, code, segments, rounds, unit)
    if segments.layer is None:
        first, units, kept = share_cells(xp, cell_ptr, codes, unit)
        return Cells(first, units, gather_units(codes, unit, kept), None)
    cell_ptr, marks = _mark_units(xp, cell_ptr, segments, segments.layer, rounds)
    first, units, kept = share_cells(xp, cell_ptr, codes, unit, marks)
    blank = xp.full(LANES * unit, PAD[codes.dtype.itemsize], codes.dtype)
    codes = xp.concatenate((gather_units(codes, unit, kept), blank))
    return Cells(first, units, codes, xp.concatenate((marks[kept], xp.zeros(1, xp.int64))))


def _write_codes(
    xp: Any, lane: Array, code: Array, segments: LayerSegments, rounds: Rounds, unit: int
) -> tuple[Array, Array]:
    """Return the first units of all fine cells, and the codes: bytes if no segment has over 255 terms."""
    n_cells, most_terms = int(rounds.fine[-1]), int(segments.terms.max()) if len(segments) else 0
    # The position of an entry: how many of its row come before it.
    in_lane = counts(xp, lane, n_cells * LANES)
    position = xp.arange(len(lane)) - pointers(xp, in_lane)[lane]
    width = in_lane.reshape(n_cells, LANES).max(axis=1) if n_cells else xp.zeros(0, xp.int64)
    cell_ptr = pointers(xp, shares(xp, width, unit))
    code_type = xp.uint8 if most_terms <= PAD[1] else xp.uint16
    codes = xp.full(int(cell_ptr[-1]) * LANES * unit, PAD[xp.dtype(code_type).itemsize], code_type)
    units = cell_ptr[xp.floor_divide(lane, LANES)] + xp.floor_divide(position, unit)
    place = xp.multiply(units, LANES) + xp.remainder(lane, LANES)
    codes[xp.multiply(place, unit) + xp.remainder(position, unit)] = code.astype(code_type)
    return cell_ptr, codes


def _mark_units(
    xp: Any, fine_ptr: Array, segments: LayerSegments, layer: Array, rounds: Rounds
) -> tuple[Array, Array]:
    """Return the first units of cells, whose segments are now together, and the marks of the units."""
    n_fine, n_units, n_cells = len(fine_ptr) - 1, int(fine_ptr[-1]), int(rounds.cell[-1])
    fine, first_segment = rounds.fine, rounds.first_segment
    cell = owners(xp, fine_ptr, n_units)
    own = owners(xp, fine, n_fine)[cell]
    # A round without segments has no unit.
    segment = first_segment[own] + (cell - fine[own]) % rounds.segments[own]
    ends = xp.arange(1, n_units + 1) == fine_ptr[1:][cell]
    marks = segments.first_term[segment] - segments.first_term[first_segment[own]]
    marks += ends * xp.left_shift(xp.add(layer[segment], 1), _LAYER_SHIFT)

    own = owners(xp, rounds.cell, n_cells)
    first = fine[own] + (xp.arange(n_cells) - rounds.cell[own]) * rounds.segments[own]
    cell_ptr = xp.concatenate((fine_ptr[first], fine_ptr[-1:]))
    filled = cell_ptr[1:] > cell_ptr[:-1]
    marks[xp.subtract(cell_ptr[1:][filled], 1)] += _LAST_OF_CELL
    return cell_ptr, marks


def gather_units(codes: Array, unit: int, kept: Array) -> Array:
    """Return the term numbers of some units."""
    if len(kept) == 0:
        return codes[:0]
    return codes.reshape(-1, LANES * unit)[kept].reshape(-1)


def share_cells(
    xp: Any, cell_ptr: Array, codes: Array, unit: int, marks: Array | None = None
) -> tuple[Array, Array, Array]:
    """Find cells with equal term numbers, of which one copy is enough.

    Parameters
    ----------
    xp : module
    cell_ptr : ndarray, shape (cells + 1,), int64
        Units of every cell.
    codes : ndarray, shape (units * 32 * unit,), uint8 or uint16
        Term numbers, [unit][lane][unit].
    unit : int
        Term numbers that a lane reads at once: 1, 2 or 4.
    marks : ndarray, shape (units,), int64, optional
        What goes with a unit; cells are equal if their units' marks are, too.

    Returns
    -------
    cell_unit, cell_units : ndarray, shape (cells,), int64
        First unit and units of every cell, among the kept ones.
    kept : ndarray, shape (kept units,), int64
        Units of the distinct cells, in the order of their first occurrence.

    Notes
    -----
    Cells are compared by a 64-bit hash and each is then checked against the one it would share with; should a
    hash collide, nothing is shared. Time: O(codes + cells log cells). Synchronises: yes.
    """
    cells, total = len(cell_ptr) - 1, len(codes) // (LANES * unit)
    units = cell_ptr[1:] - cell_ptr[:-1]
    if total == 0:
        return cell_ptr[:-1], units, xp.zeros(0, xp.int64)
    owner = owners(xp, cell_ptr, total)
    words = codes.view(_WORDS[codes.dtype.itemsize * unit]).reshape(total, LANES)
    hashes = _hash_units(xp, words, xp.arange(total) - cell_ptr[owner])
    if marks is not None:
        hashes = scramble(xp, hashes ^ scramble(xp, marks.astype(xp.uint64)))
    running = xp.zeros(total + 1, xp.uint64)
    xp.cumsum(hashes, out=running[1:])
    keys = running[cell_ptr[1:]] - running[cell_ptr[:-1]]
    first, inverse = numbered(xp, keys)
    twin = first[inverse]
    source, _ = ranges(xp, cell_ptr[twin], cell_ptr, total)
    same = is_all(units == units[twin]) and is_all((words[source] == words).ravel())
    if not same or (marks is not None and not is_all(marks[source] == marks)):
        return cell_ptr[:-1], units, xp.arange(total)
    chosen = xp.sort(first)
    kept_ptr = pointers(xp, units[chosen])
    kept, _ = ranges(xp, cell_ptr[chosen], kept_ptr, int(kept_ptr[-1]))
    place = xp.zeros(cells, xp.int64)
    place[chosen] = kept_ptr[:-1]
    return place[twin], units, kept


def _hash_units(xp: Any, words: Array, position: Array) -> Array:
    key = words.astype(xp.uint64)
    lane = xp.multiply(xp.arange(LANES, dtype=xp.uint64), xp.uint64(_SEEDS[0]))
    key ^= lane
    key = scramble(xp, key)
    per_unit = key.sum(axis=1, dtype=xp.uint64)
    return scramble(xp, per_unit + xp.multiply(position.astype(xp.uint64), xp.uint64(_SEEDS[1])))


_SPREAD = 4 * LANES
"""Rows up to which a tile is not split for its entries alone: a slice for every warp of a block."""


class TileTable(Record, eq=False):
    """The tiles of all row types, not yet packed for the kernel; index arrays are int64.

    Attributes
    ----------
    type_tile : ndarray, shape (types + 1,)
        Tiles of type t are ``type_tile[t] .. type_tile[t + 1]``.
    begin, rows : ndarray, shape (tiles,)
        First row of a tile within its type, and its rows.
    round_ptr : ndarray, shape (tiles + 1,)
        Rounds of every tile, at least one.
    term_ptr, round_cell : ndarray, shape (rounds + 1,)
        First term and first cell of every round.
    unit : int
        Term numbers that a lane reads at once.
    cells : Cells
        With marks if there are layers.
    term_slot, term_shift, term_value : ndarray, shape (terms,)
        Slot, local column minus local row, and number of the value of every term.
    values : ndarray, shape (values,), float64
        The distinct values.
    """

    type_tile: Array
    begin: Array
    rows: Array
    round_ptr: Array
    term_ptr: Array
    round_cell: Array
    unit: int
    cells: Cells
    term_slot: Array
    term_shift: Array
    term_value: Array
    values: Array


@dataclass(eq=False)
class CutTiles:
    """Tiles with their terms in order, and not yet with cells.

    Attributes
    ----------
    tiles : TileTerms
    term : ndarray, shape (entries,), int64
        The term of every entry; `fill_tiles` empties it, because it is as long as the entries.
    segments : LayerSegments
    """

    tiles: TileTerms
    term: Array
    segments: LayerSegments

    @property
    def mean_terms(self) -> float:
        """Terms of a tile, on average; 0 where there are no tiles."""
        return len(self.tiles.term_tile) / max(len(self.tiles.begin), 1)


def cut_tiles(
    xp: Any, types: RowTypes, k: int, entries: CooBlocks, shape: TileShape, slot_layer: Array | None = None
) -> CutTiles | None:
    """Cut the row types of level k into tiles; with layers no tile is too large.

    Parameters
    ----------
    xp : module
        Array module of ``entries`` and of the result.
    types : RowTypes
        Row types of the matrix; with layers, of the stacked matrix, blocks shared when equal.
    k : int
        Level.
    entries : CooBlocks
        Entries of one submatrix a class.
    shape : TileShape
        Sizes.
    slot_layer : ndarray, shape (slots of the level's types,), int64, optional
        Layer of every slot; left out for a single matrix.

    Returns
    -------
    CutTiles or None
        None if some layer segment of 32 rows has more terms than a round may have.

    Notes
    -----
    Time: O(E log E) for E entries of all row types. Synchronises: yes.
    """
    begun = cut_types(xp, types, k, shape.slices)
    if slot_layer is not None:
        begun = _cut_full(xp, begun, slice_entries(xp, types, k, entries, begun), shape)
    cuts: TileCuts | None = begun
    while cuts is not None:
        tiles, term = list_terms(xp, types, k, entries, cuts)
        segments = form_segments(xp, tiles, term, shape.terms, slot_layer)
        if slot_layer is None:
            return CutTiles(tiles, term, segments)
        crowded = owners(xp, segments.tile_ptr, len(segments))[xp.greater(segments.terms, shape.terms)]
        if len(crowded) == 0:
            return CutTiles(tiles, term, segments)
        large = xp.zeros(len(tiles.begin), bool)
        large[crowded] = True
        # Fewer rows have fewer terms; the other tiles stay as they are.
        cuts = split_tiles(xp, cuts, xp.flatnonzero(large))
        # Not beside those that are listed next.
        del tiles, term, segments, crowded, large
    return None


def _cut_full(xp: Any, cuts: TileCuts, entries: Array, shape: TileShape) -> TileCuts:
    """Cut tiles in halves until those of many rows have no more entries than a tile should.

    ``entries``, shape (slices,): how many every slice has.  This is done before terms are listed, because
    listing takes long.
    """
    running = pointers(xp, entries)
    while True:
        first = first_slices(xp, cuts)
        large = xp.greater(running[first[1:]] - running[first[:-1]], shape.entries)
        large &= xp.greater(xp.multiply(first[1:] - first[:-1], LANES), _SPREAD)
        large = xp.flatnonzero(large)
        if len(large) == 0:
            return cuts
        split = split_tiles(xp, cuts, large)
        assert split is not None  # a tile of more than _SPREAD rows has several slices
        cuts = split


def fill_tiles(xp: Any, found: CutTiles, shape: TileShape) -> TileTable:
    """Give tiles their rounds and cells.

    Parameters
    ----------
    xp : module
    found : CutTiles
    shape : TileShape
        Sizes, those with which the tiles were cut.

    Notes
    -----
    Time: O(E log E) for E entries of all row types. Synchronises: yes.
    """
    tiles, segments = found.tiles, found.segments
    rounds = fill_rounds(xp, tiles, segments, shape.terms)
    lane, code = place_entries(xp, tiles, found.term, segments, rounds)
    found.term = xp.zeros(0, xp.int64)
    return TileTable(
        type_tile=tiles.type_tile,
        begin=tiles.begin,
        rows=tiles.rows,
        round_ptr=rounds.ptr,
        term_ptr=segments.first_term[rounds.first_segment],
        round_cell=rounds.cell,
        unit=shape.unit,
        cells=fill_cells(xp, lane, code, segments, rounds, shape.unit),
        term_slot=tiles.term_slot[segments.order],
        term_shift=tiles.term_shift[segments.order],
        term_value=tiles.term_value[segments.order],
        values=tiles.values,
    )


def build_tile_table(
    xp: Any,
    types: RowTypes,
    k: int,
    chosen: LayoutOptions,
    tuning: Tuning,
    room: int,
    stacked: StackedLayers | None,
    own_columns: int | None,
) -> TileTable | None:
    """Build tiles whose rounds have as many terms as there is room for.

    Parameters
    ----------
    xp : module
        Array module of the result.
    types, k, stacked, own_columns
        See :func:`hybrid.matrix.gpu.tile_layout.build_tile_matrix`.
    chosen : LayoutOptions
    tuning : Tuning
    room : int
        Terms of a round that fast memory holds.

    Returns
    -------
    TileTable or None
        None as of `build_tile_matrix`.

    Notes
    -----
    Tiles are cut a second time where their terms show that another size is better.
    Time: O(E log E) for E entries of all row types. Synchronises: yes.
    """
    classes, slot_layer, rows = types.classes, None, types.classes.matrix.n_rows
    entries = class_submatrices(xp, classes, k, np.int64)
    if entries is None:
        return None
    if stacked is not None:
        class_layer = stacked.layer_of_nodes(k)[classes.representative[k]]
        slot_layer, rows = xp.asarray(class_layer[types[k].blocks]), rows * stacked.layers
    shape = choose_shape(chosen, rows, classes.matrix.n_entries, room)
    found = cut_tiles(xp, types, k, entries, shape, slot_layer)
    if found is None:
        return None
    if stacked is None and chosen.slices is None and 0 < found.mean_terms <= MANY_TERMS:
        apart, few = group_counts(xp, types, k, own_columns), found.mean_terms <= FEW_TERMS
        slices = choose_slices(types[k].rows, apart, tuning, chosen.turns, few)
        if slices != shape.slices:
            del found  # not beside those that are cut next
            shape = replace(shape, slices=slices)
            found = cut_tiles(xp, types, k, entries, shape)
    return None if found is None else fill_tiles(xp, found, shape)
