"""Level choice by measurement: the candidates that the prediction cannot distinguish are built and timed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpu_kernels import (
    ChoiceGains,
    ChoiceStep,
    Device,
    IterationState,
    Place,
    TileMatrix,
    compile_as_well,
    index_bits,
    likely_modules,
    made_for,
    run_choices,
)
from hybrid.base.arrays import Array
from hybrid.base.units import seconds_text
from hybrid.matrix.gpu.build import build_product
from hybrid.matrix.gpu.cost import check_memory, layout_items, rank_levels
from hybrid.matrix.gpu.product import GpuProduct
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.gpu.tuning import LayoutOptions, choose_shape, choose_tuning
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from hybrid.matrix.levels.curve import LevelCurve, level_curve
from hybrid.matrix.levels.table import BestLevel, LevelChoice, choose_level, weigh
from mtbdd.offset.distributed import StackedLayers, stack_layers
from mtbdd.offset.offset import OffsetMTBDD

_log = logging.getLogger(__name__)

PROBE_ENTRIES = 1 << 21
"""Entries from which timing some levels pays: building one takes about as long as a hundred products."""

_SIMILAR = 1.3
"""Predicted times that differ by less than this factor cannot be distinguished."""

_CANDIDATES = 5
_REPEATS = 7

_SHORT_SECONDS = 1e-4
"""Launches that take less time than this may be waiting for the host, which needs some 10 us to queue one."""

_RECORDED = 10


def levels_to_time(curve: LevelCurve, allowed: frozenset[int]) -> list[int]:
    """Return the levels worth timing: predicted to be nearly the fastest, and spread evenly among those.

    Parameters
    ----------
    curve : LevelCurve
    allowed : frozenset of int
        Levels that a memory budget leaves.
    """
    ranked = [(k, seconds) for k, _, seconds in rank_levels(curve.typed) if k in allowed]
    return similar_levels(ranked, _CANDIDATES)


def similar_levels(ranked: Sequence[tuple[int, float]], most: int) -> list[int]:
    """Return the fastest level and, spread evenly, others whose predicted times hardly differ from its own.

    Parameters
    ----------
    ranked : sequence of (int, float)
        Levels with predicted seconds, fastest first.
    most : int
        Levels to spread, two or more.
    """
    if not ranked:
        return []
    first, fastest = ranked[0]
    near = sorted(k for k, seconds in ranked if seconds <= _SIMILAR * fastest)
    step = max(1.0, (len(near) - 1) / (most - 1))
    spread = {near[round(i * step)] for i in range(most) if round(i * step) < len(near)}
    return sorted(spread | {first})


def recorded_seconds(device: Device, work: Callable[[int], None], count: int, repeats: int) -> float:
    """Record ``work(0) .. work(count - 1)`` as one CUDA graph, time its replays, and return seconds a call.

    Notes
    -----
    Synchronises: yes.
    """

    def several() -> None:
        for i in range(count):
            work(i)

    return device.seconds(device.record(several), repeats) / count


def probe_levels(
    device: Device, curve: LevelCurve, memory_budget: int | None = None
) -> tuple[LevelChoice, GpuProduct] | None:
    """Build and time the candidates, and keep the fastest.

    Parameters
    ----------
    device : Device
    curve : LevelCurve
    memory_budget : int, optional
        Bytes that the representation may take.

    Returns
    -------
    (LevelChoice, GpuProduct) or None
        The choice with its reason, and its representation; None if no candidate fits in memory and in the
        budget.

    Notes
    -----
    Synchronises: yes. Memory: two representations at a time, and two vectors.
    """
    xp = device.xp
    n_rows, n_columns = curve.shape
    x, out = xp.ones(n_columns), xp.empty(n_rows)
    fastest: BestLevel[GpuProduct, float] = BestLevel(
        lambda product: _product_seconds(device, product, x, out)
    )
    allowed = frozenset(w.level for w in curve.weights("gpu") if _fits(w.least_bytes, memory_budget))
    for k in levels_to_time(curve, allowed):
        _log.info("timing level %d on %s", k, device.name)
        fastest.take(k, partial(_build, curve, k, memory_budget))
    if fastest.best is None:
        return None
    seconds, level, product = fastest.best
    reason = (
        f"level {level} was measured to be the fastest of the levels {', '.join(map(str, fastest.costs))} on "
        f"{device.name}, {seconds_text(seconds)} a product"
    )
    return LevelChoice(level, reason), product


def _fits(size: int, budget: int | None) -> bool:
    return budget is None or size <= budget


def _build(curve: LevelCurve, k: int, budget: int | None) -> GpuProduct | None:
    """Return the product of a level, or None if it takes more than the budget."""
    product = build_product(curve.typed, k)
    return product if _fits(product.nbytes, budget) else None


def _product_seconds(device: Device, product: GpuProduct, x: Array, out: Array) -> float:
    """Time a product; short ones without the host."""

    def multiply(_: int = 0) -> None:
        product.multiply(x, out)

    seconds = device.seconds(multiply, _REPEATS)
    if seconds >= _SHORT_SECONDS:
        return seconds
    return recorded_seconds(device, multiply, _RECORDED, _REPEATS)


# The matrices of all layers on the device: level and launch shape chosen, by timing if asked.

_CHOICE_CANDIDATES = 4  # levels that are timed, beside the one of least predicted time
_CHOICE_REPEATS = 5  # replays of a recording, of which the time is taken
_CHOICE_STEPS = 6  # steps in a recording


def build_choices(
    device: Device,
    matrices: Mapping[int, OffsetMTBDD],
    layers: int,
    level: str | int = "auto",
    options: LayoutOptions | None = None,
    gains: Callable[[TileMatrix], ChoiceGains] | None = None,
    maximise: bool = True,
) -> tuple[int, TileMatrix] | None:
    """Put the matrices of all layers on a device.

    Parameters
    ----------
    device : Device
    matrices : mapping of int to OffsetMTBDD
        By layer; of one shape, rows and columns the same states, columns of others behind.
    layers : int
        At most `MOST_LAYERS`.
    level : str or int
        ``auto``, ``min-time``, ``min-memory``, or an injection level of the layers' diagrams; levels and
        launch shapes are timed for ``min-time`` alone.
    options : LayoutOptions, optional
        Choices of speed; given, no launch shapes are tried.
    gains : callable, optional
        Returns the gains of the steps that are timed; called once, with the tiles of some level. Without it
        all gains are 0.
    maximise : bool
        Whether steps with the maximum are timed, or with the minimum.

    Returns
    -------
    (int, TileMatrix) or None
        The level in the layers' diagrams, and the representation; None if no level can be laid out.

    Raises
    ------
    MemoryError
        If the device has no room for any level.

    Notes
    -----
    Synchronises: yes.
    """
    curve = level_curve(stack_layers(matrices, layers))
    large = curve.nonzeros >= PROBE_ENTRIES
    if level == "min-memory":
        weighed = weigh(
            curve.weights("gpu"),
            partial(build_level, device, curve.typed, options=options),
            lambda tiles: tiles.nbytes,
        )
        return None if weighed.best is None else weighed.best[1:]
    timed, tuned = large and level == "min-time", large and level == "min-time" and options is None
    trial = _LevelTrial(device, gains, maximise)
    fastest = BestLevel(trial.seconds if timed or tuned else lambda _: 0.0)
    tried: list[int] = []
    for k in _candidates(curve, level, timed):
        if not tried:
            _compile_likely(curve.typed, k, maximise)
        tried.append(k)
        fastest.take(k, partial(build_level, device, curve.typed, k, options))
        if fastest.best is not None and not timed:
            break
    if tuned:
        _retune(fastest, device, curve.typed, tried if timed else [])
    if fastest.best is not None:
        return fastest.best[1:]
    if fastest.problem is not None:
        raise fastest.problem
    return None


def _compile_likely(layers: TypedMatrix, k: int, maximise: bool) -> None:
    """Compile the kernels that a solution at a level will probably launch, if processes compile ahead."""
    stacked, types, level = _stacked(layers), layers.plain, layers.first_level + k
    rows = layers.matrix.n_rows * stacked.layers
    shape = choose_shape(LayoutOptions(), rows, layers.nonzeros, 1)
    bits = index_bits(max(*layers.shape, types[level].group_slots))
    tuning = choose_tuning(types, level)
    compile_as_well(likely_modules(stacked.layers, tuning, shape.unit, bits, maximise))


def _stacked(layers: TypedMatrix) -> StackedLayers:
    assert layers.stacked is not None
    return layers.stacked


def _candidates(curve: LevelCurve, level: str | int, timed: bool) -> Iterator[int]:
    """Yield the levels to try: the one that a policy chooses first, unless several are timed."""
    if isinstance(level, int):
        if 0 <= level < len(curve) and curve.seconds(level, "gpu") is not None:
            yield level
        return
    if not curve.fast_levels("gpu", 1.0):
        return
    chosen = choose_level(curve, level, "gpu").level
    ranked = [(k, seconds) for k, _, seconds in rank_levels(curve.typed)]
    if timed:
        yield from sorted({*similar_levels(ranked, _CHOICE_CANDIDATES), chosen})
        return
    yield chosen
    yield from (k for k, _ in ranked if k != chosen)


def build_level(
    device: Device, layers: TypedMatrix, k: int, options: LayoutOptions | None = None
) -> TileMatrix | None:
    """Return the tiles of a level of stacked layers, or None if it cannot be laid out."""
    stacked, types, level = _stacked(layers), layers.plain, layers.first_level + k
    _log.info("laying out level %d of all layers on %s", k, device.name)
    check_memory(device, types, level, layers=True)

    def make(place: Place) -> TileMatrix | None:
        return build_tile_matrix(place, types, level, options, stacked)

    return made_for(device, layout_items(types, level), make)


def _retune(
    fastest: BestLevel[TileMatrix, float], device: Device, layers: TypedMatrix, levels: list[int]
) -> None:
    """Time variants of the tiles of the fastest level, and keep each that is faster.

    In this order: launch shapes; smaller tiles, which spread small models over more thread blocks; larger
    items, which make fewer look-ups; four look-ups at once or one; units of one code. Last come the other
    levels with the best variant, because the launch shape that levels are compared with suits some of them
    better than others.
    """
    if fastest.best is None:
        return
    _, k, tiles = fastest.best
    own, options = tiles.tuning, LayoutOptions(tuning=tiles.tuning)
    for blocks in (9, 7):
        # The layout is the same.
        tuning = replace(own, min_blocks=blocks)
        if fastest.take(k, partial(replace, tiles, tuning=tuning)):
            options = LayoutOptions(tuning=tuning)
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
            if fastest.take(k, partial(build_level, device, layers, k, changed)):
                options = changed
    for level in levels:
        if level != k:
            fastest.take(level, partial(build_level, device, layers, level, options))


class _LevelTrial:
    """Times steps as value iteration makes them: gains added, and the greatest change measured."""

    def __init__(
        self, device: Device, gains: Callable[[TileMatrix], ChoiceGains] | None, maximise: bool
    ) -> None:
        self.device = device
        self._gains_of = gains or self._nothing
        self._gains: ChoiceGains | None = None
        self._maximise = maximise

    def seconds(self, tiles: TileMatrix) -> float:
        """Return the time of a step of a recording (a CUDA graph). Synchronises: yes."""
        xp, device = self.device.xp, self.device
        gains = self._gains = self._gains or self._gains_of(tiles)
        x, out = xp.zeros(tiles.n_rows), xp.empty(tiles.n_rows)
        others = None if tiles.early is None else xp.zeros(tiles.n_columns - tiles.n_rows)
        step = ChoiceStep(self._maximise, state=IterationState.create(device))

        def improve(k: int) -> None:
            run_choices(device, tiles, gains, step, *((x, out) if k % 2 == 0 else (out, x)), others)

        for k in range(_CHOICE_STEPS):
            improve(k)
        return recorded_seconds(device, improve, _CHOICE_STEPS, _CHOICE_REPEATS)

    def _nothing(self, tiles: TileMatrix) -> ChoiceGains:
        table = self.device.xp.zeros((1, 2 * tiles.layers + 1))
        table[:, tiles.layers :] = -np.inf if self._maximise else np.inf
        return ChoiceGains(0, None, table, table, None)
