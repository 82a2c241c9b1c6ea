"""Methods with bounds against exact solutions; every way they can end."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import poisson

import hybrid
from hybrid.base.option_types import Engine
from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.space.bounded_solution import TINY, UNIT, guard_underflow, middle_of, width_of
from hybrid.solvers import AverageReward, BiCGStab, Criterion, Interval, Optimistic, Status
from hybrid.solvers.poisson import poisson_weights
from tests.builders.linear_systems import Dense, linear_system
from tests.oracles.chains import solve_exactly

SLACK = 64 * UNIT
METHODS = [Optimistic, Interval]


@pytest.mark.parametrize("method", METHODS)
def test_a_long_walk_is_not_taken_for_solved(method):
    # A fair walk between 0 and 60: neighbouring iterates are close long before they are right.
    n = 59
    matrix = np.diag(np.full(n - 1, 0.5), 1) + np.diag(np.full(n - 1, 0.5), -1)
    b = np.zeros(n)
    b[-1] = 0.5
    found = method(Criterion(1e-4)).solve(Dense(matrix), np.ones(n), b, SLACK, 1.0)
    exact = np.arange(1, n + 1) / 60
    assert (found.lower <= exact).all()
    assert (exact <= found.upper).all()
    assert width_of(Criterion(1e-4), found.upper - found.lower, exact) <= 1.01e-4


@pytest.mark.parametrize(
    ("there", "back", "leaving", "gain", "epsilon"),
    [(0.49, 0.89, 0.093, 0.6, 1e-2), (0.04, 0.73, 0.061, 0.7, 1e-1), (0.94, 0.13, 0.086, 0.4, 1e-1)],
)
def test_a_second_guess_is_not_taken_if_it_is_too_far_off(there, back, leaving, gain, epsilon):
    # On these chains with a period the first guess fails, and twice its distance is more than epsilon.
    matrix = np.array([[0.0, there], [back, 0.0]])
    diagonal, b = matrix.sum(axis=1) + [0.0, leaving], np.array([gain, 0.0])
    found = Optimistic(Criterion(epsilon)).solve(Dense(matrix), diagonal, b, SLACK, None)
    assert found.status is Status.CONVERGED
    assert (found.upper - found.lower <= epsilon * found.lower).all()


@pytest.mark.parametrize("method", METHODS)
def test_precision_out_of_reach_gives_wider_bounds(method):
    # 10^8 steps on average: rounding alone is 10^8 units.
    matrix, diagonal = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1.0, 1.0 + 2.0**-26])
    found = method(Criterion(1e-14, max_iterations=10)).solve(
        Dense(matrix), diagonal, np.ones(2), SLACK, None
    )
    assert found.status is Status.MAX_ITERATIONS


# lemma: zeros
def test_tiny_values_keep_only_a_bound():
    # An upper bound of zero is the graph's word, and stays.
    lower, upper = np.array([1e-300, 0.0, 0.5]), np.array([1e-299, 0.0, 0.6])
    guard_underflow(lower, upper)
    assert lower.tolist() == [0.0, 0.0, 0.5]
    assert upper.tolist() == [TINY, 0.0, 0.6]


def walk(n, p):
    """Return a walk outwards where every failure leads back to the middle, which is worth 0.5."""
    size = 2 * n - 1
    matrix, b, middle = np.zeros((size, size)), np.zeros(size), n - 1
    for s in range(size):
        out = 0.5 if s == middle else p
        for step in (-1, 1):
            if s == middle or (s - middle) * step > 0:
                if 0 <= s + step < size:
                    matrix[s, s + step] += out
                elif step > 0:
                    b[s] += out
        if s != middle:
            matrix[s, middle] += 1.0 - p
    return matrix, np.ones(size), b


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n", "p"), [(400, 0.1), (40, 1e-9), (3, 1e-170), (310, 0.1)])
def test_values_lost_to_underflow_are_no_small_values(method, n, p):
    # Iterates from below stay at zero, and so would every guess: f(0) is 0 in doubles.
    matrix, diagonal, b = walk(n, p)
    # Not dense: products with numbers below the least normal double are slow, and most of them with zeros.
    sparse = CsrMatrix(csr_matrix(matrix))
    found = method(Criterion(max_iterations=3000)).solve(sparse, diagonal, b, SLACK, 1.0)
    assert found.status is not Status.CONVERGED or found.upper[n - 1] >= 0.5


@pytest.mark.parametrize("method", METHODS)
def test_products_below_the_smallest_double_are_positive(method):
    # x0 = 1e-200 x1, x1 = 1e-200 x2 and x2 = 0.5: less than any double, and not zero.
    matrix = np.diag([1e-200, 1e-200], 1)
    found = method().solve(Dense(matrix), np.ones(3), np.array([0.0, 0.0, 0.5]), SLACK, 1.0)
    assert found.status is Status.CONVERGED
    assert found.lower[0] == 0.0 and found.upper[0] == TINY
    assert found.lower[1] <= 0.5e-200 <= found.upper[1] <= 0.6e-200


@pytest.mark.parametrize("method", METHODS)
def test_rows_that_lead_to_nothing_are_zero(method):
    matrix = np.array([[0.0, 0.5, 0.0], [0.5, 0.0, 0.0], [0.0, 0.3, 0.0]])
    found = method().solve(Dense(matrix), np.ones(3), np.zeros(3), SLACK, 1.0)
    assert found.status is Status.CONVERGED
    assert found.lower.tolist() == found.upper.tolist() == [0.0, 0.0, 0.0]
    mixed = np.array([[0.0, 0.5, 0.0], [0.5, 0.0, 0.0], [0.0, 0.3, 0.1]])
    found = method().solve(Dense(mixed), np.ones(3), np.array([0.0, 0.0, 1.0]), SLACK, None)
    assert found.status is Status.CONVERGED
    assert found.upper[:2].tolist() == [0.0, 0.0] and found.lower[2] > 1.1


# lemma: from-below
@pytest.mark.parametrize("method", METHODS)
def test_tiny_diagonals_make_underflow_large(method):
    # Products of 1e-300 and 1e-20 have lost their digits, and the diagonal makes them numbers near 1e-20.
    matrix, diagonal = np.array([[0.0, 1e-300], [0.0, 0.0]]), np.array([1e-300, 1.0])
    found = method().solve(Dense(matrix), diagonal, np.array([0.0, 0.7e-20]), SLACK, None)
    exact = Fraction(0.7e-20)
    assert found.status is not Status.CONVERGED or found.lower[0] <= exact <= found.upper[0]


# ------------------------------------------------------------------ gain


@pytest.mark.parametrize("spread", [1.0, 1e3])
def test_gain_encloses_the_exact_average(spread, rng):
    n = 8
    rates = (
        rng.random((n, n)) * (rng.random((n, n)) < 0.4) * np.exp(rng.uniform(0, np.log(spread), n))[:, None]
    )
    rates += np.diag(np.ones(n - 1), 1)
    rates[-1, 0] += 1.0
    np.fill_diagonal(rates, 0)
    d, rewards = rates.sum(axis=1), rng.random(n)
    system = [[Fraction(float(rates[j, i])) for j in range(n)] for i in range(n)]
    for i in range(n):
        system[i][i] -= sum(Fraction(float(x)) for x in rates[i])
    system[0] = [Fraction(1)] * n
    stationary = solve_exactly(system, [Fraction(1)] + [Fraction(0)] * (n - 1))
    exact = sum(p * Fraction(float(r)) for p, r in zip(stationary, rewards, strict=True))
    found = AverageReward(Criterion(1e-9)).solve(Dense(rates), d, rewards, SLACK)
    assert found.status is Status.CONVERGED
    assert Fraction(found.lower) <= exact <= Fraction(found.upper)
    assert found.upper - found.lower <= 2e-9 * found.value


def test_gain_of_a_cycle_settles():
    n = 6
    rates = np.roll(np.eye(n), 1, axis=1)
    rewards = np.zeros(n)
    rewards[2] = 1.0
    found = AverageReward(Criterion(1e-10)).solve(Dense(rates), np.ones(n), rewards, SLACK)
    assert found.value == pytest.approx(1 / n, rel=1e-10)
    assert found.lower <= 1 / n <= found.upper
    short = AverageReward(Criterion(1e-10, max_iterations=20)).solve(Dense(rates), np.ones(n), rewards, SLACK)
    assert short.status is Status.MAX_ITERATIONS


# ------------------------------------------------------------------ Poisson probabilities


@pytest.mark.parametrize("mean", [1e-9, 0.3, 1.0, 17.5, 4e3])
def test_poisson_weights_are_the_probabilities(mean):
    found = poisson_weights(mean)
    k = np.arange(found.left, found.right + 1)
    expected = poisson.pmf(k, mean)
    np.testing.assert_allclose(found.weights, expected, rtol=1e-10, atol=1e-45)
    assert found.left_tail < 1e-38
    assert found.right_tail < 1e-38
    np.testing.assert_allclose(found.above(), poisson.sf(k, mean), rtol=1e-9, atol=1e-40)


@pytest.mark.parametrize("mean", [1e6, 1e9])
def test_poisson_weights_of_great_means_have_the_right_moments(mean):
    found = poisson_weights(mean)
    k = np.arange(found.left, found.right + 1) - mean
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert float(found.weights @ k) == pytest.approx(0.0, abs=1e-6 * np.sqrt(mean))
    assert float(found.weights @ k**2) == pytest.approx(mean, rel=1e-9)


def test_poisson_weights_of_no_time_and_of_too_much():
    assert poisson_weights(0.0).weights.tolist() == [1.0]
    for mean in (-1.0, 1e16, float("inf")):
        with pytest.raises(ValueError, match="rate times time"):
            poisson_weights(mean)


# ------------------------------------------------------------------ BiCGStab


def test_bicgstab_agrees_with_lu(rng):
    matrix, diagonal, b = linear_system(rng)
    found = BiCGStab(Criterion(1e-13)).solve(Dense(matrix), diagonal, b, np.zeros(b.size))
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.values, np.linalg.solve(np.diag(diagonal) - matrix, b), rtol=1e-10)


def test_bicgstab_tells_its_failures_apart(rng):
    matrix = np.array([[0.0, 1.0], [1.0, 0.0]])
    # I - M is singular and b outside of its range: a step along its kernel has no length to divide by.
    found = BiCGStab(Criterion(1e-10)).solve(Dense(matrix), np.ones(2), np.array([1.0, 2.0]), np.zeros(2))
    assert found.status is Status.BREAKDOWN
    assert found.difference > 1e-3
    # Nearly singular: the recurrence gets to the end, and rounding keeps the true residual from following.
    ring = np.random.default_rng(9).random((9, 9)) + np.roll(np.eye(9), 1, axis=1)
    np.fill_diagonal(ring, 0.0)
    nearly = ring.sum(axis=1) * (1.0 + 1e-4)
    found = BiCGStab(Criterion(1e-15)).solve(Dense(ring), nearly, np.ones(9), np.zeros(9))
    assert found.status is Status.STAGNATED
    assert found.difference > 1e-15
    matrix, diagonal, b = linear_system(rng)
    found = BiCGStab(Criterion(1e-12, max_iterations=2)).solve(Dense(matrix), diagonal, b, np.zeros(b.size))
    assert found.status is Status.MAX_ITERATIONS
    assert found.iterations == 2
    assert found.difference > 1e-12
    huge = np.array([[0.0, 1e200], [1e200, 0.0]])
    found = BiCGStab(Criterion(1e-10)).solve(Dense(huge), np.full(2, 1e-200), np.ones(2), np.zeros(2))
    assert found.status is Status.DIVERGED
    with pytest.raises(ValueError, match="right-hand side"):
        BiCGStab().solve(Dense(matrix), np.ones(2), None, np.zeros(2))


def test_the_middle_of_bounds_whose_sum_is_no_double() -> None:
    greatest = float(np.finfo(np.float64).max)
    lower, upper = np.array([1.2e308, -greatest, 1.0, 5e-324]), np.array([1.4e308, -1e308, 2.0, 5e-324])
    found = middle_of(lower, upper)
    assert found.tolist() == [1.2e308 / 2 + 1.4e308 / 2, -greatest / 2 - 1e308 / 2, 1.5, 5e-324]
    out = np.empty(2)
    assert middle_of(lower[2:], upper[2:], out) is out and out.tolist() == [1.5, 5e-324]
    assert np.isinf(middle_of(np.zeros(1), np.full(1, np.inf))).all()


def test_a_reward_above_half_of_the_largest_double() -> None:
    # Found by random models: the value was infinite between finite bounds, with a warning of NumPy's.
    text = """ctmc module m s : [0..1] init 0; [] s=0 -> 10:true + 6e-8:(s'=1); [] s=1 -> 1:true; endmodule
    rewards true : 7e300; endrewards"""
    engines: tuple[Engine, ...] = ("hybrid", "explicit")
    for engine in engines:
        answer = hybrid.check(hybrid.parse(text), "R=? [ F s=1 ]", engine=engine, backend="cpu")
        assert answer.lower <= answer.value <= answer.upper < np.inf
        assert answer.value == pytest.approx(7e300 / 6e-8, rel=1e-8)
