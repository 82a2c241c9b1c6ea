"""Level choice by measurement: the candidates that the prediction cannot tell apart are built and timed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from gpu_kernels import Device
from hybrid.base.arrays import Array
from hybrid.base.units import seconds_text
from hybrid.matrix.gpu.build import build_product
from hybrid.matrix.gpu.cost import rank_levels
from hybrid.matrix.gpu.product import GpuProduct
from hybrid.matrix.levels.curve import LevelCurve
from hybrid.matrix.levels.policy import LevelChoice

_log = logging.getLogger(__name__)

Built = TypeVar("Built")

PROBE_ENTRIES = 1 << 21
"""Entries from which timing some levels pays: building one takes about as long as a hundred products."""

_SIMILAR = 1.3
"""Predicted times that differ by less than this factor cannot be told apart."""

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
    return similar_levels([(k, seconds) for k, _, seconds in rank_levels(curve) if k in allowed], _CANDIDATES)


def similar_levels(ranked: Sequence[tuple[int, float]], most: int) -> list[int]:
    """Return the fastest level and, spread evenly, others whose predicted times cannot be told from its own.

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


class Fastest(Generic[Built]):
    """The fastest of the levels that are built and timed one by one; two of them are held at a time.

    `best` has its seconds, the level and what was built, or None; `timed` the levels that were timed, and
    `problem` why the last one without room was not built.
    """

    def __init__(self, seconds: Callable[[Built], float]) -> None:
        self._seconds = seconds
        self.best: tuple[float, int, Built] | None = None
        self.timed: list[int] = []
        self.problem: MemoryError | None = None

    def take(self, level: int, build: Callable[[], Built | None]) -> bool:
        """Build and time a level, if there is room for it, and return whether it is the fastest so far."""
        try:
            built = build()
        except MemoryError as error:
            self.problem = error
            return False
        if built is None:
            return False
        seconds = self._seconds(built)
        self.timed.append(level)
        if self.best is not None and seconds >= self.best[0]:
            return False
        self.best = seconds, level, built
        return True


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
    fastest: Fastest[GpuProduct] = Fastest(lambda product: _product_seconds(device, product, x, out))
    allowed = frozenset(w.level for w in curve.weights("gpu") if _fits(w.least_bytes, memory_budget))
    for k in levels_to_time(curve, allowed):
        _log.info("timing level %d on %s", k, device.name)
        fastest.take(k, partial(_build, curve, k, memory_budget))
    if fastest.best is None:
        return None
    seconds, level, product = fastest.best
    reason = (
        f"level {level} was measured to be the fastest of the levels {', '.join(map(str, fastest.timed))} on "
        f"{device.name}, {seconds_text(seconds)} a product"
    )
    return LevelChoice(level, reason), product


def _fits(size: int, budget: int | None) -> bool:
    return budget is None or size <= budget


def _build(curve: LevelCurve, k: int, budget: int | None) -> GpuProduct | None:
    """Return the product of a level, or None if it takes more than the budget."""
    product = build_product(curve, k)
    return product if _fits(product.nbytes, budget) else None


def _product_seconds(device: Device, product: GpuProduct, x: Array, out: Array) -> float:
    """Time a product; short ones without the host."""

    def multiply(_: int = 0) -> None:
        product.multiply(x, out)

    seconds = device.seconds(multiply, _REPEATS)
    if seconds >= _SHORT_SECONDS:
        return seconds
    return recorded_seconds(device, multiply, _RECORDED, _REPEATS)
