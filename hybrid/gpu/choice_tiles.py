"""Tiles of row types of stacked layers: terms in order of their layers, rounds of whole layers, marked units.

As :mod:`hybrid.gpu.tile_build`, which says what terms and cells are. Here a *pass* is one layer's terms in a
tile; a round is as many passes of a tile as fit into fast memory. A cell has the units of its slice pass
after pass, and every unit a *mark*: the first term of its pass in the round, whether it is the last of its
pass, and of which layer, and whether it is the last of its slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpu_kernels.tiles import LANES, PAD
from hybrid.gpu.arrays import Array, counts, distinct, owners, pointers, stable_order
from hybrid.gpu.cells import gather_units, share_cells, write_codes
from hybrid.gpu.expansion import ClassEntries
from hybrid.gpu.tile_terms import TileCuts, TileTerms, cut_types, list_terms, split_tiles
from hybrid.injection.row_types import RowTypes

__all__ = ["PassTable", "build_passes"]

_LAST_OF_SLICE = 1 << 15
_LAYER_SHIFT = 16
"""A mark as cuda/choices.cu reads it."""

_SPREAD = 4 * LANES
"""Rows up to which a tile is not split for its entries alone: a slice for every warp of a block."""


@dataclass(frozen=True, eq=False)
class PassTable:
    """The tiles of all row types; index arrays of 64 bits, not yet packed for the kernel.

    Attributes
    ----------
    type_tile : ndarray, shape (types + 1,)
        Tiles of every type.
    begin, rows : ndarray, shape (tiles,)
        First row of a tile within its type, and its rows.
    round_ptr : ndarray, shape (tiles + 1,)
        Rounds of every tile, at least one.
    term_ptr, round_cell : ndarray, shape (rounds + 1,)
        First term and first cell of every round.
    cell_unit, cell_units : ndarray, shape (cells,)
        First unit of a cell, a slice in a round, and its units.
    unit : int
        Term numbers that a lane reads at once.
    codes : ndarray, uint8 or uint16
        Term numbers within passes, [unit][lane][unit]; the largest number stands for no entry.
    marks : ndarray, shape (units,)
        What goes with every unit. One unit more than there are is at the end of codes and marks.
    term_slot, term_shift, term_value : ndarray, shape (terms,)
        Slot, local column minus local row, and number of the value of every term.
    values : ndarray, float64
        The distinct values.
    """

    type_tile: Array
    begin: Array
    rows: Array
    round_ptr: Array
    term_ptr: Array
    round_cell: Array
    cell_unit: Array
    cell_units: Array
    unit: int
    codes: Array
    marks: Array
    term_slot: Array
    term_shift: Array
    term_value: Array
    values: Array


def build_passes(
    xp: Any,
    types: RowTypes,
    k: int,
    entries: ClassEntries,
    slot_layer: Array,
    slices: int,
    unit: int,
    most_terms: int,
    most_entries: int,
) -> PassTable | None:
    """Cut the row types of level k into tiles with passes.

    Parameters
    ----------
    xp : module
        Array module of ``entries`` and of the result.
    types : RowTypes
        Row types of the stacked matrix, blocks shared when equal.
    k : int
        Level.
    entries : ClassEntries
        Entries of one submatrix a class.
    slot_layer : ndarray, shape (slots of the level's types,), int64
        Layer of every slot.
    slices : int
        Slices of 32 rows of a tile at most; fewer where some pass would else have too many terms.
    unit : int
        Entries of a row that are read at once: 1, 2 or 4.
    most_terms : int
        Terms of a round at most.
    most_entries : int
        Entries of a tile of more than 128 rows at most.

    Returns
    -------
    PassTable or None
        None if some pass of 32 rows has more terms than a round may have.

    Notes
    -----
    Time: O(E log E) for E entries of all row types. Synchronises: yes.
    """
    cuts: TileCuts | None = cut_types(xp, types, k, slices)
    while cuts is not None:
        tiles, term = list_terms(xp, types, k, entries, cuts)
        passes = _sort_terms(xp, tiles, term, slot_layer)
        crowded = passes.tile[passes.terms > most_terms]
        entries_of = counts(xp, tiles.tile, len(tiles.begin))
        long = xp.flatnonzero((entries_of > most_entries) & (tiles.rows > _SPREAD))
        if len(crowded) + len(long) == 0:
            break
        # Fewer rows have fewer terms and entries; the other tiles stay as they are.
        cuts = split_tiles(xp, cuts, xp.unique(xp.concatenate((crowded, long))))
        # Not beside those that are listed next.
        del tiles, term, passes, crowded
    if cuts is None:
        return None
    tile, n_tiles, n_terms = tiles.tile, len(tiles.begin), len(tiles.term_tile)
    pass_term = pointers(xp, passes.terms)
    place = xp.empty(n_terms, xp.int64)
    place[passes.order] = xp.arange(n_terms) - pass_term[passes.of_term]
    own_pass = xp.empty(n_terms, xp.int64)
    own_pass[passes.order] = passes.of_term
    code, own_pass = place[term], own_pass[term]
    del term, place

    tile_pass = pointers(xp, counts(xp, passes.tile, n_tiles))
    round_ptr, round_pass = _rounds(xp, tile_pass, passes.terms, most_terms)
    n_rounds = len(round_pass) - 1
    round_passes = round_pass[1:] - round_pass[:-1]
    pass_round = owners(xp, round_pass, len(passes.tile))
    tile_slices = -(-tiles.rows // LANES)
    round_slices = tile_slices[owners(xp, round_ptr, n_rounds)]
    round_cell = pointers(xp, round_slices)

    # First a cell for every slice and pass, the passes of a slice side by side.
    fine = pointers(xp, round_slices * round_passes)
    local = tiles.row - tiles.begin[tile]
    own_round = pass_round[own_pass]
    cell = fine[own_round] + local // LANES * round_passes[own_round] + own_pass - round_pass[own_round]
    lane = cell * LANES + local % LANES
    del cell, own_round, own_pass
    order = stable_order(xp, (lane, code))
    most = int(passes.terms.max()) if len(passes.tile) else 0
    fine_ptr, codes = write_codes(xp, lane[order], code[order], int(fine[-1]), unit, most)
    n_units = int(fine_ptr[-1])
    unit_cell = owners(xp, fine_ptr, n_units)
    unit_round = owners(xp, fine, int(fine[-1]))[unit_cell]
    # A round without passes has no unit.
    unit_pass = round_pass[unit_round] + (unit_cell - fine[unit_round]) % round_passes[unit_round]
    ends = xp.arange(n_units) == fine_ptr[unit_cell + 1] - 1
    marks = pass_term[unit_pass] - pass_term[round_pass[unit_round]]
    marks += ends * (passes.layer[unit_pass] + 1 << _LAYER_SHIFT)

    # Then one for every slice.
    n_cells = int(round_cell[-1])
    cell_round = owners(xp, round_cell, n_cells)
    begin = fine[cell_round] + (xp.arange(n_cells) - round_cell[cell_round]) * round_passes[cell_round]
    cell_ptr = xp.concatenate((fine_ptr[begin], fine_ptr[-1:]))
    filled = cell_ptr[1:] > cell_ptr[:-1]
    marks[cell_ptr[1:][filled] - 1] += _LAST_OF_SLICE
    cell_unit, cell_units, kept = share_cells(xp, cell_ptr, codes, unit, marks)
    codes = gather_units(codes, unit, kept)
    blank = xp.full(LANES * unit, PAD[codes.dtype.itemsize], codes.dtype)
    return PassTable(
        type_tile=tiles.type_tile,
        begin=tiles.begin,
        rows=tiles.rows,
        round_ptr=round_ptr,
        term_ptr=pass_term[round_pass],
        round_cell=round_cell,
        cell_unit=cell_unit,
        cell_units=cell_units,
        unit=unit,
        codes=xp.concatenate((codes, blank)),
        marks=xp.concatenate((marks[kept], xp.zeros(1, xp.int64))),
        term_slot=tiles.term_slot[passes.order],
        term_shift=tiles.term_shift[passes.order],
        term_value=tiles.term_value[passes.order],
        values=tiles.values,
    )


@dataclass(frozen=True, eq=False)
class _Passes:
    """The terms of all tiles in the order of tile and layer, and the passes that they form."""

    order: Array
    of_term: Array
    tile: Array
    layer: Array
    terms: Array


def _sort_terms(xp: Any, tiles: TileTerms, term: Array, slot_layer: Array) -> _Passes:
    """Put terms in order; frequent ones first, so that neighbouring rows list them at the same positions."""
    n_terms = len(tiles.term_tile)
    count = counts(xp, term, n_terms)
    layer = slot_layer[tiles.term_place]
    order = stable_order(xp, (tiles.term_tile, layer, -count))
    tile, layer = tiles.term_tile[order], layer[order]
    chosen, of_term = distinct(xp, (tile, layer))
    terms = counts(xp, of_term, len(chosen))
    return _Passes(order, of_term, tile[chosen], layer[chosen], terms)


def _rounds(xp: Any, tile_pass: Array, per_pass: Array, most_terms: int) -> tuple[Array, Array]:
    """Put the passes of every tile into rounds, one after the other, each as full as it can be."""
    n_tiles = len(tile_pass) - 1
    passes = tile_pass[1:] - tile_pass[:-1]
    begins = xp.zeros(len(per_pass) + 1, bool)
    filled = xp.full(n_tiles, most_terms + 1, xp.int64)
    # As many steps as a tile has passes at most, which is the number of layers.
    for position in range(int(passes.max()) if n_tiles else 0):
        there = xp.flatnonzero(passes > position)
        number = tile_pass[there] + position
        together = filled[there] + per_pass[number]
        new = together > most_terms
        begins[number] = new
        filled[there] = xp.where(new, per_pass[number], together)
    before = xp.cumsum(begins) - begins
    own = before[tile_pass[1:]] - before[tile_pass[:-1]]
    # A tile without entries has a round without passes, so that its rows are written too.
    round_ptr = pointers(xp, xp.maximum(own, 1))
    starts = xp.flatnonzero(begins)
    n_rounds = int(round_ptr[-1])
    round_tile = owners(xp, round_ptr, n_rounds)
    step = xp.arange(n_rounds) - round_ptr[round_tile]
    real = xp.flatnonzero(own[round_tile] > 0)
    round_pass = tile_pass[round_tile]
    round_pass[real] = starts[before[tile_pass[:-1]][round_tile[real]] + step[real]]
    return round_ptr, xp.concatenate((round_pass, tile_pass[-1:]))
