"""BiCGStab's recurrence on the host: NumPy vectors, and numbers that are Python's."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hybrid.solvers.base import Vector
from hybrid.solvers.passes import Passes
from hybrid.solvers.recurrence import Standing
from hybrid.solvers.workspace import Steps


class HostBiCGStab:
    """The recurrence of :mod:`hybrid.solvers.recurrence` for a matrix on the host.

    Parameters
    ----------
    passes : Passes
    scaled_product : callable
        Writes ``M x / diagonal``: ``scaled_product(x, out)``.
    relaxation : Steps
        The step ``x <- (M x + b) / diagonal``.
    start, limit, orthogonal
        As for :meth:`hybrid.solvers.workspace.System.bicgstab`.

    Notes
    -----
    Six vectors; an iteration allocates parts of vectors only. Time: two products and O(n).
    """

    def __init__(
        self,
        passes: Passes,
        scaled_product: Callable[[Vector, Vector], None],
        relaxation: Steps,
        start: Vector,
        limit: float,
        orthogonal: float,
    ) -> None:
        self._passes, self._scaled_product, self._relaxation = passes, scaled_product, relaxation
        self._limit, self._orthogonal = limit, orthogonal
        self.x = np.array(start, dtype=np.float64, order="C")
        self._r, self._shadow, self._p, self._v, self._t = (np.empty(start.size) for _ in range(5))
        self._rho = self._first = self._norm = math.inf
        self._iterations, self._ended, self._broken = 0, True, False

    @property
    def spare(self) -> Vector:
        """A vector that is free once all is over."""
        return self._t

    def restart(self) -> float:
        """Begin with the residual of x, and return its norm."""
        r = self._r
        self._relaxation.sweep((self.x, r), 0, 1)
        r -= self.x
        self._shadow[...] = r
        self._p[...] = r
        self._rho = _dot(r, r)
        self._norm = self._first = math.sqrt(self._rho)
        self._ended, self._broken = self._norm < self._limit, False
        return self._norm

    def advance(self, most: int) -> Standing:
        """Make one iteration."""
        if not self._ended:
            self._iterate()
        return Standing(self._iterations, self._norm, self._ended, self._broken)

    def _iterate(self) -> None:
        x, r, p, v, t = self.x, self._r, self._p, self._v, self._t
        self._iterations += 1
        self._apply(p, v)
        along = _dot(self._shadow, v)
        if along == 0.0 or not math.isfinite(along):
            self._ended = self._broken = True
            return
        alpha = self._rho / along

        def shorten(r: Vector, v: Vector) -> None:
            r -= alpha * v

        self._passes.each(shorten, r, v)
        self._apply(r, t)
        length = _dot(t, t)
        omega = _dot(t, r) / length if length > 0.0 else 0.0

        def move(x: Vector, p: Vector, r: Vector, t: Vector) -> None:
            x += alpha * p
            x += omega * r
            r -= omega * t

        self._passes.each(move, x, p, r, t)
        before, self._rho = self._rho, _dot(self._shadow, r)
        self._norm = math.sqrt(_dot(r, r))
        # Having arrived is no breakdown, whatever else is zero by then.
        if self._norm < self._limit:
            self._ended = True
        elif not self._goes_on(omega):
            self._ended = self._broken = True
        else:
            beta = self._rho / before * (alpha / omega)

            def turn(p: Vector, v: Vector, r: Vector) -> None:
                p -= omega * v
                p *= beta
                p += r

            self._passes.each(turn, p, v, r)

    def _goes_on(self, omega: float) -> bool:
        """Tell whether nothing has broken down; a residual that is not a number passes no comparison."""
        means_something = abs(self._rho) > self._orthogonal * self._first * self._norm
        return omega != 0.0 and math.isfinite(self._norm) and means_something

    def _apply(self, x: Vector, out: Vector) -> None:
        """Write ``(I - M / diagonal) x`` to `out`."""
        self._scaled_product(x, out)
        np.subtract(x, out, out=out)


def _dot(x: Vector, y: Vector) -> float:
    return float(np.dot(x, y))
