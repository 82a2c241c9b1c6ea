"""Krylov methods whose products are sweeps of Gauss-Seidel: ``P x = N x + b`` for ``diagonal - M = P - N``.

P is what a sweep solves: the diagonal less what rows refer to before them in its order. A sweep from x leaves
``P^-1 (N x + b)``. Its change of x is the residual ``P^-1 (b - (diagonal - M) x)`` of a system with the same
solution. The change of a sweep without b is the product with its matrix, ``I - P^-1 N``, but for the sign. A
sweep costs more than a product with M, which reads terms for several groups at once.

The quality of an order is the mean number of jumps of the chain that one sweep follows, until the first one
against the order, from a random state. A sweep from 0 with the diagonal on its right-hand side has that
number in every state. Where a solution is wanted relative to a shape, as that of probabilities far apart,
Doob's transform counts: the jumps of the chain with the rates ``M[i, j] shape[j] / shape[i]``, which goes
where the values come from.

With an anchor s (:mod:`hybrid.solvers.average_krylov`) x[s] is taken from the right-hand side. It is one of
the values that a sweep begins with, in every row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from gpu_kernels.runtime.csr import CsrArrays
from hybrid.base.scipy_routines import csr_multiplier
from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.space.base import Vector
from hybrid.matrix.space.direct import triangular_factors
from hybrid.matrix.space.idr import IDR, Images
from hybrid.matrix.space.passes import Passes

PROBES = 2
"""Sweeps that tell which order is better."""

_WORTH = 1.25
"""Jumps that the better order has to follow, in the mean, for sweeps to be worth it: no sweep follows less
than one."""


PlainImages = Callable[["Vector | None", "int | None"], Images]


class RowSweeps(Protocol):
    """Sweeps of a matrix M without diagonal, in either direction."""

    def sweep(
        self,
        x: Vector,
        b: Vector | None,
        diagonal: Vector,
        out: Vector,
        less: float = 0.0,
        omega: float = 1.0,
        descending: bool = False,
    ) -> None:
        """Write ``(1 - omega) x + omega (b - less + M z) / diagonal``, with the newest values z, to `out`.

        A linear map of x, b and `less`, the same one every time; which values are new enough is the matrix's
        own affair.
        """


class TriangularSweeps:
    """See `RowSweeps`; of rows on the host, by SuperLU's solution of triangular equations.

    Parameters
    ----------
    rows : CsrArrays
        Square, columns ascending in a row; what lies on the diagonal counts as an old value.
    count : callable
        Called before every sweep.

    Notes
    -----
    A triangle has itself for a factor. It is put in order once for each order of the rows, and again for
    another diagonal or omega. Time of a sweep: O(entries).
    """

    def __init__(self, rows: CsrArrays, count: Callable[[], object] = lambda: None) -> None:
        self._rows, self._count, n = rows, count, rows.shape[0]
        self._owner = np.repeat(np.arange(n), np.diff(rows.row_starts))
        self._old: dict[bool, Callable[[Vector], Vector]] = {}
        self._factors: dict[bool, tuple[Vector, float, Any]] = {}

    def sweep(
        self,
        x: Vector,
        b: Vector | None,
        diagonal: Vector,
        out: Vector,
        less: float = 0.0,
        omega: float = 1.0,
        descending: bool = False,
    ) -> None:
        """See `RowSweeps.sweep`."""
        self._count()
        factors = self._factored(diagonal, omega, descending)
        if factors is None:
            out.fill(np.nan)
            return
        with np.errstate(over="ignore", invalid="ignore"):
            right = self._old[descending](x)
            if b is not None:
                right += b
            if less != 0.0:
                right -= less
            if omega != 1.0:
                right *= omega
                right += (1.0 - omega) * diagonal * x
            out[...] = factors.solve(right, "T")

    def _factored(self, diagonal: Vector, omega: float, descending: bool) -> Any:
        """Return the factors of the triangle that a sweep solves; None where there are none."""
        known = self._factors.get(descending)
        if known is not None and known[0] is diagonal and known[1] == omega:
            return known[2]
        owner, columns, n = self._owner, self._rows.columns, diagonal.size
        is_new = columns > owner if descending else columns < owner
        new, old = np.flatnonzero(is_new), np.flatnonzero(~is_new)
        if known is None:
            ends = np.append(0, np.cumsum(np.bincount(owner[old], minlength=n)))
            self._old[descending] = csr_multiplier(ends, columns[old], self._rows.values[old], n)
        # Rows with the diagonal at their end, or at their beginning: the columns of the transposed triangle.
        every, ends = np.arange(n), np.append(0, np.cumsum(np.bincount(owner[new], minlength=n)))
        place = (ends[:-1] if descending else ends[1:]) + every
        moved = np.arange(new.size) + owner[new] + int(descending)
        index, values = np.empty(new.size + n, np.intc), np.empty(new.size + n)
        index[moved], values[moved] = columns[new], -omega * self._rows.values[new]
        index[place], values[place] = every, diagonal
        found = triangular_factors(values, index, ends + np.arange(n + 1))
        self._factors[descending] = diagonal, omega, found
        return found


class SweptImages:
    """See :class:`hybrid.matrix.space.idr.Images`; residuals and products of the system that sweeps solve.

    Parameters
    ----------
    passes : Passes
    sweeps : RowSweeps
    diagonal, b : ndarray of float64, shape (n,)
        b None is zero.
    descending : bool
    anchor : int, optional

    Attributes
    ----------
    made : int
        Sweeps so far.
    """

    def __init__(
        self,
        passes: Passes,
        sweeps: RowSweeps,
        diagonal: Vector,
        b: Vector | None,
        descending: bool,
        anchor: int | None = None,
    ) -> None:
        self._passes, self._sweeps, self._descending = passes, sweeps, descending
        self._diagonal, self._b, self._anchor = diagonal, b, anchor
        self.made = 0

    def residual(self, x: Vector, out: Vector) -> None:
        """Write what a sweep changes in x."""
        self._sweep(x, self._b, out)
        self._passes.add_scaled(-1.0, x, out)

    def apply(self, x: Vector, out: Vector) -> None:
        """Write x less a sweep of it without right-hand side."""
        self._sweep(x, None, out)
        self._passes.subtract_from(x, out)

    def _sweep(self, x: Vector, b: Vector | None, out: Vector) -> None:
        less = 0.0 if self._anchor is None else self._passes.element(x, self._anchor)
        self._sweeps.sweep(x, b, self._diagonal, out, less, descending=self._descending)
        self.made += 1


class SweptSystem:
    """``diagonal * x = M x + b`` by sweeps in the better order; a `Preconditioner`.

    Parameters
    ----------
    sweeps : RowSweeps
    passes : Passes
    diagonal : ndarray of float64, shape (n,)
    b : ndarray of float64, shape (n,), or None
        Zero if it is None.
    plain : callable
        Returns the images of the system as it is: ``plain(b, anchor)``.
    shape : ndarray of float64, shape (n,), optional
        What the solution is measured by; not negative.

    Attributes
    ----------
    descending : bool
        Whether the last rows come first.
    jumps : float
        What a sweep follows of the chain in this order, in the mean.

    Notes
    -----
    To be made takes `PROBES` sweeps, and three vectors meanwhile.
    """

    probes, more_vectors = PROBES, 0

    def __init__(
        self,
        sweeps: RowSweeps,
        passes: Passes,
        diagonal: Vector,
        b: Vector | None,
        plain: PlainImages,
        shape: Vector | None = None,
    ) -> None:
        self._sweeps, self._passes, self._diagonal, self._plain = sweeps, passes, diagonal, plain
        self._b = b
        self.jumps, self.descending = max((self._followed(order, shape), order) for order in (False, True))

    @property
    def is_worth_it(self) -> bool:
        """Whether sweeps follow so much that they lead further than products."""
        return _WORTH <= self.jumps < np.inf

    def _followed(self, descending: bool, shape: Vector | None) -> float:
        """Return the mean number of jumps that a sweep follows in an order."""
        followed = np.empty(self._diagonal.size)
        right = self._diagonal if shape is None else self._diagonal * shape
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self._sweeps.sweep(
                np.zeros(followed.size), right, self._diagonal, followed, descending=descending
            )
            if shape is not None:
                followed /= shape
                followed[shape == 0.0] = 1.0
            total, count, _ = self._passes.step_sums(np.ones(followed.size), followed, None)
        return float(total / count) if count and math.isfinite(total) else 0.0

    def idr(
        self,
        b: Vector | None,
        start: Vector,
        limit: float,
        anchor: int | None = None,
        weights: Vector | None = None,
        directions: int = DIRECTIONS,
    ) -> IDR:
        """See `Preconditioner.idr`."""
        images, plain = self._images(b, anchor)
        copy = np.array(start, dtype=np.float64, order="C")
        return IDR(self._passes, images, copy, limit, weights, plain=plain, directions=directions)

    def _images(self, b: Vector | None, anchor: int | None) -> tuple[SweptImages, Images]:
        b = self._b if b is None else b
        swept = SweptImages(self._passes, self._sweeps, self._diagonal, b, self.descending, anchor)
        return swept, self._plain(b, anchor)
