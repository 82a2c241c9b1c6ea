"""Several steps of a uniformised chain on the host, as one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybrid.matrix.space.base import Vector
from hybrid.matrix.space.passes import Passes
from hybrid.matrix.space.repeated import repeat


class UniformisedRepetition:
    """See `hybrid.matrix.space.repeated.Repetition`; steps of the uniformised chain: one rate for all rows.

    Parameters
    ----------
    multiply : callable
        Writes ``M x``: ``multiply(x, out)``.
    passes : Passes
    diagonal, b : ndarray of float64, shape (n,)
        b None is zero.
    weight : float
        `OMEGA` over the greatest element of the diagonal.
    """

    def __init__(
        self,
        multiply: Callable[[Vector, Vector], object],
        passes: Passes,
        diagonal: Vector,
        b: Vector | None,
        weight: float,
    ) -> None:
        self._multiply, self._passes, self._diagonal, self._b = multiply, passes, diagonal, b
        self._weight, self._between = weight, np.empty(diagonal.size)

    def with_right(self, x: Vector, out: Vector) -> None:
        """See `Repetition.with_right`."""
        self._repeat(x, self._b, out)

    def without(self, x: Vector, out: Vector) -> None:
        """See `Repetition.without`."""
        self._repeat(x, None, out)

    def of_ones(self, out: Vector) -> Vector:
        """See `Repetition.of_ones`."""
        found, out[...] = np.empty(out.size), 0.0
        self._repeat(out, np.ones(out.size), found)
        return found

    def _repeat(self, x: Vector, b: Vector | None, out: Vector) -> None:
        def step(x: Vector, out: Vector) -> None:
            self._multiply(x, out)
            self._passes.uniformise(x, b, self._diagonal, self._weight, out)

        with np.errstate(over="ignore", invalid="ignore"):
            repeat(step, x, self._between, out)
