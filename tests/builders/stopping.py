"""A watch that ends iterations after a number of calls, as a signal would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hybrid.matrix.space.base import ProgressMonitor

__all__ = ["Stop", "StopAfter", "StopInSearch"]


class Stop(KeyboardInterrupt):
    """What ends an iteration."""


class StopAfter(ProgressMonitor):
    """Ends iterations at the call number `count` and after it."""

    is_pressing = True

    def __init__(self, count: int) -> None:
        self.left, self.depth, self.begun = count, 0, 0

    def begin(self, target: float | None, steps: int | None) -> None:
        super().begin(target, steps)
        self.begun += 1

    def __call__(self, iteration: int, difference: float) -> None:
        self.left -= 1
        if self.left <= 0:
            if not self.depth:
                raise Stop("stopped")
            self.stopped = self.stopped or Stop("stopped")

    @contextmanager
    def cancellable(self) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1


class StopInSearch(StopAfter):
    """Ends the search of a graph between two iterations: calls that tell the same iteration again."""

    def __init__(self) -> None:
        super().__init__(4)
        self.last = -1

    def __call__(self, iteration: int, difference: float) -> None:
        if iteration != self.last:
            self.left, self.last = 4, iteration
        super().__call__(iteration, difference)
