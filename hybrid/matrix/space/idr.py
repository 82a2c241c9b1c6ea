"""IDR(s)'s recurrence with bi-orthogonal images: s = 4 directions, vectors and numbers on the host.

Residuals lie in ever smaller spaces. Each is ``(I - omega A)`` times those vectors of the space before that
are orthogonal to the s shadow vectors. Directions u_k and their images g_k = A u_k are chosen so that g_k is
orthogonal to the shadow vectors before the k-th. Let m[i, k] be the product of the i-th with g_k; then the
matrix of a space is triangular. A cycle is s products with directions and one with the residual, where omega
makes the residual small:

    solve m[k:, k:] c = f[k:];  u_k = omega r + sum over j >= k of c_j (u_j - omega g_j);  g_k = A u_k
    g_k and u_k lose their shares of those before;  beta = f[k] / m[k, k];  x += beta u_k,  r -= beta g_k
    after all k:  t = A r,  omega = (t . r) / (t . t), no less than kappa allows;  x += omega r,  r -= omega t

Every product lowers the dimension that is left, where BiCGStab needs two for that. Omega cannot be small
beside the residual's angle to t, which is where BiCGStab breaks down on convective chains (queues in a row).

Norms may grow by some powers of ten before they fall, and the residual then is no longer that of x. So
whenever it has fallen by a factor of a hundred a fresh one takes its place, while directions stay. A restart
would lose what they know (van der Vorst and Ye, SIAM J. Sci. Comput. 22(3), 2000).

Most of the time is what passes over vectors move, and vectors of single precision halve that.  They lead as
far as others, since residuals are made anew in double precision.  But they forget what lies beyond seven
digits, and where a system is nearly singular that takes more cycles than it saves.

Scalar products may be weighted, which is the recurrence for x divided by the weights. With weights 1 / x a
small norm means a residual that is small beside x in every row, and not only where x is great. Source:
[vGS11], [SvG08]; kappa: Sleijpen and van der Vorst, Numerical Algorithms 10, 1995.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.space.base import Vector
from hybrid.matrix.space.passes import Passes
from hybrid.matrix.space.recurrence import RecurrenceStatus
from hybrid.matrix.space.workspace import Steps

IDR_VECTORS = 3 + 2 * DIRECTIONS
"""Vectors of the recurrence, its operands and weights not among them."""

SINGLE_VECTORS = 3 + DIRECTIONS
"""The same with single precision: as much memory as so many vectors of double precision."""

KAPPA = 0.7
"""Cosine of the residual and its image below which omega is made greater."""

FALL = 1e-2
"""Share of the greatest norm since the last fresh residual at which the next one is computed."""

SINGLE_FALL = 1e-1
"""The same with vectors of single precision, whose residual is sooner that of another x."""

LOST = 1e8
"""Times the first norm that the residual may grow before its digits are those of nothing."""


Array = Any
Numbers = NDArray[np.float64]


class Images(Protocol):
    """Products of the recurrence, and their number."""

    @property
    def made(self) -> int:
        """Products so far."""

    def residual(self, x: Array, out: Array) -> None:
        """Write ``b - A x`` to `out`."""

    def apply(self, x: Array, out: Array) -> None:
        """Write ``A x`` to `out`."""


class Space:
    """The numbers of a space: what the images make with the shadow vectors, and what is left of the residual.

    Attributes
    ----------
    omega : float
        Of the last step along the residual; 1 in the beginning.
    left : ndarray of float64, shape (s,)
        Products of the residual with the shadow vectors.
    """

    def __init__(self) -> None:
        self._images, self.left, self.omega = np.eye(DIRECTIONS), np.zeros(DIRECTIONS), 1.0

    def begin(self, left: Numbers) -> None:
        """Begin with a residual: no image is known."""
        self._images, self.left, self.omega = np.eye(DIRECTIONS), left.copy(), 1.0

    def shares(self, k: int) -> Numbers:
        """Return what direction k takes of those of the last space, shape (s,), zero before k."""
        found = np.zeros(DIRECTIONS)
        for i in range(k, DIRECTIONS):
            found[i] = (self.left[i] - self._images[i, k:i] @ found[k:i]) / self._images[i, i]
        return found

    def take(self, k: int, sums: Numbers) -> tuple[Numbers, float] | None:
        """Take note of an image's products with the shadow vectors.

        Returns
        -------
        tuple, or None
            Shares of the directions before, shape (s,), and beta; None where they break down.
        """
        shares, images = np.zeros(DIRECTIONS), self._images
        column = sums.copy()
        for i in range(k):
            shares[i] = column[i] / images[i, i]
            column[i:] -= shares[i] * images[i:, i]
        images[k:, k] = column[k:]
        beta = self.left[k] / column[k] if column[k] != 0.0 else math.nan
        if not (math.isfinite(beta) and bool(np.isfinite(column[k:]).all())):
            return None
        self.left[k + 1 :] -= beta * images[k + 1 :, k]
        self.left[k] = 0.0
        return shares, beta

    def step(self, across: float, image: float, square: float) -> bool:
        """Choose omega from ``t . r``, ``t . t`` and ``r . r``; return whether there is one."""
        if not (image > 0.0 and square > 0.0 and across != 0.0 and math.isfinite(image + square)):
            return False
        self.omega = across / image
        cosine = abs(across) / math.sqrt(image) / math.sqrt(square)
        if cosine < KAPPA:
            self.omega *= KAPPA / cosine
        return math.isfinite(self.omega)


class HostRecurrence:
    """The base of recurrences with numbers on the host: products, and the residual of the system as it is.

    Parameters
    ----------
    images : Images
        Of the system that is solved.
    plain : Images or None
        Of the system as it is, divided by its diagonal, where `images` are those of another one.
    """

    x: Array
    r: Array
    spare: Array

    def __init__(self, images: Images, plain: Images | None) -> None:
        self._images, self._plain = images, plain
        self.is_preconditioned = plain is not None

    @property
    def products(self) -> int:
        """Products made for images, and those that measured."""
        return self._images.made + (0 if self._plain is None else self._plain.made)

    def plain_residual(self) -> Array:
        """See `Recurrence.plain_residual`."""
        if self._plain is None:
            return self.r
        self._plain.residual(self.x, self.spare)
        return self.spare


class IDR(HostRecurrence):
    """The recurrence for ``A x = b``; see `hybrid.matrix.space.recurrence.Recurrence`.

    Parameters
    ----------
    passes : Passes
    images : Images
    start : array, shape (n,), float64
    limit : float
        Norm of the residual, weighed, below which it has arrived.
    weights : array, shape (n,), float64, optional
        What elements are multiplied with before they are measured.
    real : {numpy.float64, numpy.float32}
        Precision of residual, directions and images, which `passes` and `images` have to know.  The iterate,
        and residuals made anew, have double precision.
    plain : Images, optional
        As for `HostRecurrence`.

    Notes
    -----
    An iteration is a cycle of s + 1 products; it allocates parts of vectors only.  Vectors: 3 + 2 s, with
    single precision the memory of 3 + s.  Time besides the products: s + 1 passes over up to 2 s + 2 vectors.
    """

    cost, patience = DIRECTIONS + 1, 2000

    def __init__(
        self,
        passes: Passes,
        images: Images,
        x: Array,
        limit: float,
        weights: Array | None = None,
        real: type[np.floating[Any]] = np.float64,
        plain: Images | None = None,
    ) -> None:
        super().__init__(images, plain)
        self._passes = passes
        self._limit, self._weights = limit, weights
        self.x = x
        self.r, self._t = np.empty_like(x, dtype=real), np.empty_like(x, dtype=real)
        self._u, self._g = (np.empty_like(x, dtype=real, shape=(DIRECTIONS, x.size)) for _ in range(2))
        self._fall, self._fresh = FALL, self.r
        if real is not np.float64:
            self._fall, self._fresh = SINGLE_FALL, np.empty_like(x)
        self.spare = self._t if self._fresh is self.r else self._fresh
        self._space = Space()
        self._first = self._norm = self._greatest = math.inf
        self._iterations, self._ended, self._broken = 0, True, False

    def restart(self) -> float:
        """Begin with the residual of x, and return its norm, weighed."""
        self._make_residual()
        self._passes.clear(self._u, self._g)
        self._space.begin(self._look())
        self._first = self._greatest = self._norm
        self._broken = not math.isfinite(self._norm)
        self._ended = self._broken or self._norm < self._limit
        return self._norm

    def advance(self, most: int) -> RecurrenceStatus:
        """Make one cycle."""
        if not self._ended:
            self._iterations += 1
            if not self._cycle():
                self._ended = self._broken = True
            elif self._norm < self._fall * self._greatest and not self._ended:
                self.refresh()
            self._greatest = max(self._greatest, self._norm)
        return RecurrenceStatus(self._iterations, self._norm, self._ended, self._broken)

    def refresh(self) -> float:
        """Replace the residual by a fresh one, keep the directions, and return its norm, weighed."""
        self._make_residual()
        self._space.left[...] = self._look()
        self._greatest = self._norm
        self._broken = not math.isfinite(self._norm)
        self._ended = self._broken or self._norm < self._limit
        return self._norm

    def _make_residual(self) -> None:
        """Make a fresh residual, in double precision at first."""
        self._images.residual(self.x, self._fresh)
        if self._fresh is not self.r:
            self.r[...] = self._fresh

    def _look(self) -> Numbers:
        """Return the products of the residual with the shadow vectors, and keep its norm."""
        *left, square = self._passes.shadow_sums(self.r, self._weights)
        self._norm = math.sqrt(square)
        return np.array(left)

    def _cycle(self) -> bool:
        """Go through the directions of a space, and into the next; return whether nothing broke down."""
        passes, space, weights = self._passes, self._space, self._weights
        x, r, t, u, g = self.x, self.r, self._t, self._u, self._g
        passes.aim(0, space.shares(0), space.omega, r, u, g)
        betas = np.zeros(DIRECTIONS)
        for k in range(DIRECTIONS):
            self._images.apply(u[k], g[k])
            found = space.take(k, passes.shadow_sums(g[k], weights)[:DIRECTIONS])
            if found is None:
                # x may lack moves of this cycle that r has.
                self._make_residual()
                return False
            taken, betas[k] = found
            passes.settle(k, taken, betas, space.shares(k + 1), space.omega, u, g, r, x)
        self._images.apply(r, t)
        if not space.step(*passes.step_sums(t, r, weights)):
            return False
        passes.step(space.omega, t, r, x)
        space.left[...] = self._look()
        self._ended = self._norm < self._limit
        return self._norm <= LOST * self._first


# BiCGStab's recurrence with numbers that are Python's, and what it multiplies with on the host.


class HostImages:
    """Products of a recurrence, ``A = I - M / diagonal``, see :mod:`hybrid.matrix.space.recurrence`.

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
        self.spare = self._t
        self._rho = self._first = self._norm = math.inf
        self._iterations, self._ended, self._broken = 0, True, False

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

    def advance(self, most: int) -> RecurrenceStatus:
        """Make one iteration."""
        if not self._ended:
            self._iterate()
        return RecurrenceStatus(self._iterations, self._norm, self._ended, self._broken)

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
