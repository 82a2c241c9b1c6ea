"""How many steps to queue before looking at an iteration that ends once a difference is below a target."""

from __future__ import annotations

import math

_MOST = 200  # steps between two looks: progress is told, and little is lost where the forecast is wrong


class CheckInterval:
    """Forecasts from geometric decay; half of what is forecast is queued, so that little is done in vain.

    Parameters
    ----------
    stride : int
        Steps to queue at least; with 1, every step is looked at.
    """

    def __init__(self, stride: int) -> None:
        self._stride = stride
        self._before: tuple[int, float] | None = None
        self._forecast = 0

    def steps(self, most: int) -> int:
        """Return how many steps to queue now, `most` at most."""
        if self._stride == 1:
            return min(1, most)
        wanted = min(max(self._stride, self._forecast // 2), _MOST)
        return min(wanted - wanted % 2, most)

    def look(self, iteration: int, difference: float, target: float) -> None:
        """Take note of a difference, and of the one that would end the iteration."""
        if self._stride == 1:
            return
        before, self._before = self._before, (iteration, difference)
        self._forecast = 0
        if before is None or not 0.0 < target < difference < before[1] < math.inf:
            return
        fall = math.log(before[1] / difference) / (iteration - before[0])
        self._forecast = int(min(math.log(difference / target) / fall, 2 * _MOST)) if fall > 0 else 0
