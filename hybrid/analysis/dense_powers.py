"""Many steps of a tiny chain at once, by powers of its dense matrix.

A million steps of a chain of three states cost nothing but the calls that make them.  With the matrix
squared again and again a number of steps takes its logarithm of products.  These are made in extended
precision, so that they add no more to the rounding errors than single steps do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.explicit.operators import ExplicitOperator
from hybrid.matrix.operators.hybrid_matrix import HybridMatrix
from hybrid.matrix.operators.inject import inject

Vector = NDArray[np.float64]

MOST_STATES = 48
FEWEST_STEPS = 20_000

_PRECISE = 1e-18  # an extended format whose unit lies below this makes the products' errors vanish


def dense_powers_pay(states: int, steps: int) -> bool:
    """Return whether a chain is small enough, and the way long enough, for powers of a dense matrix.

    Never where extended precision is that of doubles.
    """
    precise = float(np.finfo(np.longdouble).eps) < _PRECISE
    return precise and 0 < states <= MOST_STATES and steps >= FEWEST_STEPS


class DensePowers:
    """Repetitions of ``x -> A x + c``.

    Parameters
    ----------
    a : ndarray of longdouble, shape (n, n)
        Not negative.
    c : ndarray of longdouble, shape (n,)
        Not negative.

    Attributes
    ----------
    products : int
        Products made so far.
    """

    def __init__(self, a: NDArray[Any], c: NDArray[Any]) -> None:
        self.products = 0
        self._a, self._c = a, c

    def after(self, start: Vector, steps: int) -> Vector:
        """Return the vector after a number of steps, shape (n,)."""
        return self._power(self._a, self._c, start, steps)

    def positive_after(self, start: Vector, steps: int) -> NDArray[np.bool_]:
        """Return where the vector after a number of steps is positive, shape (n,), whatever underflows.

        Notes
        -----
        Time: O(n^3 log steps), with matrices of zeros and ones.
        """
        size = start.size
        power = np.zeros((size + 1, size + 1))
        power[:size, :size], power[:size, size], power[size, size] = self._a > 0, self._c > 0, 1.0
        x, left = np.append(start > 0, True).astype(np.float64), steps
        while left:
            if left & 1:
                x = (power @ x > 0.0).astype(np.float64)
            left >>= 1
            power = (power @ power > 0.0).astype(np.float64)
        reached: NDArray[np.bool_] = x[:size] > 0.0
        return reached

    def added_up(self, start: Vector, terms: int) -> Vector:
        """Return the sum of ``A^k start`` over the first terms k = 0, 1, ..., shape (n,); c is not in it."""
        first = start.astype(np.longdouble)
        return self._power(self._a, first, np.zeros(start.size), terms)

    def _power(self, a: NDArray[Any], c: NDArray[Any], start: Vector, steps: int) -> Vector:
        """Return what a number of steps ``x -> a x + c`` make of a vector.

        Notes
        -----
        Time: O(n^3 log steps).
        """
        size = start.size
        power = np.zeros((size + 1, size + 1), dtype=np.longdouble)
        power[:size, :size], power[:size, size], power[size, size] = a, c, 1.0
        x = np.append(start.astype(np.longdouble), np.longdouble(1.0))
        left = steps
        while left:
            if left & 1:
                x = power @ x
                self.products += 1
            left >>= 1
            if left:
                power = power @ power
                self.products += 1
        return x[:size].astype(np.float64)


def dense_powers(
    matrix: HybridMatrix | ExplicitOperator, divisor: Vector, rate: float | None, b: Vector | None
) -> DensePowers:
    """Return the steps ``(M x + b) / divisor``, or uniformised ``x + (M x + b - divisor * x) / rate``.

    Parameters
    ----------
    matrix : HybridMatrix or ExplicitOperator
        M, of few rows.
    divisor : ndarray of float64, shape (n,)
    rate : float, optional
        At least the greatest element of `divisor`; None for steps that are not uniformised.
    b : ndarray of float64, shape (n,), optional
        Default zero.

    Notes
    -----
    Time: n products.
    """
    size = divisor.size
    a = np.empty((size, size), dtype=np.longdouble)
    # On the host, wherever the matrix is.
    plain = inject(matrix.symbolic, level=0, backend="reference")
    for column, unit in enumerate(np.eye(size)):
        a[:, column] = plain.multiply(unit)
    c = np.zeros(size, dtype=np.longdouble) if b is None else b.astype(np.longdouble)
    if rate is None:
        return DensePowers(a / divisor[:, None], c / divisor)
    loops = 1 - divisor / np.longdouble(rate)
    a /= np.longdouble(rate)
    a[np.diag_indices(size)] += loops
    return DensePowers(a, c / np.longdouble(rate))
