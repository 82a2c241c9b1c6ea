"""The matrices of all layers on the device: level and launch shape chosen, by measurement where that pays."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gpu_kernels import ChoiceGains, ChoiceStep, ChoiceTiles, Device, IterationState, made_for, run_choices
from hybrid.gpu.admission import check_memory, layout_items
from hybrid.gpu.choice_layout import ChoiceLayoutOptions, build_choice_tiles
from hybrid.levels.policy import choose_level
from hybrid.levels.probe import PROBE_ENTRIES
from hybrid.levels.stacked_curve import MOST_LAYERS, StackedCurve, stacked_curve
from mtbdd.offset import OffsetMTBDD
from mtbdd.stacked_layers import stack_layers

__all__ = ["MOST_LAYERS", "build_choices"]

_log = logging.getLogger(__name__)

_SIMILAR = 1.3
_CANDIDATES = 4
_REPEATS = 5
_RECORDED = 6

_Timed = tuple[float, int, ChoiceTiles]
"""Seconds of a step, level, and the tiles."""


def build_choices(
    device: Device,
    matrices: Mapping[int, OffsetMTBDD],
    layers: int,
    level: str | int = "auto",
    options: ChoiceLayoutOptions | None = None,
    gains: Callable[[ChoiceTiles], ChoiceGains] | None = None,
    maximise: bool = True,
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
    gains : callable, optional
        Gives the gains that steps will have, which levels and launch shapes are timed with; asked once, with
        tiles of some level. Without it, choices are worth nothing by themselves.
    maximise : bool
        Which steps are timed.

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
    curve = stacked_curve(stack_layers(matrices, layers))
    large = curve.nonzeros >= PROBE_ENTRIES
    timed, tuned = large and level in ("auto", "min-time"), large and options is None
    trial = _Trial(device, gains, maximise)
    best: _Timed | None = None
    problem: MemoryError | None = None
    candidates = _candidates(curve, level, timed)
    for k in candidates:
        built = _built(device, curve, k, options)
        if isinstance(built, MemoryError):
            problem = built
        elif built is not None:
            seconds = trial.seconds(built) if timed or tuned else 0.0
            if best is None or seconds < best[0]:
                best = seconds, k, built
        if best is not None and not timed:
            break
    if best is None:
        if problem is not None:
            raise problem
        return None
    if tuned:
        best = _retuned(trial, curve, best, candidates if timed else [])
    _, k, tiles = best
    return k, tiles


def _candidates(curve: StackedCurve, level: str | int, timed: bool) -> list[int]:
    """Return the levels to try: the one that a policy chooses first, unless several are timed."""
    usable = list(curve.seconds)
    if isinstance(level, int):
        return [k for k in usable if k == level]
    if not usable:
        return []
    chosen = choose_level(curve, level, "gpu").level
    if timed:
        near = sorted(k for k in usable if curve.seconds[k] <= _SIMILAR * curve.seconds[usable[0]])
        step = max(1.0, (len(near) - 1) / (_CANDIDATES - 1))
        spread = {near[round(i * step)] for i in range(_CANDIDATES) if round(i * step) < len(near)}
        return sorted(spread | {usable[0], chosen})
    if level == "min-memory":
        usable.sort(key=lambda k: (curve[k].bytes_worst_case, k))
    return [chosen, *(k for k in usable if k != chosen)]


def _built(
    device: Device, curve: StackedCurve, k: int, options: ChoiceLayoutOptions | None
) -> ChoiceTiles | MemoryError | None:
    """Return the tiles of a level, None if it cannot be laid out, or why there is no room for it."""
    stacked, types = curve.stacked, curve.types
    _log.info("laying out level %d of all layers on %s", k, device.name)
    try:
        level = stacked.first_level + k
        check_memory(device, types, level, layers=True)
        return made_for(
            device,
            layout_items(types, level),
            lambda place: build_choice_tiles(place, stacked, types, level, options),
        )
    except MemoryError as error:
        return error


def _retuned(trial: _Trial, curve: StackedCurve, best: _Timed, levels: list[int]) -> _Timed:
    """Return the tiles of a level, or others that were measured to be faster.

    Launch shapes first; then smaller tiles, which spread small models over more blocks; larger items, whose
    tables are made less often; look-ups side by side or one by one; and single entries. In the end the other
    levels with what was best, for the shape that levels are compared with suits some better than others.
    """
    _, k, tiles = best
    own = tiles.tuning
    for blocks in (9, 7):
        # The layout is the same.
        best = _faster(trial, k, replace(tiles, tuning=replace(own, min_blocks=blocks)), best)
    options = ChoiceLayoutOptions(tuning=best[2].tuning)
    steps: tuple[tuple[dict[str, Any], ...], ...] = (
        (
            {"tuning": replace(own, min_blocks=9, members=2 if own.members == 4 else 4)},
            {"tuning": replace(own, threads=2 * own.threads, min_blocks=own.min_blocks // 2)},
        ),
        ({"slices": 8}, {"slices": 4}),
        ({"turns": 2},),
        ({"look_ups": 4 if tiles.look_ups == 1 else 1},),
        ({"unit": 1},) if tiles.unit == 2 else (),
    )
    for changes in steps:
        for changed in [replace(options, **change) for change in changes]:
            before = best
            best = _faster(trial, k, _built(trial.device, curve, k, changed), before)
            if best is not before:
                options = changed
    for level in levels:
        if level != k:
            best = _faster(trial, level, _built(trial.device, curve, level, options), best)
    return best


def _faster(trial: _Trial, k: int, built: ChoiceTiles | MemoryError | None, best: _Timed) -> _Timed:
    """Return the tiles of a level if there are any and they are measured to be faster than the best."""
    if not isinstance(built, ChoiceTiles):
        return best
    seconds = trial.seconds(built)
    return (seconds, k, built) if seconds < best[0] else best


class _Trial:
    """Times steps as value iteration makes them: with their gains, and the differences measured."""

    def __init__(
        self, device: Device, gains: Callable[[ChoiceTiles], ChoiceGains] | None, maximise: bool
    ) -> None:
        self.device = device
        self._gains_of = gains or self._nothing
        self._gains: ChoiceGains | None = None
        self._maximise = maximise

    def seconds(self, tiles: ChoiceTiles) -> float:
        """Return the time of a step, launches recorded. Synchronises: yes."""
        xp, device = self.device.xp, self.device
        gains = self._gains = self._gains or self._gains_of(tiles)
        x, out = xp.zeros(tiles.size), xp.empty(tiles.size)
        step = ChoiceStep(self._maximise, state=IterationState.create(device))

        def steps() -> None:
            for k in range(_RECORDED):
                run_choices(device, tiles, gains, step, *((x, out) if k % 2 == 0 else (out, x)))

        steps()
        return device.seconds(device.record(steps), _REPEATS) / _RECORDED

    def _nothing(self, tiles: ChoiceTiles) -> ChoiceGains:
        table = self.device.xp.zeros((1, 2 * tiles.layers + 1))
        table[:, tiles.layers :] = -np.inf if self._maximise else np.inf
        return ChoiceGains(0, None, table, table, None)
