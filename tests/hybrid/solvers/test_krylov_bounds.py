"""Bounds around the guess of a Krylov method: exact values, when it is tried, what is left when it fails."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest

from gpu_kernels import Device
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.base import ProgressMonitor
from hybrid.matrix.space.bellman import DirectedSystem
from hybrid.matrix.space.bounded_solution import UNIT, BoundedSolution
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.idr import IDR
from hybrid.solvers import Criterion, Optimistic, Status
from hybrid.solvers.bounding import verify_enclosure
from hybrid.solvers.krylov_bounds import MORE_VECTORS
from tests.builders.failing_recurrences import FAILURES
from tests.builders.linear_systems import Dense, exact_solution, linear_system
from tests.builders.matrices import from_dense
from tests.builders.stopping import StopAfter

SLACK = 64 * UNIT
Krylov = Literal["auto", "always", "never"]


def walk(size: int, forth: float, back: float, leaving: float = 0.0) -> tuple[Any, Any, Any]:
    """A walk whose last row leads to the target, and every row with a little rate elsewhere."""
    dense = np.diag(np.full(size - 1, forth), 1) + np.diag(np.full(size - 1, back), -1)
    b = np.zeros(size)
    b[-1] = forth
    return dense, dense.sum(axis=1) + b + leaving, b


def found_by(
    system: tuple[Any, Any, Any],
    krylov: Krylov,
    criterion: Criterion | None = None,
    progress: Any = None,
) -> BoundedSolution:
    dense, diagonal, b = system
    method = Optimistic(criterion or Criterion(), krylov=krylov)
    return method.solve(Dense(dense), diagonal, b, SLACK, None, progress)


def holds(system: tuple[Any, Any, Any], found: BoundedSolution) -> None:
    """Assert that exact values lie between the bounds."""
    between(exact_solution(*system), found)


def between(exact: list[Fraction], found: BoundedSolution) -> None:
    for low, x, high in zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True):
        assert 0 <= Fraction(low) <= x <= (Fraction(high) if high < np.inf else x)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-8, 1e-14])
@pytest.mark.parametrize("absolute", [False, True])
def test_bounds_hold_on_random_systems(rng: np.random.Generator, epsilon: float, absolute: bool) -> None:
    tried = 0
    for _ in range(12):
        dense, diagonal, b = linear_system(rng, int(rng.integers(1, 25)))
        diagonal = dense.sum(axis=1) * (1.0 + 10.0 ** -rng.uniform(1, 5)) + 2.0**-20
        b *= rng.random(b.size) < 0.4
        system = dense, diagonal, b
        found = found_by(system, "always", Criterion(epsilon, absolute, 20_000))
        tried += found.more_vectors > 0
        holds(system, found)
        assert found.status in (Status.CONVERGED, Status.NO_BOUND)
    assert tried > 2 or epsilon > 1e-3


WALKS = {
    "fair": (40, 0.5, 0.5),
    "back": (18, 0.45, 0.55),
    "leaky": (60, 1.0, 0.9, 1e-5),
    "short": (20, 0.5, 0.5),
}


@functools.cache
def by_iteration(name: str) -> BoundedSolution:
    return found_by(walk(*WALKS[name]), "never")


@functools.cache
def exactly(name: str) -> Any:
    return exact_solution(*walk(*WALKS[name]))


@pytest.mark.parametrize("krylov", ["auto", "always"])
@pytest.mark.parametrize("name", ["fair", "back", "leaky"])
def test_slow_chains_take_few_products(krylov: Krylov, name: str) -> None:
    plain, quick = by_iteration(name), found_by(walk(*WALKS[name]), krylov)
    assert plain.status is quick.status is Status.CONVERGED
    assert quick.products < plain.products / 5
    assert quick.more_vectors == MORE_VECTORS and plain.more_vectors == 0
    exact = exactly(name)
    for found in (plain, quick):
        between(exact, found)
        assert (found.upper - found.lower <= 1e-8 * found.upper).all()


def test_products_are_those_that_were_made() -> None:
    made = []

    class Counting(Dense):
        def multiply(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
            made.append(1)
            return super().multiply(x, out)

    dense, diagonal, b = walk(30, 0.5, 0.5)
    found = Optimistic(krylov="always").solve(Counting(dense), diagonal, b, SLACK, None)
    assert found.more_vectors > 0
    assert found.products == len(made) > found.iterations


def test_quick_chains_are_left_to_iteration(rng: np.random.Generator) -> None:
    system = linear_system(rng)
    plain, found = found_by(system, "never"), found_by(system, "auto")
    assert found.more_vectors == 0
    assert found.products == plain.products
    assert found.upper.tolist() == plain.upper.tolist()


@pytest.mark.parametrize("fails", FAILURES)
@pytest.mark.parametrize("krylov", ["auto", "always"])
def test_nothing_is_lost_where_it_fails(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, krylov: Krylov, fails: Any
) -> None:
    if request.node.callspec.id == "auto-stagnates":
        request.applymarker(
            pytest.mark.xfail(reason="a late try in vain costs more than half of the iteration")
        )
    system = walk(*WALKS["short"])
    plain = by_iteration("short")
    monkeypatch.setattr(IDR, "advance", fails)
    found = found_by(system, krylov)
    assert found.more_vectors == MORE_VECTORS
    assert found.status is Status.CONVERGED
    holds(system, found)
    # The iterate and the sum of those before it are as they were.
    assert found.lower.tolist() == plain.lower.tolist()
    assert found.upper.tolist() == plain.upper.tolist()
    assert plain.products < found.products < 1.5 * plain.products


def test_wrong_guesses_pass_no_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the recurrence claims to have found, bounds are verified."""
    system = walk(25, 0.5, 0.5)
    lies = []

    for factor in (1.0 + 1e-6, 1.0 - 1e-6, 2.0, 0.0, -1.0):

        def lie(self: IDR, factor: float = factor) -> float:
            lies.append(factor)
            self.x *= factor
            self.r *= 1e-30
            return 0.0

        with monkeypatch.context() as patch:
            patch.setattr(IDR, "refresh", lie)
            found = found_by(system, "always")
        assert found.status is Status.CONVERGED
        holds(system, found)
    assert len(lies) >= 5


def test_either_bound_is_refused_where_it_does_not_hold() -> None:
    dense, diagonal, b = walk(12, 0.5, 0.5)
    exact = np.array([float(x) for x in exact_solution(dense, diagonal, b)])
    a = dense / diagonal[:, None]
    w = np.linalg.solve(np.eye(12) - a, exact)
    operator = DirectedSystem(Dense(dense), diagonal, b, SLACK, 8)

    def verified(z: np.ndarray, c: float) -> tuple[float | None, np.ndarray, np.ndarray]:
        x, (y, bound, out) = 0.25 * exact, np.zeros((3, 12))
        width = verify_enclosure(operator, Criterion(), x, y, z, w, c, None, bound, out)
        return width, bound, y

    width, lower, upper = verified(exact, 1e-9)
    assert width is not None
    assert (lower < exact).all() and (exact < upper).all()
    assert width == pytest.approx(float(((upper - lower) / upper).max()))
    # Neither bound has room for the rounding of a step.
    assert verified(exact, 1e-17)[0] is None
    # The upper one is below the solution, or the lower one above.
    assert verified(exact * (1.0 - 1e-6), 1e-9)[0] is None
    assert verified(exact * (1.0 + 1e-6), 1e-9)[0] is None
    # A lower bound that is above the solution in one row alone.
    for row in range(12):
        bump = exact.copy()
        bump[row] *= 1.0 + 1e-7
        assert verified(bump, 1e-9)[0] is None
    assert verified(np.full(12, np.nan), 1e-9)[0] is None
    assert verified(exact, np.inf)[0] is None


# lemma: around-a-guess
def test_the_lower_bound_is_verified_whatever_the_upper_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    dense, diagonal, b = walk(12, 0.5, 0.5)
    exact = np.array([float(x) for x in exact_solution(dense, diagonal, b)])
    w = np.linalg.solve(np.eye(12) - dense / diagonal[:, None], exact)
    operator = DirectedSystem(Dense(dense), diagonal, b, SLACK, 8)

    def passes(guess: np.ndarray, x: np.ndarray, y: np.ndarray, positive: Any) -> bool:
        y[...] = 10.0 * exact
        return True

    monkeypatch.setattr(operator, "verifies", passes)

    def verified(z: np.ndarray, c: float, x: np.ndarray) -> bool:
        y, bound, out = np.zeros((3, 12))
        return verify_enclosure(operator, Criterion(), x, y, z, w, c, None, bound, out) is not None

    assert verified(exact, 1e-9, 0.5 * exact)
    # No room for the rounding of a step.
    assert not verified(exact, 1e-17, 0.5 * exact)
    # Above the solution in one row, or in all.
    for row in range(12):
        bump = exact.copy()
        bump[row] *= 1.0 + 1e-6
        assert not verified(bump, 1e-9, 0.5 * exact)
    assert not verified(2.0 * exact, 1e-9, 0.5 * exact)
    # Rows where it is no more than the iterate need no step; so the iterate itself is a bound.
    assert verified(0.4 * exact, 1e-9, 0.5 * exact)


def test_a_guess_below_stands_a_step_less_what_underflow_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    dense, diagonal, b = walk(12, 0.5, 0.5)
    exact = np.array([float(x) for x in exact_solution(dense, diagonal, b)])
    w = np.linalg.solve(np.eye(12) - dense / diagonal[:, None], exact)
    operator = DirectedSystem(Dense(dense), diagonal, b, SLACK, 8)
    monkeypatch.setattr(operator, "verifies", lambda guess, x, y, positive: y.fill(10.0) or True)
    for underflow, holds in ((operator.underflow, True), (1e-6, False)):
        monkeypatch.setattr(operator, "underflow", underflow)
        x, (y, bound, out) = 0.5 * exact, np.zeros((3, 12))
        width = verify_enclosure(operator, Criterion(), x, y, exact, w, 1e-9, None, bound, out)
        assert (width is not None) == holds


def test_rows_of_no_value_stay_at_zero() -> None:
    dense, diagonal, b = walk(20, 0.5, 0.5)
    apart = np.zeros((24, 24))
    apart[:20, :20] = dense
    apart[20:23, 21:24] = np.eye(3) * 0.5
    apart[3, 22] = 0.25
    diagonal, b = np.append(diagonal, np.ones(4)), np.append(b, np.zeros(4))
    diagonal[3] += 0.25
    found = found_by((apart, diagonal, b), "always")
    assert found.more_vectors > 0 and found.status is Status.CONVERGED
    assert found.lower[20:].tolist() == found.upper[20:].tolist() == [0.0] * 4
    holds((apart, diagonal, b), found)


def test_values_far_apart_have_the_same_digits() -> None:
    system = walk(60, 0.05, 0.95, 0.1)
    found = found_by(system, "always")
    assert found.more_vectors > 0
    holds(system, found)
    assert found.upper[0] < 1e-60
    assert (found.upper - found.lower <= 1e-8 * found.upper).all()


def test_it_is_not_tried_next_to_underflow() -> None:
    dense, diagonal, b = np.diag([1e-200, 1e-200], 1), np.ones(3), np.array([0.0, 0.0, 0.5])
    found = found_by((dense, diagonal, b), "always")
    assert found.more_vectors == 0
    assert found.lower[0] == 0.0


def test_it_is_not_tried_where_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    system, reserve = walk(25, 0.5, 0.5), HostSpace.reserve

    def refuse(self: HostSpace, vectors: int, size: int) -> None:
        if vectors > Optimistic.vectors:
            raise MemoryError
        reserve(self, vectors, size)

    monkeypatch.setattr(HostSpace, "reserve", refuse)
    plain, found = found_by(system, "never"), found_by(system, "auto")
    assert found.more_vectors == 0
    assert (found.products, found.status) == (plain.products, Status.CONVERGED)


def test_it_ends_where_it_is_told_to() -> None:
    system = walk(60, 0.5, 0.5)
    exact, met = exact_solution(*system), set()
    for count in (20, 40, 70, 100, 130, 100_000):
        found = found_by(system, "always", progress=StopAfter(count))
        met.add(found.status)
        between(exact, found)
    assert met == {Status.INTERRUPTED, Status.CONVERGED}
    for limit in (15, 60, 100):
        found = found_by(system, "always", Criterion(max_iterations=limit))
        assert found.status is Status.MAX_ITERATIONS
        assert found.iterations <= limit + 30
        between(exact, found)


def test_what_is_told_is_what_epsilon_is_compared_with() -> None:
    told: list[float] = []

    class Looking(ProgressMonitor):
        def observe(self, iteration: int, difference: float) -> None:
            told.append(difference)

    found = found_by(walk(40, 0.5, 0.5), "always", progress=Looking())
    assert found.more_vectors > 0
    # Nothing that is told is further off than the last step was.
    assert all(0.0 <= difference <= 1.0 for difference in told[1:])
    assert told[-1] > found.difference and found.difference <= 1e-8


def test_a_device_finds_the_same(device: Device) -> None:
    dense, diagonal, b = walk(64, 0.5, 0.5, 1e-6)
    for representation, krylov in (("row-types", "always"), ("tasks", "auto")):
        matrix = inject(from_dense(dense), backend="gpu", representation=representation)
        found = Optimistic(krylov=krylov).solve(matrix, diagonal, b, SLACK, None)  # type: ignore[arg-type]
        # One more where 20 products have not led to w.
        assert found.status is Status.CONVERGED
        assert found.more_vectors in (MORE_VECTORS, MORE_VECTORS + 1)
        holds((dense, diagonal, b), found)
        assert (found.upper - found.lower <= 1e-8 * found.upper).all()
