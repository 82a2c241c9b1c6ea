"""When a Krylov method is tried for both bounds: not at fronts, soon where exits are rare, seldom in vain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybrid.matrix.space.base import Clock
from hybrid.matrix.space.bellman import DirectedSystem, LowerIterationState
from hybrid.matrix.space.bounded_solution import UNIT, BoundedSolution
from hybrid.matrix.space.host import HostSpace
from hybrid.solvers import Criterion, Optimistic, Status
from hybrid.solvers.krylov_bounds import MORE_VECTORS, KrylovBounds
from tests.builders.linear_systems import Dense, exact_solution

SLACK = 64 * UNIT


def tried_for(traffic_ratio: float = 1.0, epsilon: float = 1e-8) -> KrylovBounds:
    """Nine states of a walk."""
    dense = np.diag(np.full(8, 0.5), 1) + np.diag(np.full(8, 0.5), -1)
    operator = DirectedSystem(Dense(dense), dense.sum(axis=1) + 0.01, np.full(9, 0.1), SLACK, 8)
    return KrylovBounds(operator, Criterion(epsilon), always=False, traffic_ratio=traffic_ratio)


def found_by(system: tuple[Any, Any, Any], krylov: Any) -> BoundedSolution:
    dense, diagonal, b = system
    return Optimistic(krylov=krylov).solve(Dense(dense), diagonal, b, SLACK, None)


def held_after(made: int, size: int = 9) -> LowerIterationState:
    """Vectors of which nothing is steady."""
    x = np.full(size, 0.1)
    return LowerIterationState(x, 0.0 * x, x * made, 0.0 * x, made, None, lambda: ({}, {}))


def test_a_try_in_vain_is_not_repeated_soon() -> None:
    bounds = tried_for()
    # Not while rows become positive; then a pace has to be seen for long enough.
    assert [bounds.budget(held_after(made), 1.0) for made in (10, 20, 30, 40)] == [0.0] * 4
    due = [made for made in range(70, 210, 10) if bounds.budget(held_after(made), 0.99**made) > 0.0]
    assert due == list(range(160, 210, 10))
    held = held_after(200)
    made = bounds.solve(held, 10.0, 0, Clock(None))
    assert made > 0 and not np.isfinite(bounds.width)
    assert held.x.tolist() == [0.1] * 9
    due = [made for made in range(210, 1200, 10) if bounds.budget(held_after(made), 0.99**made) > 0.0]
    assert due[0] == 800


def test_a_try_without_a_w_takes_longer() -> None:
    """Where the steps times their difference are below one half the sum of the iterates is a w."""

    def least_left(share: float, epsilon: float) -> float:
        """Return the steps left at the last look that speaks for a try, whose products cost two."""
        bounds, left = tried_for(2.0, epsilon), []
        for made in range(10, 2000, 10):
            difference = share * 0.99**made
            if bounds.budget(held_after(made), difference) > 0.0:
                left.append(float(np.log(difference / epsilon) / -np.log(0.99)))
        return min(left)

    assert 200.0 <= least_left(1e-3, 1e-8) < 210.0
    assert 320.0 <= least_left(0.5, 1e-3) < 330.0


def countdown(size: int, gains: float) -> tuple[Any, Any, Any]:
    """States in a row, of which each leads to the next; the last ends it."""
    return np.diag(np.ones(size - 1), -1), np.ones(size), np.arange(size, 0.0, -1.0) ** gains


@pytest.mark.parametrize("gains", [0.0, 1.0])
def test_fronts_are_left_to_iteration(gains: float) -> None:
    """No method with products is quicker than so many steps, and every try would be in vain."""
    system = countdown(600, gains)
    plain, found = found_by(system, "never"), found_by(system, "auto")
    assert plain.products > 600
    assert found.more_vectors == 0
    assert (found.products, found.upper.tolist()) == (plain.products, plain.upper.tolist())


def test_rare_exits_take_few_products() -> None:
    """No pace is seen for 10^9 steps; but all rows gain the same in every step."""
    dense = np.array([[0.0, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.0]])
    leaving = np.array([1e-9, 0.0, 1e-9])
    system = dense, dense.sum(axis=1) + leaving, np.ones(3)
    found = found_by(system, "auto")
    assert found.status is Status.CONVERGED and found.more_vectors == MORE_VECTORS
    assert found.products < 300
    for low, x, high in zip(found.lower, exact_solution(*system), found.upper, strict=True):
        assert low <= x <= high


@pytest.mark.parametrize("failing", [1e-2, 1e-3, 1e-4])
def test_a_cycle_that_starts_again_is_solved_soon(failing: float) -> None:
    """On its way z becomes negative, and nothing is near it then, however small its residual is."""
    dense = np.diag(np.ones(100), 1)
    dense[-1, 0] = 1.0 - failing
    diagonal = np.ones(101)
    found = found_by((dense, diagonal, np.ones(101)), "auto")
    assert found.status is Status.CONVERGED and found.more_vectors == MORE_VECTORS
    assert found.products < 5000
    exact = [float(x) for x in exact_solution(dense, diagonal, np.ones(101))]
    assert (found.lower <= exact).all() and (exact <= found.upper).all()


def test_a_pace_is_seen_as_soon_where_looks_are_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are queued by a forecast on devices; looks are left, enough to see a contraction."""
    dense = np.diag(np.full(39, 0.5), 1) + np.diag(np.full(39, 0.5), -1)
    b = np.append(np.zeros(39), 0.5)
    system = dense, dense.sum(axis=1) + b, b
    soon = found_by(system, "auto")
    monkeypatch.setattr(HostSpace, "stride", 20)
    late = found_by(system, "auto")
    assert soon.more_vectors == late.more_vectors == MORE_VECTORS
    assert late.products < 1.5 * soon.products < 400
