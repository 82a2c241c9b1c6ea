"""The tiles of all row types: the stages put together, from entries of classes to a table of arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu_kernels import Tuning
from gpu_kernels.compressed.tiles import LANES
from gpu_kernels.runtime.ragged import owners, pointers
from hybrid.base.arrays import Array
from hybrid.matrix.gpu.late_groups import groups_apart
from hybrid.matrix.gpu.tile_cells import Cells, fill_cells, place_entries
from hybrid.matrix.gpu.tile_rounds import LayerSegments, fill_rounds, form_segments
from hybrid.matrix.gpu.tile_terms import (
    TileCuts,
    TileTerms,
    cut_types,
    first_slices,
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
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.injection.submatrices import CooBlocks, class_submatrices
from mtbdd.offset.stacked_layers import StackedLayers

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
    Tiles are cut a second time where their terms tell that another size is better.
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
        apart, few = groups_apart(xp, types, k, own_columns), found.mean_terms <= FEW_TERMS
        slices = choose_slices(types[k].rows, apart, tuning, chosen.turns, few)
        if slices != shape.slices:
            del found  # not beside those that are cut next
            shape = replace(shape, slices=slices)
            found = cut_tiles(xp, types, k, entries, shape)
    return None if found is None else fill_tiles(xp, found, shape)
