"""The tiles of all row types: the stages put together, from entries of classes to a table of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpu_kernels.ragged import owners
from gpu_kernels.tiles import LANES
from hybrid.core.arrays import Array, counts
from hybrid.gpu.tile_cells import Cells, fill_cells, place_entries
from hybrid.gpu.tile_rounds import LayerSegments, fill_rounds, form_segments
from hybrid.gpu.tile_terms import TileCuts, TileTerms, cut_types, list_terms, split_tiles
from hybrid.gpu.tuning import TileShape
from hybrid.injection.row_types import RowTypes
from hybrid.injection.submatrices import CooBlocks

_SPREAD = 4 * LANES
"""Rows up to which a tile is not split for its entries alone: a slice for every warp of a block."""


@dataclass(frozen=True, eq=False)
class TileTable:
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


def build_tiles(
    xp: Any, types: RowTypes, k: int, entries: CooBlocks, shape: TileShape, slot_layer: Array | None = None
) -> TileTable | None:
    """Cut the row types of level k into tiles.

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
    TileTable or None
        Tiles of the types one after the other; None if some layer segment of 32 rows has more terms than a
        round may have.

    Notes
    -----
    Time: O(E log E) for E entries of all row types. Synchronises: yes.
    """
    found = _cut_tiles(xp, types, k, entries, shape, slot_layer)
    if found is None:
        return None
    tiles, term, segments = found
    rounds = fill_rounds(xp, tiles, segments, shape.terms)
    lane, code = place_entries(xp, tiles, term, segments, rounds)
    del found, term
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


def _cut_tiles(
    xp: Any, types: RowTypes, k: int, entries: CooBlocks, shape: TileShape, slot_layer: Array | None
) -> tuple[TileTerms, Array, LayerSegments] | None:
    """Return tiles, the term of every entry, and the segments; with layers no tile is too large, or None."""
    cuts: TileCuts | None = cut_types(xp, types, k, shape.slices)
    while cuts is not None:
        tiles, term = list_terms(xp, types, k, entries, cuts)
        segments = form_segments(xp, tiles, term, shape.terms, slot_layer)
        if slot_layer is None:
            return tiles, term, segments
        crowded = owners(xp, segments.tile_ptr, len(segments))[segments.terms > shape.terms]
        large = (counts(xp, tiles.tile, len(tiles.begin)) > shape.entries) & (tiles.rows > _SPREAD)
        large[crowded] = True
        large = xp.flatnonzero(large)
        if len(large) == 0:
            return tiles, term, segments
        # Fewer rows have fewer terms and entries; the other tiles stay as they are.
        cuts = split_tiles(xp, cuts, large)
        # Not beside those that are listed next.
        del tiles, term, segments, crowded
    return None
