"""What SciPy's and CuPy's solvers ask of a matrix: shape, dtype, matvec, matmat, and the transposed ones.

``scipy.sparse.linalg`` and ``cupyx.scipy.sparse.linalg`` take every object with ``shape`` and ``matvec`` for
a linear operator, use ``rmatvec`` and ``rmatmat`` if they are there, and ask for ``dtype``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gpu_kernels.runtime.ragged import array_module
from hybrid.base.arrays import Array
from hybrid.base.foreign import lies_on_device, on_host
from hybrid.base.operands import as_columns

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator


class _Matrix(Protocol):
    """What the products here are made from."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def multiply(self, x: Any, out: Any = None) -> Any: ...


class LinearProtocol:
    """Products by the names that solvers use, from `multiply`; a base class."""

    dtype: Any = np.dtype(np.float64)

    # x @ M shall ask M, not NumPy.
    __array_ufunc__ = None

    def matvec(self: _Matrix, x: Array) -> Array:
        """Return ``M x``, shape as x: (n_columns,) or (n_columns, 1)."""
        column = _is_column(x)
        product = self.multiply(_flat(x) if column else x)
        return product.reshape(-1, 1) if column else product

    def matmat(self, x: Array) -> Array:
        """Return ``M X`` for the columns of an array, shape (n_columns, k), as an array (n_rows, k)."""
        shape = getattr(x, "shape", None)
        if shape is not None and len(shape) != 2:
            raise ValueError(f"x: expected an array with two dimensions, got shape {tuple(shape)}")
        return self._multiply_many(x)

    def _multiply_many(self: Any, x: Array) -> Array:
        """Return ``M X``, one column after the other; matrices that serve several in a sweep replace it."""
        columns = x if lies_on_device(x) else as_columns(on_host(x), self.shape[1], "x")
        xp = array_module(columns)
        if columns.shape[0] != self.shape[1]:
            raise ValueError(
                f"x: expected {self.shape[1]} rows, one a column of the matrix, got {columns.shape}"
            )
        out = xp.empty((self.shape[0], columns.shape[1]))
        for i in range(columns.shape[1]):
            out[:, i] = self.multiply(xp.ascontiguousarray(columns[:, i], dtype=np.float64))
        return out

    def __matmul__(self: Any, x: Array) -> Array:
        """Return ``M x`` for a vector, shape (n_columns,), or for the columns of an array, (n_columns, k)."""
        return self.matmat(x) if _dimensions(x) == 2 else self.multiply(x)

    def as_linear_operator(self: Any) -> LinearOperator:
        """Return the matrix as an instance of SciPy's LinearOperator, with all products that it has.

        Solvers take the matrix as it is. An instance is for what asks for the class, such as
        ``scipy.sparse.linalg.expm_multiply``, and for sums and products of operators.
        """
        from scipy.sparse.linalg import LinearOperator

        names = ("matvec", "rmatvec", "matmat", "rmatmat")
        own = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return LinearOperator(shape=self.shape, dtype=self.dtype, **own)


class TransposedProtocol(LinearProtocol):
    """The same with products of the transposed matrix, from ``T``."""

    def rmatvec(self: Any, x: Array) -> Array:
        """Return the transposed product, shape as x: (n_rows,) to (n_columns,).

        ``matrix.T`` is built on first use and kept.
        """
        return self.T.matvec(x)

    def rmatmat(self: Any, x: Array) -> Array:
        """Return the transposed products with the columns of an array, (n_rows, k) to (n_columns, k)."""
        return self.T.matmat(x)

    def __rmatmul__(self: Any, x: Array) -> Array:
        """Return ``x M`` for a vector, shape (n_rows,), or for the rows of an array, (k, n_rows)."""
        return self.T.matmat(x.T).T if _dimensions(x) == 2 else self.T.multiply(x)


def _dimensions(x: Any) -> int:
    """Return the dimensions of an array, wherever it lies."""
    shape = getattr(x, "shape", None)
    return len(shape) if shape is not None else np.ndim(x)


def _is_column(x: Any) -> bool:
    shape = getattr(x, "shape", None)
    return shape is not None and len(shape) == 2 and shape[1] == 1


def _flat(x: Any) -> Any:
    """Return a column as a vector; NumPy's matrices stay two-dimensional unless they become arrays."""
    return np.asarray(x).reshape(-1) if isinstance(x, np.ndarray) else x.reshape(-1)
