"""Row types cut into tiles, and the entries of every tile brought together in terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpu_kernels.tiles import LANES
from hybrid.gpu.arrays import Array, distinct, distinct_values, owners, pointers, ranges
from hybrid.gpu.expansion import ClassEntries
from hybrid.injection.row_types import RowTypes

__all__ = ["TileTerms", "list_terms"]


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
    values : ndarray, float64
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


def list_terms(
    xp: Any, types: RowTypes, k: int, entries: ClassEntries, slices: int
) -> tuple[TileTerms, Array]:
    """Cut the row types of level k into tiles of at most ``slices`` slices of 32 rows, and find their terms.

    Parameters
    ----------
    xp : module
        Array module of ``entries`` and of the result.
    types : RowTypes
    k : int
        Level.
    entries : ClassEntries
        Entries of one submatrix a class.
    slices : int

    Returns
    -------
    tiles : TileTerms
    term : ndarray, shape (entries,)
        The term of every entry; apart, because it is as long as the entries and soon no longer needed.

    Notes
    -----
    Time: O(E log E) for E entries of all row types. Synchronises: yes.
    """
    level = types.levels[k]
    rows, tile_rows = xp.asarray(types.rows_of_types(k)), slices * LANES
    type_tile = pointers(xp, -(-rows // tile_rows))
    n_tiles = int(type_tile[-1])
    tile_type = owners(xp, type_tile, n_tiles)
    begin = (xp.arange(n_tiles) - type_tile[tile_type]) * tile_rows

    # One item an entry of a type: its class's entries for every slot.
    slot_ptr = xp.asarray(level.ptr)
    n_slots = len(level.blocks)
    slot_type = owners(xp, slot_ptr, n_slots)
    slot = xp.arange(n_slots) - slot_ptr[slot_type]
    block = xp.asarray(level.blocks).astype(xp.int64)
    item_ptr = pointers(xp, (entries.ptr[1:] - entries.ptr[:-1])[block])
    source, place = ranges(xp, entries.ptr[block], item_ptr, int(item_ptr[-1]))
    row = entries.row[source]
    tile = type_tile[slot_type[place]] + row // tile_rows
    shift = entries.column[source] - row
    values, number = distinct_values(xp, entries.value)
    first, term = distinct(xp, (tile, slot[place], shift, number[source]))
    term_place = place[first]
    tiles = TileTerms(
        type_tile=type_tile,
        begin=begin,
        rows=xp.minimum(rows[tile_type] - begin, tile_rows),
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
