"""Sums of the rows of a chain: the rates from states into a set, and those at which states are left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.held_matrices import Matrix, injected, sums_beside
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.matrix.space.base import Clock
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.masks import is_any
from mtbdd.offset.offset import SCALED_UNITS
from mtbdd.offset.places import HOST
from mtbdd.offset.states import StateIndex

Vector = NDArray[np.float64]


def flow_into(
    model: SymbolicModel,
    rows: StateIndex,
    columns: StateIndex,
    options: CheckOptions,
    work: Work | None = None,
) -> Vector:
    """Return the total rate from every state of one set into another, shape (rows.size,), in its place.

    Parameters
    ----------
    work : Work, optional
        Takes the account where the product is the answer, and not a part of an equation.
    """
    if columns.total == 0:
        nothing: Vector = rows.place.xp.zeros(rows.size)
        return nothing
    matrix = injected(model.submatrix(rows, columns), options, beside=rows.place is not HOST)
    clock = Clock(None)
    flow: Vector = rows.place.array(sums_beside(matrix))
    if work is not None:
        work.note("steps", matrix, 1, clock.seconds, 16 * rows.size, is_product=True)
        work.products += 1
    return flow


class LeavingRates(NamedTuple):
    """The rate at which every state of a set is left for another state.

    Attributes
    ----------
    rates : ndarray of float64, shape (states of the set,)
        In the place of the set.
    units : float
        Relative error, in units of rounding, beyond that of sums of entries which no block is shared for.
    """

    rates: Vector
    units: float


def leaving_rates(model: SymbolicModel, within: StateIndex, options: CheckOptions) -> LeavingRates:
    """Return the rates at which the states of a set are left for others, in the set or not.

    These are the row sums without the diagonal.  Where a self-loop is most of a row, subtracting it would
    cancel the digits of the rest, so that the other entries are added up.
    """
    rates: Vector = model.exit_rates(within)
    if not model.has_self_loops(within):
        return LeavingRates(rates, 0.0)
    loops = model.self_loops(within)
    if model.communicator.any(is_any(loops > within.place.xp.multiply(0.5, rates))):
        beside = within.place is not HOST
        matrix = injected(model.submatrix(within, model.index, diagonal=False), options, beside)
        return moving_rates(matrix, within)
    rates -= loops
    return LeavingRates(rates, 0.0)


def moving_rates(matrix: Matrix, within: StateIndex) -> LeavingRates:
    """Return the rates at which the states of a set are left for the columns of a matrix.

    Parameters
    ----------
    matrix : Matrix
        Its rows are the set; without the diagonal.
    within : StateIndex
        The set, where vectors are wanted.

    Notes
    -----
    Time: that of one product; nothing is added up on diagrams.
    """
    return LeavingRates(within.place.array(sums_beside(matrix)), SCALED_UNITS)
