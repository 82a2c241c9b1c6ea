"""The matrix as an operator: products, transposed products, relaxation steps, diagonal and row sums."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_kernels import current_device
from hybrid.base.foreign import lies_on_device, on_host, through_host
from hybrid.base.linear_protocol import TransposedProtocol
from hybrid.base.notebook import block, facts_table, memory_picture
from hybrid.base.operands import aligned_empty, as_columns, as_vector, check_out
from hybrid.base.option_types import Representation
from hybrid.matrix.backends import Backend, Product
from hybrid.matrix.backends.base import MatrixTable
from hybrid.matrix.injection.injected import InjectedMatrix, inject_level
from hybrid.matrix.injection.tasks import TaskList, cut_tasks
from hybrid.matrix.levels.curve import LevelCurve
from hybrid.matrix.levels.policy import LevelChoice
from hybrid.matrix.levels.task_table import TaskTable
from hybrid.matrix.reference import ReferenceProduct, ReferenceTaskProduct
from mtbdd.offset.diagonal import diagonal_of
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.places import VectorPlace

if TYPE_CHECKING:
    from hybrid.matrix.gpu.colours import ColouredTiles
    from hybrid.matrix.space.workspace import Workspace

# Sizes of a matrix and of its representation, and the choices behind them.


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
        Whether blocks are shared up to a scale (row types on cpu and gpu).
    representation : str
        One of `hybrid.base.representations.REPRESENTATIONS`.
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
    representation: str = "row-types"


_log = logging.getLogger(__name__)

Float64Array = NDArray[np.float64]


class HybridMatrix(TransposedProtocol):
    """A symbolic matrix ready for products on one backend; `hybrid.inject` makes it.

    ``matrix = hybrid.inject(model.transitions)``, then ``matrix @ x``, ``matrix.rmatvec(x)`` and all that
    SciPy's and CuPy's solvers ask of an operator.

    Parameters
    ----------
    matrix : OffsetMTBDD
        The matrix.
    curve : LevelCurve or TaskTable
        Its level curve; a `TaskTable` stands for the representation in tasks.
    choice : LevelChoice
        The level, and why.
    engine : Backend
        Where the matrix is held.
    transposed : callable
        Makes the same choices for the transposed matrix.
    product : Product, optional
        The backend's representation where it exists already; else it is built on first use.
    """

    def __init__(
        self,
        matrix: OffsetMTBDD,
        curve: MatrixTable,
        choice: LevelChoice,
        engine: Backend,
        transposed: Callable[[], HybridMatrix],
        product: Product | None = None,
    ) -> None:
        self.symbolic = matrix
        self.curve = curve
        self.level, self.level_reason = choice.level, choice.reason
        self.engine = engine
        self.backend, self.backend_reason = engine.name, engine.reason
        self._make_transposed = transposed
        self._transposed: HybridMatrix | None = None
        self._product = product

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.symbolic.shape

    @property
    def nnz(self) -> int:
        """Number of non-zeros."""
        return self.curve.nonzeros

    @property
    def representation(self) -> Representation:
        """How the matrix is held, one of `hybrid.base.representations.REPRESENTATIONS`."""
        return "tasks" if isinstance(self.curve, TaskTable) else "row-types"

    @property
    def storage(self) -> str | None:
        """The name "tasks" where the matrix is held in tasks; None where it is held in row types."""
        return "tasks" if isinstance(self.curve, TaskTable) else None

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
            scaled=self.engine.is_scaled(self.curve, self.level),
            representation=self.representation,
        )

    def __repr__(self) -> str:
        return (
            f"<HybridMatrix {self.shape[0]} x {self.shape[1]}, {self.nnz} non-zeros, level {self.level}, "
            f"backend {self.backend}>"
        )

    def _repr_html_(self) -> str:
        facts = [
            ("shape", f"{self.shape[0]:,} x {self.shape[1]:,}"),
            ("non-zeros", f"{self.nnz:,}"),
            ("MTBDD", f"{sum(self.symbolic.nodes):,} nodes, {len(self.symbolic.terminals):,} terminals"),
            ("level", f"{self.level}: {self.level_reason}"),
            ("backend", f"{self.backend}: {self.backend_reason}"),
            ("held as", self.representation),
        ]
        sizes = [candidate.bytes_worst_case for candidate in self.curve.levels]
        return block("matrix", facts_table(facts), memory_picture(sizes, self.level))

    @cached_property
    def injected(self) -> InjectedMatrix:
        """Submatrices and instances of the level ([Tealdi13] 4.4.1.1), built on first use."""
        if isinstance(self._product, ReferenceProduct):
            return self._product.injected
        return inject_level(self.symbolic, self.level)

    @cached_property
    def tasks(self) -> TaskList:
        """Tasks of 256 rows ([Tealdi13] 4.4.1.2), built on first use."""
        if isinstance(self._product, ReferenceTaskProduct):
            return self._product.tasks
        return cut_tasks(self.injected)

    @property
    def place(self) -> VectorPlace:
        """Where vectors over its rows and columns are made."""
        return self.engine.place

    @property
    def product(self) -> Product:
        """The backend's representation, built on first use."""
        if self._product is None:
            self._product = self._represent()
        return self._product

    def prepare(self) -> HybridMatrix:
        """Build the representation now, so that no set-up hides in the time of the first product."""
        _ = self.product
        return self

    def _represent(self) -> Product:
        _log.info("laying out level %d for the backend %s", self.level, self.backend)
        return self.engine.represent(self.symbolic, self.curve, self.level)

    @property
    def T(self) -> HybridMatrix:  # noqa: N802
        """The transposed matrix, built on first use from the transposed diagram and kept.

        It is a representation of its own: its bytes, ``matrix.T.nbytes``, come on top of those of the matrix.
        """
        if self._transposed is None:
            self._transposed = self._make_transposed()
            self._transposed._transposed = self
        return self._transposed

    def _multiply_many(self, x: ArrayLike) -> Float64Array:
        """Return M X: a sweep over the matrix serves several columns, each with the bits of its own product.

        On the gpu backend X may lie on the device, and the result then does too.
        """
        if lies_on_device(x):
            if not self.engine.holds(x):
                return through_host(self._multiply_many, x)  # type: ignore[no-any-return]
            from hybrid.matrix.gpu.operands import multiply_columns

            product: Float64Array = multiply_columns(self.product, x)
            return product
        columns = as_columns(on_host(x), self.shape[1], "x")
        out = aligned_empty(self.shape[0], columns.shape[1])
        self.product.multiply_many(columns, out)
        return out

    def multiply(self, x: ArrayLike, out: Float64Array | None = None) -> Float64Array:
        """Return M x.

        Parameters
        ----------
        x : array_like, shape (n_columns,)
            Real vector, of NumPy, of CuPy or with DLPack; copied if it is not contiguous float64. On the gpu
            backend a vector on the device stays there; others copy it to the host, and the result back.
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
        if lies_on_device(x):
            if not self.engine.holds(x):
                if out is not None:
                    raise ValueError(
                        f"out: the matrix lies on the host (backend {self.backend}) and x on the device; "
                        "leave out away, or inject with backend='gpu'"
                    )
                return through_host(self.multiply, x)  # type: ignore[no-any-return]
            from hybrid.matrix.gpu.operands import multiply

            product: Float64Array = multiply(self.product, x, out)
            return product
        vector = as_vector(on_host(x), self.shape[1], "x")
        result = np.empty(self.shape[0]) if out is None else check_out(out, self.shape[0], vector)
        self.product.multiply(vector, result)
        return result

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
            Relaxation weight; 1 is Jacobi, below 1 under-relaxation ([Tealdi13] 2.4.1).

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
        if self.engine.holds(x):
            return self.product.relax(x, b, diagonal, float(omega), out)
        vector = as_vector(x, size, "x")
        right_side = None if b is None else as_vector(b, size, "b")
        divisor = as_vector(diagonal, size, "diagonal")
        result = check_out(out, size, vector)
        return self.product.relax(vector, right_side, divisor, float(omega), result)

    def workspace(self) -> Workspace:
        """Return memory and operations for a solution where the backend has the matrix."""
        return self.engine.workspace(self.product, self)

    def coloured(self) -> ColouredTiles:
        """Return the rows by colours, for sweeps of Gauss-Seidel on a device; of tasks a ValueError."""
        from hybrid.matrix.gpu.colours import ColouredTiles

        if not isinstance(self.curve, LevelCurve):
            raise ValueError("matrix: groups of row types have colours, and tasks have none")
        self._square("a sweep")
        return ColouredTiles(current_device(), self.curve, self.level)

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
        self._square("the diagonal")
        return diagonal_of(self.symbolic)

    def trace(self) -> float:
        """Return the sum of the diagonal, which ``scipy.sparse.linalg.expm_multiply`` takes as ``traceA``."""
        return float(self.diagonal().sum())

    def _square(self, what: str) -> int:
        if self.shape[0] != self.shape[1]:
            raise ValueError(
                f"matrix: {what} needs a square matrix, this one is {self.shape[0]} x {self.shape[1]}"
            )
        return self.shape[0]
