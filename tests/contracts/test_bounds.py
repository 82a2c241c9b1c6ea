"""What every method with bounds promises: bounds that hold on every equation, and a word about its end."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hybrid.matrix.space.bellman import DirectedSystem
from hybrid.matrix.space.bounded_solution import ENCLOSING_VECTORS, UNIT, BoundedSolution
from hybrid.solvers import Criterion, Interval, Optimistic, Status
from hybrid.solvers.iteration import ValueIteration
from tests.contracts.bellman import BellmanCase, choice_case
from tests.contracts.choice_operators import choice_parameters
from tests.contracts.matrices import Make, matrix_parameters

_TRYING = functools.partial(Optimistic, krylov="always")
METHODS = [Optimistic, Interval, pytest.param(_TRYING, id="Optimistic with a leap")]
CLOSENESS = [
    pytest.param(epsilon, absolute, id=f"{epsilon}-{'absolute' if absolute else 'relative'}")
    for k, epsilon in enumerate([1e-3, 1e-9])
    for absolute in [k % 2 == 0]
]

# What a step gives is the contract of the equations; of methods one matrix of every vector space is enough.
some_matrices = pytest.mark.parametrize(
    "make", matrix_parameters("reference", "cpu", "compiled rows", "gpu", "gpu, msr"), indirect=True
)


def assert_holds(found: BoundedSolution, exact: list[Fraction]) -> None:
    for low, value, high in zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True):
        assert Fraction(low) <= value and (high == np.inf or value <= Fraction(high))
    assert (found.lower <= found.values).all() and (found.values <= found.upper).all()


@pytest.mark.parametrize("method", METHODS)
class BoundsContract:
    """The tests; subclasses say what `case` is."""

    @pytest.mark.parametrize(("epsilon", "absolute"), CLOSENESS)
    def test_they_hold_and_are_as_close_as_asked(
        self, case: BellmanCase, method: Any, epsilon: float, absolute: bool
    ) -> None:
        operator = case.operator
        found = method(Criterion(epsilon, absolute)).bounds(operator, 2.0 * float(max(case.exact)))
        assert found.status is Status.CONVERGED
        assert_holds(found, case.exact)
        gap = found.upper - found.lower
        assert (gap <= epsilon * (1.0 if absolute else found.upper)).all()
        assert found.difference <= epsilon
        assert found.residual <= 4.0 * epsilon * max(1.0, float(max(case.divisor)))
        # What is zero for certain has bounds of zero, and nothing else a bound that leaves no room.
        if not absolute:
            assert (gap > 0).tolist() == case.positive()

    def test_they_hold_where_doubles_have_no_more_to_give(self, case: BellmanCase, method: Any) -> None:
        found = method(Criterion(1e-16)).bounds(case.operator, None)
        assert found.status is Status.CONVERGED
        assert_holds(found, case.exact)
        assert (found.upper - found.lower <= 1e-11 * found.upper).all()

    def test_a_ceiling_that_is_known_is_kept(self, case: BellmanCase, method: Any) -> None:
        ceiling = float(max(case.exact)) * (1.0 + 4.0 * UNIT)
        for limit in (1, 2, 5, 100):
            found = method(Criterion(1e-9, max_iterations=limit)).bounds(case.operator, ceiling)
            assert_holds(found, case.exact)
            if method is Interval or found.status is Status.CONVERGED:
                assert (found.upper <= ceiling).all()

    def test_the_limit_ends_them_and_they_say_so(self, case: BellmanCase, method: Any) -> None:
        for limit in (1, 2, 5):
            criterion = Criterion(1e-13, max_iterations=limit)
            found = method(criterion).bounds(case.operator, 4.0 * float(max(case.exact)))
            assert found.status is Status.MAX_ITERATIONS
            assert found.iterations == limit
            assert found.difference > 1e-13
            assert_holds(found, case.exact)


@some_matrices
class TestChains(BoundsContract):
    @pytest.fixture
    def case(self, chain: BellmanCase) -> BellmanCase:
        return chain


# What both optima promise is the contract of the equations: of methods one of an operator is enough.
@pytest.mark.parametrize(
    ("operator_name", "maximise"),
    [
        pytest.param(own.values[0], maximise, id=f"{own.id}-{'max' if maximise else 'min'}", marks=own.marks)
        for k, own in enumerate(choice_parameters())
        for maximise in [k % 2 == 0]
    ],
    indirect=["operator_name"],
)
class TestChoices(BoundsContract):
    @pytest.fixture
    def case(self, operator_name: str, maximise: bool, seed: int) -> BellmanCase:
        return choice_case(operator_name, seed, maximise)


@some_matrices
@pytest.mark.parametrize("method", METHODS)
def test_what_grows_for_ever_has_no_bounds(make: Make, method: Any) -> None:
    matrix = make(np.array([[0.0, 2.0], [2.0, 0.0]]))
    system = DirectedSystem(matrix, np.ones(2), np.ones(2), 64 * UNIT, ENCLOSING_VECTORS)
    found = method(Criterion(max_iterations=500)).bounds(system, None)
    assert found.status in (Status.DIVERGED, Status.MAX_ITERATIONS)
    assert not np.isfinite(found.upper).any()


@some_matrices
@pytest.mark.parametrize("method", [Optimistic, Interval])
def test_the_host_looks_rarely_at_a_device(make: Make, method: Any) -> None:
    """A slow chain of many iterations; on the host nobody waits."""
    size = 12
    matrix = np.diag(np.full(size - 1, 0.5), 1) + np.diag(np.full(size - 1, 0.45), -1)
    b = np.zeros(size)
    b[-1] = 0.5
    own = make(matrix)
    system = DirectedSystem(own, np.ones(size), b, 64 * UNIT, ENCLOSING_VECTORS)
    found = method(Criterion(1e-6)).bounds(system, None)
    assert found.status is Status.CONVERGED
    assert found.iterations > 100
    looks = found.synchronisations
    assert 0 < 10 * looks <= found.iterations if own.backend == "gpu" else looks == 0


def test_estimates_converge_to_the_optimum(choices: BellmanCase) -> None:
    exact = np.array([float(x) for x in choices.exact])
    found = ValueIteration(Criterion(1e-10)).solve(choices.operator)
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.values, exact, rtol=1e-8)
    short = ValueIteration(Criterion(1e-13, max_iterations=3)).solve(choices.operator)
    assert short.status is Status.MAX_ITERATIONS
