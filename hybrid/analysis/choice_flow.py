"""Probabilities that the choices of a layer enter a set: sums of rows, or one product."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.matrix.backends import choose_backend
from hybrid.matrix.injection.row_type_sums import row_type_sums
from hybrid.matrix.operators.divided_matrix import operator_of
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.operators.layer_choices import choice_totals
from hybrid.matrix.space.base import Clock
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.divided import DividedMTBDD
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import StateIndex

Vector = NDArray[np.float64]


def choice_flow(
    model: SymbolicModel,
    layer: int,
    rows: StateIndex,
    columns: StateIndex,
    options: CheckOptions,
    weights: Vector | None = None,
    work: Work | None = None,
) -> Vector:
    """Return the probability that the choices of a layer enter a set, shape (rows.size,).

    Parameters
    ----------
    weights : ndarray of float64, shape (columns.size,), optional
        Factors of the states that are entered; default 1.
    work : Work, optional
        Takes the account where the product is the answer, and not a part of a system.

    Notes
    -----
    On the host: sums of rows, or one product where weights or an account are asked for.  Probabilities
    that add up to 1 only roughly are scaled to do so.
    """
    if columns.total == 0 or rows.total == 0:
        return np.zeros(rows.size)
    matrix = model.submatrix(rows, columns, layer=layer)
    flow = None
    if not isinstance(matrix, DividedMTBDD):
        if matrix.n_entries == 0:
            return np.zeros(rows.size)
        if weights is None and work is None:
            flow = row_type_sums(matrix)
    if flow is None:
        flow = _product(matrix, options, weights, work)
    totals = choice_totals(model, layer, rows)
    return flow if totals is None else flow / totals


def _product(matrix: OffsetMTBDD, options: CheckOptions, weights: Vector | None, work: Work | None) -> Vector:
    """Return the product with weights, or with ones, on the host."""
    engine = options.matrix_backend()
    if engine.name == "gpu" or options.backend == "auto":
        reason = "single products over the layers of an MDP are made on the host"
        engine = choose_backend("cpu").because(reason)
    held = inject(matrix, backend=engine, representation=options.representation) if matrix.n_entries else None
    operator = operator_of(matrix, held, engine if held is None else held.engine)
    clock = Clock(None)
    flow = operator.row_sums() if weights is None else operator.multiply(weights)
    if work is not None:
        work.note("steps", operator, 1, clock.seconds, 16 * len(flow), is_product=True)
    return flow
