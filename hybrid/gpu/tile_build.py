"""Tiles of row types: built from the entries of the classes by sorting, on the device or on the host.

A *tile* is up to a fixed number of consecutive rows of a row type. The entries of a row type that agree in
slot, in shift (local column minus local row) and in value form a *term*. A tile lists the terms that occur in
it, the frequent ones first, and an entry is nothing but the number of its term: one or two bytes. Terms are
looked up in fast memory, where the kernel puts them once a tile with the column bases of the groups added.

Rows are stored thirty-two by thirty-two, a lane a row, as sliced ELL: position p of all lanes side by side.
A tile with more terms than a number can name, or than fast memory holds, is worked off in *rounds*, each with
its own part of the terms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gpu_kernels.ragged import owners, pointers
from gpu_kernels.tiles import LANES, PAD
from hybrid.core.arrays import counts, stable_order
from hybrid.gpu.cells import fill_cells
from hybrid.gpu.tile_table import TileTable
from hybrid.gpu.tile_terms import cut_types, list_terms
from hybrid.injection.row_types import RowTypes
from hybrid.injection.submatrices import CooBlocks

__all__ = ["TileShape", "build_tiles"]


@dataclass(frozen=True)
class TileShape:
    """Sizes of tiles.

    Attributes
    ----------
    slices : int
        Slices of 32 rows of a tile at most.
    terms : int, optional
        Terms of a round at most; up to 255 make entries of one byte, up to 65,535 of two. If left out, it
        is 255 if no tile has more, and 640 otherwise.
    most_terms : int
        Another bound of the terms of a round, set by the fast memory that they take.
    unit : int
        Entries of a row that are read at once, 2 or 4; the rows of a slice are filled up to a multiple.
    """

    slices: int = 16
    terms: int | None = None
    most_terms: int = 640
    unit: int = 4

    def limited(self, terms: int) -> TileShape:
        """Return the sizes with no more than so many terms in a round."""
        return replace(self, most_terms=min(self.most_terms if self.terms is None else self.terms, terms))

    def terms_of_round(self, fullest: int) -> int:
        """Return the terms of a round at most, given how many the fullest tile has."""
        if self.terms is None and fullest <= PAD[1]:
            return min(PAD[1], self.most_terms)
        return min(self.terms or self.most_terms, self.most_terms)


def build_tiles(xp: Any, types: RowTypes, k: int, entries: CooBlocks, shape: TileShape) -> TileTable:
    """Cut the row types of level k into tiles.

    Parameters
    ----------
    xp : module
        Array module of ``entries`` and of the result.
    types : RowTypes
        Row types of the matrix.
    k : int
        Level.
    entries : CooBlocks
        Entries of one submatrix a class.
    shape : TileShape
        Sizes.

    Returns
    -------
    TileTable
        Tiles of the types one after the other.

    Notes
    -----
    Time: O(E log E) for E entries of all row types. Synchronises: yes.
    """
    tiles, term = list_terms(xp, types, k, entries, cut_types(xp, types, k, shape.slices))
    tile, n_tiles, n_terms = tiles.tile, len(tiles.begin), len(tiles.term_tile)

    # Frequent terms get small numbers, so that neighbouring rows list them at the same positions.
    count = counts(xp, term, n_terms)
    term_order = stable_order(xp, (tiles.term_tile, -count))
    term_tile = tiles.term_tile[term_order]
    per_tile = counts(xp, term_tile, n_tiles)
    tile_term = pointers(xp, per_tile)
    place = xp.empty(n_terms, xp.int64)
    place[term_order] = xp.arange(n_terms) - tile_term[term_tile]
    code = place[term]
    del term, place

    limit = shape.terms_of_round(int(per_tile.max()) if n_tiles else 0)
    # Every tile has one round at least, so that rows without entries are written too.
    round_counts = xp.maximum(-(-per_tile // limit), 1)
    round_ptr = pointers(xp, round_counts)
    n_rounds = int(round_ptr[-1])
    round_tile = owners(xp, round_ptr, n_rounds)
    step = (xp.arange(n_rounds) - round_ptr[round_tile]) * limit
    round_begin = tile_term[round_tile] + xp.minimum(step, per_tile[round_tile])
    term_ptr = xp.concatenate((round_begin, tile_term[-1:]))
    tile_slices = -(-tiles.rows // LANES)
    round_cell = pointers(xp, tile_slices[round_tile])
    n_cells = int(round_cell[-1])

    # A cell is a slice in a round.
    local = tiles.row - tiles.begin[tile]
    cell = round_cell[round_ptr[tile] + code // limit] + local // LANES
    lane = cell * LANES + local % LANES
    order = stable_order(xp, (lane, code))
    lane, code = lane[order], code[order] % limit
    cell_unit, cell_units, codes = fill_cells(xp, lane, code, n_cells, shape.unit, limit)
    return TileTable(
        type_tile=tiles.type_tile,
        begin=tiles.begin,
        rows=tiles.rows,
        round_ptr=round_ptr,
        term_ptr=term_ptr,
        round_cell=round_cell,
        cell_unit=cell_unit,
        cell_units=cell_units,
        unit=shape.unit,
        codes=codes,
        term_slot=tiles.term_slot[term_order],
        term_shift=tiles.term_shift[term_order],
        term_value=tiles.term_value[term_order],
        values=tiles.values,
    )
