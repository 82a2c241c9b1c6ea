"""An iteration that is ended anywhere has bounds that hold, and nothing begins after it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_matrix, diags_array

from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.solvers import AverageReward, Criterion, Interval, Jacobi, Optimistic, Status
from hybrid.solvers.block_rows import SingleBlockRow
from hybrid.solvers.topological import Topological
from tests.builders.linear_systems import Dense, exact_solution, linear_system
from tests.builders.stopping import Stop, StopAfter, StopInSearch

SLACK = 64 * UNIT


def chain(rng: np.random.Generator, n: int = 24) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return components one after another, each slow to leave: matrix, diagonal, right-hand side."""
    dense = np.zeros((n, n))
    for i in range(n):
        group = range(i - i % 4, i - i % 4 + 4)
        for j in (*group, *rng.integers(i - i % 4, n, 2).tolist()):
            dense[i, j] = 0.0 if i == j else rng.integers(1, 20) / 128
    return dense, np.maximum(dense.sum(axis=1), 0.25) + 1 / 64, rng.integers(0, 4, n) / 64


def topological(dense: np.ndarray) -> Topological:
    return Topological(Criterion(), SingleBlockRow(CsrMatrix(csr_matrix(dense))), Optimistic())


@pytest.mark.parametrize("name", ["interval", "interval from above", "optimistic", "topological"])
def test_bounds_hold_wherever_an_iteration_is_ended(rng: np.random.Generator, name: str) -> None:
    met = set()
    for count in (1, 2, 3, 5, 8, 13, 40, 90, 150, 100_000):
        dense, diagonal, b = chain(rng) if name == "topological" else linear_system(rng)
        exact = exact_solution(dense, diagonal, b)
        above = 2.0 * float(max(exact)) if name == "interval from above" else None
        method = topological(dense) if name == "topological" else Optimistic()
        method = Interval() if name.startswith("interval") else method
        matrix = CsrMatrix(csr_matrix(dense)) if name == "topological" else Dense(dense)
        found = method.solve(matrix, diagonal, b, SLACK, above, StopAfter(count))
        met.add(found.status)
        for low, x, high in zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True):
            assert Fraction(low) <= x <= (Fraction(high) if high < np.inf else x)
            assert low >= 0.0
    assert met == {Status.INTERRUPTED, Status.CONVERGED}


def test_an_upper_bound_is_found_where_the_guess_is_near(rng: np.random.Generator) -> None:
    dense, diagonal, b = linear_system(rng)
    found = Optimistic().solve(Dense(dense), diagonal, b, SLACK, None, StopAfter(30))
    assert found.status is Status.INTERRUPTED
    assert (found.upper < np.inf).all()
    assert (found.upper > found.lower * (1.0 + 1e-8)).any()


@pytest.mark.parametrize("count", [1, 2])
def test_averages_lie_between_the_bounds_reached(rng: np.random.Generator, count: int) -> None:
    rates = rng.integers(1, 9, (6, 6)) / 8.0
    np.fill_diagonal(rates, 0.0)
    rewards = rng.integers(-5, 9, 6) / 4.0
    leaving = rates.sum(axis=1)
    balance = np.vstack((rates.T - np.diag(leaving), np.ones(6)))
    distribution = np.linalg.lstsq(balance, np.eye(7)[6], rcond=None)[0]
    found = AverageReward(Criterion(1e-16)).solve(Dense(rates), leaving, rewards, SLACK, StopAfter(count))
    assert found.status is Status.INTERRUPTED
    assert found.lower - 1e-12 <= float(distribution @ rewards) <= found.upper + 1e-12
    assert found.lower < found.upper


def test_nothing_begins_once_something_was_ended(rng: np.random.Generator) -> None:
    monitor = StopAfter(1)
    dense, diagonal, b = linear_system(rng)
    Interval().solve(Dense(dense), diagonal, b, SLACK, 100.0, monitor)
    with pytest.raises(Stop):
        Optimistic().solve(Dense(dense), diagonal, b, SLACK, None, monitor)
    assert monitor.begun == 1


def test_a_method_without_bounds_is_lost(rng: np.random.Generator) -> None:
    dense, diagonal, b = linear_system(rng)
    with pytest.raises(Stop):
        Jacobi(Criterion()).solve(Dense(dense), diagonal, b, np.zeros_like(b), StopAfter(3))


@pytest.mark.parametrize(
    "method",
    [Optimistic(Criterion(1e-5, absolute=True), krylov="always"), Interval(Criterion(max_iterations=1500))],
    ids=["optimistic", "interval"],
)
def test_bounds_are_kept_where_the_search_for_positive_values_is_ended(method: Optimistic | Interval) -> None:
    """Values next to underflow have the graph searched, a product a step: which takes long."""
    n = 3000
    walk = diags_array([0.5, 0.5], offsets=[-1, 1], shape=(n, n)).tocsr()
    b = np.zeros(n)
    b[-1] = 0.5
    monitor = StopInSearch()
    matrix = CsrMatrix(csr_matrix(walk))
    found = method.solve(matrix, np.ones(n), b, SLACK, 1.0, monitor)
    assert found.status is Status.INTERRUPTED and monitor.stopped is not None
    exact = np.arange(1, n + 1) / (n + 1)
    assert (found.lower <= exact).all() and found.lower[-1] > 0.9
    assert found.upper is not None and (exact <= found.upper).all()
