"""From a symbolic matrix to an operator: level and backend chosen, by measurement where that is asked for."""

from __future__ import annotations

from functools import partial

from hybrid.base.option_types import BackendName, LevelOption, Representation
from hybrid.base.representations import check_representation
from hybrid.matrix.backends import Backend, choose_backend
from hybrid.matrix.backends.base import MatrixTable, Product
from hybrid.matrix.backends.select_level import select_level
from hybrid.matrix.explicit.transitions import ModelTransitions
from hybrid.matrix.levels.curve import level_curve
from hybrid.matrix.levels.task_table import task_table
from hybrid.matrix.operators.hybrid_matrix import HybridMatrix
from hybrid.matrix.operators.numbered_matrix import NumberedMatrix
from mtbdd.offset.offset import OffsetMTBDD


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
        :func:`hybrid.matrix.levels.policy.choose_level`.
    backend : str or Backend
        ``auto``, ``cpu``, ``gpu`` or ``reference``; see :func:`hybrid.matrix.backends.choose_backend`.
    memory_budget : int, optional
        Bytes that the representation may take.
    representation : {"row-types", "tasks"}
        How the matrix is held: rows of equal sequences of blocks together, or as submatrices and instances in
        tasks of 256 rows ([Tealdi13] 4.4.1.2). In tasks levels are chosen by prediction alone.

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
    table: MatrixTable = task_table(matrix) if representation == "tasks" else level_curve(matrix)
    engine = choose_backend(backend).admitted(table)
    product: Product | None
    measured = None
    if level == "min-time":
        measured = engine.measured(table, memory_budget)
    if measured is not None:
        choice, product = measured
    else:
        choice, holding = select_level([(matrix, table)], table, level, engine, memory_budget)
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
