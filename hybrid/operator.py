"""The matrix as an operator: products, transposed products, relaxation steps, diagonal and row sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid.backend import BackendChoice, choose_backend
from hybrid.injection.injected import InjectedMatrix, inject_level
from hybrid.injection.tasks import TaskList, cut_tasks
from hybrid.levels.choice import LevelChoice, choose_level, within_budget
from hybrid.levels.curve import LevelCurve, level_curve
from mtbdd.offset import OffsetMTBDD

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

__all__ = ["HybridMatrix", "MatrixStatistics", "inject"]

Float64Array = NDArray[np.float64]


class Product(Protocol):
    """What a backend offers to the operator."""

    @property
    def nbytes(self) -> int:
        """Bytes of the representation (MemR)."""

    def multiply(self, x: Float64Array, out: Float64Array) -> None:
        """Write M x to ``out``."""

    def relax(
        self, x: Float64Array, b: Float64Array | None, diagonal: Float64Array, omega: float, out: Float64Array
    ) -> tuple[float, float]:
        """Write a relaxation step to ``out`` and return the greatest absolute and relative change."""


@dataclass(frozen=True)
class MatrixStatistics:
    """Sizes of a matrix and of its representation.

    Attributes
    ----------
    n_rows, n_columns, nonzeros, terminals, mtbdd_nodes : int
        Sizes of the matrix and of its diagram.
    level, backend, level_reason, backend_reason
        What was chosen and why.
    representation_memory_bytes : int
        MemR of the representation that the backend uses.
    scaled : bool
        Whether blocks are shared up to a scale (cpu and gpu backends).
    """

    n_rows: int
    n_columns: int
    nonzeros: int
    terminals: int
    mtbdd_nodes: int
    level: int
    level_reason: str
    backend: str
    backend_reason: str
    representation_memory_bytes: int
    scaled: bool


class HybridMatrix:
    """A symbolic matrix ready for products on one backend; made by :func:`inject`.

    Parameters
    ----------
    matrix : OffsetMTBDD
        The matrix.
    curve : LevelCurve
        Its level curve.
    level, level_reason, backend, backend_reason
        Choices already made.
    policy, memory_budget
        The request that led to them, reused for the transposed matrix.
    """

    def __init__(
        self,
        matrix: OffsetMTBDD,
        curve: LevelCurve,
        level: int,
        level_reason: str,
        backend: str,
        backend_reason: str,
        policy: str | int = "auto",
        memory_budget: int | None = None,
    ) -> None:
        self.symbolic = matrix
        self.curve = curve
        self.level = level
        self.level_reason = level_reason
        self.backend = backend
        self.backend_reason = backend_reason
        self._policy = policy
        self._memory_budget = memory_budget

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.symbolic.shape

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """Type of the entries, float64."""
        return np.dtype(np.float64)

    @property
    def nnz(self) -> int:
        """Number of non-zeros."""
        return self.curve.nonzeros

    @property
    def nbytes(self) -> int:
        """Bytes of the representation that the backend uses (MemR)."""
        return self.product.nbytes

    @property
    def statistics(self) -> MatrixStatistics:
        """Sizes and choices."""
        return MatrixStatistics(
            n_rows=self.shape[0],
            n_columns=self.shape[1],
            nonzeros=self.nnz,
            terminals=len(self.symbolic.terminals),
            mtbdd_nodes=sum(self.symbolic.nodes),
            level=self.level,
            level_reason=self.level_reason,
            backend=self.backend,
            backend_reason=self.backend_reason,
            representation_memory_bytes=self.nbytes,
            scaled=self._is_scaled,
        )

    def _is_on_device(self, x: object) -> bool:
        return self.backend == "gpu" and hasattr(x, "__cuda_array_interface__")

    @property
    def _is_scaled(self) -> bool:
        if self.backend == "gpu":
            from hybrid.gpu.cost import types_of_level

            return types_of_level(self.curve, self.level).classes.scaled
        return self.backend == "cpu" and self.curve[self.level].scaled

    def __repr__(self) -> str:
        return (
            f"<HybridMatrix {self.shape[0]} x {self.shape[1]}, {self.nnz} non-zeros, level {self.level}, "
            f"backend {self.backend}>"
        )

    @cached_property
    def injected(self) -> InjectedMatrix:
        """Submatrices and instances of the level (003 section 4.4.1.1), built on first use."""
        return inject_level(self.symbolic, self.level)

    @cached_property
    def tasks(self) -> TaskList:
        """Tasks of 256 rows (003 section 4.4.1.2), built on first use."""
        return cut_tasks(self.injected)

    @cached_property
    def product(self) -> Product:
        """The backend's representation, built on first use."""
        if self.backend == "reference":
            from hybrid.reference import ReferenceProduct

            return ReferenceProduct(self.injected)
        if self.backend == "gpu":
            from hybrid.gpu.build import build_product

            return build_product(self.curve, self.level)
        from hybrid.cpu.layout import build_layout
        from hybrid.cpu.product import CpuProduct

        types = self.curve.scaled if self.curve[self.level].scaled else self.curve.plain
        layout = build_layout(types, self.level)
        if layout is None:
            # Sharing up to a scale would cost accuracy here.
            layout = build_layout(self.curve.plain, self.level)
        if layout is None:
            raise RuntimeError("classes of equal blocks are exact, yet were refused as inexact")
        return CpuProduct(layout)

    @cached_property
    def T(self) -> HybridMatrix:  # noqa: N802
        """The transposed matrix, built on first use from the transposed diagram."""
        transposed = inject(
            self.symbolic.transpose(), self._policy, self.backend, memory_budget=self._memory_budget
        )
        transposed.__dict__["T"] = self
        return transposed

    def __matmul__(self, x: ArrayLike) -> Float64Array:
        """Return M x for a vector, shape (n_columns,), or for the columns of an array, (n_columns, k).

        On the gpu backend x may lie on the device, and the result then does too.
        """
        if self._is_on_device(x):
            from hybrid.gpu.operands import multiply_any

            product: Float64Array = multiply_any(self.product, x)
            return product
        array = np.asarray(x)
        if array.ndim == 2:
            _check_real(array, "x")
            if array.shape[0] != self.shape[1]:
                raise ValueError(
                    f"x: expected {self.shape[1]} rows, one a column of the matrix, got {array.shape}"
                )
            out = np.empty((self.shape[0], array.shape[1]))
            for i in range(array.shape[1]):
                out[:, i] = self.multiply(array[:, i])
            return out
        return self.multiply(array)

    def multiply(self, x: ArrayLike, out: Float64Array | None = None) -> Float64Array:
        """Return M x.

        Parameters
        ----------
        x : array_like, shape (n_columns,)
            Real vector; copied if it is not contiguous float64.
        out : ndarray, shape (n_rows,), float64, optional
            Where to write the result; must not overlap x.

        Returns
        -------
        ndarray, shape (n_rows,), float64
            The product, ``out`` if given.

        Raises
        ------
        ValueError
            If a shape is wrong, or out is not contiguous or overlaps x.
        TypeError
            If x is not real.
        """
        if self._is_on_device(x):
            from hybrid.gpu.operands import multiply

            product: Float64Array = multiply(self.product, x, out)
            return product
        vector = _as_vector(x, self.shape[1], "x")
        result = np.empty(self.shape[0]) if out is None else _check_out(out, self.shape[0], vector)
        self.product.multiply(vector, result)
        return result

    def rmatvec(self, x: ArrayLike) -> Float64Array:
        """Return the transposed product, shape (n_columns,); the same as ``matrix.T @ x``."""
        return self.T.multiply(x)

    def jacobi_step(
        self,
        x: Float64Array,
        out: Float64Array,
        b: Float64Array | None,
        diagonal: Float64Array,
        omega: float = 1.0,
    ) -> tuple[float, float]:
        """Write ``(1 - omega) x + omega (b + M x) / diagonal`` to ``out``, fused with measuring the change.

        Parameters
        ----------
        x : ndarray, shape (n,), float64
            Current iterate.
        out : ndarray, shape (n,), float64
            Next iterate; must not overlap x.
        b : ndarray, shape (n,), float64, or None
            Right-hand side; None for zero.
        diagonal : ndarray, shape (n,), float64
            Divisors, none of them zero. M itself is used as it is: leave its diagonal out beforehand.
        omega : float
            Relaxation weight; 1 is Jacobi, below 1 under-relaxation (003 section 2.4.1).

        Returns
        -------
        max_absolute, max_relative : float
            Greatest ``|out - x|`` and greatest ``|out - x| / |out|``; an element that does not change counts
            as zero, one that becomes zero as infinite. NaN or infinite once the iteration has diverged.

        Raises
        ------
        ValueError
            If the matrix is not square or an array has the wrong shape or overlaps ``out``.
        TypeError
            If an array is not float64.
        """
        size = self._square("a relaxation step")
        if self._is_on_device(x):
            return self.product.relax(x, b, diagonal, float(omega), out)
        vector = _as_vector(x, size, "x")
        right_side = None if b is None else _as_vector(b, size, "b")
        divisor = _as_vector(diagonal, size, "diagonal")
        result = _check_out(out, size, vector)
        return self.product.relax(vector, right_side, divisor, float(omega), result)

    def row_sums(self) -> Float64Array:
        """Return the sums of the rows, shape (n_rows,)."""
        return self.multiply(np.ones(self.shape[1]))

    def diagonal(self) -> Float64Array:
        """Return the diagonal, shape (n,), found on the diagram without any submatrix.

        Raises
        ------
        ValueError
            If the matrix is not square or its rows and columns are different sets of states.

        Notes
        -----
        Time: O(n), array sweeps over the levels: only paths whose row bits equal their column bits are
        followed.
        """
        size = self._square("the diagonal")
        symbolic = self.symbolic
        node = np.zeros(symbolic.nodes[0], np.int32)
        row = np.zeros(len(node), np.int64)
        for k in range(0, symbolic.n_levels, 2):
            outer, inner = symbolic.levels[k], symbolic.levels[k + 1]
            step = outer.offset[node]
            parts = []
            for first, second in ((outer.low, inner.low), (outer.high, inner.high)):
                middle = first[node]
                there = np.flatnonzero(middle >= 0)
                middle = middle[there]
                if np.any(inner.offset[middle] != step[there]):
                    raise ValueError(
                        "diagonal: rows and columns stand for different sets of states; "
                        "take the diagonal of the whole matrix before restricting it"
                    )
                below = second[middle]
                kept = below >= 0
                parts.append((below[kept], there[kept]))
            (low, left), (high, right) = parts
            node = np.concatenate((low, high))
            row = np.concatenate((row[left], row[right] + step[right]))
        result = np.zeros(size)
        result[row] = symbolic.terminals[node]
        return result

    def as_linear_operator(self) -> LinearOperator:
        """Return the matrix as a SciPy LinearOperator with products and transposed products."""
        from scipy.sparse.linalg import LinearOperator

        return LinearOperator(
            shape=self.shape,
            matvec=lambda x: self.multiply(np.ravel(x)),
            rmatvec=lambda x: self.rmatvec(np.ravel(x)),
            matmat=self.__matmul__,
            dtype=self.dtype,
        )

    def _square(self, what: str) -> int:
        if self.shape[0] != self.shape[1]:
            raise ValueError(
                f"matrix: {what} needs a square matrix, this one is {self.shape[0]} x {self.shape[1]}"
            )
        return self.shape[0]


def inject(
    matrix: OffsetMTBDD,
    level: str | int = "auto",
    backend: str = "auto",
    *,
    memory_budget: int | None = None,
) -> HybridMatrix:
    """Choose a level and a backend for a symbolic matrix.

    Parameters
    ----------
    matrix : OffsetMTBDD
        The matrix, for example ``model.transitions``.
    level : str or int
        ``auto``, ``min-memory``, ``min-time``, or a level number 0 .. 2n; see
        :func:`hybrid.levels.choice.choose_level`.
    backend : str
        ``auto``, ``cpu``, ``gpu`` or ``reference``; see :func:`hybrid.backend.choose_backend`.
    memory_budget : int, optional
        Bytes that the representation may take.

    Returns
    -------
    HybridMatrix
        The operator; its representation is built at the first product, or here where levels are timed.

    Raises
    ------
    ValueError
        If a choice is unknown or impossible.
    TypeError
        If the matrix is not an OffsetMTBDD.
    """
    if not isinstance(matrix, OffsetMTBDD):
        raise TypeError(
            f"matrix: expected an offset-labelled MTBDD (mtbdd.OffsetMTBDD), such as model.transitions, "
            f"got {type(matrix).__name__}"
        )
    engine = choose_backend(backend)
    curve = level_curve(matrix)
    if backend == "auto" and engine.name == "gpu":
        engine = _confirm_gpu(curve, engine)
    choice = choose_level(curve, level, engine.name, memory_budget)
    measured = _measure_on_device(curve, level, memory_budget) if engine.name == "gpu" else None
    if measured is not None:
        choice = measured[0]
    operator = HybridMatrix(
        matrix, curve, choice.level, choice.reason, engine.name, engine.reason, level, memory_budget
    )
    if measured is not None:
        operator.__dict__["product"] = measured[1]
    return operator


def _confirm_gpu(curve: LevelCurve, engine: BackendChoice) -> BackendChoice:
    """Return the CPU instead, with the reason, where the device would be slower or has no room."""
    from gpu_kernels import current_device
    from hybrid.gpu.choice import reason_for_cpu

    reason = reason_for_cpu(current_device(), curve)
    return engine if reason is None else BackendChoice("cpu", reason)


def _measure_on_device(
    curve: LevelCurve, policy: str | int, memory_budget: int | None
) -> tuple[LevelChoice, Product] | None:
    """Choose among the levels that look fastest by timing them, where the matrix is large enough for that."""
    from gpu_kernels import current_device
    from hybrid.gpu.probe import PROBE_ENTRIES, probe_levels

    if policy not in ("auto", "min-time") or curve.nonzeros < PROBE_ENTRIES:
        return None
    allowed = frozenset(c.level for c in curve.levels if within_budget(c, "gpu", memory_budget))
    return probe_levels(current_device(), curve, allowed)


def _check_real(array: NDArray[Any], name: str) -> None:
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name}: expected real numbers, got dtype {array.dtype}")


def _as_vector(x: ArrayLike, size: int, name: str) -> Float64Array:
    array = np.asarray(x)
    _check_real(array, name)
    if array.shape != (size,):
        raise ValueError(f"{name}: expected shape ({size},), got {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def _check_out(out: Float64Array, size: int, x: Float64Array) -> Float64Array:
    if not isinstance(out, np.ndarray) or out.dtype != np.float64:
        raise TypeError(f"out: expected a float64 array, got {getattr(out, 'dtype', type(out).__name__)}")
    if out.shape != (size,):
        raise ValueError(f"out: expected shape ({size},), got {out.shape}")
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise ValueError("out: expected a contiguous writeable array; pass np.empty(n_rows) or leave it out")
    if np.may_share_memory(out, x):
        raise ValueError("out: shares memory with x, which is read while out is written; pass another array")
    return out
