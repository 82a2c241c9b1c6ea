"""How far a solution strip by strip is: its bounds, what has been done, and what runs to come need of it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.space.base import Clock, Criterion, Status, Vector
from hybrid.matrix.space.bounded_solution import width_of
from hybrid.matrix.space.record import Numbers, Place


class StripCourse:
    """The bounds of all rows while strips are solved one after another.

    Parameters
    ----------
    size : int
        Rows of all strips.
    strips : int
        How many there are.
    rows_of : callable
        Returns the rows of a strip, ascending.

    Attributes
    ----------
    lower, upper : ndarray, shape (size,), float64
        Zero where nothing is solved yet.
    number : int
        The strip that is solved next.
    iterations : int
        Of all larger components, and one for all rows that are alone.
    work : float
        Entries that were multiplied, each as often as it was.
    """

    def __init__(self, size: int, strips: int, rows_of: Callable[[int], NDArray[np.int64]]) -> None:
        self._strips, self._rows_of = strips, rows_of
        self.lower, self.upper = np.zeros(size), np.zeros(size)
        self.number, self.iterations, self.work = 0, 1, 0.0

    @cached_property
    def _order(self) -> int:
        """A digest of which rows are in which strip: another level makes other strips."""
        digest = 0
        for number in range(self._strips):
            rows = self._rows_of(number)
            digest = zlib.crc32(rows.astype(np.int64).tobytes(), zlib.crc32(b"%d" % rows.size, digest))
        return digest

    def resume(self, clock: Clock, space: Place, record: str) -> None:
        """Go on from what an earlier run with the same strips has left."""
        kept = clock.resumed(space, record, self.lower.size)
        if kept is None or int(kept.numbers["order"]) != self._order:
            return
        self.lower[...], self.upper[...] = kept.vectors["lower"], kept.vectors["upper"]
        self.number, self.iterations = (int(kept.numbers[name]) for name in ("strip", "iterations"))
        self.work = kept.numbers["work"]
        self._let(self.number, self.lower, 0.0)
        self._let(self.number, self.upper, 0.0)

    def state(self) -> tuple[Mapping[str, Vector], Numbers]:
        """Return what a run to come needs; see `hybrid.matrix.space.record.State`."""
        numbers = {
            "strip": self.number, "iterations": self.iterations, "work": self.work, "order": self._order,
        }  # fmt: skip
        return {"lower": self.lower, "upper": self.upper}, numbers

    def end(self, status: Status, ceiling: float) -> Vector:
        """Leave nothing that is no bound, and return the values; `ceiling` bounds all of them."""
        if status is Status.INTERRUPTED:
            # Nothing but zero is known below the values of the strips to come.
            self._let(self.number + 1, self.upper, ceiling)
        elif status is not Status.CONVERGED:
            self.upper[:] = np.inf
        return 0.5 * (self.lower + self.upper) if status is Status.CONVERGED else self.lower

    def width(self, criterion: Criterion) -> float:
        """Return how far the bounds are apart; see `width_of`."""
        with np.errstate(invalid="ignore"):
            return float(width_of(criterion, self.upper - self.lower, self.lower))

    def _let(self, begin: int, bound: Vector, value: float) -> None:
        """Set a bound of the rows of all strips from one on."""
        for later in range(begin, self._strips):
            bound[self._rows_of(later)] = value
