"""From ``A x = b`` to the form of the iterative methods, for whatever holds A."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpu_kernels import current_device
from gpu_kernels.runtime.csr import CsrArrays
from gpu_kernels.runtime.ragged import array_module, owners
from hybrid.analysis.linear.system import LinearSystem, Method
from hybrid.base.arrays import Array
from hybrid.matrix.explicit.operators import ExplicitOperator, FunctionOperator
from hybrid.solvers import Criterion, Solution


def split_system(matrix: Any, b: ArrayLike, diagonal: Array | None = None) -> LinearSystem:
    """Split ``A x = b`` into the form of the iterative methods.

    Parameters
    ----------
    matrix : CsrArrays, SciPy or CuPy sparse matrix, HybridMatrix, LinearOperator or 2-dimensional ndarray
        A, square.
    b : array_like, shape (n,)
    diagonal : ndarray, shape (n,), float64, optional
        Of A; needed for an operator that cannot tell its own, and not used for a sparse matrix.

    Returns
    -------
    LinearSystem

    Raises
    ------
    ValueError
        If A is not square, or its diagonal has a zero or is not known.
    """
    if isinstance(matrix, np.ndarray):
        from scipy.sparse import csr_matrix

        matrix = csr_matrix(matrix)
    if not isinstance(matrix, CsrArrays) and hasattr(matrix, "tocsr"):
        matrix = CsrArrays.from_scipy(matrix)
    shape = tuple(matrix.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"matrix: expected a square one, got {shape}")
    operator: ExplicitOperator | FunctionOperator
    if isinstance(matrix, CsrArrays):
        operator, own = _off_diagonal(matrix)
        xp = matrix.xp
    else:
        own = matrix.diagonal() if diagonal is None and hasattr(matrix, "diagonal") else diagonal
        if own is None:
            raise ValueError("diagonal: expected the diagonal of A beside an operator that cannot tell it")
        product = matrix.multiply if hasattr(matrix, "multiply") else matrix.matvec
        on_device = array_module(own) is not np or getattr(matrix, "backend", "cpu") == "gpu"
        device = current_device() if on_device else None
        xp = np if device is None else device.xp
        own = xp.asarray(own, dtype=float)
        operator = FunctionOperator(shape, lambda x: own * x - product(x), device)
    own = xp.asarray(own, dtype=float)
    right = xp.asarray(b, dtype=float)
    zeros = int((own == 0.0).sum())
    if zeros:
        raise ValueError(f"matrix: {zeros} diagonal elements are zero; the methods divide by the diagonal")
    return LinearSystem(operator, own, right)


def _off_diagonal(matrix: CsrArrays) -> tuple[ExplicitOperator, Array]:
    """Return minus the matrix without its diagonal, and the diagonal."""
    xp, n = matrix.xp, matrix.shape[0]
    row = owners(xp, matrix.row_starts.astype(np.int64), matrix.nnz) if n else xp.zeros(0, np.int64)
    on = matrix.columns == row
    diagonal = xp.zeros(n)
    diagonal[row[on]] = matrix.values[on]
    kept = ~on
    starts = xp.zeros(n + 1, matrix.row_starts.dtype)
    if n:
        starts[1:] = xp.cumsum(xp.bincount(row[kept], minlength=n))
    rest = CsrArrays(matrix.shape, starts, matrix.columns[kept], -matrix.values[kept])
    return ExplicitOperator(rest), diagonal


def solve(
    matrix: Any,
    b: ArrayLike,
    method: Method = "bicgstab",
    *,
    diagonal: Array | None = None,
    start: Array | None = None,
    criterion: Criterion | None = None,
    omega: float = 0.9,
    **options: Any,
) -> Solution:
    """Solve ``A x = b``; :func:`split_system` and :meth:`LinearSystem.solve` in one.

    Parameters
    ----------
    matrix : matrix or operator, shape (n, n)
        As for `split_system`.
    b : array_like, shape (n,)
    method : str or callable
        As for `LinearSystem.solve`, as are the other parameters.
    diagonal : array, shape (n,), optional
        Of a matrix that does not give it.
    start : array, shape (n,), optional
        The first iterate, zero by default.
    criterion : Criterion, optional
        When to stop.
    omega : float
        Relaxation, of the methods that have it.
    **options
        For a method that is a function.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError, TypeError
        As those do.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse.linalg import gmres
    >>> from hybrid.analysis.linear import solve
    >>> a = np.array([[4.0, -1.0], [-2.0, 5.0]])
    >>> solve(a, [3.0, 3.0], "jacobi").values.round(6).tolist()
    [1.0, 1.0]
    >>> solve(a, [3.0, 3.0], gmres).values.round(6).tolist()
    [1.0, 1.0]
    """
    system = split_system(matrix, b, diagonal)
    return system.solve(method, start=start, criterion=criterion, omega=omega, **options)
