"""What bounds rest on, a test each: inductive bounds, directed rounding, rounding of averages, tails."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import poisson

from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.space.base import Clock
from hybrid.matrix.space.bellman import DirectedSystem, Outcome
from hybrid.matrix.space.bounded_solution import ENCLOSING_VECTORS, UNIT
from hybrid.matrix.space.host import space_of
from hybrid.solvers import AverageReward, Criterion, Interval, Optimistic, Status
from hybrid.solvers.average_krylov import average_bounds
from hybrid.solvers.poisson import poisson_weights
from tests.builders.linear_systems import Dense, exact_solution, linear_system
from tests.oracles.chains import solve_exactly

SLACK = 64 * UNIT


class Recorded(Dense):
    """A matrix that keeps its last step; the first guesses can be made to fail in one row."""

    def __init__(self, matrix: np.ndarray, diagonal: np.ndarray, failures: int = 0) -> None:
        super().__init__(matrix)
        self.diagonal, self.failures = diagonal, failures
        self.guesses = 0
        self.last: tuple[np.ndarray, np.ndarray] | None = None

    def jacobi_step(self, x, out, b, diagonal, omega):
        changes = super().jacobi_step(x, out, b, diagonal, omega)
        if (diagonal < self.diagonal).all():  # rounded up
            self.guesses += 1
            if self.guesses <= self.failures:
                out[0] = 1.5 * x[0]
            self.last = x.copy(), out.copy()
        return changes


# lemma: park
@pytest.mark.parametrize("failures", [0, 1, 3])
def test_an_upper_bound_that_is_not_inductive_in_every_row_is_not_accepted(failures, rng):
    matrix, diagonal, b = linear_system(rng, 12)
    recorded = Recorded(matrix, diagonal, failures)
    found = Optimistic(Criterion(1e-4)).solve(recorded, diagonal, b, SLACK, None)
    assert found.status is Status.CONVERGED
    assert recorded.guesses > failures
    guess, image = recorded.last
    assert (image <= guess).all()
    exact = exact_solution(matrix, diagonal, b)
    assert all(Fraction(u) >= e for u, e in zip(found.upper.tolist(), exact, strict=True))
    assert (found.upper - found.lower <= 1e-4 * found.upper).all()


def test_the_guess_that_is_accepted_is_inductive_on_chains_with_a_period():
    matrix = np.array([[0.0, 0.49], [0.89, 0.0]])
    diagonal, b = matrix.sum(axis=1) + [0.0, 0.093], np.array([0.6, 0.0])
    recorded = Recorded(matrix, diagonal)
    Optimistic(Criterion(1e-2)).solve(recorded, diagonal, b, SLACK, None)
    assert recorded.guesses > 1
    guess, image = recorded.last
    assert (image <= guess).all()


@pytest.mark.parametrize("method", [Optimistic, Interval])
def test_lower_bounds_are_rounded_down_and_upper_bounds_up(method):
    """As close as double precision allows for, so that an iterate rounded to nearest lies beyond."""
    rng = np.random.default_rng(7001)
    for _ in range(12):
        matrix, diagonal, b = linear_system(rng, 6)
        found = method(Criterion(1e-15)).solve(Dense(matrix), diagonal, b, SLACK, None)
        assert found.status is Status.CONVERGED
        exact = exact_solution(matrix, diagonal, b)
        for low, value, high in zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True):
            assert Fraction(low) <= value <= Fraction(high)


def test_a_value_at_the_ceiling_keeps_a_lower_bound_below_it():
    """Rounded to nearest, x = 0.9 x + 0.1 would be iterated to more than its solution."""
    for p in (0.9, 0.7, 0.99):
        matrix, b = np.array([[0.0, p], [p, 0.0]]), np.array([0.1, 0.3])
        exact = exact_solution(matrix, np.ones(2), b)
        found = Optimistic(Criterion(1e-15)).solve(Dense(matrix), np.ones(2), b, SLACK, None)
        assert all(Fraction(x) <= e for x, e in zip(found.lower.tolist(), exact, strict=True))
        assert all(Fraction(x) >= e for x, e in zip(found.upper.tolist(), exact, strict=True))


# ------------------------------------------------------------------ averages


def average(rates: np.ndarray, rewards: np.ndarray) -> Fraction:
    """The exact long-run average."""
    n = len(rates)
    system = [[Fraction(float(rates[j, i])) for j in range(n)] for i in range(n)]
    for i in range(n):
        system[i][i] -= sum(Fraction(float(x)) for x in rates[i])
    system[0] = [Fraction(1)] * n
    stationary = solve_exactly(system, [Fraction(1)] + [Fraction(0)] * (n - 1))
    return sum((p * Fraction(float(r)) for p, r in zip(stationary, rewards, strict=True)), Fraction(0))


def test_rounding_errors_of_the_averages_bounds_are_counted():
    """Iterated until nothing but rounding is left, bounds without it meet beside the average."""
    rng = np.random.default_rng(7002)
    for _ in range(15):
        n = 5
        rates = rng.random((n, n)) * (rng.random((n, n)) < 0.6) + np.roll(np.eye(n), 1, axis=1)
        np.fill_diagonal(rates, 0.0)
        rewards = rng.random(n)
        found = AverageReward(Criterion(1e-15)).solve(Dense(rates), rates.sum(axis=1), rewards, SLACK)
        assert found.status is Status.CONVERGED
        assert Fraction(found.lower) <= average(rates, rewards) <= Fraction(found.upper)
        assert found.upper - found.lower <= 1e-11 * found.value


def test_the_averages_bounds_are_the_extremes_over_all_states():
    """After few steps the bounds are far apart, and the average lies between them."""
    rng = np.random.default_rng(7003)
    rates = rng.random((6, 6))
    np.fill_diagonal(rates, 0.0)
    rewards = np.array([5.0, 0.0, 1.0, 0.5, 2.0, -3.0])
    exact = average(rates, rewards)
    for limit in (10, 20, 40):
        method = AverageReward(Criterion(1e-12, max_iterations=limit))
        found = method.solve(Dense(rates), rates.sum(axis=1), rewards, SLACK)
        assert Fraction(found.lower) <= exact <= Fraction(found.upper)


# lemma: gain
@pytest.mark.parametrize(
    ("rates", "diagonal", "rewards", "h"),
    [
        ([0.0, 0.0], [0.0, 0.0], [8.0, -4.0], [0.0, 0.0]),
        ([2.0, 4.0], [0.0, 0.0], [0.0, 0.0], [-3.0, 5.0]),
        ([0.0, 0.0], [2.0, 4.0], [0.0, 0.0], [-3.0, 5.0]),
        ([2.0, 4.0], [2.0, 4.0], [8.0, -4.0], [-3.0, 5.0]),
    ],
    ids=["rewards", "rates", "diagonal", "all"],
)
def test_each_term_of_the_averages_bounds_has_its_error(rates, diagonal, rewards, h):
    """``r + M h - d h`` is off by ``slack (|r| + M |h| + d |h|)``; an eighth, so that it is exact here."""
    matrix, d, r, x = np.array([[0.0, rates[0]], [rates[1], 0.0]]), *map(np.array, (diagonal, rewards, h))
    rho = r + matrix @ x - d * x
    error = 0.125 * (np.abs(r) + matrix @ np.abs(x) + d * np.abs(x))
    room = np.empty(2), np.empty(2)
    low, high = average_bounds(space_of(Dense(matrix)), x.copy(), r, d, *room, 0.125)
    assert (float(low), float(high)) == (min(rho - error), max(rho + error))


def test_what_underflow_adds_to_an_average_is_taken_off_and_added():
    """Of rewards next to the least double the products are whole multiples of it."""
    least, loss = 5e-324, []
    for rates, rewards in (([0.875, 1.0], [0.0, 4.0]), ([0.125, 0.375], [2.0, 0.0])):
        matrix, earned = np.array([[0.0, rates[0]], [rates[1], 0.0]]), np.array(rewards) * least
        method = AverageReward(Criterion(1e-9, max_iterations=400))
        found = method.solve(Dense(matrix), matrix.sum(axis=1), earned, SLACK)
        assert Fraction(found.lower) <= average(matrix, earned) <= Fraction(found.upper)
        loss.append(found.upper - found.lower)
    assert min(loss) > 0.0


# ------------------------------------------------------------------ Poisson probabilities


@pytest.mark.parametrize("mean", [800.0, 4e3, 12345.6, 1e6])
def test_both_tails_of_poisson_weights_count(mean):
    """A tail holds at least the first probability that is left out, and the bound is not far above it."""
    found = poisson_weights(mean)
    assert found.left > 0
    first_left, first_right = poisson.pmf([found.left - 1, found.right + 1], mean)
    assert first_left > 0
    assert 0.999 * first_left <= found.left_tail <= 1e-38
    assert 0.999 * first_right <= found.right_tail <= 1e-38
    # The mean of what lies beyond is at least one for each of the values right + 2, ...
    assert found.excess >= 0.999 * poisson.pmf(found.right + 2, mean)


@pytest.mark.parametrize("mean", [0.5, 800.0, 12345.6, 1e6])
def test_bounds_on_tails_are_geometric_series_rounded_up(mean):
    """Beyond the last weight each is less than the one before it by the first ratio at least."""
    found = poisson_weights(mean)
    ratio = Fraction(mean) / (found.right + 1)
    above = Fraction(float(found.weights[-1])) * ratio / (1 - ratio)
    assert Fraction(found.right_tail) >= above
    assert Fraction(found.excess) >= above / (1 - ratio)
    if found.left:
        ratio = found.left / Fraction(mean)
        assert Fraction(found.left_tail) >= Fraction(float(found.weights[0])) * ratio / (1 - ratio)
    assert max(found.left_tail, found.right_tail, found.excess) <= 1e-30


def test_a_mean_of_few_has_no_left_tail():
    found = poisson_weights(17.5)
    assert (found.left, found.left_tail) == (0, 0.0)
    assert found.right_tail > 0


@pytest.mark.parametrize("mean", [0.5, 30.0, 5e3])
def test_the_slack_of_poisson_weights_covers_their_rounding(mean):
    """Against 60 digits: weights over their exact sum."""
    import decimal

    found = poisson_weights(mean)
    with decimal.localcontext() as context:
        context.prec = 60
        m = decimal.Decimal(mean)
        term, exact = decimal.Decimal(1), []
        for k in range(found.left + 1, found.right + 1):
            term = term * m / k
            exact.append(term)
        exact = [decimal.Decimal(1), *exact]
        total = sum(exact)
        worst = max(
            abs(decimal.Decimal(float(w)) * total / e - 1) for w, e in zip(found.weights, exact, strict=True)
        )
    assert worst <= found.slack <= 1e-9


def test_right_hand_sides_stay_zero_where_the_solution_is_even_if_floors_overflow() -> None:
    matrix = CsrMatrix(sp.csr_array(np.array([[0.0, 1e-300], [0.0, 0.0]])))
    diagonal, b = np.array([1e308, 1e-300]), np.array([0.0, 1e-305])
    system = DirectedSystem(matrix, diagonal, b, 2.0**-50, ENCLOSING_VECTORS)
    with np.errstate(over="ignore"):
        assert np.isinf(4.0 * system.floor * diagonal[0])
    pair = np.zeros(2), np.zeros(2)
    system.raised(np.array([0.0, 1.0])).sweep(pair, 0, 1)
    assert pair[1][0] == 0.0
    assert pair[1][1] > system.floor


def test_zeros_that_the_graph_knows_stay_zero_where_upper_bounds_overflow() -> None:
    """Infinity times zero is no number."""
    matrix = CsrMatrix(sp.csr_array(np.array([[0.5, 0.0], [0.0, 0.0]])))
    diagonal, b = np.ones(2), np.array([0.0, 1e-308])
    system = DirectedSystem(matrix, diagonal, b, 2.0**-50, ENCLOSING_VECTORS)
    lower, upper = np.array([0.0, 1e-308]), np.array([np.inf, 1.0])
    outcome, clock = Outcome(iterations=3), Clock(None)
    Interval(Criterion(1e-6))._widen(system, lower, upper, np.empty(2), outcome, None, clock)
    assert upper[0] == 0.0
    assert 0.0 < lower[1] < 1e-308 < upper[1]


# lemma: interval-iteration
def test_both_bounds_of_interval_iteration_are_corrected_for_the_steps_made() -> None:
    """Next to underflow: the lower loses, and the upper gains, what so many steps may have cost."""
    matrix = CsrMatrix(sp.csr_array(np.array([[0.5]])))
    system = DirectedSystem(matrix, np.ones(1), np.array([1e-310]), 2.0**-50, ENCLOSING_VECTORS)
    lost = 300 * system.underflow
    lower, upper, spare = np.array([2e-310]), np.array([2.5e-310]), np.empty(1)
    Interval(Criterion(1e-6))._widen(system, lower, upper, spare, Outcome(iterations=300), 1.0, Clock(None))
    assert lower[0] == 2e-310 - lost and upper[0] == 2.5e-310 + lost
    lower, upper = np.array([0.5]), np.array([0.75])
    Interval(Criterion(1e-6))._widen(system, lower, upper, spare, Outcome(iterations=300), 0.625, Clock(None))
    assert (lower[0], upper[0]) == (0.5, 0.625)


def test_what_is_far_from_underflow_is_told_so() -> None:
    """Where all elements are far above what it adds, it disappears beside a unit of rounding."""
    matrix = CsrMatrix(sp.csr_array(np.array([[0.0, 0.5], [0.5, 0.0]])))
    for value, is_far in ((0.5, True), (1e-250, True), (1e-300, False)):
        b = np.full(2, value)
        system = DirectedSystem(matrix, np.ones(2), b, 2.0**-50, ENCLOSING_VECTORS)
        assert system.is_far is is_far
        assert system.is_near_underflow(b) is not is_far
        assert system.negligible == 2.0**96 * system.underflow
        assert system.floor == 2.0**56 * system.underflow


def test_a_guess_that_a_step_leaves_as_it_is_is_inductive() -> None:
    matrix = CsrMatrix(sp.csr_array(np.zeros((2, 2))))
    system = DirectedSystem(matrix, np.ones(2), np.zeros(2), 2.0**-50, ENCLOSING_VECTORS)
    assert system.verifies(np.zeros(2), np.zeros(2), np.empty(2), None)


# lemma: next-to-underflow
def test_values_too_small_for_digits_may_have_bounds_far_apart() -> None:
    """They are told by the least value with digits alone, whatever their bounds are."""
    matrix = CsrMatrix(sp.csr_array(np.zeros((2, 2))))
    system = DirectedSystem(matrix, np.ones(2), np.zeros(2), 2.0**-50, ENCLOSING_VECTORS)
    method, room = Optimistic(Criterion(1e-6)), np.empty(2)
    assert method._close(system, np.array([0.0, 0.5]), np.array([1e-300, 0.5]), room)
    assert not method._close(system, np.array([0.0, 0.4]), np.array([1e-300, 0.5]), room)


def test_averages_of_great_rates_come_as_close_as_rounding_lets_them() -> None:
    """What rounding alone may leave between bounds is that of rates times the bias."""
    rng = np.random.default_rng(7005)
    rates = 1e9 * (rng.random((5, 5)) + np.roll(np.eye(5), 1, axis=1))
    np.fill_diagonal(rates, 0.0)
    rewards = rng.random(5)
    method = AverageReward(Criterion(1e-15, max_iterations=2000), krylov="never")
    found = method.solve(Dense(rates), rates.sum(axis=1), rewards, SLACK)
    assert found.status is Status.CONVERGED
    assert Fraction(found.lower) <= average(rates, rewards) <= Fraction(found.upper)


def test_bounds_of_a_raised_solution_that_are_too_far_apart_are_not_told() -> None:
    """A value lies so near to underflow that its guess is thousands of times as great."""
    matrix = CsrMatrix(sp.csr_array(np.array([[0.0, 0.0], [0.0, 0.5]])))
    diagonal, b = np.array([1e-30, 1.0]), np.array([1e-310, 0.25])
    found = Optimistic(Criterion(1e-6)).solve(matrix, diagonal, b, 2.0**-50, None)
    assert found.status is Status.NO_BOUND
    assert np.isinf(found.upper).all()
    assert 0.0 < found.lower[0] <= 1e-280


def test_lower_bounds_at_the_limit_of_iterations_lose_what_underflow_added() -> None:
    """A product of three quarters and the smallest double is that double again."""
    dense, diagonal, b = np.diag([0.75] * 3, -1), np.ones(4), np.array([5e-324, 0.0, 0.0, 0.0])
    found = Optimistic(Criterion(1e-8, max_iterations=2)).solve(Dense(dense), diagonal, b, 2.0**-45, None)
    assert found.status is not Status.CONVERGED
    for low, x in zip(found.lower.tolist(), exact_solution(dense, diagonal, b), strict=True):
        assert Fraction(low) <= x


def test_guesses_that_fail_at_the_limit_of_iterations_are_no_bounds(rng) -> None:
    matrix, diagonal, b = linear_system(rng, 12)
    recorded = Recorded(matrix, diagonal, 1000)
    found = Optimistic(Criterion(1e-12, max_iterations=4)).solve(recorded, diagonal, b, SLACK, None)
    assert found.status is Status.MAX_ITERATIONS
    assert recorded.guesses > 0
    assert np.isinf(found.upper).all()
