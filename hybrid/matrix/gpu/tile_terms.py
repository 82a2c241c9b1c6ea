"""Row types cut into tiles, and the entries of every tile brought together in terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpu_kernels.compressed.tiles import LANES
from gpu_kernels.runtime.ragged import owners, pointers, ranges, shares
from hybrid.base.arrays import Array, counts, distinct_values, sums
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.injection.submatrices import CooBlocks
from mtbdd.offset.tuples import distinct


@dataclass(frozen=True, eq=False)
class TileCuts:
    """Where row types are cut into tiles; their slices of 32 rows are numbered type after type.

    Attributes
    ----------
    type_slice : ndarray, shape (types + 1,), int64
        First slice of every row type.
    begins : ndarray, shape (slices,), bool
        Whether a tile begins with the slice.
    """

    type_slice: Array
    begins: Array


@dataclass(frozen=True, eq=False)
class TileTerms:
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
    type: an entry is looked at once a class, and not once a slot.

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
