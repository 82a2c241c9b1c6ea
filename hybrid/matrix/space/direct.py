"""Direct solution of ``D x = M x + b``, M not negative, D its row sums or more, at a cost that is foretold.

Few equations are eliminated as a dense matrix, once for each right-hand side: most policies have one. Of
many, rows are put in reverse Cuthill-McKee order (E. Cuthill and J. McKee, Reducing the bandwidth of sparse
symmetric matrices, 1969); such a matrix needs no pivoting. Its triangular factors stay within the envelope
of that order, so that their cost is known before they are made. Where rows have few entries and narrow cuts
divide them, factors in an order by degrees have hardly more elements than the matrix has (T. Davis et al., A
column approximate minimum degree ordering algorithm, 2004): the equations of most policies are such. They are
given up where they come to have more. They are SuperLU's, as SciPy has it. Most of what SciPy loads beside it
takes longer than to solve ten thousand equations, so that it is loaded alone where nothing else is needed.
Solutions are refined with residuals of doubles, until these are of the size of rounding.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.csr import CsrArrays
from hybrid.base.arrays import concatenated_ranges
from hybrid.base.blas_threads import one_blas_thread
from hybrid.base.scipy_routines import csr_multiplier, scipy_alone
from hybrid.matrix.space.base import Vector

_REFINEMENTS = 2  # steps after which a residual of doubles falls no more
_REFINED = 1e-15  # times the left-hand side, below which a residual is rounding
FEW = 512  # equations up to which an elimination takes less time than SciPy takes to be loaded
_DENSE_SPEED = 8.0  # operations of an elimination in a nanosecond
_SPARSE_SPEED = 1.0  # and of sparse factors
_CALLS = 2e6  # nanoseconds of the calls that few equations take
_LOADING = 5e7  # until SciPy is loaded
_WRITING = 100.0  # for each entry, to write it out and to put it in order
_FACTOR_BYTES = 12  # of an element: a double, and the number of its row
_SHORT = 2.0  # entries of a row, on average, with which factors may have hardly more elements
CHEAP_ROWS = 1 << 13  # rows up to which sparse factors take little time, made or given up
_NARROW = 0.25  # of all rows, up to which two levels of a search show that cuts are narrow
_DEEP = 200  # levels, with which they are so in any case
_FILL = 8.0  # elements of factors for each of the matrix, beyond which some would be dropped
_GIVEN_UP = 0.9  # of those, from which factors are given up
_FILLING = 500.0  # nanoseconds for each element of the matrix

_SUPERLU = ("sparse", "linalg", "_dsolve", "_superlu")
# Without supernodes, which columns with so few elements do not make up.
_ALONE = {"Relax": 1, "PanelSize": 1}


def nanoseconds_to_write(size: int, entries: int) -> float:
    """Return about the time that it takes to make a `FactoredSystem`, as far as its cost is not known yet."""
    if size <= FEW:
        return _CALLS
    return _WRITING * entries + (0.0 if "scipy.sparse.linalg" in sys.modules else _LOADING)


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

    def visits(self, b: Vector) -> Vector | None:
        """Return about ``x`` with ``diagonal * x = x M + b``, shape (n,): how often each state is visited.

        It is not refined.  Time: that of one more solution.
        """
        return self._once(b, is_transposed=True)

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
    def _once(self, b: Vector, is_transposed: bool = False) -> Vector | None:
        """Return the solution without refinement; None where there is none, or no room for it."""


class DenseSystem(FactoredSystem):
    """See `FactoredSystem`; by Gaussian elimination, once for each right-hand side.

    Factors that NumPy does not hand out would have to be an inverse, at three times the operations.
    """

    def __init__(self, rows: CsrArrays, diagonal: Vector, b: Vector) -> None:
        super().__init__(rows, diagonal, b)
        n = b.size
        self._matrix = np.zeros((n, n))
        self._matrix[np.repeat(np.arange(n), np.diff(rows.row_starts)), rows.columns] = rows.values
        self.nanoseconds, self.nbytes = 2.0 / 3.0 * n**3 / _DENSE_SPEED, 24.0 * n**2

    def _product(self, x: Vector) -> Vector:
        with one_blas_thread():
            found: Vector = self._matrix @ x
        return found

    def _once(self, b: Vector, is_transposed: bool = False) -> Vector | None:
        whole = np.diag(self.diagonal) - self._matrix
        with suppress(np.linalg.LinAlgError), one_blas_thread():
            return np.asarray(np.linalg.solve(whole.T if is_transposed else whole, b), np.float64)
        return None


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
        except (RuntimeError, MemoryError):  # the first one: a pivot is zero
            return

    def _once(self, b: Vector, is_transposed: bool = False) -> Vector | None:
        if self._factors is None:
            self._factorise()
        if self._factors is None:
            return None
        x = np.empty(b.size)
        x[self._order] = self._factors.solve(b[self._order], "T" if is_transposed else "N")
        return x


class SlenderSystem(FactoredSystem):
    """See `FactoredSystem`; by sparse triangular factors that hold hardly more elements than the matrix.

    Notes
    -----
    Time: O(entries log(entries)), while the factors have not more elements than they may.
    """

    def __init__(self, rows: CsrArrays, diagonal: Vector, b: Vector) -> None:
        super().__init__(rows, diagonal, b)
        self._rows, self._owner = rows, np.repeat(np.arange(b.size), np.diff(rows.row_starts))
        self._sums = csr_multiplier(rows.row_starts, rows.columns, rows.values, b.size)
        elements = b.size + rows.columns.size
        self.nanoseconds, self.nbytes = _FILLING * elements, _FILL * _FACTOR_BYTES * elements
        self._factors: Any = None
        self._has_failed = False

    @classmethod
    def suits(cls, rows: CsrArrays) -> bool:
        """Whether rows are short, and a search breadth first finds that narrow cuts divide them.

        Notes
        -----
        Time: O(entries log(entries)).
        """
        n, owner = rows.shape[0], np.repeat(np.arange(rows.shape[0]), np.diff(rows.row_starts))
        if rows.columns.size > _SHORT * n or n <= CHEAP_ROWS:
            return bool(rows.columns.size <= _SHORT * n)
        source, target = np.append(owner, rows.columns), np.append(rows.columns, owner)
        beside = target[np.argsort(source, kind="stable")]
        count = np.bincount(source, minlength=n)
        begin = np.cumsum(count) - count
        is_seen, unseen, most = np.zeros(n, np.bool_), 0, (_NARROW * n) ** 2 * n
        level, squares, before, place = np.zeros(0, np.int64), 0.0, 0, np.empty(n, np.int64)
        for _ in range(_DEEP):
            if not level.size:
                left = np.flatnonzero(~is_seen[unseen:])
                if not left.size:
                    break
                unseen += int(left[0])
                level, before = np.array([unseen]), 0
                is_seen[unseen] = True
            squares += level.size * float(level.size + before) ** 2
            if squares > most:
                return False
            before = level.size
            found = beside[concatenated_ranges(begin[level], count[level])]
            found = found[~is_seen[found]]
            place[found] = np.arange(found.size)
            level = found[place[found] == np.arange(found.size)]  # each once
            is_seen[level] = True
        return True

    def _product(self, x: Vector) -> Vector:
        return self._sums(x)

    def _factorise(self) -> None:
        """Make the factors; there are none where they cannot be had, have no room, or are too large."""
        n, own = self.b.size, self._owner == self._rows.columns
        row, column, value = self._owner[~own], self._rows.columns[~own], self._rows.values[~own]
        diagonal = self.diagonal - np.bincount(self._owner[own], self._rows.values[own], minlength=n)
        place = np.append(column.astype(np.int64) * n + row, np.arange(n) * (n + 1))
        order = np.argsort(place, kind="stable")
        place, value = place[order], np.append(-value, diagonal)[order]
        first = np.flatnonzero(np.append(True, place[1:] != place[:-1]))
        column, row = np.divmod(place[first], n)
        starts = np.searchsorted(column, np.arange(n + 1))
        with suppress(RuntimeError, MemoryError):  # the former where a pivot is zero
            # Of more elements than `_FILL` times those of the matrix some would be dropped.
            found = _factors(
                np.add.reduceat(value, first), row, starts, True, ColPerm="COLAMD", ILU_DropRule=None,
                ILU_DropTol=0.0, ILU_FillFactor=_FILL,
            )  # fmt: skip
            if found.nnz <= _GIVEN_UP * _FILL * first.size:
                self._factors = found

    def _once(self, b: Vector, is_transposed: bool = False) -> Vector | None:
        if self._factors is None and not self._has_failed:
            self._factorise()
            self._has_failed = self._factors is None
        if self._has_failed:
            return None
        return np.asarray(self._factors.solve(b, "T" if is_transposed else "N"), np.float64)


def _factors(
    values: Vector, rows: NDArray[np.integer], starts: NDArray[np.int64], is_incomplete: bool, **options: Any
) -> Any:
    """Return the factors of a square matrix, given by columns, without pivoting; `options` are SuperLU's.

    They `solve`, and have `nnz`. Incomplete ones drop elements.

    Raises
    ------
    RuntimeError
        A pivot is zero.
    """
    n, alone = starts.size - 1, None if "scipy.sparse" in sys.modules else scipy_alone(*_SUPERLU)
    options = {"DiagPivotThresh": 0.0, "Equil": False, **_ALONE, **options}
    if alone is not None:
        parts = (values, rows.astype(np.intc, copy=False), starts.astype(np.intc))
        kind = {"csc_construct_func": None, "ilu": is_incomplete, "options": options}
        # Another SciPy may have it otherwise.
        with suppress(TypeError, AttributeError, ValueError):
            return alone.gstrf(n, values.size, *parts, **kind)
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import spilu, splu

    factorise = spilu if is_incomplete else splu
    return factorise(csc_array((values, rows, starts), shape=(n, n)), options=options)


def triangular_factors(values: Vector, rows: NDArray[np.intc], starts: NDArray[np.int64]) -> Any:
    """Return the factors of a triangular matrix, given by columns, as `_factors` does; None without any."""
    with suppress(RuntimeError, MemoryError):
        return _factors(values, rows, starts, False, ColPerm="NATURAL", SymmetricMode=True)
    return None


def factored_system(rows: CsrArrays, diagonal: Vector, b: Vector, is_slender: bool = False) -> FactoredSystem:
    """Return a system of equations for direct solution; see `FactoredSystem`.

    `is_slender` says whether those of some policy were for `SlenderSystem`, as these then are.
    """
    if b.size <= FEW:
        return DenseSystem(rows, diagonal, b)
    return SlenderSystem(rows, diagonal, b) if is_slender else EnvelopeSystem(rows, diagonal, b)
