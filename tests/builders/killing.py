"""A watch that ends a run as if its process were killed."""

from __future__ import annotations

from hybrid.matrix.space.base import ProgressMonitor

__all__ = ["Killed", "Killer"]


class Killed(Exception):
    """What ends a run."""


class Killer(ProgressMonitor):
    """Hears every look, and ends the run at one of them."""

    is_pressing = True

    def __init__(self, at: float = float("inf")) -> None:
        self.looks, self._at = 0, at

    def __call__(self, iteration: int, difference: float) -> None:
        self.looks += 1
        if self.looks >= self._at:
            raise Killed
