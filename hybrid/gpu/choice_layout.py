"""Layout of the matrices of all layers for the kernel that takes the best over the choices on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpu_kernels import ChoiceTiles, Device, Tuning, index_bits, index_type
from gpu_kernels.tiles import pack_columns, pack_items, pack_terms
from hybrid.gpu.arrays import pointers, ranges, to_host
from hybrid.gpu.choice_tiles import build_passes
from hybrid.gpu.cost import level_seconds
from hybrid.gpu.expansion import expand_classes, expand_groups
from hybrid.gpu.layout import SHARED_BYTES, bundle_groups, count_chunks, find_gaps, fullest_rounds
from hybrid.gpu.stacked import StackedLayers
from hybrid.gpu.tuning import choose_tuning
from hybrid.injection.block_classes import find_block_classes
from hybrid.injection.row_types import RowTypes, find_row_types
from hybrid.levels.counting import nonzeros_below

__all__ = ["ChoiceLayoutOptions", "build_choice_tiles", "rank_choice_levels", "row_types_of"]

_SLICES = (16, 8, 4, 2, 1)
"""Slices of a tile; fewer where some layer's terms would not fit into fast memory."""

_MOST_TERMS = 640
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
    most_terms : int
        Terms of a round at most.
    window_rows : int
        Groups of one type are bundled if they begin in the same window of rows.
    wide : bool
        Use 64-bit indices although 32 bits would do.
    """

    tuning: Tuning | None = None
    slices: int | None = None
    unit: int | None = None
    turns: int = 1
    most_terms: int = _MOST_TERMS
    window_rows: int = 1 << 27
    wide: bool = False


def row_types_of(stacked: StackedLayers) -> RowTypes:
    """Return the row types of stacked layers, blocks shared when equal and of one layer."""
    return find_row_types(find_block_classes(stacked.matrix, scaled=False))


def rank_choice_levels(stacked: StackedLayers, types: RowTypes) -> list[tuple[int, float]]:
    """Return the levels whose submatrices belong to one layer each, with predicted seconds, fastest first."""
    below = nonzeros_below(stacked.matrix)
    found = (
        (level_seconds(types, k, below[k]), k) for k in range(stacked.first_level, len(types))
    )  # fmt: skip
    return [(k, seconds) for seconds, k in sorted((s, k) for s, k in found if s is not None)]


def build_choice_tiles(
    device: Device,
    stacked: StackedLayers,
    types: RowTypes,
    k: int,
    options: ChoiceLayoutOptions | None = None,
) -> ChoiceTiles | None:
    """Build the tiles of stacked layers on a device.

    Parameters
    ----------
    device : Device
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
    chosen, xp, size = options or ChoiceLayoutOptions(), device.xp, stacked.size
    classes, level = types.classes, types.levels[k]
    entries = expand_classes(xp, classes, k)
    if entries is None:
        raise RuntimeError("classes of equal blocks are exact, yet were refused as inexact")
    class_layer = stacked.layer_of_nodes(k)[classes.representative[k]]
    slot_layer = xp.asarray(class_layer[level.blocks])
    bits = index_bits(max(size, level.group_slots), chosen.wide)
    tuning = chosen.tuning or choose_tuning(types, k)
    nonzeros = int(nonzeros_below(stacked.matrix)[0].sum())
    unit = chosen.unit or (2 if nonzeros < _SHORT_ROWS * size * stacked.layers else 4)
    # What a term takes of the block's fast memory: a place for each member, and a weight.
    limit = min(chosen.most_terms, SHARED_BYTES // (tuning.members * bits // 8 + 8) - 4)
    table = None
    for slices in _SLICES if chosen.slices is None else (chosen.slices,):
        table = build_passes(xp, types, k, entries, slot_layer, slices, unit, limit)
        if table is not None:
            break
    del entries
    if table is None:
        return None
    groups = expand_groups(xp, types, k)
    index, members = index_type(bits), tuning.members
    terms = fullest_rounds(table.pass_term[table.round_pass], table.round_ptr, table.type_tile)
    rows = to_host(table.rows)[to_host(table.type_tile)[:-1]]
    chunks = count_chunks(rows, terms, tuning, chosen.turns)
    order, (tile, group, count) = bundle_groups(
        xp, groups, table.type_tile, xp.asarray(chunks * members), chosen.window_rows
    )
    gap_begin, gap_ptr = find_gaps(xp, groups.row, xp.asarray(types.rows_of_types(k))[groups.type], size)
    lengths = (groups.ptr[1:] - groups.ptr[:-1])[order]
    slot_ptr = pointers(xp, lengths)
    slots, _ = ranges(xp, groups.ptr[order], slot_ptr, len(groups.base))
    packed_terms, term_bits = pack_terms(device, table.term_shift, table.term_slot, table.term_value, bits)
    first_round = table.round_ptr[tile]
    round_term = table.pass_term[table.round_pass]
    items = pack_items(
        device, bits, begin=table.begin[tile], first_slot=slot_ptr[group], first_group=group, count=count,
        slots=lengths[group], rows=table.rows[tile], first_round=first_round,
        rounds=table.round_ptr[tile + 1] - first_round, first_term=round_term[first_round],
        terms=round_term[first_round + 1] - round_term[first_round], first_cell=first_round * 0,
    )  # fmt: skip
    passes = [table.pass_layer, table.pass_term[:-1], table.pass_term[1:] - table.pass_term[:-1]]
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
        round_pass=table.round_pass.astype(np.int32),
        passes=pack_columns(device, [(column, 32) for column in (*passes, table.pass_cell)]),
        cells=pack_columns(device, [(table.cell_unit, 32), (table.cell_units, 32)]),
        codes=table.codes,
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
        look_ups=1 if chosen.turns == 1 else 4,
    )
