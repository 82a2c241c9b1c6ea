"""BiCGStab's recurrence with numbers that are Python's, and what it multiplies with on the host."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hybrid.matrix.space.base import Vector
from hybrid.matrix.space.idr import HostRecurrence, Images
from hybrid.matrix.space.passes import Passes
from hybrid.matrix.space.recurrence import Standing
from hybrid.matrix.space.workspace import Array, Steps


class HostImages:
    """What a recurrence multiplies with, ``A = I - M / diagonal``, see :mod:`hybrid.matrix.space.recurrence`.

    Parameters
    ----------
    passes : Passes
    multiply : callable
        Writes ``M x``: ``multiply(x, out)``.
    diagonal : ndarray of float64, shape (n,)
    relaxation : Steps
        The step ``x <- (M x + b) / diagonal``.
    anchor : int, optional
        As for :meth:`hybrid.matrix.space.workspace.System.bicgstab`.

    Attributes
    ----------
    made : int
        Products so far.
    """

    def __init__(
        self,
        passes: Passes,
        multiply: Callable[[Vector, Vector], object],
        diagonal: Vector,
        relaxation: Steps,
        anchor: int | None = None,
    ) -> None:
        self._passes, self._multiply, self._relaxation = passes, multiply, relaxation
        self._diagonal, self._anchor = diagonal, anchor
        self.made = 0

    def residual(self, x: Vector, out: Vector) -> None:
        """Write ``b / diagonal - A x`` to `out`."""
        self._relaxation.sweep((x, out), 0, 1)
        self.made += 1
        at_anchor = self._at_anchor(x)

        def finish(x: Vector, diagonal: Vector, out: Vector) -> None:
            if at_anchor:
                out -= at_anchor / diagonal
            out -= x

        self._passes.each(finish, x, self._diagonal, out)

    def apply(self, x: Vector, out: Vector) -> None:
        """Write ``A x`` to `out`."""
        self._multiply(x, out)
        self.made += 1
        self._passes.image(x, self._diagonal, self._at_anchor(x), out)

    def _at_anchor(self, x: Vector) -> float:
        return 0.0 if self._anchor is None else self._passes.element(x, self._anchor)


class HostBiCGStab(HostRecurrence):
    """The recurrence of :mod:`hybrid.matrix.space.recurrence` with numbers on the host.

    Parameters
    ----------
    passes : Passes
    images : Images
        What it multiplies with.
    x : array, shape (n,), float64
        The iterate, changed in place.
    limit, orthogonal
        As for :meth:`hybrid.matrix.space.workspace.System.bicgstab`.
    plain : Images, optional
        As for `HostRecurrence`.

    Notes
    -----
    Six vectors; an iteration allocates parts of vectors only. Time: two products and O(n).
    """

    cost, patience = 2, 400

    def __init__(
        self,
        passes: Passes,
        images: Images,
        x: Array,
        limit: float,
        orthogonal: float,
        plain: Images | None = None,
    ) -> None:
        super().__init__(images, plain)
        self._passes = passes
        self._limit, self._orthogonal = limit, orthogonal
        self.x = x
        self.r, self._shadow, self._p, self._v, self._t = (np.empty_like(x) for _ in range(5))
        self._rho = self._first = self._norm = math.inf
        self._iterations, self._ended, self._broken = 0, True, False

    @property
    def spare(self) -> Array:
        """A vector that is free between two calls."""
        return self._t

    def restart(self) -> float:
        """Begin with the residual of x, and return its norm."""
        r = self.r
        self._images.residual(self.x, r)
        self._shadow[...] = r
        self._p[...] = r
        self._rho = self._passes.dot(r, r)
        self._norm = self._first = math.sqrt(self._rho)
        self._ended, self._broken = self._norm < self._limit, False
        return self._norm

    def refresh(self) -> float:
        """Begin anew: directions hold for the residual that they began with alone."""
        return self.restart()

    def advance(self, most: int) -> Standing:
        """Make one iteration."""
        if not self._ended:
            self._iterate()
        return Standing(self._iterations, self._norm, self._ended, self._broken)

    def _iterate(self) -> None:
        x, r, p, v, t = self.x, self.r, self._p, self._v, self._t
        self._iterations += 1
        self._images.apply(p, v)
        along = self._passes.dot(self._shadow, v)
        if along == 0.0 or not math.isfinite(along):
            self._ended = self._broken = True
            return
        alpha = self._rho / along

        def shorten(r: Vector, v: Vector) -> None:
            r -= alpha * v

        self._passes.each(shorten, r, v)
        self._images.apply(r, t)
        length = self._passes.dot(t, t)
        omega = self._passes.dot(t, r) / length if length > 0.0 else 0.0

        def move(x: Vector, p: Vector, r: Vector, t: Vector) -> None:
            x += alpha * p
            x += omega * r
            r -= omega * t

        self._passes.each(move, x, p, r, t)
        before, self._rho = self._rho, self._passes.dot(self._shadow, r)
        self._norm = math.sqrt(self._passes.dot(r, r))
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
