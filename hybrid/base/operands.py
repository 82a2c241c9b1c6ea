"""Operands of products, checked and with room for results, and elements of x that others send."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_kernels.runtime.coded import array_module
from hybrid.base.arrays import Array, lies_on_device, on_host
from mtbdd.offset.distributed import DistributedMTBDD, places_of
from mtbdd.offset.states import merge_ranges

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator


# Checks of what products are given: real vectors of the right length, and room for the result.

Float64Array = NDArray[np.float64]


PIECE = 1 << 13
"""Elements of a scalar product at once: too few for a library to start threads, which would wait for ours."""

LINE = 64
"""Bytes of a cache line: eight doubles."""


def aligned_empty(n_rows: int, n_columns: int) -> Float64Array:
    """Return an array whose first row begins at a cache line, shape (n_rows, n_columns), not written to."""
    size = 8 * n_rows * n_columns
    room = np.empty(size + LINE, np.uint8)
    begin = -room.ctypes.data % LINE
    return room[begin : begin + size].view(np.float64).reshape(n_rows, n_columns)


def check_real(array: NDArray[Any], name: str) -> None:
    """Refuse numbers that are not real, with a TypeError."""
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name}: expected real numbers, got dtype {array.dtype}")


def as_vector(x: ArrayLike, size: int, name: str) -> Float64Array:
    """Return a real vector as contiguous float64, copied if it is not.

    Raises TypeError where it is not real, and ValueError where its shape is not (size,).
    """
    array = np.asarray(x)
    check_real(array, name)
    if array.shape != (size,):
        raise ValueError(f"{name}: expected shape ({size},), got {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def as_columns(x: ArrayLike, size: int, name: str) -> Float64Array:
    """Return real vectors side by side, shape (size, k), as float64 contiguous in rows; copied if need be.

    Raises TypeError where they are not real, and ValueError for another shape.
    """
    array = np.asarray(x)
    check_real(array, name)
    if array.ndim != 2:
        raise ValueError(f"{name}: expected shape ({size}, k), got {array.shape}")
    if array.shape[0] != size:
        raise ValueError(f"{name}: expected {size} rows, one a column of the matrix, got shape {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def check_out(out: Float64Array, size: int, x: Float64Array) -> Float64Array:
    """Return the array for a result, made sure to be contiguous, writeable and apart from x.

    Raises TypeError where it is no float64 array, and ValueError where its shape is not (size,), it is not
    contiguous, or it shares memory with x.
    """
    if not isinstance(out, np.ndarray) or out.dtype != np.float64:
        raise TypeError(f"out: expected a float64 array, got {getattr(out, 'dtype', type(out).__name__)}")
    if out.shape != (size,):
        raise ValueError(f"out: expected shape ({size},), got {out.shape}")
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise ValueError("out: expected a contiguous writeable array; pass np.empty(n_rows) or leave it out")
    if np.may_share_memory(out, x):
        raise ValueError("out: shares memory with x, which is read while out is written; pass another array")
    return out


# Interface of a matrix for the solvers of SciPy and CuPy: shape, dtype, matvec, matmat, and the transposed
# ones.
#
# ``scipy.sparse.linalg`` and ``cupyx.scipy.sparse.linalg`` take every object with ``shape`` and ``matvec``
# for a linear operator, use ``rmatvec`` and ``rmatmat`` if they are there, and ask for ``dtype``.


class LinearProtocol:
    """Products by the names that solvers use, from `multiply`; a base class."""

    dtype: Any = np.dtype(np.float64)

    # x @ M shall ask M, not NumPy.
    __array_ufunc__ = None

    def matvec(self: Any, x: Array) -> Array:
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


# Halos: elements of x of other processes (ghost values), received before a product, after the own ones.

Vector = NDArray[np.float64]


class ArrivingVector:
    """The own elements of a vector, and room for all; leaving its ``with`` block waits for the others.

    `own`: ndarray, shape (own columns,), float64. `whole` (ndarray, shape (n_columns,), float64): room for
    the own elements, and behind them those of others. `own`, `whole`: `received` copies all own elements to
    `whole`; before, `whole` has those that `Halo.cover` names.
    """

    def __init__(self, own: Vector, whole: Vector) -> None:
        self.own, self.whole = own, whole
        self._is_copied = False

    def finish(self) -> None:
        """Wait for the elements of others, where they are under way."""

    def received(self) -> Vector:
        """Return all elements: wait, and put the own ones before the others."""
        if not self._is_copied:
            self.whole[: self.own.size] = self.own
            self._is_copied = True
        self.finish()
        return self.whole

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()


Int64Array = NDArray[np.int64]


class Halo(ABC):
    """Elements that a process receives before products with matrices over the same columns.

    `size`: elements that are received. `way`: how they are carried, in words; empty for messages between
    hosts.
    """

    size: int
    way: str = ""

    @abstractmethod
    def cover(self, stretches: Int64Array) -> None:
        """From now on copy these ranges of own elements, shape (k, 2), into `whole` at every exchange."""

    @abstractmethod
    def exchange(self, x: Vector) -> ArrivingVector:
        """Send the elements of x that other processes need, and receive theirs, or begin to.

        All processes call it at once, and enter what it returns. Time: O(elements sent, received and
        covered).
        """

    @abstractmethod
    def ones(self) -> ArrivingVector:
        """Return the vector of ones, without an exchange."""


class HostHalo(Halo):
    """Room for own elements and for those that are received, and who sends what.

    `divided`: a matrix over these columns; all matrices that share a halo have the same. `whole` (ndarray,
    shape (own columns and halo,), float64): see `ArrivingVector`. `size`: elements that are received.
    """

    def __init__(self, divided: DistributedMTBDD) -> None:
        self._communicator = divided.communicator
        self._outgoing = [places_of(runs) for runs in divided.outgoing]
        self._own, self.size = divided.own_columns, int(sum(divided.incoming))
        self.whole: Vector = aligned_empty(divided.n_columns, 1).reshape(-1)
        self._stretches: list[list[int]] = []
        ends = self._own + np.cumsum((0, *divided.incoming))
        self._places = [self.whole[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]

    def cover(self, stretches: Int64Array) -> None:
        """See `Halo.cover`."""
        known = np.array(self._stretches, np.int64).reshape(-1, 2)
        self._stretches = merge_ranges(np.concatenate((known, stretches))).tolist()

    def exchange(self, x: Vector) -> ArrivingVector:
        """See `Halo.exchange`."""
        self._communicator.exchange([x[places] for places in self._outgoing], self._places)
        for begin, end in self._stretches:
            self.whole[begin:end] = x[begin:end]
        return ArrivingVector(x, self.whole)

    def ones(self) -> ArrivingVector:
        """See `Halo.ones`."""
        self.whole.fill(1.0)
        return ArrivingVector(self.whole[: self._own], self.whole)
