"""Tiles of row types of stacked layers: terms in order of their layers, passes of a layer, rounds of passes.

As :mod:`hybrid.gpu.tile_build`, which says what terms and cells are. Here a *pass* is one layer's terms in a
tile; entries are numbers of terms within their pass, and a round is as many passes of a tile as fit into fast
memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpu_kernels.tiles import LANES
from hybrid.gpu.arrays import Array, distinct, owners, pointers, stable_order
from hybrid.gpu.cells import fill_cells
from hybrid.gpu.expansion import ClassEntries
from hybrid.gpu.tile_terms import list_terms
from hybrid.injection.row_types import RowTypes

__all__ = ["PassTable", "build_passes"]


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
    round_pass : ndarray, shape (rounds + 1,)
        First pass of every round.
    pass_layer, pass_cell : ndarray, shape (passes,)
        Layer and first cell of every pass.
    pass_term : ndarray, shape (passes + 1,)
        First term of every pass.
    cell_unit, cell_units : ndarray, shape (cells,)
        First unit of a cell, and its units.
    unit : int
        Term numbers that a lane reads at once.
    codes : ndarray, uint8 or uint16
        Term numbers within passes, [unit][lane][unit]; the largest number stands for no entry.
    term_slot, term_shift, term_value : ndarray, shape (terms,)
        Slot, local column minus local row, and number of the value of every term.
    values : ndarray, float64
        The distinct values.
    """

    type_tile: Array
    begin: Array
    rows: Array
    round_ptr: Array
    round_pass: Array
    pass_layer: Array
    pass_cell: Array
    pass_term: Array
    cell_unit: Array
    cell_units: Array
    unit: int
    codes: Array
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
        Slices of 32 rows of a tile at most.
    unit : int
        Entries of a row that are read at once: 1, 2 or 4.
    most_terms : int
        Terms of a round at most.

    Returns
    -------
    PassTable or None
        None if some pass has more terms than a round may have; fewer slices make fewer terms.

    Notes
    -----
    Time: O(E log E) for E entries of all row types. Synchronises: yes.
    """
    tiles, term = list_terms(xp, types, k, entries, slices)
    tile, n_tiles, n_terms = tiles.tile, len(tiles.begin), len(tiles.term_tile)
    tile_slices = -(-tiles.rows // LANES)

    # By tile and layer; frequent terms first, so that neighbouring rows list them at the same positions.
    count = xp.bincount(term, minlength=max(n_terms, 1))[:n_terms]
    term_layer = slot_layer[tiles.term_place]
    term_order = stable_order(xp, (tiles.term_tile, term_layer, -count))
    term_tile, term_layer = tiles.term_tile[term_order], term_layer[term_order]
    chosen, term_pass = distinct(xp, (term_tile, term_layer))
    pass_tile, pass_layer = term_tile[chosen], term_layer[chosen]
    n_passes = len(chosen)
    per_pass = xp.bincount(term_pass, minlength=max(n_passes, 1))[:n_passes]
    fullest = int(per_pass.max()) if n_passes else 0
    if fullest > most_terms:
        return None
    pass_term = pointers(xp, per_pass)
    place = xp.empty(n_terms, xp.int64)
    place[term_order] = xp.arange(n_terms) - pass_term[term_pass]
    of_pass = xp.empty(n_terms, xp.int64)
    of_pass[term_order] = term_pass
    code, own_pass = place[term], of_pass[term]
    del term, place, of_pass

    tile_pass = pointers(xp, xp.bincount(pass_tile, minlength=max(n_tiles, 1))[:n_tiles])
    round_ptr, round_pass = _rounds(xp, tile_pass, per_pass, most_terms)

    # A cell is a slice in a pass.
    pass_cell = pointers(xp, tile_slices[pass_tile])
    n_cells = int(pass_cell[-1])
    local = tiles.row - tiles.begin[tile]
    lane = (pass_cell[own_pass] + local // LANES) * LANES + local % LANES
    order = stable_order(xp, (lane, code))
    lane, code = lane[order], code[order]
    cell_unit, cell_units, codes = fill_cells(xp, lane, code, n_cells, unit, fullest)
    return PassTable(
        type_tile=tiles.type_tile,
        begin=tiles.begin,
        rows=tiles.rows,
        round_ptr=round_ptr,
        round_pass=round_pass,
        pass_layer=pass_layer,
        pass_cell=pass_cell[:-1],
        pass_term=pass_term,
        cell_unit=cell_unit,
        cell_units=cell_units,
        unit=unit,
        codes=codes,
        term_slot=tiles.term_slot[term_order],
        term_shift=tiles.term_shift[term_order],
        term_value=tiles.term_value[term_order],
        values=tiles.values,
    )


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
