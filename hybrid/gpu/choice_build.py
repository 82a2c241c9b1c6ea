"""The matrices of all layers on the device: level and launch shape chosen, by measurement where that pays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gpu_kernels import ChoiceGains, ChoiceStep, ChoiceTiles, Device, run_choices
from hybrid.gpu.choice import check_memory
from hybrid.gpu.choice_layout import (
    ChoiceLayoutOptions,
    build_choice_tiles,
    rank_choice_levels,
    row_types_of,
)
from hybrid.gpu.probe import PROBE_ENTRIES
from hybrid.gpu.stacked import StackedLayers, stack_layers
from hybrid.injection.row_types import RowTypes
from hybrid.levels.counting import nonzeros_below
from hybrid.levels.curve import level_curve
from mtbdd.offset import OffsetMTBDD

__all__ = ["MOST_LAYERS", "build_choices"]

MOST_LAYERS = 64
"""Layers of a system at most: a state's layers with entries are bits of a word."""

_SIMILAR = 1.3
_CANDIDATES = 4
_REPEATS = 5


def build_choices(
    device: Device,
    matrices: Mapping[int, OffsetMTBDD],
    layers: int,
    level: str | int = "auto",
    options: ChoiceLayoutOptions | None = None,
) -> tuple[int, ChoiceTiles] | None:
    """Put the matrices of all layers on a device.

    Parameters
    ----------
    device : Device
    matrices : mapping of int to OffsetMTBDD
        By layer; square, of one shape, rows and columns the same states.
    layers : int
        At most `MOST_LAYERS`.
    level : str or int
        ``auto``, ``min-time``, ``min-memory``, or an injection level of the layers' diagrams.
    options : ChoiceLayoutOptions, optional
        Choices of speed; given, no launch shapes are tried.

    Returns
    -------
    (int, ChoiceTiles) or None
        The level in the layers' diagrams, and the representation; None if no level can be laid out.

    Raises
    ------
    MemoryError
        If the device has no room for any level.

    Notes
    -----
    Synchronises: yes.
    """
    stacked = stack_layers(matrices, layers)
    types = row_types_of(stacked)
    ranked = rank_choice_levels(stacked, types)
    entries = int(nonzeros_below(stacked.matrix)[0].sum())
    timed = entries >= PROBE_ENTRIES and level in ("auto", "min-time")
    wanted = _candidates(stacked, ranked, level, timed)
    best: tuple[float, int, ChoiceTiles] | None = None
    problem: MemoryError | None = None
    for k in wanted:
        built = _built(device, stacked, types, k, options)
        if isinstance(built, MemoryError):
            problem = built
        elif built is not None:
            seconds = _seconds(device, built) if timed else 0.0
            if best is None or seconds < best[0]:
                best = seconds, k, built
        if best is not None and not timed:
            break
    if best is None:
        if problem is not None:
            raise problem
        return None
    seconds, k, tiles = best
    if options is None and entries >= PROBE_ENTRIES:
        tiles = _retuned(device, stacked, types, k, tiles)
    return k - stacked.first_level, tiles


def _candidates(
    stacked: StackedLayers, ranked: list[tuple[int, float]], level: str | int, timed: bool
) -> list[int]:
    """Return the levels of the stacked matrix to try."""
    first = stacked.first_level
    if isinstance(level, int):
        # The same bits as in a layer's diagram are tested above it.
        return [k for k, _ in ranked if k == first + level]
    if level == "min-memory":
        sizes = {c.level: c.bytes_worst_case for c in level_curve(stacked.matrix).levels}
        return sorted((k for k, _ in ranked), key=lambda k: sizes[k])[:1]
    if not timed or not ranked:
        return [k for k, _ in ranked]
    near = sorted(k for k, seconds in ranked if seconds <= _SIMILAR * ranked[0][1])
    step = max(1.0, (len(near) - 1) / (_CANDIDATES - 1))
    spread = {near[round(i * step)] for i in range(_CANDIDATES) if round(i * step) < len(near)}
    return sorted(spread | {ranked[0][0]})


def _built(
    device: Device, stacked: StackedLayers, types: RowTypes, k: int, options: ChoiceLayoutOptions | None
) -> ChoiceTiles | MemoryError | None:
    try:
        check_memory(device, types, k)
    except MemoryError as error:
        return error
    return build_choice_tiles(device, stacked, types, k, options)


def _retuned(
    device: Device, stacked: StackedLayers, types: RowTypes, k: int, tiles: ChoiceTiles
) -> ChoiceTiles:
    """Return the tiles or others of the same level whose launch shape was measured to be faster."""
    best, seconds = tiles, _seconds(device, tiles)
    members = 2 if tiles.tuning.members == 4 else 4
    for tuning in (
        replace(tiles.tuning, members=members),
        replace(tiles.tuning, min_blocks=6),
        replace(tiles.tuning, members=1, min_blocks=10),
    ):
        other = build_choice_tiles(device, stacked, types, k, ChoiceLayoutOptions(tuning=tuning))
        if other is None:
            continue
        taken = _seconds(device, other)
        if taken < seconds:
            best, seconds = other, taken
    return best


def _seconds(device: Device, tiles: ChoiceTiles) -> float:
    """Return the time of a step whose choices are worth nothing by themselves."""
    xp = device.xp
    table = xp.zeros((1, 2 * tiles.layers + 1))
    table[:, tiles.layers :] = -np.inf
    gains = ChoiceGains(0, None, table, table, None)
    x, out = xp.ones(tiles.size), xp.empty(tiles.size)
    step = ChoiceStep(maximise=True)
    return device.seconds(lambda: run_choices(device, tiles, gains, step, x, out), _REPEATS)
