"""The matrix as an operator: products, transposed products, relaxation steps, diagonal and row sums."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid.base.arrays import lies_on_device, on_host, through_host
from hybrid.base.operands import TransposedProtocol, aligned_empty, as_columns, as_vector, check_out
from hybrid.base.option_types import Representation
from hybrid.matrix.backends import Backend, Product
from hybrid.matrix.injection.injected import InjectedMatrix, TaskList, cut_tasks, inject_level
from hybrid.matrix.levels.curve import LevelCurve
from hybrid.matrix.levels.table import LevelChoice
from hybrid.matrix.reference import ReferenceProduct, relax_in_place
from mtbdd.base.communicator import Communicator
from mtbdd.base.records import Record
from mtbdd.offset.convert import diagonal_of
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import HOST, VectorPlace

if TYPE_CHECKING:
    from hybrid.base.operands import ArrivingVector, Halo
    from hybrid.matrix.backends import MatrixTable
    from hybrid.matrix.space.vector_space import VectorSpace
    from mtbdd.offset.distributed import DistributedMTBDD


# Sizes of a matrix and of its representation, and the choices behind them.


class MatrixStatistics(Record):
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
        One of `hybrid.base.check_options.REPRESENTATIONS`.
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
        """Representation of the matrix, one of `hybrid.base.check_options.REPRESENTATIONS`."""
        return "row-types" if isinstance(self.curve, LevelCurve) else "tasks"

    @property
    def storage(self) -> str | None:
        """The name "tasks" where the matrix is held in tasks; None where it is held in row types."""
        return None if isinstance(self.curve, LevelCurve) else "tasks"

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
        from hybrid.base.notebook import block, facts_table, memory_picture

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
        """Submatrices and instances of the level ([Tealdi13] §4.4.1.1), built on first use."""
        product = self._product
        if isinstance(product, ReferenceProduct) and isinstance(product.held, InjectedMatrix):
            return product.held
        return inject_level(self.symbolic, self.level)

    @cached_property
    def tasks(self) -> TaskList:
        """Tasks of 256 rows ([Tealdi13] §4.4.1.2), built on first use."""
        product = self._product
        if isinstance(product, ReferenceProduct) and isinstance(product.held, TaskList):
            return product.held
        return cut_tasks(self.injected)

    @property
    def place(self) -> VectorPlace:
        """The place of vectors over its rows and columns."""
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
        return self.engine.represent(self.curve, self.level)

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
            from hybrid.matrix.gpu.device_space import multiply_columns

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
            from hybrid.matrix.gpu.device_space import multiply

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
            Relaxation weight; 1 is Jacobi, below 1 under-relaxation ([Tealdi13] §2.4.1).

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

    def vector_space(self) -> VectorSpace:
        """Return memory and operations for a solution where the backend has the matrix."""
        return self.engine.vector_space(self.product, HeldMatrix(self.product, self.shape))

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


class HeldMatrix:
    """The products and steps of a matrix for vectors of its vector space: contiguous doubles, and apart.

    Parameters
    ----------
    product : Product
        On the host.
    shape : tuple of int
    """

    def __init__(self, product: Product, shape: tuple[int, int]) -> None:
        self._product, self.shape = product, shape

    def multiply(self, x: Float64Array, out: Float64Array | None = None) -> Float64Array:
        """See `HybridMatrix.multiply`."""
        result = np.empty(self.shape[0]) if out is None else out
        self._check(x, result)
        self._product.multiply(x, result)
        return result

    def jacobi_step(
        self,
        x: Float64Array,
        out: Float64Array,
        b: Float64Array | None,
        diagonal: Float64Array,
        omega: float,
    ) -> tuple[float, float]:
        """See `HybridMatrix.jacobi_step`; operands are those that a system has checked."""
        self._check(x, out)
        return self._product.relax(x, b, diagonal, omega, out)

    def _check(self, x: Float64Array, out: Float64Array) -> None:
        """Refuse vectors of another length: it is all that a start may have wrong."""
        if (len(out), len(x)) != self.shape:
            check_out(out, self.shape[0], as_vector(x, self.shape[1], "x"))


# A process's rows of a matrix as an operator: others' elements of x are received during every product.

Vector = NDArray[np.float64]


def operator_of(
    matrix: OffsetMTBDD, held: HybridMatrix | None, engine: Backend, halo: Halo | None = None
) -> HybridMatrix | DistributedMatrix:
    """Return a symbolic matrix as an operator: what it is held in, or together with other processes.

    Parameters
    ----------
    matrix : OffsetMTBDD
    held : HybridMatrix or None
        None where a divided matrix has no own entries.
    engine : Backend
    halo : Halo, optional
        See `DistributedMatrix`.
    """
    from mtbdd.offset.distributed import DistributedMTBDD

    if isinstance(matrix, DistributedMTBDD):
        return DistributedMatrix(held, matrix, engine, halo)
    assert held is not None
    return held


class DistributedMatrix:
    """The own rows of a symbolic matrix; vectors have the own elements.

    All processes call `multiply`, `jacobi_step` and what a vector space measures in the same order.

    Parameters
    ----------
    matrix : HybridMatrix or None
        Of the own rows, over own columns and halo; None where no own row has an entry.
    divided : DistributedMTBDD
        What it was made of.
    engine : Backend
    halo : Halo, optional
        Shared with other matrices over the same columns.

    Notes
    -----
    A product on the host receives what others send, and multiplies rows that need nothing of others from x as
    it is, the other rows from a copy; on a device the former go while elements are under way.  Every row has
    the same bits as in one product.
    """

    def __init__(
        self,
        matrix: HybridMatrix | None,
        divided: DistributedMTBDD,
        engine: Backend,
        halo: Halo | None = None,
    ) -> None:
        self.matrix, self._engine = matrix, engine
        self.halo = engine.halo(divided) if halo is None else halo
        self.communicator: Communicator = divided.communicator
        self.shape = divided.n_rows, divided.own_columns
        self.symbolic: OffsetMTBDD = divided
        self.level = None if matrix is None else matrix.level
        self.storage = None if matrix is None else matrix.storage
        self.backend = engine.name
        carried = f", elements are carried {self.halo.way}" if self.halo.way else ""
        self.backend_reason = f"{divided.communicator.size} parts share the states{carried}"
        self.nbytes = 0 if matrix is None else matrix.nbytes
        if matrix is not None:
            self.halo.cover(matrix.product.stretches)

    @property
    def nnz(self) -> int:
        """Number of non-zeros in the own rows."""
        return 0 if self.matrix is None else self.matrix.nnz

    @property
    def place(self) -> VectorPlace:
        """The place of its vectors."""
        return self._engine.place

    def multiply(self, x: Vector, out: Vector | None = None) -> Vector:
        """Return the own elements of ``M x``, written to `out` if given."""
        if self.place is HOST:
            vector = as_vector(x, self.shape[1], "x")
            result = np.empty(self.shape[0]) if out is None else check_out(out, self.shape[0], vector)
        else:
            vector, result = x, self.place.xp.empty(self.shape[0]) if out is None else out
        with self.halo.exchange(vector) as arriving:
            return self.multiply_arriving(arriving, result)

    def row_sums(self) -> Vector:
        """Return the sums of the own rows; nothing is received."""
        return self.multiply_arriving(self.halo.ones(), self.place.xp.empty(self.shape[0]))

    def jacobi_step(
        self, x: Vector, out: Vector, b: Vector | None, diagonal: Vector, omega: float
    ) -> tuple[float, float]:
        """Write a relaxation step to `out`; return the greatest differences of the own elements.

        The vector space's steps have those of all processes.  Vectors are contiguous, and do not overlap.
        """
        with self.halo.exchange(x) as arriving:
            if self.matrix is None:
                out[...] = 0.0
                return relax_in_place(x, b, diagonal, float(omega), out)
            return self.matrix.product.relax_overlapped(arriving, b, diagonal, float(omega), out)

    def vector_space(self) -> VectorSpace:
        """Return memory and operations for a solution of all processes."""
        product = None if self.matrix is None else self.matrix.product
        return self._engine.distributed_space(product, self, self.halo, self.communicator)

    def multiply_arriving(self, x: ArrivingVector, out: Vector) -> Vector:
        """Write the own elements of ``M x`` to `out`, those first that need nothing of others."""
        if self.matrix is None:
            out[...] = 0.0
        else:
            self.matrix.product.multiply_overlapped(x, out)
        return out
