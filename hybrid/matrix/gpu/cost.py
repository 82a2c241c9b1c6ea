"""A cost model of the tile kernel, evaluated on row types without building anything.

A product reads one element of x an entry, mostly from the caches. Every row costs its share of the vectors,
every item of the kernel a start. The entries of a row type are read once for the groups that share a block.
The constants were fitted to products of the case studies measured at many levels on an NVIDIA H200. On other
cards they are scaled by instructions, bandwidth and second-level cache (:mod:`hybrid.matrix.gpu.tuning`).
They need only rank levels; what they cannot know, the terms of a tile, :mod:`hybrid.matrix.levels.probe`
measures. Where rows are long, every level can be held as tiles or as pairs (:mod:`hybrid.matrix.gpu.cost`),
and the form predicted to be faster is taken.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpu_kernels import HOST_ITEMS, Device
from hybrid.base.directed_rounding import near_least
from hybrid.base.errors import OptionError
from hybrid.matrix.gpu.tuning import REFERENCE, Card, card_in_use, choose_tuning
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.injection.submatrices import BlockClasses
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from hybrid.matrix.space.base import DEFAULT_VECTORS, LEAST_VECTORS
from mtbdd.base.errors import either, option
from mtbdd.base.records import Record
from mtbdd.offset.offset import row_entries
from mtbdd.offset.tuples import distinct_rows

# Which matrices have long rows, and a cost model of their two-stage product, without building anything.
#
# A thread of the tile kernel runs down a whole row, which bounds the time from below by the longest row. The
# two-stage product spreads rows over threads, and multiplies each pair (a class of submatrices and the
# column where a member begins) once. The pairs of all levels are listed by one sweep: a row bit takes a pair
# to its children at the same column, a column bit moves the then child.

LONG_ROW = 32
"""Entries of a row, on average, from which a lane a row leaves the device waiting for its longest rows."""

LONGEST_ROW = 1024
"""Entries of a single row from which everything else waits for it."""

PAIR_LIMIT = 1 << 21
"""Pairs of a level beyond which deeper levels are not examined."""

SECONDS_SERIAL_ENTRY = 0.1e-6
"""Latency of an entry for the thread that runs down its row, tables of terms included."""

_SECONDS_SERIAL_SLOT = 0.1e-6
_SECONDS_ENTRY = 1.0e-12
_SECONDS_PRODUCT = 2.0e-12
_SECONDS_SLOT_ROW = 1.6e-12
_SECONDS_SLOT = 6e-12
_SECONDS_ITEM = 1.3e-9
_SECONDS_START = 8e-6

_CLASS_ENTRIES = 1 << 28
"""Entries of all classes beyond which a level is not offered: building would need tens of gigabytes."""

_BYTES_PER_ENTRY = 110
_BYTES_PER_SLOT = 160


class PairCounts(Record):
    """Sizes of the two stages at a level.

    Attributes
    ----------
    pairs : int
        Distinct submatrices with their columns.
    entries : int
        Entries of all pairs: multiplications of the first stage.
    products : int
        Rows of all pairs.
    """

    pairs: int
    entries: int
    products: int


def has_long_rows(matrix: TypedMatrix) -> bool:
    """Return whether rows are too long for one thread each; stacked layers have a thread a row always."""
    if matrix.stacked is not None:
        return False
    if matrix.nonzeros >= LONG_ROW * max(1, matrix.shape[0]):
        return True
    if row_entries(matrix.matrix) < LONGEST_ROW:
        return False  # without the deepest row types
    return longest_row(matrix.plain) >= LONGEST_ROW


def longest_row(types: RowTypes) -> float:
    """Return the length of the longest row, or a lower bound.

    It is the greatest mean length among the row types of the deepest level, which have one row each unless
    the types became too many to be followed so far.
    """
    k = len(types) - 1
    level = types[k]
    if level.n_types == 0:
        return 0.0
    return float((level.entries / level.rows).max())


def count_pairs(classes: BlockClasses) -> list[PairCounts]:
    """Count the pairs of every level.

    Parameters
    ----------
    classes : BlockClasses

    Returns
    -------
    list of PairCounts
        Of the levels from the root down to the last one with at most `PAIR_LIMIT` pairs.

    Notes
    -----
    Time: O(pairs log pairs) a level.
    """
    matrix = classes.matrix
    size = matrix.nodes[0]
    own, base = np.asarray(classes.classes[0], np.int64), np.zeros(size, np.int64)
    counts: list[PairCounts] = []
    for k in range(matrix.n_levels + 1):
        chosen = classes.representative[k]
        entries, rows = classes.entries(k)[own].sum(), matrix.rows[k][chosen][own].sum()
        counts.append(PairCounts(len(own), int(entries), int(rows)))
        if k == matrix.n_levels:
            break
        low, high = (child[own].astype(np.int64) for child in classes.children(k))
        step = matrix.levels[k].offset[chosen][own] if k % 2 == 1 else 0
        child, column = np.concatenate((low, high)), np.concatenate((base, base + step))
        kept = child >= 0
        child, column = child[kept], column[kept]
        first, _ = distinct_rows([child, column])
        if len(first) > PAIR_LIMIT:
            break
        own, base = child[first], column[first]
    return counts


def pair_seconds(types: RowTypes, k: int, counts: PairCounts) -> float | None:
    """Predict the seconds of one two-stage product.

    Parameters
    ----------
    types : RowTypes
        Row types of the matrix; level k must be among them.
    k : int
        Level.
    counts : PairCounts
        Of the level.

    Returns
    -------
    float or None
        None if the classes have too many entries to be built.

    Notes
    -----
    Time: O(slots of the row types). The constants are estimates from the bytes moved and the latencies of a
    load; they need only rank levels, which :mod:`hybrid.matrix.levels.probe` then times.
    """
    level = types[k]
    if level.n_types == 0:
        return _SECONDS_START
    classes = types.classes
    chosen = classes.representative[k]
    entries = classes.entries(k).astype(np.float64)
    if entries.sum() > _CLASS_ENTRIES:
        return None
    class_rows = classes.matrix.rows[k][chosen].astype(np.float64)
    rows = level.rows.astype(np.float64)
    slots, groups = level.lengths.astype(np.float64), level.groups.astype(np.float64)
    # A block has 256 threads: rows side by side, the rest shares the slots.
    together = np.minimum(rows, 32.0)
    parts = 256.0 / together
    # Rows of a class are shared by up to 32 lanes, a lane having some entries at least.
    mean = float((entries / class_rows).max())
    serial = max(mean / 32.0, min(mean, 4.0)) * SECONDS_SERIAL_ENTRY
    serial += float(np.ceil(slots / parts).max()) * _SECONDS_SERIAL_SLOT
    items = float((groups * np.ceil(rows / together)).sum()) + counts.products / 128.0 + counts.pairs / 4.0
    return (
        _SECONDS_START
        + serial
        + counts.entries * _SECONDS_ENTRY
        + counts.products * _SECONDS_PRODUCT
        + float((groups * slots * rows).sum()) * _SECONDS_SLOT_ROW
        + level.group_slots * _SECONDS_SLOT
        + items * _SECONDS_ITEM
    )


def pair_build_bytes(types: RowTypes, k: int) -> int:
    """Return the most memory that building the pairs of level k and solving with them takes, in bytes.

    Parameters
    ----------
    types : RowTypes
    k : int
        Level. All nodes are expanded where classes are scaled.
    """
    classes, level = types.classes, types[k]
    matrix = classes.matrix
    entries = int((matrix.entries_below[k] if classes.scaled else classes.entries(k)).sum())
    vectors = 8 * (LEAST_VECTORS - 1) * matrix.n_rows + 8 * matrix.n_columns
    # No pair has more rows than the slots that meet it.
    products = 8 * int((level.groups * level.lengths * level.rows).sum())
    rows = 100 * matrix.n_rows
    slots = _BYTES_PER_SLOT * (level.group_slots + level.n_groups)
    return vectors + _BYTES_PER_ENTRY * entries + slots + products + rows


_SECONDS_TILE_ENTRY = 0.42e-12
_SECONDS_SCALED_ENTRY = 0.3e-12
_SECONDS_ROW = 2.2e-12
_SECONDS_STORED_ENTRY = 1.1e-12
_SECONDS_STORED_BYTE = 0.5e-12
_SECONDS_TILE_START = 15e-6

_HOST_SECONDS_ITEM = 0.2e-6
_CARD_SECONDS_ITEM = 0.005e-6
"""Laying out an entry or a slot; a layout made on a card begins with what the largest on a host takes."""

_BUILD_ENTRIES = 1 << 28
"""Entries of all row types beyond which a level is not offered: building would need tens of gigabytes."""

_LANES = 32
_TILE_ROWS = 512
_MOST_MEMBERS = 4

_MOST_TOGETHER = _MOST_MEMBERS * 4
"""Groups of a block at most."""


class _Form(NamedTuple):
    """The form of a level on the device: predicted seconds of a product, row types, and whether as pairs."""

    seconds: float
    types: RowTypes
    pairs: bool


def level_seconds(types: RowTypes, k: int, card: Card | None = None) -> float | None:
    """Predict the seconds of one product with the row types of level k.

    Parameters
    ----------
    types : RowTypes
        Row types of the matrix; level k must be among them.
    k : int
        Level.
    card : Card, optional
        The one in use if left out.

    Returns
    -------
    float or None
        None if the level has too many entries in its row types to be built.

    Notes
    -----
    Time: O(slots of the row types).
    """
    level = types[k]
    if level.n_types == 0:
        return _SECONDS_TILE_START
    rows = level.rows.astype(np.float64)
    entries = level.entries.astype(np.float64)
    if entries.sum() > _BUILD_ENTRIES:
        return None
    members = choose_tuning(types, k).members
    groups = level.groups.astype(np.float64)
    tiles = np.ceil(rows / _TILE_ROWS)
    # Short types share a block: as many groups as keep its four warps busy.
    together = members * np.maximum(1, 4 // np.ceil(np.minimum(rows, _TILE_ROWS) / _LANES))
    bundles = np.ceil(groups / together)
    lanes = _LANES * np.ceil(rows / _LANES) / rows
    dead = np.ceil(groups / members) * members / groups
    card = card or card_in_use()
    work, transfer = card.work(REFERENCE), card.transfer(REFERENCE)
    each = _entry_seconds(types)
    seconds = (
        # An entry is an instruction or two, and a read of x by way of the caches: the slower one decides.
        groups * entries * lanes * dead * (each * max(work, transfer))
        + groups * rows * (_SECONDS_ROW * transfer)
        + tiles * bundles * (_SECONDS_ITEM * work)
        + bundles * entries * (_SECONDS_STORED_ENTRY * work)
    )
    stored = float(entries.sum()) + 12.0 * level.group_slots
    slots = _SECONDS_SLOT * level.group_slots * work
    streamed = stored * _SECONDS_STORED_BYTE * card.stream(stored, REFERENCE)
    return float(seconds.sum()) + slots + streamed + _SECONDS_TILE_START


def layout_items(types: RowTypes, k: int) -> int:
    """Return what laying out level k grows with: entries of all row types and slots of all groups."""
    return int(types[k].entries.sum()) + types[k].group_slots


def layout_seconds(types: RowTypes, k: int) -> float:
    """Predict the seconds of laying out level k: on the host up to some items, on the card beyond them."""
    items = layout_items(types, k)
    if items <= HOST_ITEMS:
        return items * _HOST_SECONDS_ITEM
    return HOST_ITEMS * _HOST_SECONDS_ITEM + (items - HOST_ITEMS) * _CARD_SECONDS_ITEM


def _least_seconds(types: RowTypes, k: int, card: Card) -> float:
    """Return what `level_seconds` is not below, at level k and at all levels below it.

    Groups and their slots become more from level to level, and the rows of a group fewer, so that no warp
    gets more of them.
    """
    level = types[k]
    if level.n_types == 0:
        return _SECONDS_TILE_START
    work, transfer = card.work(REFERENCE), card.transfer(REFERENCE)
    entries = level.groups * level.entries.astype(np.float64)
    lanes = _LANES / np.minimum(level.rows, _LANES)
    each = _entry_seconds(types)
    seconds = float((entries * lanes).sum()) * each * max(work, transfer)
    seconds += float(entries.sum()) * _SECONDS_STORED_ENTRY * work / _MOST_TOGETHER
    group = _SECONDS_ROW * transfer + _SECONDS_ITEM * work / _MOST_TOGETHER
    return seconds + level.n_groups * group + level.group_slots * _SECONDS_SLOT * work + _SECONDS_TILE_START


def _entry_seconds(types: RowTypes) -> float:
    return _SECONDS_TILE_ENTRY + (_SECONDS_SCALED_ENTRY if types.classes.scaled else 0.0)


def _form_at(matrix: TypedMatrix, k: int) -> _Form | None:
    """Return a level in the form predicted to be fastest on the card in use; None if it cannot be used."""
    known, card = matrix.once(_no_forms), card_in_use()
    if (card, k) not in known:
        known[card, k] = _fastest_form(matrix, k, card)
    return known[card, k]


def _no_forms(matrix: TypedMatrix) -> dict[tuple[Card, int], _Form | None]:
    """Return where a matrix keeps its forms, by card and level."""
    return {}


def _fastest_form(matrix: TypedMatrix, k: int, card: Card) -> _Form | None:
    long = matrix.once(has_long_rows)
    waiting = matrix.once(_longest_row) * SECONDS_SERIAL_ENTRY if long else 0.0
    forms = []
    for types in matrix.kinds(k):
        seconds = level_seconds(types, matrix.first_level + k, card)
        if seconds is not None:
            forms.append(_Form(seconds + waiting, types, False))
        if long and (seconds := _pair_seconds(matrix, types, k, card)) is not None:
            forms.append(_Form(seconds, types, True))
    return min(forms, key=lambda form: form.seconds, default=None)


def _longest_row(matrix: TypedMatrix) -> float:
    return longest_row(matrix.plain)


def _pair_seconds(matrix: TypedMatrix, types: RowTypes, k: int, card: Card) -> float | None:
    counts = matrix.once(_scaled_pairs if types.classes.scaled else _plain_pairs)
    if k >= len(counts):
        return None
    seconds = pair_seconds(types, k, counts[k])
    return None if seconds is None else seconds * max(card.work(REFERENCE), card.transfer(REFERENCE))


def _plain_pairs(matrix: TypedMatrix) -> list[PairCounts]:
    return count_pairs(matrix.plain.classes)


def _scaled_pairs(matrix: TypedMatrix) -> list[PairCounts]:
    return count_pairs(matrix.scaled.classes)


def predicted_level_seconds(matrix: TypedMatrix, k: int) -> float | None:
    """Predict the time of a product, or of a step over layers; None if the GPU cannot use the level."""
    found = _form_at(matrix, k)
    return None if found is None else found.seconds


def least_level_seconds(matrix: TypedMatrix, k: int) -> float:
    """Return what `predicted_level_seconds` is not below, at level k and at all levels below it."""
    if matrix.once(has_long_rows):
        return 0.0
    card = card_in_use()
    own = matrix.first_level + k
    return min((_least_seconds(types, own, card) for types in matrix.kinds(k)), default=math.inf)


def types_of_level(matrix: TypedMatrix, k: int) -> RowTypes:
    """Return the row types, plain or shared up to a scale, that the GPU backend uses at level k.

    Raises
    ------
    ValueError
        If it cannot use the level.
    """
    return _form(matrix, k).types


def uses_pairs(matrix: TypedMatrix, k: int) -> bool:
    """Return whether the GPU backend holds level k as pairs instead of tiles.

    Raises
    ------
    ValueError
        If it cannot use the level.
    """
    return _form(matrix, k).pairs


def _form(matrix: TypedMatrix, k: int) -> _Form:
    found = _form_at(matrix, k)
    if found is None:
        raise OptionError(
            f"level: level {k} has too many row types for the gpu backend; "
            f"choose {option('level', 'min-time')}"
        )
    return found


def rank_levels(matrix: TypedMatrix, factor: float = math.inf) -> list[tuple[int, RowTypes, float]]:
    """Return the usable levels with their row types and predicted seconds, fastest first.

    ``factor``: those that take at most so many times the least time, at least, are among them.
    """
    ranked = near_least(
        len(matrix),
        lambda k: predicted_level_seconds(matrix, k),
        lambda k: least_level_seconds(matrix, k),
        factor,
    )
    return [(k, types_of_level(matrix, k), seconds) for seconds, k in sorted(ranked)]


# Admission of a matrix to the device: its predicted time and memory, before anything is allocated.

SMALL_ENTRIES = 1 << 20
"""Entries below which a product takes less time than launching it."""

_BUILD_BYTES_PER_ENTRY = 110
"""Peak memory of sorting the entries of the row types, an entry."""

_BYTES_PER_LAYER_ENTRY = 180
"""The same where the terms are sorted by layers as well."""

_BUILD_BYTES_PER_SLOT = 60
"""Peak memory of laying out the groups, a slot and a group."""

_LEAST_BYTES_PER_ROW = 8 + 2
"""The result of a step, and two operands by dictionary; the iterate that is multiplied counts by columns."""

_CPU_SECONDS_ENTRY = 0.1e-9
"""Time of an entry on a CPU with many cores; the device takes longer where it waits for its longest rows."""

_MOST_CARDS = 1024
"""Cards that a message speaks of at most."""

_START_SECONDS = 0.1e-3
"""Added to the time on a CPU: a shorter product on the device is mostly the start of its launch."""


def least_vector_bytes(rows: int, columns: int) -> int:
    """Return the bytes of the vectors of damped steps, the fewest; columns are own and received ones."""
    return _LEAST_BYTES_PER_ROW * rows + 8 * columns


def cards_advice(required: int, available: int) -> str:
    """Return how many cards would do for bytes that are shared out, as free as one; empty if no few would."""
    cards = math.ceil(required / available) if available > 0 else _MOST_CARDS + 1
    return f", or {cards} such cards ({either('--distributed', 'ranks')})" if 1 < cards <= _MOST_CARDS else ""


def build_bytes(types: RowTypes, k: int, layers: bool = False) -> int:
    """Return the peak memory of building level k and of the method that keeps the fewest vectors, in bytes.

    Methods that keep more vectors ask for them when they begin, by
    :meth:`hybrid.matrix.space.vector_space.VectorSpace.reserve`.

    ``layers``: whether the matrix is that of stacked layers, whose terms are sorted by layers.
    """
    classes, level = types.classes, types[k]
    entries = int(level.entries.sum())
    vectors = least_vector_bytes(classes.matrix.n_rows, classes.matrix.n_columns)
    per_entry = _BYTES_PER_LAYER_ENTRY if layers else _BUILD_BYTES_PER_ENTRY
    return vectors + per_entry * entries + _BUILD_BYTES_PER_SLOT * (level.group_slots + level.n_groups)


def check_memory(device: Device, types: RowTypes, k: int, pairs: bool = False, layers: bool = False) -> None:
    """Refuse a level that the device has no room for, as tiles of a matrix or of layers, or as pairs.

    Raises
    ------
    MemoryError
        With required and available bytes, and what to do.
    """
    if pairs:
        required = pair_build_bytes(types, k)
    else:
        required = build_bytes(types, k, layers)
    available = device.free_bytes()
    if required > available:
        raise MemoryError(
            f"level {k} needs up to {required} bytes on {device.name} to be built and solved with, "
            f"{available} are free; choose another {option('level')}, or {option('backend', 'cpu')}"
            f"{cards_advice(required, available)}"
        )


def reason_for_cpu(device: Device, matrix: TypedMatrix) -> str | None:
    """Say why a matrix is better multiplied on the CPU; None if the device is to be preferred."""
    reason = reason_of_size(device, matrix.nonzeros, matrix.shape)
    if reason is not None:
        return reason
    ranked = rank_levels(matrix, 1.0)
    return reason_of_time(device, matrix.nonzeros, ranked[0][2]) if ranked else None


def reason_of_entries(nonzeros: int) -> str | None:
    """Say that a matrix is too small for the device; None if it is not."""
    if nonzeros < SMALL_ENTRIES:
        return f"{nonzeros} non-zeros are too few for the GPU to be faster"
    return None


def reason_of_size(device: Device, nonzeros: int, shape: tuple[int, int]) -> str | None:
    """Say why a matrix is too small for the device, or its vectors too large; None if they are not."""
    few = reason_of_entries(nonzeros)
    if few is not None:
        return few
    vectors = 8 * DEFAULT_VECTORS * max(shape)
    available = device.free_bytes()
    if vectors > available:
        return f"the vectors of a solution need {vectors} bytes, and {available} are free on {device.name}"
    return None


def reason_of_time(device: Device, nonzeros: int, seconds: float) -> str | None:
    """Say that a product predicted to take some time would be faster on the CPU; None if it would not."""
    if seconds > _CPU_SECONDS_ENTRY * nonzeros + _START_SECONDS:
        return (
            f"a product would take about {seconds * 1e3:.3g} ms on {device.name}, longer than a CPU "
            f"takes for {nonzeros} non-zeros"
        )
    return None
