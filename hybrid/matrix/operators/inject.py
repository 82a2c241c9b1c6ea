"""From a symbolic matrix to an operator: level and backend chosen, by measurement where that is requested."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid.base.arrays import lies_on_device, on_host
from hybrid.base.check_options import check_representation
from hybrid.base.operands import as_columns, as_vector, check_out
from hybrid.base.option_types import BackendName, LevelOption, Representation
from hybrid.matrix.backends import Backend, choose_backend, select_level
from hybrid.matrix.explicit.extract import ModelTransitions
from hybrid.matrix.levels.curve import level_curve
from hybrid.matrix.operators.hybrid_matrix import Float64Array, HybridMatrix
from hybrid.matrix.space.base import Product
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.vector_space import VectorSpace
from mtbdd.offset.offset import OffsetMTBDD

if TYPE_CHECKING:
    from hybrid.matrix.backends import MatrixTable

# A model's whole matrix over vectors that go by the states' numbers, where the diagram has another order.


class NumberedMatrix(HybridMatrix):
    """A matrix whose operands are put in the order of the diagram, and whose results are put back.

    Only the matrix of all states of a model has one, and only under a variable order other than the text's.
    It costs two permutations of vectors a product, and holds 16 bytes a state.

    Attributes
    ----------
    places : ndarray of int64, shape (n,)
        Row and column of the diagram of every state, see `mtbdd.offset.states`; to be set once.
    """

    places: NDArray[np.int64]

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        from mtbdd.offset.states import inverse

        return inverse(self.places)

    def _multiply_many(self, x: ArrayLike) -> Float64Array:
        """Return M X as `HybridMatrix` does."""
        if not lies_on_device(x):
            x = as_columns(on_host(x), self.shape[1], "x")
        elif not self.engine.holds(x):
            return super()._multiply_many(x)  # which comes back with X on the host
        there: Any = x
        if there.shape[0] != self.shape[1]:
            return super()._multiply_many(x)  # which refuses it
        found: Float64Array = super()._multiply_many(there[self._numbers])[self.places]
        return found

    def multiply(self, x: ArrayLike, out: Float64Array | None = None) -> Float64Array:
        """Return M x as `HybridMatrix` does."""
        if lies_on_device(x):
            if not self.engine.holds(x):
                return super().multiply(x, out)  # which comes back with x on the host
            there: Any = x
            found: Float64Array = super().multiply(there[self._numbers])[self.places]
            if out is None:
                return found
            out[...] = found
            return out
        vector = as_vector(on_host(x), self.shape[1], "x")
        result = np.empty(self.shape[0]) if out is None else check_out(out, self.shape[0], vector)
        np.take(super().multiply(vector[self._numbers]), self.places, out=result)
        return result

    def jacobi_step(
        self,
        x: Float64Array,
        out: Float64Array,
        b: Float64Array | None,
        diagonal: Float64Array,
        omega: float = 1.0,
    ) -> tuple[float, float]:
        """Take a step as `HybridMatrix` does."""
        turned: Any = np.empty(x.shape) if not self.engine.holds(x) else x.copy()
        parts = [None if part is None else part[self._numbers] for part in (x, b, diagonal)]
        changes = super().jacobi_step(parts[0], turned, parts[1], parts[2], omega)  # type: ignore[arg-type]
        out[...] = turned[self.places]
        return changes

    def vector_space(self) -> VectorSpace:
        """Return a vector space on the host, which asks for products alone."""
        return HostSpace(self)

    def diagonal(self) -> Float64Array:
        """Return the diagonal as `HybridMatrix` does."""
        return super().diagonal()[self.places]


def inject(
    matrix: OffsetMTBDD,
    level: LevelOption = "auto",
    backend: BackendName | Backend = "auto",
    *,
    memory_budget: int | None = None,
    representation: Representation = "row-types",
) -> HybridMatrix:
    """Choose a level and a backend for a symbolic matrix.

    Parameters
    ----------
    matrix : OffsetMTBDD
        The matrix, for example ``model.transitions``.
    level : str or int
        ``auto``, ``min-memory``, ``min-time``, or a level number 0 .. 2n; see
        :func:`hybrid.matrix.levels.table.choose_level`.
    backend : str or Backend
        ``auto``, ``cpu``, ``gpu`` or ``reference``; see :func:`hybrid.matrix.backends.choose_backend`.
    memory_budget : int, optional
        Bytes that the representation may take.
    representation : {"row-types", "tasks"}
        How the matrix is held: rows of equal sequences of blocks together, or as submatrices and instances in
        tasks of 256 rows ([Tealdi13] §4.4.1.2). In tasks levels are chosen by prediction alone.

    Returns
    -------
    HybridMatrix
        The operator; its representation is built at the first product, or here where levels are timed or
        weighed.  Vectors of the matrix of a model, ``model.transitions``, go by the states' numbers.

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
    check_representation(representation)
    table: MatrixTable
    if representation == "tasks":
        from hybrid.matrix.levels.task_table import task_table

        table = task_table(matrix)
    else:
        table = level_curve(matrix)
    engine = choose_backend(backend).admitted(table)
    product: Product | None
    measured = None
    if level == "min-time":
        measured = engine.measured(table, memory_budget)
    if measured is not None:
        choice, product = measured
    else:
        choice, holding = select_level(table, level, engine, memory_budget)
        product = None if holding is None else holding.products[0]
    transposed = partial(inject_transposed, matrix, level, engine, memory_budget, representation)
    if not isinstance(matrix, ModelTransitions) or matrix.places is None:
        return HybridMatrix(matrix, table, choice, engine, transposed, product)
    numbered = NumberedMatrix(matrix, table, choice, engine, transposed, product)
    numbered.places = matrix.places
    return numbered


def inject_transposed(
    matrix: OffsetMTBDD,
    level: LevelOption,
    backend: BackendName | Backend,
    memory_budget: int | None = None,
    representation: Representation = "row-types",
) -> HybridMatrix:
    """Choose a level for the transposed matrix; see `inject`."""
    return inject(
        matrix.transpose(), level, backend, memory_budget=memory_budget, representation=representation
    )
