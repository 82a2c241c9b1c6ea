"""Direct solution of ``D x = M x + b``, M not negative, D its row sums or more, at a cost that is foretold.

Few equations are eliminated as a dense matrix, once for each right-hand side: most policies have one. Of
many, rows are put in reverse Cuthill-McKee order (E. Cuthill and J. McKee, Reducing the bandwidth of sparse
symmetric matrices, 1969); such a matrix needs no pivoting. Its triangular factors stay within the envelope
of that order, so that their cost is known before they are made.
Solutions are refined with residuals of doubles, until these are of the size of rounding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from gpu_kernels.runtime.csr import CsrArrays
from hybrid.matrix.space.base import Vector

_REFINEMENTS = 2  # steps after which a residual of doubles falls no more
_REFINED = 1e-15  # times the left-hand side, below which a residual is rounding
FEW = 512  # equations up to which an elimination takes less time than SciPy takes to be loaded
_DENSE_SPEED = 8.0  # operations of an elimination in a nanosecond
_SPARSE_SPEED = 1.0  # and of sparse factors
_CALLS = 2e6  # nanoseconds of the calls that few equations take
_LOADING = 5e7  # until SciPy is loaded
_WRITING = 200.0  # for each entry, to write it out and to put it in order
_FACTOR_BYTES = 12  # of an element: a double, and the number of its row


def nanoseconds_to_write(size: int, entries: int) -> float:
    """Return about the time that it takes to make a `FactoredSystem`, as far as its cost is not known yet."""
    return _CALLS if size <= FEW else _LOADING + _WRITING * entries


class FactoredSystem(ABC):
    """The system ``diagonal * x = M x + b``; the work begins with the first solution.

    Parameters
    ----------
    rows : CsrArrays, shape (n, n)
        M, on the host.
    diagonal, b : ndarray, shape (n,), float64

    Attributes
    ----------
    nanoseconds : float
        About the time of the first solution.
    nbytes : float
        Of what it takes, at most.
    """

    nanoseconds: float
    nbytes: float

    def __init__(self, rows: CsrArrays, diagonal: Vector, b: Vector) -> None:
        self.diagonal, self.b = diagonal, b

    def solve(self, b: Vector) -> Vector | None:
        """Return about the solution for a right-hand side, shape (n,); None where the matrix seems singular.

        Time: that of `nanoseconds` the first time, and each time where equations are few.
        """
        x = self._once(b)
        for _ in range(_REFINEMENTS):
            if x is None:
                break
            left = self.residual(x, b)
            if bool((np.abs(left) <= _REFINED * self.diagonal * np.abs(x)).all()):
                break
            more = self._once(left)
            x = None if more is None else x + more
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
    def _once(self, b: Vector) -> Vector | None:
        """Return the solution without refinement; None where there is none, or no room for it."""


class DenseSystem(FactoredSystem):
    """See `FactoredSystem`; by Gaussian elimination, anew for each right-hand side.

    Factors that NumPy does not hand out would have to be an inverse, at three times the operations.
    """

    def __init__(self, rows: CsrArrays, diagonal: Vector, b: Vector) -> None:
        super().__init__(rows, diagonal, b)
        n = b.size
        self._matrix = np.zeros((n, n))
        self._matrix[np.repeat(np.arange(n), np.diff(rows.row_starts)), rows.columns] = rows.values
        self.nanoseconds, self.nbytes = 2.0 / 3.0 * n**3 / _DENSE_SPEED, 24.0 * n**2

    def _product(self, x: Vector) -> Vector:
        found: Vector = self._matrix @ x
        return found

    def _once(self, b: Vector) -> Vector | None:
        try:
            found = np.linalg.solve(np.diag(self.diagonal) - self._matrix, b)
        except np.linalg.LinAlgError:
            return None
        return np.asarray(found, np.float64)


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

    def _factorise(self) -> None:
        """Make the factors; there are none where they cannot be had, or have no room."""
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
            return

    def _once(self, b: Vector) -> Vector | None:
        if self._factors is None:
            self._factorise()
        if self._factors is None:
            return None
        x = np.empty(b.size)
        x[self._order] = self._factors.solve(b[self._order])
        return x


def factored_system(rows: CsrArrays, diagonal: Vector, b: Vector) -> FactoredSystem:
    """Return a system of equations for direct solution; see `FactoredSystem`."""
    kind = DenseSystem if b.size <= FEW else EnvelopeSystem
    return kind(rows, diagonal, b)
