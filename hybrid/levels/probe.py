"""Level choice by measurement: the candidates that the prediction cannot tell apart are built and timed."""

from __future__ import annotations

import logging

from gpu_kernels import Device
from hybrid.core.arrays import Array
from hybrid.gpu.build import build_product
from hybrid.gpu.cost import rank_levels
from hybrid.gpu.product import GpuProduct
from hybrid.levels.curve import LevelCurve
from hybrid.levels.policy import LevelChoice

__all__ = ["PROBE_ENTRIES", "levels_to_time", "probe_levels"]

_log = logging.getLogger(__name__)

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
    ranked = [(k, seconds) for k, _, seconds in rank_levels(curve) if k in allowed]
    if not ranked:
        return []
    first = ranked[0][0]
    near = sorted(k for k, seconds in ranked if seconds <= _SIMILAR * ranked[0][1])
    step = max(1.0, (len(near) - 1) / (_CANDIDATES - 1))
    spread = {near[round(i * step)] for i in range(_CANDIDATES) if round(i * step) < len(near)}
    return sorted(spread | {first})


def probe_levels(
    device: Device, curve: LevelCurve, allowed: frozenset[int]
) -> tuple[LevelChoice, GpuProduct] | None:
    """Build and time the candidates, and keep the fastest.

    Parameters
    ----------
    device : Device
    curve : LevelCurve
    allowed : frozenset of int
        Levels that a memory budget leaves.

    Returns
    -------
    (LevelChoice, GpuProduct) or None
        The choice with its reason, and its representation; None if no candidate fits in memory.

    Notes
    -----
    Synchronises: yes. Memory: two representations at a time, and two vectors.
    """
    xp = device.xp
    n_rows, n_columns = curve.shape
    x, out = xp.ones(n_columns), xp.empty(n_rows)
    best: tuple[float, int, GpuProduct] | None = None
    timed: list[int] = []
    for k in levels_to_time(curve, allowed):
        _log.info("timing level %d on %s", k, device.name)
        try:
            product = build_product(curve, k)
        except MemoryError:
            continue
        seconds = _product_seconds(device, product, x, out)
        timed.append(k)
        if best is None or seconds < best[0]:
            best = seconds, k, product
    if best is None:
        return None
    seconds, level, product = best
    reason = (
        f"level {level} was measured to be the fastest of the levels {', '.join(map(str, timed))} on "
        f"{device.name}, {seconds * 1e3:.3g} ms a product"
    )
    return LevelChoice(level, reason), product


def _product_seconds(device: Device, product: GpuProduct, x: Array, out: Array) -> float:
    """Time a product; short ones are recorded and replayed, as iterations do."""

    def multiply() -> None:
        product.multiply(x, out)

    def several() -> None:
        for _ in range(_RECORDED):
            multiply()

    seconds = device.seconds(multiply, _REPEATS)
    if seconds >= _SHORT_SECONDS:
        return seconds
    return device.seconds(device.record(several), _REPEATS) / _RECORDED
