"""Layout of a matrix for the tile kernel: groups put in order, bundled into items, gaps found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu_kernels import Place, TileMatrix, Tuning, index_bits, index_type
from gpu_kernels.ragged import pointers, ranges
from gpu_kernels.tiles import LANES, pack_columns, pack_items, pack_terms
from hybrid.core.arrays import Array, stable_order, to_host
from hybrid.gpu.tile_build import TileShape, build_tiles
from hybrid.gpu.tile_table import TileTable
from hybrid.gpu.tuning import FEW_TERMS, LARGE_SLICES, choose_shape, choose_tuning
from hybrid.injection.groups import RowGroups, enumerate_groups
from hybrid.injection.row_types import RowTypes
from hybrid.injection.submatrices import class_submatrices

__all__ = [
    "SHARED_BYTES",
    "LayoutOptions",
    "build_tile_matrix",
    "bundle_groups",
    "count_chunks",
    "find_gaps",
    "fullest_rounds",
]

PLACES = 2048
"""Places of terms that an item of several chunks may have: bounds its shared memory."""

_MOST_TABLE_BYTES = 16 * 1024
"""Size of a block's tables from which two groups at once beat four: what tables take, the cache lacks."""

SHARED_BYTES = 48 * 1024
"""Shared memory that a block has on every card without being asked for more."""


@dataclass(frozen=True)
class LayoutOptions:
    """Choices that change the speed of a product and not its result.

    Attributes
    ----------
    shape : TileShape, optional
        Sizes of tiles; chosen by :mod:`hybrid.gpu.tuning` if left out.
    tuning : Tuning, optional
        Launch shape; likewise.
    turns : int
        Slices of 32 rows that every warp of a block has at least, where there is room.
    window_rows : int
        Groups of one type are bundled if they begin in the same window of rows.
    wide : bool
        Use 64-bit indices although 32 bits would do.
    """

    shape: TileShape | None = None
    tuning: Tuning | None = None
    turns: int = 1
    window_rows: int = 1 << 27
    wide: bool = False


def build_tile_matrix(
    place: Place, types: RowTypes, k: int, options: LayoutOptions | None = None
) -> TileMatrix | None:
    """Build the matrix for the tile kernel from the row types of level k, on the device.

    Parameters
    ----------
    place : Place
    types : RowTypes
        Row types of the matrix.
    k : int
        Level.
    options : LayoutOptions, optional
        Choices of speed.

    Returns
    -------
    TileMatrix or None
        None if the classes are scaled and sharing them would change some value by more than 4 units in the
        last place; build from unscaled classes then.

    Notes
    -----
    Time: O(E log E) for E entries of all row types, and O(slots of all groups) a level. Synchronises: yes.
    """
    chosen = options or LayoutOptions()
    xp = place.xp
    classes = types.classes
    entries = class_submatrices(xp, classes, k, np.int64)
    if entries is None:
        return None
    n_rows, n_columns = classes.matrix.shape
    bits = index_bits(max(n_rows, n_columns, types.levels[k].group_slots), chosen.wide)
    tuning = chosen.tuning or choose_tuning(types, k)
    nonzeros = classes.matrix.n_entries
    shape = chosen.shape or choose_shape(n_rows, nonzeros)
    # What a term takes of the block's fast memory: a place and a weight for each member.
    shape = shape.limited(SHARED_BYTES // (tuning.members * (bits // 8 + 8)) - 4)
    table = build_tiles(xp, types, k, entries, shape)
    if chosen.shape is None and len(table.term_slot) <= FEW_TERMS * len(table.begin):
        table = build_tiles(xp, types, k, entries, replace(shape, slices=LARGE_SLICES))
    del entries
    if chosen.tuning is None and _table_bytes(table, tuning, bits, classes.scaled) > _MOST_TABLE_BYTES:
        tuning = replace(tuning, members=2)
    groups = enumerate_groups(xp, types, k)
    index = index_type(bits)
    members = tuning.members
    terms = fullest_rounds(table.term_ptr, table.round_ptr, table.type_tile)
    rows = to_host(table.rows)[to_host(table.type_tile)[:-1]]
    chunks = count_chunks(rows, terms, tuning, chosen.turns)
    order, items = bundle_groups(
        xp, groups, table.type_tile, xp.asarray(chunks * members), chosen.window_rows
    )
    gap_begin, gap_ptr = find_gaps(xp, groups.row, xp.asarray(types.levels[k].rows)[groups.type], n_rows)
    lengths = (groups.ptr[1:] - groups.ptr[:-1])[order]
    slot_ptr = pointers(xp, lengths)
    slots, _ = ranges(xp, groups.ptr[order], slot_ptr, len(groups.base))
    packed_terms, term_bits = pack_terms(place, table.term_shift, table.term_slot, table.term_value, bits)
    # One term more than there are, for the number that stands for no entry.
    places = int((chunks * (terms + 1)).max(initial=0)) * members
    return TileMatrix(
        n_rows=n_rows,
        n_columns=n_columns,
        index_bits=bits,
        code_bits=8 * int(table.codes.dtype.itemsize),
        term_bits=term_bits,
        unit=table.unit,
        items=_pack_items(place, table, items, slot_ptr, lengths, bits),
        term_ptr=table.term_ptr.astype(np.int32),
        round_cell=table.round_cell.astype(np.int32),
        cells=pack_columns(place, [(table.cell_unit, 32), (table.cell_units, 32)]),
        codes=table.codes,
        terms=packed_terms,
        values=table.values,
        group_row=groups.row[order].astype(index),
        base=groups.base[slots].astype(index),
        scale=xp.asarray(classes.leading[k])[groups.node[slots]] if classes.scaled else None,
        gap_begin=gap_begin.astype(index),
        gap_ptr=gap_ptr.astype(index),
        gap_rows=int(gap_ptr[-1]),
        place_words=_even(-(-places * bits // 64)),
        weight_words=_even(places if classes.scaled else int(terms.max(initial=0)) + 1),
        tuning=tuning,
    )


def _even(words: int) -> int:
    # Weights begin at a multiple of 16 bytes.
    return words + words % 2


def fullest_rounds(terms: Array, round_ptr: Array, type_tile: Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return, for every type, the terms of its fullest round; ``terms`` are pointers of rounds into terms."""
    of_round: np.ndarray[Any, np.dtype[np.int64]] = np.diff(to_host(terms))
    first = to_host(round_ptr)[to_host(type_tile)[:-1]]
    most: np.ndarray[Any, np.dtype[np.int64]] = (
        np.maximum.reduceat(of_round, first) if len(first) else np.zeros(0, np.int64)
    )
    return most


def _table_bytes(table: TileTable, tuning: Tuning, bits: int, scaled: bool) -> int:
    """Return the shared memory that the fullest round takes."""
    terms = int(fullest_rounds(table.term_ptr, table.round_ptr, table.type_tile).max(initial=0)) + 1
    return terms * tuning.members * bits // 8 + 8 * terms * (tuning.members if scaled else 1)


def count_chunks(
    rows: np.ndarray[Any, np.dtype[np.int64]],
    terms: np.ndarray[Any, np.dtype[np.int64]],
    tuning: Tuning,
    turns: int,
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return, for every type, how many times ``members`` groups make an item.

    Parameters
    ----------
    rows, terms : ndarray, shape (types,), int64
        Rows of a type's first tile, and terms of its fullest round.
    tuning : Tuning
    turns : int
        Slices that every warp has at least, where the tables of the terms have room: what a block does before
        its first product is shared among them.
    """
    slices = -(-rows // LANES)
    wanted = -(-turns * (tuning.threads // LANES) // slices)
    room = PLACES // ((terms + 1) * tuning.members)
    chunks: np.ndarray[Any, np.dtype[np.int64]] = np.maximum(np.minimum(wanted, room), 1)
    return chunks


def bundle_groups(
    xp: Any, groups: RowGroups, type_tile: Array, capacity: Array, window_rows: int
) -> tuple[Array, tuple[Array, Array, Array]]:
    """Put groups of one type and window side by side and cut them into items, in the order of their rows.

    Parameters
    ----------
    xp : module
    groups : RowGroups
    type_tile : ndarray, shape (types + 1,), int64
        Tiles of every type.
    capacity : ndarray, shape (types,), int64
        Groups of an item at most.
    window_rows : int
        Groups of an item begin in the same window of rows.

    Returns
    -------
    order : ndarray, shape (groups,), int64
        The groups in their new order.
    items : tuple of three ndarrays, shape (items,), int64
        Tile, first group in the new order and number of groups of every item.
    """
    size = len(groups)
    if size == 0:
        none = xp.zeros(0, np.int64)
        return xp.zeros(0, np.int64), (none, none, none)
    order = stable_order(xp, (groups.row // window_rows, groups.type))
    row, kind = groups.row[order], groups.type[order]
    window = row // window_rows
    new = xp.ones(size, bool)
    new[1:] = (kind[1:] != kind[:-1]) | (window[1:] != window[:-1])
    starts = xp.flatnonzero(new)
    position = xp.arange(size) - starts[xp.cumsum(new) - 1]
    bundle = xp.flatnonzero(position % capacity[kind] == 0)
    count = xp.diff(xp.concatenate((bundle, xp.full(1, size, np.int64))))
    by_row = stable_order(xp, (row[bundle],))
    bundle, count = bundle[by_row], count[by_row]
    tiles = type_tile[kind[bundle] + 1] - type_tile[kind[bundle]]
    item_ptr = pointers(xp, tiles)
    total = int(item_ptr[-1])
    tile, owner = ranges(xp, type_tile[kind[bundle]], item_ptr, total)
    return order, (tile, bundle[owner], count[owner])


def _pack_items(
    place: Place,
    table: TileTable,
    items: tuple[Array, Array, Array],
    slot_ptr: Array,
    lengths: Array,
    bits: int,
) -> Array:
    tile, group, count = items
    first_round = table.round_ptr[tile]
    first_term = table.term_ptr[first_round]
    return pack_items(
        place,
        bits,
        begin=table.begin[tile],
        first_slot=slot_ptr[group],
        first_group=group,
        count=count,
        slots=lengths[group],
        rows=table.rows[tile],
        first_round=first_round,
        rounds=table.round_ptr[tile + 1] - first_round,
        first_term=first_term,
        terms=table.term_ptr[first_round + 1] - first_term,
        first_cell=table.round_cell[first_round],
    )


def find_gaps(xp: Any, row: Array, rows: Array, n_rows: int) -> tuple[Array, Array]:
    """Return the first rows of the ranges that no group covers, and pointers of their lengths."""
    begin = xp.concatenate((xp.zeros(1, np.int64), row + rows))
    end = xp.concatenate((row, xp.full(1, n_rows, np.int64)))
    kept = begin < end
    return begin[kept], pointers(xp, end[kept] - begin[kept])
