"""What methods with bounds rely on in every equation `x = f(x)`: rounding that is directed, zeros, bounds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hybrid.matrix.space.base import Clock, Criterion, Status
from hybrid.matrix.space.bellman import BellmanOperator, Outcome
from hybrid.solvers.optimistic import guess_for
from tests.contracts.bellman import BellmanCase, fractions


def swept(operator: BellmanOperator, steps: Any, x: np.ndarray, count: int = 1) -> np.ndarray:
    """The iterate some steps after x, on the host."""
    pair = operator.space.vector(x), operator.zeros()
    steps.sweep(pair, 0, count)
    return operator.space.to_host(pair[count % 2])


class BellmanContract:
    """The tests; subclasses say what `case` is."""

    def test_steps_are_rounded_down_and_up(self, case: BellmanCase, rng: np.random.Generator) -> None:
        operator, lost = case.operator, Fraction(case.operator.underflow)
        for x in (rng.random(operator.size), np.full(operator.size, 1 / 3), rng.random(operator.size) * 1e-9):
            down, up = swept(operator, operator.down, x), swept(operator, operator.up, x)
            for low, exact, high in zip(fractions(down), case.step(fractions(x)), fractions(up), strict=True):
                assert low - lost <= exact <= high + lost
                assert high - low <= 6 * Fraction(operator.slack) * exact + 2 * lost

    def test_steps_in_a_row_stay_below(self, case: BellmanCase) -> None:
        operator, exact = case.operator, [Fraction(0)] * case.operator.size
        for count in (1, 2, 5, 12):
            found = fractions(swept(operator, operator.down, np.zeros(operator.size), count))
            exact = [Fraction(0)] * operator.size
            for _ in range(count):
                exact = case.step(exact)
            lost = count * Fraction(operator.underflow)
            assert all(low - lost <= value for low, value in zip(found, exact, strict=True))

    def test_the_graph_tells_what_is_positive(self, case: BellmanCase) -> None:
        found = case.operator.space.to_host(case.operator.positive())
        assert found.tolist() == [float(p) for p in case.positive()]

    def test_raised_steps_lift_what_is_positive_above_the_floor(self, case: BellmanCase) -> None:
        operator = case.operator
        raised = swept(operator, operator.raised(operator.positive()), np.zeros(operator.size))
        for value, positive in zip(raised.tolist(), case.positive(), strict=True):
            assert value > operator.floor if positive else value == 0.0

    def test_residuals_are_those_of_a_fresh_step(self, case: BellmanCase, rng: np.random.Generator) -> None:
        operator, x = case.operator, rng.random(case.operator.size)
        image = case.step(fractions(x))
        exact = max(abs(d * (y - v)) for d, y, v in zip(case.divisor, image, fractions(x), strict=True))
        found = operator.residual(operator.space.vector(x), operator.zeros())
        assert found == pytest.approx(float(exact), rel=1e-12)

    def test_a_guess_is_a_bound_if_it_is_inductive_in_every_row(self, case: BellmanCase) -> None:
        operator, space = case.operator, case.operator.space
        # Steps lose a share at least of what there is, so that a great number in all rows is inductive.
        high = 64.0 * float(max(case.exact))
        x, y = operator.zeros(), operator.zeros()
        guess = space.vector(np.full(operator.size, high))
        assert operator.verifies(guess, x, y, operator.positive())
        better = fractions(space.to_host(y))
        assert all(value <= upper <= high for value, upper in zip(case.exact, better, strict=True))
        # One row is below its value.
        for row in np.flatnonzero(case.positive()).tolist():
            low = np.full(operator.size, high)
            low[row] = 0.5 * float(case.step([Fraction(0)] * operator.size)[row])
            assert not operator.verifies(space.vector(low), x, y, operator.positive())

    def test_lower_bounds_lose_what_underflow_may_have_added(self, case: BellmanCase) -> None:
        operator, space = case.operator, case.operator.space
        lost = 5 * operator.depth * operator.underflow
        lower = space.vector(np.linspace(0.0, 2.0, operator.size) * lost)
        operator.lowered(lower, 5)
        expected = np.maximum(np.linspace(0.0, 2.0, operator.size) * lost - lost, 0.0)
        np.testing.assert_allclose(space.to_host(lower), expected, rtol=1e-12, atol=0.0)

    def test_values_near_underflow_are_told(self, case: BellmanCase) -> None:
        operator, space = case.operator, case.operator.space
        assert operator.is_near_underflow(operator.zeros()) is not operator.is_far
        assert not operator.is_near_underflow(space.vector(np.ones(operator.size)))

    def test_enclosures_come_to_the_host(self, case: BellmanCase) -> None:
        operator, space, n = case.operator, case.operator.space, case.operator.size
        clock, outcome = Clock(None), Outcome(Status.CONVERGED, 7, 1e-9)
        low, high = np.linspace(0.25, 0.5, n), np.linspace(0.5, 1.0, n)
        spare = operator.zeros(), operator.zeros()
        found = operator.enclosure(outcome, clock, space.vector(low), space.vector(high), spare)
        assert (found.status, found.iterations, found.difference) == (Status.CONVERGED, 7, 1e-9)
        assert isinstance(found.lower, np.ndarray) and isinstance(found.upper, np.ndarray)
        np.testing.assert_array_equal(found.lower, low)
        np.testing.assert_array_equal(found.upper, high)
        np.testing.assert_array_equal(found.values, 0.5 * (low + high))
        without = operator.enclosure(outcome, clock, space.vector(low), None, spare)
        assert np.isinf(without.upper).all()
        np.testing.assert_array_equal(without.values, low)

    def test_guesses_begin_with_vectors_of_their_own(self, case: BellmanCase) -> None:
        operator = case.operator
        guess = guess_for(operator, Criterion(1e-6))
        guess.restart()
        one, other = guess.spare()
        assert len(one) == len(other) == operator.size
        assert one is not other

    def test_room_is_asked_for(self, case: BellmanCase, monkeypatch: pytest.MonkeyPatch) -> None:
        case.operator.reserve(1)
        monkeypatch.setattr(case.operator, "size", 1 << 50)
        with pytest.raises(MemoryError):
            case.operator.reserve(8)


class TestChains(BellmanContract):
    @pytest.fixture
    def case(self, chain: BellmanCase) -> BellmanCase:
        return chain


class TestChoices(BellmanContract):
    @pytest.fixture
    def case(self, choices: BellmanCase) -> BellmanCase:
        return choices
