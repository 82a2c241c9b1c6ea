"""The second stage of a tile: its terms in order, in layer segments, and these in rounds.

A *layer segment* is the terms of one layer in a tile, and a round is as many of them as fit into fast memory.
A single matrix has one layer; a segment of more terms than fast memory holds is then cut, and every round has
one. With layers no segment may be cut, since the best over the layers is taken segment by segment: tiles are
halved until every segment fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpu_kernels.compressed.tiles import LANES
from gpu_kernels.runtime.ragged import owners, pointers, shares
from hybrid.base.arrays import Array, counts
from hybrid.matrix.gpu.tile_terms import TileTerms
from mtbdd.offset.tuples import distinct, stable_order


@dataclass(frozen=True, eq=False)
class LayerSegments:
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


@dataclass(frozen=True, eq=False)
class Rounds:
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
