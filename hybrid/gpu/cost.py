"""A cost model of the tile kernel, evaluated on row types without building anything.

A product reads one element of x an entry, mostly from the caches; every row costs its share of the vectors;
every item of the kernel costs a start; the entries of a row type are read once for the groups that share a
block. The constants were fitted to products of the case studies measured at many levels on an NVIDIA H200; on
other cards they are scaled by instructions, bandwidth and second-level cache
(:mod:`hybrid.gpu.device_properties`). They need only rank levels; what they cannot
know, the terms of a tile, :mod:`hybrid.levels.probe` measures.
Where rows are long, every level can be held as tiles or as pairs (:mod:`hybrid.gpu.pair_cost`), and the form
predicted to be faster is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hybrid.errors import OptionError
from hybrid.gpu.device_properties import REFERENCE, Card, card_in_use
from hybrid.gpu.pair_cost import SECONDS_SERIAL_ENTRY, count_pairs, has_long_rows, longest_row, pair_seconds
from hybrid.gpu.tuning import choose_tuning
from hybrid.injection.row_types import RowTypes, TypedMatrix
from mtbdd.stacked_layers import StackedLayers

_SECONDS_ENTRY = 0.42e-12
_SECONDS_SCALED_ENTRY = 0.3e-12
_SECONDS_ROW = 2.2e-12
_SECONDS_ITEM = 1.3e-9
_SECONDS_SLOT = 6e-12
_SECONDS_STORED_ENTRY = 1.1e-12
_SECONDS_STORED_BYTE = 0.5e-12
_SECONDS_START = 15e-6

_BUILD_ENTRIES = 1 << 28
"""Entries of all row types beyond which a level is not offered: building would need tens of gigabytes."""

_LANES = 32
_TILE_ROWS = 512


class _Form(NamedTuple):
    """How a level would be held: predicted seconds of a product, row types, and whether as pairs."""

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
    level = types.levels[k]
    if level.n_types == 0:
        return _SECONDS_START
    classes = types.classes
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
    each = _SECONDS_ENTRY + (_SECONDS_SCALED_ENTRY if classes.scaled else 0.0)
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
    return float(seconds.sum()) + slots + streamed + _SECONDS_START


def _levels(curve: TypedMatrix) -> dict[int, _Form]:
    """Return the usable levels, each in the form predicted to be fastest on the card in use."""
    known, card = curve.once(_no_forms), card_in_use()
    if card not in known:
        long = has_long_rows(curve)
        found: dict[int, _Form] = {}
        for types in (curve.plain, curve.scaled):
            for form, k in (
                *_as_tiles(types, long, card),
                *(_as_pairs(types, card) if long else ()),
            ):
                if k not in found or form.seconds < found[k].seconds:
                    found[k] = form
        known[card] = found
    return known[card]


def _no_forms(curve: TypedMatrix) -> dict[Card, dict[int, _Form]]:
    """Return where a matrix keeps its forms, by card."""
    return {}


def _as_tiles(types: RowTypes, long: bool, card: Card) -> Iterator[tuple[_Form, int]]:
    waiting = longest_row(types) * SECONDS_SERIAL_ENTRY if long else 0.0
    for k in range(len(types)):
        seconds = level_seconds(types, k, card)
        if seconds is not None:
            yield _Form(seconds + waiting, types, False), k


def _as_pairs(types: RowTypes, card: Card) -> Iterator[tuple[_Form, int]]:
    counts = count_pairs(types.classes)
    slower = max(card.work(REFERENCE), card.transfer(REFERENCE))
    for k in range(min(len(types), len(counts))):
        seconds = pair_seconds(types, k, counts[k])
        if seconds is not None:
            yield _Form(seconds * slower, types, True), k


def predicted_level_seconds(curve: TypedMatrix, k: int) -> float | None:
    """Predict the time of a product at level k; None if the GPU backend cannot use the level."""
    found = _levels(curve).get(k)
    return None if found is None else found.seconds


def types_of_level(curve: TypedMatrix, k: int) -> RowTypes:
    """Return the row types, plain or shared up to a scale, that the GPU backend uses at level k.

    Raises
    ------
    ValueError
        If it cannot use the level.
    """
    return _form(curve, k).types


def uses_pairs(curve: TypedMatrix, k: int) -> bool:
    """Tell whether the GPU backend holds level k as pairs instead of tiles.

    Raises
    ------
    ValueError
        If it cannot use the level.
    """
    return _form(curve, k).pairs


def _form(curve: TypedMatrix, k: int) -> _Form:
    found = _levels(curve).get(k)
    if found is None:
        raise OptionError(f"level: level {k} has too many row types for the gpu backend; choose 'min-time'")
    return found


def rank_levels(curve: TypedMatrix) -> list[tuple[int, RowTypes, float]]:
    """Return the usable levels with their row types and predicted seconds, fastest first."""
    ranked = sorted((form.seconds, k) for k, form in _levels(curve).items())
    return [(k, _levels(curve)[k].types, seconds) for seconds, k in ranked]


def rank_choice_levels(stacked: StackedLayers, types: RowTypes) -> list[tuple[int, float]]:
    """Return the levels whose submatrices belong to one layer each, with predicted seconds, fastest first."""
    found = ((level_seconds(types, k), k) for k in range(stacked.first_level, len(types)))
    return [(k, seconds) for seconds, k in sorted((s, k) for s, k in found if s is not None)]
