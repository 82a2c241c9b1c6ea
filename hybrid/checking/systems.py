"""Linear systems over a set of states: injection, solution, accounting."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.options import CheckOptions
from hybrid.checking.quantities import Work
from hybrid.operator import HybridMatrix, inject
from hybrid.solvers import Solution
from mtbdd.model import SymbolicModel
from mtbdd.offset import OffsetMTBDD
from mtbdd.states import StateIndex

__all__ = ["flow_into", "solve_linear", "solve_stationary"]

Vector = NDArray[np.float64]


def _inject(matrix: OffsetMTBDD, options: CheckOptions) -> HybridMatrix:
    """Return the operator with its representation built, so that no set-up hides in the iterations' time."""
    operator = inject(matrix, level=options.level, backend=options.backend)
    _ = operator.product
    return operator


def flow_into(model: SymbolicModel, rows: StateIndex, columns: StateIndex, options: CheckOptions) -> Vector:
    """Return the total rate from every state of one set into another, shape (rows.size,)."""
    if columns.size == 0:
        return np.zeros(rows.size)
    return _inject(model.submatrix(rows, columns), options).row_sums()


def solve_linear(
    model: SymbolicModel, maybe: StateIndex, b: Vector, options: CheckOptions, work: Work, what: str
) -> Vector:
    """Solve ``x = P x + b`` over a set of states from each of which the set is left almost surely.

    For CTMCs rates take the place of probabilities: every row is scaled by its exit rate.

    Parameters
    ----------
    maybe : StateIndex
    b : ndarray of float64, shape (maybe.size,)
        Right-hand side, scaled by the exit rate like the rows.

    Returns
    -------
    ndarray of float64, shape (maybe.size,)

    Raises
    ------
    NotConvergedError
    """
    matrix = _inject(model.submatrix(maybe, maybe, diagonal=False), options)
    diagonal = model.exit_rates(maybe)
    diagonal -= model.self_loops(maybe)
    solver = options.solver(steady=False)
    solution = solver.solve(matrix, diagonal, b, np.zeros(maybe.size), work.progress)
    _account(work, what, solution, solver.name, matrix, vectors=4)
    return solution.values


def solve_stationary(
    model: SymbolicModel, component: StateIndex, options: CheckOptions, work: Work, what: str
) -> Vector:
    """Return the stationary distribution of a bottom strongly connected component.

    Returns
    -------
    ndarray of float64, shape (component.size,)
        Sums to 1.

    Raises
    ------
    NotConvergedError
    """
    if component.size == 1:
        return np.ones(1)
    matrix = _inject(model.submatrix(component, component, diagonal=False).transpose(), options)
    diagonal = model.exit_rates(component)
    diagonal -= model.self_loops(component)
    solver = options.solver(steady=True)
    start = np.full(component.size, 1.0 / component.size)
    solution = solver.solve(matrix, diagonal, None, start, work.progress)
    _account(work, what, solution, solver.name, matrix, vectors=3)
    distribution: Vector = solution.values / solution.values.sum()
    return distribution


def _account(
    work: Work, what: str, solution: Solution, method: str, matrix: HybridMatrix, vectors: int
) -> None:
    """Add one solution to the account."""
    base = 8 * vectors * matrix.shape[0]
    work.add(what, solution, method, matrix.backend, matrix.level, base, matrix.nbytes)
