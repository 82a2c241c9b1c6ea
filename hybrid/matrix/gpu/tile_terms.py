"""Row types cut into tiles, and the entries of every tile brought together in terms."""

from __future__ import annotations

from typing import Any

from gpu_kernels.compressed.tiles import LANES
from gpu_kernels.runtime.coded import owners, pointers, ranges, shares
from hybrid.base.arrays import Array, counts, distinct_values, sums
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.injection.submatrices import CooBlocks
from mtbdd.base.records import Record
from mtbdd.offset.tuples import distinct, stable_order


class TileCuts(Record, eq=False):
    """Cuts of row types into tiles; their slices of 32 rows are numbered type after type.

    Attributes
    ----------
    type_slice : ndarray, shape (types + 1,), int64
        First slice of every row type.
    begins : ndarray, shape (slices,), bool
        Whether a tile begins with the slice.
    """

    type_slice: Array
    begins: Array


class TileTerms(Record, eq=False):
    """Tiles, their entries and their terms; all arrays int64 but the values.

    Entries of a tile that agree in slot, shift and value are one term.

    Attributes
    ----------
    type_tile : ndarray, shape (types + 1,)
        First tile of every row type.
    begin, rows : ndarray, shape (tiles,)
        First row of a tile within its type, and its rows.
    tile, row : ndarray, shape (entries,)
        Tile of an entry, and its row within the type.
    term_tile, term_place, term_slot, term_shift, term_value : ndarray, shape (terms,)
        Tile of a term, its slot in the list of all types' slots and within its type, local column minus local
        row, and the number of its value.
    values : ndarray, shape (values,), float64
        Distinct values.
    """

    type_tile: Array
    begin: Array
    rows: Array
    tile: Array
    row: Array
    term_tile: Array
    term_place: Array
    term_slot: Array
    term_shift: Array
    term_value: Array
    values: Array


def cut_types(xp: Any, types: RowTypes, k: int, slices: int) -> TileCuts:
    """Cut the row types of level k into tiles of so many slices, the last of a type smaller."""
    type_slice = pointers(xp, shares(xp, xp.asarray(types[k].rows), LANES))
    total = int(type_slice[-1])
    own = xp.arange(total) - type_slice[owners(xp, type_slice, total)]
    return TileCuts(type_slice, xp.equal(xp.remainder(own, slices), 0))


def slice_entries(xp: Any, types: RowTypes, k: int, entries: CooBlocks, cuts: TileCuts) -> Array:
    """Return how many entries the slices of the row types of level k have, shape (slices,), int64.

    The entries of every class are counted slice by slice, and these numbers are added up over the slots of a
    type: an entry is examined once a class, and not once a slot.

    Notes
    -----
    Time: O(entries of one submatrix a class + slices of all slots). Synchronises: yes.
    """
    level = types[k]
    # All blocks of a type have its rows, and its slices.
    class_ptr = pointers(xp, shares(xp, xp.asarray(entries.n_rows), LANES))
    owner = owners(xp, entries.ptr, len(entries.row))
    of_class = counts(xp, class_ptr[owner] + xp.floor_divide(entries.row, LANES), int(class_ptr[-1]))
    block = xp.asarray(level.blocks).astype(xp.int64)
    slot_type = owners(xp, xp.asarray(level.ptr), len(block))
    slices = cuts.type_slice[1:] - cuts.type_slice[:-1]
    slot_ptr = pointers(xp, slices[slot_type])
    source, slot = ranges(xp, class_ptr[block], slot_ptr, int(slot_ptr[-1]))
    place = source - class_ptr[block[slot]] + cuts.type_slice[slot_type[slot]]
    return sums(xp, place, of_class[source], len(cuts.begins))


def first_slices(xp: Any, cuts: TileCuts) -> Array:
    """Return the first slice of every tile, and behind them the number of slices, shape (tiles + 1,)."""
    return xp.concatenate((xp.flatnonzero(cuts.begins), xp.full(1, len(cuts.begins), xp.int64)))


def split_tiles(xp: Any, cuts: TileCuts, tiles: Array) -> TileCuts | None:
    """Cut some tiles in halves; None if one of them has a single slice.

    Notes
    -----
    Synchronises: yes.
    """
    first = first_slices(xp, cuts)
    slices = first[1:][tiles] - first[tiles]
    if int(slices.min()) == 1:
        return None
    begins = cuts.begins.copy()
    begins[first[tiles] + xp.floor_divide(slices, 2)] = True
    return TileCuts(cuts.type_slice, begins)


def list_terms(
    xp: Any, types: RowTypes, k: int, entries: CooBlocks, cuts: TileCuts
) -> tuple[TileTerms, Array]:
    """List the tiles of the row types of level k, and find their terms.

    Parameters
    ----------
    xp : module
        Array module of ``entries`` and of the result.
    types : RowTypes
    k : int
        Level.
    entries : CooBlocks
        Entries of one submatrix a class.
    cuts : TileCuts

    Returns
    -------
    tiles : TileTerms
    term : ndarray, shape (entries,)
        The term of every entry; apart, because it is as long as the entries and soon no longer needed.

    Notes
    -----
    Time: O(E log E) for E entries of all row types. Synchronises: yes.
    """
    level = types[k]
    rows, type_slice = xp.asarray(level.rows), cuts.type_slice
    slice_tile = xp.subtract(xp.cumsum(cuts.begins), 1)
    first = xp.flatnonzero(cuts.begins)
    tile_type = owners(xp, type_slice, len(cuts.begins))[first]
    type_tile = xp.concatenate((slice_tile[type_slice[:-1]], xp.full(1, len(first), xp.int64)))
    begin = xp.multiply(first - type_slice[tile_type], LANES)
    end = xp.concatenate((begin[1:], begin[:1]))
    # The last tile of a type ends with it.
    tile_rows = xp.where(end > begin, end, rows[tile_type]) - begin

    # One item an entry of a type: its class's entries for every slot.
    slot_ptr = xp.asarray(level.ptr)
    n_slots = len(level.blocks)
    slot_type = owners(xp, slot_ptr, n_slots)
    slot = xp.arange(n_slots) - slot_ptr[slot_type]
    block = xp.asarray(level.blocks).astype(xp.int64)
    item_ptr = pointers(xp, (entries.ptr[1:] - entries.ptr[:-1])[block])
    source, place = ranges(xp, entries.ptr[block], item_ptr, int(item_ptr[-1]))
    row = entries.row[source]
    kind = slot_type[place]
    tile = slice_tile[type_slice[kind] + xp.floor_divide(row, LANES)]
    shift = entries.column[source] - row
    values, number = distinct_values(xp, entries.value)
    first, term = distinct(xp, (tile, slot[place], shift, number[source]))
    term_place = place[first]
    tiles = TileTerms(
        type_tile=type_tile,
        begin=begin,
        rows=tile_rows,
        tile=tile,
        row=row,
        term_tile=tile[first],
        term_place=term_place,
        term_slot=slot[term_place],
        term_shift=shift[first],
        term_value=number[source[first]],
        values=values,
    )
    return tiles, term


# The second stage of a tile: its terms in order, in layer segments, and these in rounds.
#
# A *layer segment* is the terms of one layer in a tile, and a round is as many of them as fit into fast
# memory. A single matrix has one layer; a segment of more terms than fast memory holds is then cut, and every
# round has one. With layers no segment may be cut, since the best over the layers is taken segment by
# segment: tiles are halved until every segment fits.


class LayerSegments(Record, eq=False):
    """The terms of all tiles in order, and the layer segments that they form; int64 arrays.

    Attributes
    ----------
    order : ndarray, shape (terms,)
        The terms in the order of tile, layer and frequency.
    owner : ndarray, shape (terms,)
        Segment of every term, in that order.
    first_term : ndarray, shape (segments + 1,)
        First term of every segment, in that order.
    tile_ptr : ndarray, shape (tiles + 1,)
        First segment of every tile.
    layer : ndarray, shape (segments,), or None
        Layer of every segment; None for a single matrix.
    """

    order: Array
    owner: Array
    first_term: Array
    tile_ptr: Array
    layer: Array | None

    def __len__(self) -> int:
        return len(self.first_term) - 1

    @property
    def terms(self) -> Array:
        """Terms of every segment, shape (segments,)."""
        return self.first_term[1:] - self.first_term[:-1]


class Rounds(Record, eq=False):
    """The rounds of all tiles; int64 arrays.

    Cells are numbered twice: `cell` counts one for every slice of a round, `fine` one for every slice and
    segment, the segments of a slice side by side. Where every round has one segment they are the same.

    Attributes
    ----------
    ptr : ndarray, shape (tiles + 1,)
        Rounds of every tile, at least one, so that rows without entries are written too.
    first_segment, cell, fine : ndarray, shape (rounds + 1,)
        First segment and first cells of every round.
    """

    ptr: Array
    first_segment: Array
    cell: Array
    fine: Array

    @property
    def segments(self) -> Array:
        """Segments of every round, shape (rounds,)."""
        return self.first_segment[1:] - self.first_segment[:-1]


def form_segments(
    xp: Any, tiles: TileTerms, term: Array, most_terms: int, slot_layer: Array | None
) -> LayerSegments:
    """Put terms in order, frequent ones first, so that neighbouring rows list them at the same positions.

    Parameters
    ----------
    xp : module
    tiles : TileTerms
    term : ndarray, shape (entries,), int64
        Term of every entry.
    most_terms : int
        Terms of a segment at most; heeded for a single matrix alone, whose tiles have one segment at least.
    slot_layer : ndarray, shape (slots of the level's types,), int64, or None
        Layer of every slot; None for a single matrix.

    Notes
    -----
    Time: O(entries + t log t) for t terms. Synchronises: yes.
    """
    n_tiles, n_terms = len(tiles.begin), len(tiles.term_tile)
    count = counts(xp, term, n_terms)
    if slot_layer is None:
        order = stable_order(xp, (tiles.term_tile, -count))
        per_tile = counts(xp, tiles.term_tile, n_tiles)
        tile_ptr = pointers(xp, xp.maximum(shares(xp, per_tile, most_terms), 1))
        # Terms are listed tile after tile, and so they stay.
        position = xp.arange(n_terms) - pointers(xp, per_tile)[tiles.term_tile]
        owner, layer = tile_ptr[tiles.term_tile] + xp.floor_divide(position, most_terms), None
    else:
        layer = slot_layer[tiles.term_place]
        order = stable_order(xp, (tiles.term_tile, layer, -count))
        layer = layer[order]
        first, owner = distinct(xp, (tiles.term_tile, layer))
        tile_ptr, layer = pointers(xp, counts(xp, tiles.term_tile[first], n_tiles)), layer[first]
    first_term = pointers(xp, counts(xp, owner, int(tile_ptr[-1])))
    return LayerSegments(order, owner, first_term, tile_ptr, layer)


def fill_rounds(xp: Any, tiles: TileTerms, segments: LayerSegments, most_terms: int) -> Rounds:
    """Put the segments of every tile into rounds of so many terms at most, and number their cells.

    Notes
    -----
    Time: O(segments), in as many sweeps as some tile has segments, which is the number of layers at most; in
    one for a single matrix. Synchronises: yes.
    """
    if segments.layer is None:
        ptr, first_segment = segments.tile_ptr, xp.arange(len(segments) + 1)
    else:
        ptr, first_segment = _pack_segments(xp, segments.tile_ptr, segments.terms, most_terms)
    slices = shares(xp, tiles.rows, LANES)[owners(xp, ptr, len(first_segment) - 1)]
    cell = fine = pointers(xp, slices)
    if segments.layer is not None:
        fine = pointers(xp, slices * (first_segment[1:] - first_segment[:-1]))
    return Rounds(ptr, first_segment, cell, fine)


def _pack_segments(xp: Any, tile_ptr: Array, terms: Array, most_terms: int) -> tuple[Array, Array]:
    """Return the rounds of every tile and their first segments, each round as full as it can be."""
    n_tiles = len(tile_ptr) - 1
    segments = tile_ptr[1:] - tile_ptr[:-1]
    begins = xp.zeros(len(terms) + 1, bool)
    filled = xp.full(n_tiles, most_terms + 1, xp.int64)
    for position in range(int(segments.max()) if n_tiles else 0):
        there = xp.flatnonzero(xp.greater(segments, position))
        number = xp.add(tile_ptr[there], position)
        together = filled[there] + terms[number]
        new = xp.greater(together, most_terms)
        begins[number] = new
        filled[there] = xp.where(new, terms[number], together)
    before = xp.cumsum(begins) - begins
    own = before[tile_ptr[1:]] - before[tile_ptr[:-1]]
    # A tile without entries has a round without segments.
    round_ptr = pointers(xp, xp.maximum(own, 1))
    starts = xp.flatnonzero(begins)
    n_rounds = int(round_ptr[-1])
    round_tile = owners(xp, round_ptr, n_rounds)
    step = xp.arange(n_rounds) - round_ptr[round_tile]
    real = xp.flatnonzero(xp.greater(own[round_tile], 0))
    first_segment = tile_ptr[round_tile]
    first_segment[real] = starts[before[tile_ptr[:-1]][round_tile[real]] + step[real]]
    return round_ptr, xp.concatenate((first_segment, tile_ptr[-1:]))
