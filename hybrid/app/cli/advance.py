"""How far an iteration is, and how long it may still take."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

_LEAST = 0.02  # share that must be done before the time left is estimated


class Snapshot(NamedTuple):
    """How far an iteration is at a moment.

    Attributes
    ----------
    iteration : int
    difference : float
    share : float or None
        Of the iteration that is done, from 0 to 1; None while it is not known.
    left : float or None
        Seconds that the rest takes at this pace.
    """

    iteration: int
    difference: float
    share: float | None
    left: float | None

    @property
    def text(self) -> str:
        """The snapshot as one line of plain text."""
        parts = [f"iteration {self.iteration}"]
        if math.isfinite(self.difference):
            parts.append(f"difference {self.difference:.3g}")
        if self.share is not None:
            parts.append(f"{100 * self.share:.0f} %")
        if self.left is not None:
            parts.append(f"about {duration(self.left)} left")
        return ", ".join(parts)


class Advance:
    """The share of an iteration that is done, and the time that is left.

    With a known number of steps the share is ``iteration / steps``, else it is
    ``log(first / difference) / log(first / target)`` with the first difference that was seen.

    Parameters
    ----------
    target : float, optional
        The difference that ends it.
    steps : int, optional
        Its steps at most.
    """

    def __init__(self, target: float | None, steps: int | None) -> None:
        self._target, self._steps = target, steps
        self._start = time.perf_counter()
        self._first: float | None = None
        self._share = 0.0

    def at(self, iteration: int, difference: float) -> Snapshot:
        """Return the snapshot; its share never falls."""
        share = self._share_at(iteration, difference)
        if share is None:
            return Snapshot(iteration, difference, None, None)
        self._share = max(self._share, min(share, 1.0))
        gone = time.perf_counter() - self._start
        left = gone * (1.0 - self._share) / self._share if self._share > _LEAST else None
        return Snapshot(iteration, difference, self._share, left)

    def _share_at(self, iteration: int, difference: float) -> float | None:
        if self._steps:
            return iteration / self._steps
        if self._target is None or not 0.0 < difference < math.inf:
            return None
        if self._first is None:
            self._first = difference
        if self._first <= self._target:
            return None
        return math.log(self._first / difference) / math.log(self._first / self._target)


def duration(seconds: float) -> str:
    """Return a duration as people say it: 12 s, 3:04 min, 2:10 h."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h" if whole < 360_000 else "days"
