"""BiCGStab's recurrence on the host: NumPy vectors, and numbers that are Python's."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hybrid.solvers.base import Vector
from hybrid.solvers.parts import PART, parts
from hybrid.solvers.recurrence import Standing
from hybrid.solvers.workspace import Steps

__all__ = ["HostBiCGStab"]


class HostBiCGStab:
    """The recurrence of :mod:`hybrid.solvers.recurrence` for a matrix on the host.

    Parameters
    ----------
    scaled_product : callable
        Writes ``M x / diagonal``: ``scaled_product(x, out)``.
    relaxation : Steps
        The step ``x <- (M x + b) / diagonal``.
    start, limit, orthogonal
        As for :meth:`hybrid.solvers.workspace.System.bicgstab`.

    Notes
    -----
    Six vectors; an iteration allocates nothing. Time: two products and O(n).
    """

    def __init__(
        self,
        scaled_product: Callable[[Vector, Vector], None],
        relaxation: Steps,
        start: Vector,
        limit: float,
        orthogonal: float,
    ) -> None:
        self._scaled_product, self._relaxation = scaled_product, relaxation
        self._limit, self._orthogonal = limit, orthogonal
        self.x = np.array(start, dtype=np.float64, order="C")
        self._r, self._shadow, self._p, self._v, self._t = (np.empty(start.size) for _ in range(5))
        self._kept = np.empty(min(PART, start.size))
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
        for part in parts(r.size):
            self._add(-alpha, v[part], r[part])
        self._apply(r, t)
        length = _dot(t, t)
        omega = _dot(t, r) / length if length > 0.0 else 0.0
        for part in parts(r.size):
            self._add(alpha, p[part], x[part])
            self._add(omega, r[part], x[part])
            self._add(-omega, t[part], r[part])
        before, self._rho = self._rho, _dot(self._shadow, r)
        self._norm = math.sqrt(_dot(r, r))
        # Having arrived is no breakdown, whatever else is zero by then.
        if self._norm < self._limit:
            self._ended = True
        elif not self._goes_on(omega):
            self._ended = self._broken = True
        else:
            beta = self._rho / before * (alpha / omega)
            for part in parts(r.size):
                self._add(-omega, v[part], p[part])
                p[part] *= beta
                p[part] += r[part]

    def _goes_on(self, omega: float) -> bool:
        """Tell whether nothing has broken down; a residual that is not a number passes no comparison."""
        means_something = abs(self._rho) > self._orthogonal * self._first * self._norm
        return omega != 0.0 and math.isfinite(self._norm) and means_something

    def _apply(self, x: Vector, out: Vector) -> None:
        """Write ``(I - M / diagonal) x`` to `out`."""
        self._scaled_product(x, out)
        np.subtract(x, out, out=out)

    def _add(self, weight: float, x: Vector, total: Vector) -> None:
        """Add ``weight * x`` to a part of a vector."""
        total += np.multiply(x, weight, out=self._kept[: x.size])


def _dot(x: Vector, y: Vector) -> float:
    return float(np.dot(x, y))
