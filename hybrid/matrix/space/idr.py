"""IDR(s)'s recurrence with bi-orthogonal images, vectors and numbers on the host; BiCGStab is s = 1.

Residuals lie in ever smaller spaces. Each is ``(I - omega A)`` times those vectors of the space before that
are orthogonal to the s shadow vectors. Directions u_k and their images g_k = A u_k are chosen so that g_k is
orthogonal to the shadow vectors before the k-th. Let m[i, k] be the product of the i-th with g_k; then the
matrix of a space is triangular. A cycle is s products with directions and one with the residual, where omega
makes the residual small:

    solve m[k:, k:] c = f[k:];  u_k = omega r + sum over j >= k of c_j (u_j - omega g_j);  g_k = A u_k
    g_k and u_k lose their shares of those before;  beta = f[k] / m[k, k];  x += beta u_k,  r -= beta g_k
    after all k:  t = A r,  omega = (t . r) / (t . t), no less than kappa allows;  x += omega r,  r -= omega t

With s = 4 the shadow vectors are signs that nobody stores, and four of five products lower the dimension that
is left. With s = 1 the shadow vector is the residual that the recurrence began with: that is BiCGStab, in as
many vectors, but for kappa. Omega cannot be small beside the residual's angle to t, where BiCGStab breaks
down on convective chains (queues in a row). Where the residual has become orthogonal to the only shadow
vector, the recurrence restarts with another one.

Norms may grow by some powers of ten before they fall, and the residual then is no longer that of x. So with
s = 4 a fresh one takes its place whenever it has fallen by a factor of a hundred, while directions stay. A
restart would lose what they know (van der Vorst and Ye, SIAM J. Sci. Comput. 22(3), 2000).

Most of the time is what passes over vectors move, and vectors of single precision, which a device takes,
halve that. They lead as far as others, since residuals are recomputed in double precision. But they forget
what lies beyond seven digits, and where a system is nearly singular that takes more cycles than it saves.

Scalar products may be weighted, which is the recurrence for x divided by the weights. With weights 1 / x a
small norm means a residual that is small beside x in every row, and not only where x is great. Source:
[vGS11], [SvG08]; s = 1: van der Vorst, Bi-CGSTAB, SIAM J. Sci. Stat. Comput. 13, 1992; kappa: Sleijpen and
van der Vorst, Numerical Algorithms 10, 1995.
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
from hybrid.matrix.space.vector_space import RecurrenceStatus, Steps

IDR_VECTORS = 3 + 2 * DIRECTIONS
"""Vectors of the recurrence, its operands and weights not among them."""

BICGSTAB_VECTORS = 3 + 2 + 1
"""The same of s = 1, whose shadow vector is held."""

SINGLE_VECTORS = 3 + DIRECTIONS
"""Those of s = 4 with single precision: as much memory as so many vectors of double precision."""

KAPPA = 0.7
"""Cosine of the residual and its image below which omega is made greater."""

FALL = 1e-2
"""Share of the greatest norm since the last fresh residual at which the next one is computed."""

SINGLE_FALL = 1e-1
"""The same with vectors of single precision, whose residual is sooner that of another x."""

ORTHOGONAL = 1e-12
"""Cosine of the residual and the only shadow vector of s = 1 below which the recurrence restarts."""

LOST = 1e8
"""Times the first norm that the residual may grow before its digits are those of nothing."""


def fall_of(directions: int, is_single: bool) -> float:
    """Return the share of the greatest norm at which a recurrence makes a fresh residual; 0 for never.

    With s = 1, whose cycles are two products, it would take a share of them that is not won back.
    """
    if is_single:
        return SINGLE_FALL
    return FALL if directions > 1 else 0.0


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

    Parameters
    ----------
    directions : int
        s.

    Attributes
    ----------
    omega : float
        Of the last step along the residual; 1 in the beginning.
    left : ndarray of float64, shape (s,)
        Products of the residual with the shadow vectors.
    """

    def __init__(self, directions: int = DIRECTIONS) -> None:
        self.left = np.zeros(directions)
        self.begin(self.left)

    def begin(self, left: Numbers) -> None:
        """Begin with a residual: no image is known."""
        self._images, self.left, self.omega = np.eye(len(left)), left.copy(), 1.0

    def shares(self, k: int) -> Numbers:
        """Return what direction k takes of those of the last space, shape (s,), zero before k."""
        found = np.zeros(len(self.left))
        for i in range(k, len(found)):
            found[i] = (self.left[i] - self._images[i, k:i] @ found[k:i]) / self._images[i, i]
        return found

    def take(self, k: int, sums: Numbers) -> tuple[Numbers, float] | None:
        """Take note of an image's products with the shadow vectors.

        Returns
        -------
        tuple, or None
            Shares of the directions before, shape (s,), and beta; None where they break down.
        """
        # So few numbers are no shorter for NumPy.
        column, images, shares = sums.tolist(), self._images.tolist(), np.zeros(len(sums))
        for i in range(k):
            shares[i] = share = column[i] / images[i][i]
            for j in range(i, len(column)):
                column[j] -= share * images[j][i]
        beta = self.left.item(k) / column[k] if column[k] != 0.0 else math.nan
        if not (math.isfinite(beta) and all(map(math.isfinite, column[k:]))):
            return None
        self._images[k:, k] = column[k:]
        for j in range(k + 1, len(column)):
            self.left[j] -= beta * column[j]
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


class IDR:
    """The recurrence for ``A x = b``; see `hybrid.matrix.space.vector_space.Recurrence`.

    Parameters
    ----------
    passes : Passes
    images : Images
        Of the system that is solved.
    x : array, shape (n,), float64
        The iterate, changed in place.
    limit : float
        Norm of the residual, weighed, below which it has arrived.
    weights : array, shape (n,), float64, optional
        What elements are multiplied with before they are measured.
    plain : Images, optional
        Of the system as it is, divided by its diagonal, where `images` are those of another one.
    directions : {4, 1}
        s.

    Attributes
    ----------
    steps : int
        Products of an image.
    cycles : int
        Without any gain, after which a residual falls no more.

    Notes
    -----
    An iteration is a cycle of s + 1 images; it allocates parts of vectors only.  Vectors: 3 + 2 s, and
    one more with s = 1.  Time besides the products: s + 1 passes over up to 2 s + 2 vectors.
    """

    steps, cycles = 1, 400

    def __init__(
        self,
        passes: Passes,
        images: Images,
        x: Array,
        limit: float,
        weights: Array | None = None,
        plain: Images | None = None,
        directions: int = DIRECTIONS,
    ) -> None:
        self._passes, self._images, self._plain = passes, images, plain
        self.is_preconditioned = plain is not None
        self.cost = self.steps * (directions + 1)
        self.patience = self.cycles * self.cost
        self._limit, self._weights = limit, weights
        self.x = x
        self.r, self._t = np.empty_like(x), np.empty_like(x)
        self._u, self._g = (np.empty_like(x, shape=(directions, x.size)) for _ in range(2))
        self._shadow = np.empty_like(self.r) if directions == 1 else None
        self._fall, self.spare = fall_of(directions, is_single=False), self._t
        self._space = Space(directions)
        self._first = self._norm = self._greatest = math.inf
        self._iterations, self._ended, self._broken = 0, True, False

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

    def restart(self) -> float:
        """Begin with the residual of x, and return its norm, weighed."""
        self._make_residual()
        if self._shadow is not None:
            self._shadow[...] = self.r
        self._passes.clear(self._u, self._g)
        self._space.begin(self._look())
        self._first = self._norm
        return self._go_on()

    def advance(self, most: int) -> RecurrenceStatus:
        """Make one cycle."""
        if not self._ended:
            self._iterations += 1
            if not self._cycle():
                self._ended = self._broken = True
            elif not self._ended and self._is_orthogonal():
                self.restart()
            elif not self._ended and self._norm < self._fall * self._greatest:
                self.refresh()
            self._greatest = max(self._greatest, self._norm)
        return RecurrenceStatus(self._iterations, self._norm, self._ended, self._broken)

    def refresh(self) -> float:
        """Replace the residual by a fresh one, keep the directions, and return its norm, weighed."""
        self._make_residual()
        self._space.left[...] = self._look()
        return self._go_on()

    def _is_orthogonal(self) -> bool:
        """Whether the product of the residual with the only shadow vector has lost its digits."""
        if self._shadow is None:
            return False
        return not abs(self._space.left[0]) > ORTHOGONAL * self._first * self._norm

    def _go_on(self) -> float:
        """Go on from a fresh residual, and return its norm."""
        self._greatest = self._norm
        self._broken = not math.isfinite(self._norm)
        self._ended = self._broken or self._norm < self._limit
        return self._norm

    def _make_residual(self) -> None:
        """Make a fresh residual."""
        self._images.residual(self.x, self.r)

    def _sums(self, x: Array) -> Numbers:
        """Return the products of a vector with the shadow vectors, and with itself, shape (s + 1,)."""
        if self._shadow is None:
            return self._passes.shadow_sums(x, self._weights)
        return self._passes.step_sums(x, self._shadow, self._weights)[:2]

    def _look(self) -> Numbers:
        """Return the products of the residual with the shadow vectors, and keep its norm."""
        *left, square = self._sums(self.r)
        self._norm = math.sqrt(square)
        return np.array(left)

    def _cycle(self) -> bool:
        """Go through the directions of a space, and into the next; return whether nothing broke down."""
        passes, space = self._passes, self._space
        x, r, t, u, g = self.x, self.r, self._t, self._u, self._g
        passes.aim(0, space.shares(0), space.omega, r, u, g)
        betas = np.zeros(len(u))
        for k in range(len(u)):
            self._images.apply(u[k], g[k])
            found = space.take(k, self._sums(g[k])[:-1])
            if found is None:
                # x may lack moves of this cycle that r has.
                self._make_residual()
                return False
            taken, betas[k] = found
            passes.settle(k, taken, betas, space.shares(k + 1), space.omega, u, g, r, x)
        self._images.apply(r, t)
        across, image, square = passes.step_sums(t, r, self._weights)
        if math.sqrt(square) < self._limit:
            # Having arrived is no breakdown, whatever else is zero by then.
            self._norm, self._ended = math.sqrt(square), True
            return True
        if not space.step(across, image, square):
            return False
        passes.step(space.omega, t, r, x)
        space.left[...] = self._look()
        self._ended = self._norm < self._limit
        return self._norm <= LOST * self._first


class HostImages:
    """Products of a recurrence, ``A = I - M / diagonal``, see :mod:`hybrid.matrix.space.vector_space`.

    Parameters
    ----------
    passes : Passes
    multiply : callable
        Writes ``M x``: ``multiply(x, out)``.
    diagonal : ndarray of float64, shape (n,)
    relaxation : Steps
        The step ``x <- (M x + b) / diagonal``.
    anchor : int, optional
        As for :meth:`hybrid.matrix.space.vector_space.System.idr`.

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
