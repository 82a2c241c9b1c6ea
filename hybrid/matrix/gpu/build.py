"""The GPU backend's product for a matrix and a level: memory checked, layout built on it or for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import (
    ChoiceGains,
    CodedVector,
    Device,
    PairMatrix,
    PairTuning,
    Place,
    TileMatrix,
    compress,
    current_device,
    index_bits,
    index_type,
    made_for,
)
from gpu_kernels.compressed.pairs import PAIR_THREADS, pack_pair_items, pack_row_items
from gpu_kernels.runtime.coded import owners, pointers, ranges
from hybrid.base.arrays import Array, counts, distinct_values, to_host
from hybrid.matrix.gpu.cost import check_memory, layout_items, types_of_level, uses_pairs
from hybrid.matrix.gpu.product import GpuProduct
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.gpu.tuning import LayoutOptions
from hybrid.matrix.injection.row_types import RowGroups, RowTypes, enumerate_groups, find_empty_rows
from hybrid.matrix.injection.submatrices import CooBlocks, class_submatrices
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from mtbdd.base.records import Record
from mtbdd.offset.states import is_any
from mtbdd.offset.tuples import distinct, stable_order

# Rewards of choices for all layers together: one short code a state.

Vector = NDArray[np.float64]

_GAINS_AN_ITEM = 2
"""Gains that the host codes in the time of an item of a layout."""


def gain_items(gains: int) -> int:
    """Return how many items of a layout take as long as coding so many gains, for `gpu_kernels.made_for`."""
    return gains // _GAINS_AN_ITEM


def code_gains(
    place: Place,
    marks: Array,
    gains: Mapping[int, Vector],
    factors: Mapping[int, Vector],
    layers: int,
    maximise: bool,
) -> ChoiceGains:
    """Put the gains of all layers into tables, one row for all states that agree in what matters.

    Parameters
    ----------
    place : Place
    marks : ndarray, shape (n,), uint64, in that place
        Which layers have entries in each row, from :func:`gpu_kernels.mark_entries`.
    gains : mapping of int to ndarray, shape (n,), float64
        For each layer that offers choices what they are worth; an infinity, the one that never wins, where
        there is no choice. A choice with entries has a finite gain.
    factors : mapping of int to ndarray, shape (n,), float64
        What products are multiplied by, for layers where that is not 1.
    layers : int
    maximise : bool

    Returns
    -------
    ChoiceGains

    Raises
    ------
    ValueError
        If a choice with entries has an infinite gain.

    Notes
    -----
    A state's gain in a layer does not matter where it has no entries in it, nor its factor; such places are
    filled with what is frequent, so that most models need few rows. Time: O(L n log n) for L layers.
    Synchronises: yes.
    """
    xp, size, worst = place.xp, len(marks), -np.inf if maximise else np.inf
    codes = xp.zeros(size, np.int64)
    usual: dict[int, tuple[float, float]] = {}

    def columns(layer: int, rows: Any) -> tuple[Array, Array, Array | None]:
        """Return gains with and without entries and factors of some rows."""
        here = xp.not_equal(xp.bitwise_and(marks[rows], np.uint64(1 << layer)), np.uint64(0))
        on_host = rows if isinstance(rows, slice) else to_host(rows)
        gain = xp.asarray(gains[layer][on_host])
        factor = xp.asarray(factors[layer][on_host]) if layer in factors else None
        if layer not in usual:
            if is_any(xp.isinf(gain[here])):
                raise ValueError(f"gains: layer {layer} has transitions of choices whose gain is infinite")
            usual[layer] = _frequent(xp, gain[here]), 1.0 if factor is None else _frequent(xp, factor[here])
        if factor is not None:
            factor = xp.where(here, factor, usual[layer][1])
        return xp.where(here, gain, usual[layer][0]), xp.where(here, worst, gain), factor

    everything = slice(None)
    for layer in sorted(gains):
        for column in columns(layer, everything):
            if column is not None and size:
                number = distinct_values(xp, column)[1]
                codes = distinct(xp, (codes, number))[1]
    first, codes = distinct(xp, (codes,))
    rows = max(len(first), 1)
    table = xp.zeros((rows, 2 * layers + 1))
    table[:, layers:] = worst
    weights = xp.ones((rows, layers)) if factors else None
    for layer in sorted(gains) if size else ():
        with_entries, without, factor = columns(layer, first)
        table[:, layer], table[:, layers + layer] = with_entries, without
        if factor is not None and weights is not None:
            weights[:, layer] = factor
    best = xp.max if maximise else xp.min
    table[:, 2 * layers] = best(table[:, layers : 2 * layers], axis=1)
    blank = xp.where(xp.isinf(table), table, 0.0)
    bits = 0 if rows == 1 else 8 if rows <= 1 << 8 else 16 if rows <= 1 << 16 else 32
    narrow = None if bits == 0 else codes.astype(np.dtype(f"u{bits // 8}"))
    same = to_host((table[:, :layers] == table[:1, :layers]).all(axis=0))
    uniform = sum(1 << layer for layer in range(layers) if same[layer])
    return ChoiceGains(
        bits, narrow, xp.ascontiguousarray(table), xp.ascontiguousarray(blank), weights, uniform
    )


def _frequent(xp: Any, values: Array) -> float:
    """Return the most frequent of some values; zero if there are none."""
    if not len(values):
        return 0.0
    table, number = distinct_values(xp, values)
    return float(table[counts(xp, number, len(table)).argmax()])


# Layout of a matrix for the two-stage product: pairs, and the items of both stages.
#
# A *pair* is a block class and the column at which a submatrix of the class begins. The first stage
# multiplies every pair by x once; in the second stage a row adds up the products of all pairs in its slots.
# Long rows have many slots, and the more slots there are, the more often the same pair fills them: at level
# 16 of Herman's ring of 15 processes, 8,748 slots hold 1,020 pairs, which have 1.7 million entries together
# where the matrix has 14.3 million.

_TURNS = 2
"""Times that a thread block takes further rows: enough to hide its start, few enough to spread the work."""

_SERIAL = 4
"""Entries (first stage) or slots (second stage) that one thread adds up, about, where a row has enough."""


class PairOptions(Record):
    """Choices of speed.

    Attributes
    ----------
    tuning : PairTuning, optional
        Launch shape; chosen from the lengths of rows if left out.
    wide : bool
        Use 64-bit indices although 32 bits would do.
    """

    tuning: PairTuning | None = None
    wide: bool = False


def build_pairs(
    place: Place, types: RowTypes, k: int, options: PairOptions | None = None
) -> PairMatrix | None:
    """Build the matrix for the two-stage product from level k, on the device.

    Parameters
    ----------
    place : Place
    types : RowTypes
        Row types of the matrix.
    k : int
        Level.
    options : PairOptions, optional
        Choices of speed.

    Returns
    -------
    PairMatrix or None
        None if the classes are scaled and sharing them would change some value by more than 4 units in the
        last place; build from unscaled classes then.

    Notes
    -----
    Time: O(E + S log S) for E entries of all classes and S slots of all groups. Synchronises: yes.
    """
    chosen = options or PairOptions()
    xp = place.xp
    classes = types.classes
    n_rows, n_columns = classes.matrix.shape
    entries = class_submatrices(xp, classes, k, np.int64)
    if entries is None:
        return None
    groups = enumerate_groups(xp, types, k)
    class_rows = xp.asarray(classes.matrix.rows[k][classes.representative[k]])
    slot_class = xp.asarray(classes.classes[k])[groups.node].astype(xp.int64)
    # In the order of their classes, so that pairs of one class lie side by side.
    first, pair = distinct(xp, (slot_class, groups.base))
    pair_class = slot_class[first]
    product_ptr = pointers(xp, class_rows[pair_class])
    n_products = int(product_ptr[-1])
    class_row = pointers(xp, class_rows)
    n_class_rows = int(class_row[-1])
    total = len(entries.row)
    number = class_row[owners(xp, entries.ptr, total)] + entries.row
    lengths = counts(xp, number, n_class_rows)
    row_ptr = pointers(xp, lengths)
    class_pairs = counts(xp, pair_class, len(class_rows))
    tuning = chosen.tuning or _choose_tuning(xp, lengths, class_pairs, class_rows, groups, slot_class)
    bits = index_bits(max(n_rows, n_columns, len(groups.base), n_products, total), chosen.wide)
    index = index_type(bits)
    scales = xp.asarray(classes.leading[k])[groups.node] if classes.scaled and len(groups.base) else None
    rows = xp.asarray(types[k].rows)[groups.type]
    return PairMatrix(
        n_rows=n_rows,
        n_columns=n_columns,
        index_bits=bits,
        row_ptr=row_ptr.astype(index),
        columns=entries.column.astype(index),
        values=_compress(place, entries),
        base=groups.base[first].astype(index),
        pair_items=_pair_items(place, tuning, class_rows, class_row, class_pairs, product_ptr, row_ptr, bits),
        slot_product=product_ptr[pair].astype(index),
        scale=compress(place, scales),
        row_items=_row_items(place, tuning, groups, rows, n_rows, bits),
        products=xp.zeros(n_products),
        tuning=tuning,
    )


def _compress(place: Place, entries: CooBlocks) -> CodedVector:
    # No dictionary for no entries: the kernel has no variant for values of no width.
    if len(entries.value) == 0:
        return CodedVector(0, 64, entries.value, None)
    return compress(place, entries.value)


def _choose_tuning(
    xp: Any, lengths: Array, class_pairs: Array, class_rows: Array, groups: RowGroups, slot_class: Array
) -> PairTuning:
    """Choose lanes a row and threads a slot from the lengths that a typical entry, or slot, sees."""
    if len(groups) == 0:
        return PairTuning()
    own = lengths.astype(np.float64)
    typical_row = float((own * own).sum() / max(float(own.sum()), 1.0))
    shared = len(groups.base) and float(class_pairs.sum()) / max(int((class_pairs > 0).sum()), 1)
    slots = (groups.ptr[1:] - groups.ptr[:-1]).astype(np.float64)
    typical_slots = float((slots * slots).sum() / max(float(slots.sum()), 1.0))
    typical_rows = float(class_rows[slot_class].sum()) / max(len(slot_class), 1)
    parts = _power(typical_slots / _SERIAL, 1, 32)
    rows = _power(typical_rows, 1, 128)
    # Rows side by side read products side by side: no fewer than a warp, if the groups have as many.
    rows = min(rows, max(32, 256 // parts))
    parts = min(max(parts, 32 // rows), 256 // rows)
    members = 4 if shared >= 3.0 else 2 if shared >= 1.5 else 1
    return PairTuning(_power(typical_row / _SERIAL, 1, 32), members, rows, parts)


def _power(wanted: float, low: int, high: int) -> int:
    """Return the largest power of two up to a number, within bounds."""
    return min(high, max(low, 1 << max(0, int(wanted).bit_length() - 1)))


def _pair_items(
    place: Place,
    tuning: PairTuning,
    class_rows: Array,
    class_row: Array,
    class_pairs: Array,
    product_ptr: Array,
    row_ptr: Array,
    bits: int,
) -> Array:
    """Cut the pairs of every class into items of some rows and up to `members` pairs (a bundle).

    Items of the most entries come first, so that no long one starts at the end.
    """
    xp = place.xp
    members, most_rows = tuning.members, _TURNS * PAIR_THREADS // tuning.entry_lanes
    bundles = -(-class_pairs // members)
    item_ptr = pointers(xp, bundles * -(-class_rows // most_rows))
    n_items = int(item_ptr[-1])
    item, owner = ranges(xp, xp.zeros(len(class_rows), np.int64), item_ptr, n_items)
    first_pair = pointers(xp, class_pairs)
    # The rows of one bundle lie side by side, and their pairs' parts of x stay in the caches.
    per_bundle = -(-class_rows // most_rows)
    bundle, piece = item // per_bundle[owner], item % per_bundle[owner]
    base = first_pair[owner] + bundle * members
    count = xp.minimum(first_pair[owner + 1] - base, members)
    local = piece * most_rows
    rows = xp.minimum(class_rows[owner] - local, most_rows)
    first_row = class_row[owner] + local
    order = stable_order(xp, (-(row_ptr[first_row + rows] - row_ptr[first_row]),))
    columns = {
        "first_row": first_row, "first_base": base, "product": product_ptr[base] + local,
        "stride": class_rows[owner], "rows": rows, "count": count,
    }  # fmt: skip
    return pack_pair_items(place, bits, **{name: column[order] for name, column in columns.items()})


def _row_items(
    place: Place, tuning: PairTuning, groups: RowGroups, rows: Array, n_rows: int, bits: int
) -> Array:
    """Cut the groups, and the gaps, into items of up to `tuning.rows` rows; those of most slots first."""
    xp = place.xp
    gap_begin, gap_ptr = find_empty_rows(xp, groups.row, rows, n_rows)
    nothing = gap_begin * 0
    begin = xp.concatenate((groups.row, gap_begin))
    covered = xp.concatenate((rows, gap_ptr[1:] - gap_ptr[:-1]))
    first_slot = xp.concatenate((groups.ptr[:-1], nothing))
    slots = xp.concatenate((groups.ptr[1:] - groups.ptr[:-1], nothing))
    item_ptr = pointers(xp, -(-covered // tuning.rows))
    n_items = int(item_ptr[-1])
    piece, owner = ranges(xp, xp.zeros(len(begin), np.int64), item_ptr, n_items)
    local = piece * tuning.rows
    order = stable_order(xp, (-slots[owner],))
    columns = {
        "row": begin[owner] + local, "first_slot": first_slot[owner], "local": local, "slots": slots[owner],
        "rows": xp.minimum(covered[owner] - local, tuning.rows),
    }  # fmt: skip
    return pack_row_items(place, bits, **{name: column[order] for name, column in columns.items()})


def build_product(matrix: TypedMatrix, k: int, options: LayoutOptions | None = None) -> GpuProduct:
    """Build the representation of a level on the current device: tiles, or pairs where rows are long.

    Parameters
    ----------
    matrix : TypedMatrix
        The matrix with its row types.
    k : int
        Level.
    options : LayoutOptions, optional
        Choices of speed; if given, the level is held as tiles.

    Returns
    -------
    GpuProduct

    Raises
    ------
    MemoryError
        If the device has no room; the message says what is needed, what is free, and what to do.
    ValueError
        If the level has too many row types.
    """
    return GpuProduct(current_device(), build_layout(matrix, k, options))


def build_layout(
    matrix: TypedMatrix,
    k: int,
    options: LayoutOptions | None = None,
    own_columns: int | None = None,
    block_row: NDArray[np.int64] | None = None,
) -> TileMatrix | PairMatrix:
    """Return the arrays of `build_product` alone.

    Parameters
    ----------
    matrix, k, options
        As for `build_product`.
    own_columns, block_row : optional
        See `hybrid.matrix.gpu.tile_layout.build_tile_matrix`; with block rows the level is held as tiles.
    """
    device = current_device()
    types = types_of_level(matrix, k)
    pairs = options is None and block_row is None and uses_pairs(matrix, k)
    layout = _build(device, types, k, options, pairs, own_columns, block_row)
    if layout is None:
        # Sharing up to a scale would cost accuracy here.
        layout = _build(device, matrix.plain, k, options, pairs, own_columns, block_row)
    if layout is None:
        raise RuntimeError("classes of equal blocks are exact, yet were refused as inexact")
    return layout


def _build(
    device: Device,
    types: RowTypes,
    k: int,
    options: LayoutOptions | None,
    pairs: bool,
    own_columns: int | None,
    block_row: NDArray[np.int64] | None,
) -> TileMatrix | PairMatrix | None:
    check_memory(device, types, k, pairs)

    def make(place: Place) -> TileMatrix | PairMatrix | None:
        if pairs:
            return build_pairs(place, types, k)
        return build_tile_matrix(place, types, k, options, own_columns=own_columns, block_row=block_row)

    return made_for(device, layout_items(types, k), make)
