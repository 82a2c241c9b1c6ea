"""The last stage of a tile: groups bundled in items, and all of it packed for the kernels.

An item is a tile with some groups of its type; a thread block handles one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import Place, TileMatrix, Tuning, index_bits, index_type
from gpu_kernels.compressed.tiles import LANES, pack_columns, pack_items, pack_terms
from gpu_kernels.runtime.coded import pointers, ranges, shares
from hybrid.base.arrays import Array, counts, to_host
from hybrid.matrix.gpu.tile_table import TileTable, boundary_groups, build_tile_table
from hybrid.matrix.gpu.tuning import LayoutOptions, choose_tuning
from hybrid.matrix.injection.row_types import RowGroups, RowTypes, enumerate_groups, find_empty_rows
from mtbdd.offset.distributed import StackedLayers
from mtbdd.offset.tuples import stable_order

_LARGE_TABLE = 16 * 1024
"""Bytes of a block's tables from which two members are faster than four: tables take the cache's memory."""

_SHARED_BYTES = 48 * 1024
"""Shared memory that a block has on every card without a request for more."""

_MANY_LOOK_UPS = 2.0
"""Terms that a thread looks up, on average, from which four are looked up at once."""

_ADDRESSES = 2048
"""Addresses of terms that an item of several chunks may have: bounds its shared memory."""

_STEPS = 16
"""Work is compared in parts of a look-up or a unit; items of equal work keep their order."""


class _Items(NamedTuple):
    """Tile, first group in their new order and number of groups of every item: int64, shape (items,)."""

    tile: Array
    group: Array
    count: Array


def build_tile_matrix(
    place: Place,
    types: RowTypes,
    k: int,
    options: LayoutOptions | None = None,
    stacked: StackedLayers | None = None,
    own_columns: int | None = None,
    block_row: NDArray[np.int64] | None = None,
) -> TileMatrix | None:
    """Build the matrix for the tile kernels from the row types of level k, on the device.

    Parameters
    ----------
    place : Place
    types : RowTypes
        Row types of the matrix; of stacked layers those of a `TypedMatrix`.
    k : int
        Level; with layers, `stacked.first_level` or below it.
    options : LayoutOptions, optional
        Choices of speed.
    stacked : StackedLayers, optional
        The layers whose best value a step takes; left out for a single matrix.
    own_columns : int, optional
        Of a single matrix; `stacked` has those of layers. Items without entries in other columns go first,
        see `TileMatrix.early`.
    block_row : ndarray, shape (groups,), int64, optional
        Of a single matrix without others' columns: the block row of every group of the level, on the host;
        see `TileMatrix.block_row_ptr`.

    Returns
    -------
    TileMatrix or None
        None if the classes are scaled and sharing them would change some value by more than 4 units in the
        last place; build from unscaled classes then. With layers, None if 32 rows of some layer have more
        different terms than fast memory holds.

    Notes
    -----
    Time: O(E log E) for E entries of all row types, and O(slots of all groups) a level. Synchronises: yes.
    """
    chosen, xp = options or LayoutOptions(), place.xp
    classes, level = types.classes, types[k]
    n_rows, n_columns = classes.matrix.shape
    if stacked is not None:
        n_rows, n_columns, own_columns = stacked.size, stacked.columns, stacked.own_columns
    bits = index_bits(max(n_rows, n_columns, level.group_slots), chosen.wide)
    tuning = chosen.tuning or choose_tuning(types, k)
    single = stacked is None
    # A term's address for each member, and a weight; one for each member where it may have a scale.
    room = _SHARED_BYTES // _term_bytes(tuning, bits, single) - 4
    table = build_tile_table(xp, types, k, chosen, tuning, room, stacked, own_columns)
    if table is None:
        return None
    groups = enumerate_groups(xp, types, k)
    terms = _fullest_rounds(table)
    # One term more than there are, for the number that stands for no entry.
    most = int(terms.max(initial=0)) + 1
    if single and chosen.tuning is None and most * _term_bytes(tuning, bits, classes.scaled) > _LARGE_TABLE:
        tuning = replace(tuning, members=2)
    index, members = index_type(bits), tuning.members
    chunks = _count_chunks(table, terms, tuning, chosen.turns)
    if not single:
        groups = replace(groups, base=xp.remainder(groups.base, max(n_columns, 1)))
    # Sets of groups that share no item: early and boundary ones, or block rows.
    apart, sets = None, 2
    if own_columns is not None:
        apart = boundary_groups(xp, types, k, groups, own_columns)
    elif block_row is not None:
        apart, sets = xp.asarray(block_row), int(block_row.max(initial=-1)) + 1
    order, items = _bundle_groups(
        xp, groups, table.type_tile, xp.asarray(chunks * members), chosen.window_rows, apart
    )
    look_ups = chosen.look_ups or 1
    if not single:
        # Items of a single matrix are alike, and stay in the order of their rows: those at work at one time
        # read the same parts of x.
        items, mean = _long_items_first(xp, table, items, tuning)
        look_ups = chosen.look_ups or (4 if mean >= _MANY_LOOK_UPS else 1)
    gap_begin, gap_ptr = find_empty_rows(xp, groups.row, xp.asarray(level.rows)[groups.type], n_rows)
    slot_ptr = pointers(xp, (groups.ptr[1:] - groups.ptr[:-1])[order])
    slots, _ = ranges(xp, groups.ptr[order], slot_ptr, len(groups.base))
    set_ptr: tuple[int, ...] = ()
    if apart is not None:
        items, set_ptr = _set_by_set(xp, items, apart[order], sets)
    packed_terms, term_bits = pack_terms(place, table.term_shift, table.term_slot, table.term_value, bits)
    addresses = int((chunks * (terms + 1)).max(initial=0)) * members
    cells = table.cells
    return TileMatrix(
        n_rows=n_rows,
        n_columns=n_columns,
        index_bits=bits,
        code_bits=8 * int(cells.codes.dtype.itemsize),
        term_bits=term_bits,
        unit=table.unit,
        items=_pack_items(place, table, items, slot_ptr, bits),
        term_ptr=table.term_ptr.astype(np.int32),
        round_cell=table.round_cell.astype(np.int32),
        cells=pack_columns(place, [(cells.first, 32), (cells.units, 32)]),
        codes=cells.codes,
        terms=packed_terms,
        values=table.values,
        group_row=groups.row[order].astype(index),
        base=groups.base[slots].astype(index),
        scale=xp.asarray(classes.leading[k])[groups.node[slots]] if classes.scaled else None,
        gap_begin=gap_begin.astype(index),
        gap_ptr=gap_ptr.astype(index),
        gap_rows=int(gap_ptr[-1]),
        place_words=_rounded_up_to_even(-(-addresses * bits // 64)),
        weight_words=_rounded_up_to_even(addresses if classes.scaled else most),
        tuning=tuning,
        marks=None if cells.marks is None else cells.marks.astype(np.uint32),
        layers=1 if stacked is None else stacked.layers,
        look_ups=look_ups,
        many_rounds=len(table.round_cell) > len(table.begin) + 1,
        early=None if own_columns is None else set_ptr[1],
        block_row_ptr=set_ptr if own_columns is None else (),
    )


def _fullest_rounds(table: TileTable) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return, for every type, the terms of its fullest round. Synchronises: yes."""
    of_round: np.ndarray[Any, np.dtype[np.int64]] = np.diff(to_host(table.term_ptr))
    first = to_host(table.round_ptr)[to_host(table.type_tile)[:-1]]
    most: np.ndarray[Any, np.dtype[np.int64]] = (
        np.maximum.reduceat(of_round, first) if len(first) else np.zeros(0, np.int64)
    )
    return most


def _count_chunks(
    table: TileTable, terms: np.ndarray[Any, np.dtype[np.int64]], tuning: Tuning, turns: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return, for every type, how many times ``members`` groups make an item; ``terms`` of the fullest round.

    Every warp has so many turns at least where the tables have room: what a block does before its first
    product is shared among them.
    """
    slices = -(-to_host(table.rows)[to_host(table.type_tile)[:-1]] // LANES)
    wanted = -(-turns * (tuning.threads // LANES) // slices)
    room = _ADDRESSES // ((terms + 1) * tuning.members)
    chunks: np.ndarray[Any, np.dtype[np.int64]] = np.maximum(np.minimum(wanted, room), 1)
    return chunks


def _bundle_groups(
    xp: Any, groups: RowGroups, type_tile: Array, capacity: Array, window_rows: int, apart: Array | None
) -> tuple[Array, _Items]:
    """Return the groups put side by side by type and window of rows, and items of them by their rows.

    ``capacity``, shape (types,): groups of an item at most; ``apart``, shape (groups,): sets of groups that
    share no item.
    """
    size = len(groups)
    if size == 0:
        none = xp.zeros(0, np.int64)
        return none, _Items(none, none, none)
    alike = [xp.floor_divide(groups.row, window_rows), groups.type, *([] if apart is None else [apart])]
    order = stable_order(xp, tuple(alike))
    row, kind = groups.row[order], groups.type[order]
    new = xp.zeros(size, bool)
    new[0] = True
    for key in alike:
        new[1:] |= key[order[1:]] != key[order[:-1]]
    starts = xp.flatnonzero(new)
    position = xp.arange(size) - starts[xp.subtract(xp.cumsum(new), 1)]
    bundle = xp.flatnonzero(xp.equal(position % capacity[kind], 0))
    count = xp.diff(xp.concatenate((bundle, xp.full(1, size, np.int64))))
    by_row = stable_order(xp, (row[bundle],))
    bundle, count = bundle[by_row], count[by_row]
    tiles = type_tile[1:][kind[bundle]] - type_tile[kind[bundle]]
    item_ptr = pointers(xp, tiles)
    total = int(item_ptr[-1])
    tile, owner = ranges(xp, type_tile[kind[bundle]], item_ptr, total)
    return order, _Items(tile, bundle[owner], count[owner])


def _long_items_first(xp: Any, table: TileTable, items: _Items, tuning: Tuning) -> tuple[_Items, float]:
    """Put items in the order of their work, so that the end waits for short ones; and the mean look-ups.

    Work is the look-ups of a thread and the units that a warp reads.
    """
    tile, _, count = items
    if len(tile) == 0:
        return items, 0.0
    first, end = table.round_ptr[:-1], table.round_ptr[1:]
    terms = (table.term_ptr[end] - table.term_ptr[first])[tile]
    unit_ptr = pointers(xp, table.cells.units)
    units = (unit_ptr[table.round_cell[end]] - unit_ptr[table.round_cell[first]])[tile]
    chunks = shares(xp, count, tuning.members)
    looked_up = xp.divide(terms * count, tuning.threads)
    work = xp.multiply(looked_up + xp.multiply(units * chunks, LANES / tuning.threads), _STEPS)
    order = stable_order(xp, (-work.astype(xp.int64),))
    return _Items(*(column[order] for column in items)), float(looked_up.mean())


def _set_by_set(xp: Any, items: _Items, apart: Array, sets: int) -> tuple[_Items, tuple[int, ...]]:
    """Put items set by set, each in their order, and return where the sets begin, and where the last ends.

    ``apart``, shape (groups,), by their new order. Synchronises: yes.
    """
    own = apart[items.group].astype(xp.int64)
    order = stable_order(xp, (own,))
    ptr = pointers(xp, counts(xp, own, sets))
    return _Items(*(column[order] for column in items)), tuple(to_host(ptr).tolist())


def _pack_items(place: Place, table: TileTable, items: _Items, slot_ptr: Array, index_bits: int) -> Array:
    """Return the items as the kernels read them; ``slot_ptr``: first slot of every group in its new order."""
    tile, group, count = items
    first_round = table.round_ptr[tile]
    first_term = table.term_ptr[first_round]
    return pack_items(
        place,
        index_bits,
        begin=table.begin[tile],
        first_slot=slot_ptr[group],
        first_group=group,
        count=count,
        slots=slot_ptr[1:][group] - slot_ptr[group],
        rows=table.rows[tile],
        first_round=first_round,
        rounds=table.round_ptr[1:][tile] - first_round,
        first_term=first_term,
        terms=table.term_ptr[1:][first_round] - first_term,
        first_cell=table.round_cell[first_round],
    )


def _term_bytes(tuning: Tuning, bits: int, scaled: bool) -> int:
    """Return the bytes of a term in the block's tables, for all members."""
    return tuning.members * bits // 8 + 8 * (tuning.members if scaled else 1)


def _rounded_up_to_even(words: int) -> int:
    # Weights begin at a multiple of 16 bytes.
    return words + words % 2
