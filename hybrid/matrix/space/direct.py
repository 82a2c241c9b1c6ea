"""Direct solution of ``D x = M x + b``, M not negative, D its row sums or more, at a cost that is foretold.

Few equations have a dense inverse. Of many, rows are put in reverse Cuthill-McKee order (E. Cuthill and J.
McKee, Reducing the bandwidth of sparse symmetric matrices, 1969); such a matrix needs no pivoting. Its
triangular factors stay within the envelope of that order, so that their cost is known before they are made.
Solutions are refined with residuals of doubles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from gpu_kernels.runtime.csr import CsrArrays
from hybrid.matrix.space.base import Vector

_REFINEMENTS = 2  # steps after which a residual of doubles falls no more
FEW = 512  # equations up to which an inverse takes less time than SciPy takes to be loaded
_DENSE_SPEED = 8.0  # operations of an inverse in a nanosecond
_SPARSE_SPEED = 1.0  # and of sparse factors
_CALLS = 2e6  # nanoseconds of the calls that few equations take
_LOADING = 5e7  # until SciPy is loaded
_WRITING = 200.0  # for each entry, to write it out and to put it in order
_FACTOR_BYTES = 12  # of an element: a double, and the number of its row


def nanoseconds_to_write(size: int, entries: int) -> float:
    """Return about the time that it takes to make a `FactoredSystem`, as far as its cost is not known yet."""
    return _CALLS if size <= FEW else _LOADING + _WRITING * entries


class FactoredSystem(ABC):
    """The system ``diagonal * x = M x + b``, not factorised before it is solved.

    Parameters
    ----------
    rows : CsrArrays, shape (n, n)
        M, on the host.
    diagonal, b : ndarray, shape (n,), float64

    Attributes
    ----------
    nanoseconds : float
        About the time that factors take.
    nbytes : float
        Of the factors, at most.
    """

    nanoseconds: float
    nbytes: float

    def __init__(self, rows: CsrArrays, diagonal: Vector, b: Vector) -> None:
        self.diagonal, self.b = diagonal, b
        self._is_factorised = False

    def solve(self, b: Vector) -> Vector | None:
        """Return about the solution for a right-hand side, shape (n,); None where the matrix seems singular.

        Time: that of factors the first time, and O(their elements) each.
        """
        if not self._is_factorised and not self._factorise():
            return None
        self._is_factorised = True
        x = self._once(b)
        for _ in range(_REFINEMENTS):
            x += self._once(self.residual(x, b))
        return x

    def residual(self, x: Vector, b: Vector) -> Vector:
        """Return ``b + M x - diagonal * x``, shape (n,)."""
        found = self._product(x)
        found -= self.diagonal * x
        found += b
        return found

    @abstractmethod
    def _product(self, x: Vector) -> Vector:
        """Return ``M x``."""

    @abstractmethod
    def _factorise(self) -> bool:
        """Make the factors; False where they cannot be had, or have no room."""

    @abstractmethod
    def _once(self, b: Vector) -> Vector:
        """Return the solution by the factors alone."""


class DenseSystem(FactoredSystem):
    """See `FactoredSystem`; by a dense inverse."""

    def __init__(self, rows: CsrArrays, diagonal: Vector, b: Vector) -> None:
        super().__init__(rows, diagonal, b)
        n = b.size
        self._matrix = np.zeros((n, n))
        self._matrix[np.repeat(np.arange(n), np.diff(rows.row_starts)), rows.columns] = rows.values
        self.nanoseconds, self.nbytes = 2.0 * n**3 / _DENSE_SPEED, 16.0 * n**2
        self._inverse: Any = None

    def _product(self, x: Vector) -> Vector:
        found: Vector = self._matrix @ x
        return found

    def _factorise(self) -> bool:
        try:
            self._inverse = np.linalg.inv(np.diag(self.diagonal) - self._matrix)
        except np.linalg.LinAlgError:
            return False
        return True

    def _once(self, b: Vector) -> Vector:
        found: Vector = self._inverse @ b
        return found


class EnvelopeSystem(FactoredSystem):
    """See `FactoredSystem`; by sparse triangular factors in reverse Cuthill-McKee order.

    Notes
    -----
    Time: O(entries log(entries)).
    """

    def __init__(self, rows: CsrArrays, diagonal: Vector, b: Vector) -> None:
        # Here: most answers need no SciPy.
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        super().__init__(rows, diagonal, b)
        self._matrix = rows.to_scipy()
        self._order = np.asarray(reverse_cuthill_mckee(self._matrix, symmetric_mode=False), np.int64)
        place = np.empty_like(self._order)
        place[self._order] = np.arange(place.size)
        row, column = np.repeat(place, np.diff(rows.row_starts)), place[rows.columns]
        reach = np.zeros(place.size, np.int64)
        np.maximum.at(reach, np.maximum(row, column), np.abs(row - column))
        width = reach.astype(np.float64) + 1.0
        self.nanoseconds = 2.0 * float(np.square(width).sum()) / _SPARSE_SPEED
        self.nbytes = 2.0 * _FACTOR_BYTES * float(width.sum())
        self._factors: Any = None

    def _product(self, x: Vector) -> Vector:
        found: Vector = self._matrix @ x
        return found

    def _factorise(self) -> bool:
        from scipy.sparse import csc_array, diags_array
        from scipy.sparse.linalg import splu

        whole = (diags_array(self.diagonal) - self._matrix).tocsr()[self._order][:, self._order]
        try:
            self._factors = splu(
                csc_array(whole),
                permc_spec="NATURAL",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True, "Equil": False},
            )
        except (RuntimeError, MemoryError):  # the first one tells that a pivot is zero
            return False
        return True

    def _once(self, b: Vector) -> Vector:
        x = np.empty(b.size)
        x[self._order] = self._factors.solve(b[self._order])
        return x


def factored_system(rows: CsrArrays, diagonal: Vector, b: Vector) -> FactoredSystem:
    """Return a system of equations for direct solution; see `FactoredSystem`."""
    kind = DenseSystem if b.size <= FEW else EnvelopeSystem
    return kind(rows, diagonal, b)
