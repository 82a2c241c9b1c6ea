"""Layout of the matrices of all layers for the kernel that takes the best over the choices on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels import ChoiceTiles, Place, Tuning, index_bits, index_type
from gpu_kernels.ragged import pointers, ranges
from gpu_kernels.tiles import LANES, pack_columns, pack_items, pack_terms
from hybrid.core.arrays import Array, stable_order, to_host
from hybrid.gpu.choice_tiles import PassLimits, PassTable, build_passes
from hybrid.gpu.cost import level_seconds
from hybrid.gpu.layout import SHARED_BYTES, bundle_groups, count_chunks, find_gaps, fullest_rounds
from hybrid.gpu.tuning import choose_tuning
from hybrid.injection.block_classes import find_block_classes
from hybrid.injection.groups import enumerate_groups
from hybrid.injection.row_types import RowTypes, find_row_types
from hybrid.injection.submatrices import class_submatrices
from mtbdd.stacked_layers import StackedLayers

__all__ = ["ChoiceLayoutOptions", "build_choice_tiles", "rank_choice_levels", "row_types_of"]

_SLICES = 16
"""Slices of a tile; fewer where some layer's terms would not fit into fast memory."""

_STEPS = 16
"""Parts of a look-up or a unit that items are told apart by; of equal ones, neighbours stay neighbours."""

_MANY_LOOK_UPS = 2.0
"""Terms that a thread looks up, on average, from which four are looked up at once."""

_MOST_TERMS = 640
_MOST_ENTRIES = 4096
"""Entries of a tile, so that no item lasts much longer than others and the end waits for it."""

_SHORT_ROWS = 2.5
"""Entries of a row in a layer, on average, up to which rows are read two entries at a time."""


@dataclass(frozen=True)
class ChoiceLayoutOptions:
    """Choices that change the speed of a step and not its result.

    Attributes
    ----------
    tuning : Tuning, optional
        Launch shape; chosen from the row types if left out.
    slices : int, optional
        Slices of 32 rows of a tile at most.
    unit : int, optional
        Entries of a row in a layer that are read at once: 1, 2 or 4; chosen by their mean if left out.
    turns : int
        Slices of 32 rows that every warp of a block has at least, where there is room.
    look_ups : int, optional
        Terms that a thread looks up at once: 1 or 4; chosen by how many there are if left out.
    most_terms : int
        Terms of a round at most.
    most_entries : int
        Entries of a tile of more than 128 rows at most.
    window_rows : int
        Groups of one type are bundled if they begin in the same window of rows.
    wide : bool
        Use 64-bit indices although 32 bits would do.
    """

    tuning: Tuning | None = None
    slices: int | None = None
    unit: int | None = None
    turns: int = 1
    look_ups: int | None = None
    most_terms: int = _MOST_TERMS
    most_entries: int = _MOST_ENTRIES
    window_rows: int = 1 << 27
    wide: bool = False


def row_types_of(stacked: StackedLayers) -> RowTypes:
    """Return the row types of stacked layers, blocks shared when equal and of one layer."""
    return find_row_types(find_block_classes(stacked.matrix, scaled=False))


def rank_choice_levels(stacked: StackedLayers, types: RowTypes) -> list[tuple[int, float]]:
    """Return the levels whose submatrices belong to one layer each, with predicted seconds, fastest first."""
    found = ((level_seconds(types, k), k) for k in range(stacked.first_level, len(types)))
    return [(k, seconds) for seconds, k in sorted((s, k) for s, k in found if s is not None)]


def build_choice_tiles(
    place: Place,
    stacked: StackedLayers,
    types: RowTypes,
    k: int,
    options: ChoiceLayoutOptions | None = None,
) -> ChoiceTiles | None:
    """Build the tiles of stacked layers on a device.

    Parameters
    ----------
    place : Place
    stacked : StackedLayers
    types : RowTypes
        From `row_types_of`.
    k : int
        Level, `stacked.first_level` or below it.
    options : ChoiceLayoutOptions, optional
        Choices of speed.

    Returns
    -------
    ChoiceTiles or None
        None if 32 rows of some layer have more different terms than fast memory holds.

    Notes
    -----
    Time: O(E log E) for E entries of all row types, and O(slots of all groups) a level. Synchronises: yes.
    """
    chosen, xp, size = options or ChoiceLayoutOptions(), place.xp, stacked.size
    classes, level = types.classes, types.levels[k]
    entries = class_submatrices(xp, classes, k, np.int64)
    if entries is None:
        raise RuntimeError("classes of equal blocks are exact, yet were refused as inexact")
    class_layer = stacked.layer_of_nodes(k)[classes.representative[k]]
    slot_layer = xp.asarray(class_layer[level.blocks])
    bits = index_bits(max(size, level.group_slots), chosen.wide)
    tuning = chosen.tuning or choose_tuning(types, k)
    nonzeros = stacked.matrix.n_entries
    unit = chosen.unit or (2 if nonzeros < _SHORT_ROWS * size * stacked.layers else 4)
    # What a term takes of the block's fast memory: a place for each member, and a weight.
    limit = min(chosen.most_terms, SHARED_BYTES // (tuning.members * bits // 8 + 8) - 4)
    limits = PassLimits(chosen.slices or _SLICES, unit, limit, chosen.most_entries)
    table = build_passes(xp, types, k, entries, slot_layer, limits)
    del entries
    if table is None:
        return None
    groups = enumerate_groups(xp, types, k)
    index, members = index_type(bits), tuning.members
    terms = fullest_rounds(table.term_ptr, table.round_ptr, table.type_tile)
    rows = to_host(table.rows)[to_host(table.type_tile)[:-1]]
    chunks = count_chunks(rows, terms, tuning, chosen.turns)
    order, (tile, group, count) = bundle_groups(
        xp, groups, table.type_tile, xp.asarray(chunks * members), chosen.window_rows
    )
    looked_up, read = _work(xp, table, tile, count, tuning)
    look_ups = chosen.look_ups or 1
    if len(tile):
        # The longest begin first, so that the end waits for short ones only.
        work = (_STEPS * (looked_up + read)).astype(xp.int64)
        first = stable_order(xp, (-work,))
        tile, group, count = tile[first], group[first], count[first]
        look_ups = chosen.look_ups or (4 if float(looked_up.mean()) >= _MANY_LOOK_UPS else 1)
    gap_begin, gap_ptr = find_gaps(xp, groups.row, xp.asarray(level.rows)[groups.type], size)
    lengths = (groups.ptr[1:] - groups.ptr[:-1])[order]
    slot_ptr = pointers(xp, lengths)
    slots, _ = ranges(xp, groups.ptr[order], slot_ptr, len(groups.base))
    packed_terms, term_bits = pack_terms(place, table.term_shift, table.term_slot, table.term_value, bits)
    first_round = table.round_ptr[tile]
    items = pack_items(
        place, bits, begin=table.begin[tile], first_slot=slot_ptr[group], first_group=group, count=count,
        slots=lengths[group], rows=table.rows[tile], first_round=first_round,
        rounds=table.round_ptr[tile + 1] - first_round, first_term=table.term_ptr[first_round],
        terms=table.term_ptr[first_round + 1] - table.term_ptr[first_round],
        first_cell=table.round_cell[first_round],
    )  # fmt: skip
    # One term more than there are, for the number that stands for no entry.
    places = int((chunks * (terms + 1)).max(initial=0)) * members
    place_words, weight_words = -(-places * bits // 64), int(terms.max(initial=0)) + 1
    return ChoiceTiles(
        size=size,
        layers=stacked.layers,
        index_bits=bits,
        code_bits=8 * int(table.codes.dtype.itemsize),
        term_bits=term_bits,
        unit=table.unit,
        items=items,
        term_ptr=table.term_ptr.astype(np.int32),
        round_cell=table.round_cell.astype(np.int32),
        cells=pack_columns(place, [(table.cell_unit, 32), (table.cell_units, 32)]),
        codes=table.codes,
        marks=table.marks.astype(np.uint32),
        terms=packed_terms,
        values=table.values,
        group_row=groups.row[order].astype(index),
        base=(groups.base[slots] % max(size, 1)).astype(index),
        gap_begin=gap_begin.astype(index),
        gap_ptr=gap_ptr.astype(index),
        gap_rows=int(gap_ptr[-1]),
        place_words=place_words + place_words % 2,
        weight_words=weight_words + weight_words % 2,
        tuning=tuning,
        look_ups=look_ups,
        many_rounds=len(table.round_cell) > len(table.begin) + 1,
    )


def _work(xp: Any, table: PassTable, tile: Array, count: Array, tuning: Tuning) -> tuple[Array, Array]:
    """Return the look-ups of a thread and the units that a warp reads, on average, for every item."""
    first, end = table.round_ptr[:-1], table.round_ptr[1:]
    terms = (table.term_ptr[end] - table.term_ptr[first])[tile]
    unit_ptr = pointers(xp, table.cell_units)
    units = (unit_ptr[table.round_cell[end]] - unit_ptr[table.round_cell[first]])[tile]
    chunks = -(-count // tuning.members)
    return terms * count / tuning.threads, units * chunks * LANES / tuning.threads
