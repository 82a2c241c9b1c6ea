"""Tiles of row types of stacked layers: terms in order of their layers, rounds of whole layers, marked units.

As :mod:`hybrid.gpu.tile_build`, which says what terms and cells are. Here a *pass* is one layer's terms in a
tile; a round is as many passes of a tile as fit into fast memory. A cell has the units of its slice pass
after pass, and every unit a *mark*: the first term of its pass in the round, whether it is the last of its
pass, and of which layer, and whether it is the last of its slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpu_kernels.ragged import owners, pointers
from gpu_kernels.tiles import LANES, PAD
from hybrid.core.arrays import Array, counts, distinct, stable_order
from hybrid.gpu.cells import gather_units, share_cells, write_codes
from hybrid.gpu.tile_terms import TileCuts, TileTerms, cut_types, list_terms, split_tiles
from hybrid.injection.row_types import RowTypes
from hybrid.injection.submatrices import CooBlocks

__all__ = ["PassLimits", "PassTable", "build_passes"]

_LAST_OF_SLICE = 1 << 15
_LAYER_SHIFT = 16
"""A mark as cuda/choices.cu reads it."""

_SPREAD = 4 * LANES
"""Rows up to which a tile is not split for its entries alone: a slice for every warp of a block."""


@dataclass(frozen=True)
class PassLimits:
    """Sizes of tiles with passes.

    Attributes
    ----------
    slices : int
        Slices of 32 rows of a tile at most; fewer where some pass would else have too many terms.
    unit : int
        Entries of a row that are read at once: 1, 2 or 4.
    terms : int
        Terms of a round at most.
    entries : int
        Entries of a tile of more than 128 rows at most.
    """

    slices: int
    unit: int
    terms: int
    entries: int


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
    entries: CooBlocks,
    slot_layer: Array,
    limits: PassLimits,
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
    entries : CooBlocks
        Entries of one submatrix a class.
    slot_layer : ndarray, shape (slots of the level's types,), int64
        Layer of every slot.
    limits : PassLimits

    Returns
    -------
    PassTable or None
        None if some pass of 32 rows has more terms than a round may have.

    Notes
    -----
    Time: O(E log E) for E entries of all row types. Synchronises: yes.
    """
    found = _cut_tiles(xp, types, k, entries, slot_layer, limits)
    if found is None:
        return None
    tiles, term, passes = found
    rounds = _put_into_rounds(xp, tiles, passes, limits.terms)
    lane, code = _place_entries(xp, tiles, term, passes, rounds)
    del found, term
    cell_ptr, codes, marks = _write_units(xp, lane, code, passes, rounds, limits.unit)
    del lane, code
    cell_unit, cell_units, kept = share_cells(xp, cell_ptr, codes, limits.unit, marks)
    codes = gather_units(codes, limits.unit, kept)
    blank = xp.full(LANES * limits.unit, PAD[codes.dtype.itemsize], codes.dtype)
    return PassTable(
        type_tile=tiles.type_tile,
        begin=tiles.begin,
        rows=tiles.rows,
        round_ptr=rounds.ptr,
        term_ptr=passes.first_term[rounds.first_pass],
        round_cell=rounds.cell,
        cell_unit=cell_unit,
        cell_units=cell_units,
        unit=limits.unit,
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
    first_term: Array


@dataclass(frozen=True, eq=False)
class _Rounds:
    """The rounds of all tiles: of every tile, and the passes, slices and cells of every round.

    Cells are numbered twice: `cell` counts one for every slice, `fine` one for every slice and pass, the
    passes of a slice side by side.
    """

    ptr: Array
    first_pass: Array
    passes: Array
    cell: Array
    fine: Array


def _cut_tiles(
    xp: Any, types: RowTypes, k: int, entries: CooBlocks, slot_layer: Array, limits: PassLimits
) -> tuple[TileTerms, Array, _Passes] | None:
    """Return tiles that are neither crowded nor long, the term of every entry, and the passes; or None."""
    cuts: TileCuts | None = cut_types(xp, types, k, limits.slices)
    while cuts is not None:
        tiles, term = list_terms(xp, types, k, entries, cuts)
        passes = _sort_terms(xp, tiles, term, slot_layer)
        crowded = passes.tile[passes.terms > limits.terms]
        entries_of = counts(xp, tiles.tile, len(tiles.begin))
        long = xp.flatnonzero((entries_of > limits.entries) & (tiles.rows > _SPREAD))
        if len(crowded) + len(long) == 0:
            return tiles, term, passes
        # Fewer rows have fewer terms and entries; the other tiles stay as they are.
        cuts = split_tiles(xp, cuts, xp.unique(xp.concatenate((crowded, long))))
        # Not beside those that are listed next.
        del tiles, term, passes, crowded
    return None


def _sort_terms(xp: Any, tiles: TileTerms, term: Array, slot_layer: Array) -> _Passes:
    """Put terms in order; frequent ones first, so that neighbouring rows list them at the same positions."""
    n_terms = len(tiles.term_tile)
    count = counts(xp, term, n_terms)
    layer = slot_layer[tiles.term_place]
    order = stable_order(xp, (tiles.term_tile, layer, -count))
    tile, layer = tiles.term_tile[order], layer[order]
    chosen, of_term = distinct(xp, (tile, layer))
    terms = counts(xp, of_term, len(chosen))
    return _Passes(order, of_term, tile[chosen], layer[chosen], terms, pointers(xp, terms))


def _put_into_rounds(xp: Any, tiles: TileTerms, passes: _Passes, most_terms: int) -> _Rounds:
    """Put the passes of every tile into rounds, and number their cells."""
    tile_pass = pointers(xp, counts(xp, passes.tile, len(tiles.begin)))
    ptr, first_pass = _rounds(xp, tile_pass, passes.terms, most_terms)
    own = first_pass[1:] - first_pass[:-1]
    slices = (-(-tiles.rows // LANES))[owners(xp, ptr, len(own))]
    return _Rounds(ptr, first_pass, own, pointers(xp, slices), pointers(xp, slices * own))


def _place_entries(
    xp: Any, tiles: TileTerms, term: Array, passes: _Passes, rounds: _Rounds
) -> tuple[Array, Array]:
    """Return the lane of every entry, counted over the fine cells, and the number of its term in its pass."""
    n_terms = len(tiles.term_tile)
    place, of_term = xp.empty(n_terms, xp.int64), xp.empty(n_terms, xp.int64)
    place[passes.order] = xp.arange(n_terms) - passes.first_term[passes.of_term]
    of_term[passes.order] = passes.of_term
    code, own_pass = place[term], of_term[term]
    own_round = owners(xp, rounds.first_pass, len(passes.tile))[own_pass]
    local = tiles.row - tiles.begin[tiles.tile]
    cell = rounds.fine[own_round] + local // LANES * rounds.passes[own_round]
    cell += own_pass - rounds.first_pass[own_round]
    return cell * LANES + local % LANES, code


def _write_units(
    xp: Any, lane: Array, code: Array, passes: _Passes, rounds: _Rounds, unit: int
) -> tuple[Array, Array, Array]:
    """Return the first unit of every cell, and the codes and the marks of the units."""
    fine, cells = rounds.fine, int(rounds.fine[-1])
    order = stable_order(xp, (lane, code))
    most = int(passes.terms.max()) if len(passes.tile) else 0
    fine_ptr, codes = write_codes(xp, lane[order], code[order], cells, unit, most)
    n_units = int(fine_ptr[-1])
    unit_cell = owners(xp, fine_ptr, n_units)
    unit_round = owners(xp, fine, cells)[unit_cell]
    # A round without passes has no unit.
    unit_pass = rounds.first_pass[unit_round] + (unit_cell - fine[unit_round]) % rounds.passes[unit_round]
    ends = xp.arange(n_units) == fine_ptr[unit_cell + 1] - 1
    marks = passes.first_term[unit_pass] - passes.first_term[rounds.first_pass[unit_round]]
    marks += ends * (passes.layer[unit_pass] + 1 << _LAYER_SHIFT)

    n_cells = int(rounds.cell[-1])
    own = owners(xp, rounds.cell, n_cells)
    first = fine[own] + (xp.arange(n_cells) - rounds.cell[own]) * rounds.passes[own]
    cell_ptr = xp.concatenate((fine_ptr[first], fine_ptr[-1:]))
    filled = cell_ptr[1:] > cell_ptr[:-1]
    marks[cell_ptr[1:][filled] - 1] += _LAST_OF_SLICE
    return cell_ptr, codes, marks


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
