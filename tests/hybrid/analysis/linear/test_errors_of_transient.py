"""Parts of the error of an exponential, one at a time: what each of them covers happens, and is covered."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import hybrid.analysis.linear.uniformisation as uniformisation
from hybrid.analysis.linear import transient
from hybrid.analysis.linear.uniformisation import _UniformisationRun, uniformised
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.solvers.poisson import poisson_weights
from tests.builders.matrices import from_dense

LONG = 8192
MANY = (0.1, 0.3, 0.7, 1 / 3)
"""Sums of many of them drift to either side."""


def one_row(value: float) -> csr_matrix:
    """One state that leaves for all, and is left for ever."""
    columns = np.arange(LONG)
    return csr_matrix((np.full(LONG, value), (np.zeros(LONG, int), columns)), shape=(LONG, LONG))


def exact_sum(value: float) -> Fraction:
    return LONG * Fraction(value)


def test_a_step_is_charged_with_the_additions_of_its_fullest_row() -> None:
    worst = Fraction(0)
    for value in MANY:
        leaving = np.zeros(LONG)
        leaving[0] = float(exact_sum(value))
        chain = uniformised(one_row(value), leaving, None, False)
        rate = Fraction(chain.rate)
        true = 1 + (exact_sum(value) - Fraction(leaving[0])) / rate
        off = abs(Fraction(float(chain.step(np.ones(LONG))[0])) - true)
        assert off <= Fraction(chain.step_error)
        worst = max(worst, off)
    assert worst > Fraction(50 * UNIT)


def test_a_step_is_charged_with_adding_the_vector_itself() -> None:
    # The rates are too small beside the rate for any other rounding to count.
    chain = uniformised(csr_matrix([[0.0, 0.8 * UNIT], [0.0, 0.0]]), np.zeros(2), 1.0, False)
    x = np.ones(2)
    off = abs(Fraction(float(chain.step(x)[0])) - 1 - Fraction(0.8 * UNIT))
    assert Fraction(UNIT) / 2 < off <= Fraction(chain.step_error)


def test_rates_above_the_rate_stretch_vectors_by_what_their_exact_sums_say() -> None:
    for value in MANY:
        total = exact_sum(value)
        rate = 0.5 * float(total)
        chain = uniformised(one_row(value), "row sums", rate, False)
        assert abs(1 - total / Fraction(rate)) + total / Fraction(rate) <= Fraction(chain.stretch)
        assert chain.stretch < 3.0 + 1e-10
        assert total <= Fraction(chain.size)


def test_the_stretch_of_a_generator_is_no_less_than_its_rows() -> None:
    rng = np.random.default_rng(7)
    for _ in range(30):
        dense = rng.random((3, 3))
        np.fill_diagonal(dense, 0.0)
        np.fill_diagonal(dense, -0.9 * dense.sum(axis=1))
        chain = uniformised(dense, None, None, False)
        rate = Fraction(chain.rate)
        rows = [
            sum((abs((i == j) + Fraction(v) / rate) for j, v in enumerate(row)), Fraction(0))
            for i, row in enumerate(dense.tolist())
        ]
        assert 1 < max(rows) <= Fraction(chain.stretch) < max(rows) * (1 + Fraction(64 * UNIT))


# lemma: both-signs
def test_entries_that_are_off_from_the_text_count_in_sums_and_products() -> None:
    dense = np.array([[0.0, 1.0], [2.0, 0.0]])
    symbolic = replace(from_dense(dense), entry_units=2.0**20)
    chain = uniformised(inject(symbolic, backend="reference"), "row sums", None, False)
    assert Fraction(chain.size) >= 2 * (1 + Fraction(2**20) / 2**53)
    assert chain.units is not None and chain.units >= 2.0**20


@pytest.mark.parametrize("transposed", [False, True])
def test_products_are_charged_with_the_rows_that_they_have(transposed: bool) -> None:
    dense = np.zeros((256, 256))
    dense[:, 3] = 0.1
    own = inject(from_dense(dense), backend="reference")
    for matrix in (own, csr_matrix(dense)):
        chain = uniformised(matrix, np.full(256, 0.1), None, transposed)
        assert chain.units is not None and chain.units >= (256 if transposed else 1)
    for matrix in (inject(from_dense(dense.T.copy()), backend="reference"), csr_matrix(dense.T)):
        chain = uniformised(matrix, np.full(256, 25.6), None, transposed)
        assert chain.units is not None and chain.units >= (1 if transposed else 256)


def test_the_error_has_both_parts() -> None:
    x = np.array([0.1, 0.7])
    found = transient(csr_matrix([[0.0, 1 / 3], [0.7, 0.0]]), x, 5.0, exit_rates="row sums", epsilon=1e-3)
    assert found.rounding is not None and found.rounding > 0.0 < found.truncation
    assert Fraction(found.error) >= Fraction(found.truncation) + Fraction(found.rounding) * (1 - UNIT)


def test_a_time_is_charged_with_the_rounding_of_rate_times_time() -> None:
    # A state that is left for good, alone: its value is exp(-e t).
    dense, e = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([1.0, 0.0])
    chain = uniformised(csr_matrix(dense), e, 3.0, False)
    rounded = 0
    for time in (0.1, 0.3, 0.7, 1.1, 1.3):
        course = _UniformisationRun(chain, np.array([1.0, 0.0]), chain.rate * time, 1e-3, False)
        off = abs(Fraction(chain.rate * time) / Fraction(chain.rate) - Fraction(time))
        # By the mean value theorem values change by this share of the time or more.
        assert off * Fraction(math.exp(-time)) / 2 <= Fraction(course.rounding(time))
        rounded += off > 0
    assert rounded


def test_weights_that_are_off_cost_their_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    def off(mean: float) -> object:
        exact = poisson_weights(mean)
        return replace(exact, weights=exact.weights * (1.0 + 1e-9), slack=1.01e-9)

    monkeypatch.setattr(uniformisation, "poisson_weights", off)
    found = transient(
        csr_matrix([[0.0, 1.0], [2.0, 0.0]]), np.ones(2), 3.0, exit_rates="row sums", epsilon=1e-14
    )
    assert 0.9e-9 < np.abs(found.values - 1.0).max() <= found.error < 1.1e-9


def test_what_lies_right_of_the_last_weight_counts_as_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(mean: float) -> object:
        exact = poisson_weights(mean)
        assert exact.left == 0
        return replace(exact, weights=exact.weights[:6], right=5)

    monkeypatch.setattr(uniformisation, "poisson_weights", cut)
    found = transient(csr_matrix([[0.0, 1.0], [1.0, 0.0]]), np.ones(2), 1.0, exit_rates="row sums")
    assert 5e-4 < np.abs(found.values - 1.0).max() <= found.truncation < 1e-3


def test_norms_are_known_from_above_where_vectors_grow() -> None:
    dense = np.array([[-1.0, 1.4], [1.4, -1.0]])
    chain = uniformised(dense, None, 2.0, False)
    course = _UniformisationRun(chain, np.ones(2), 0.5, 1e-12, False)
    course.run()
    assert course.made > 3
    assert course._norm >= course._norm_of(course._x) >= 1.2**course.made * (1.0 - 1e-12)


def test_steps_left_out_cost_their_change() -> None:
    # Every step adds the same to the first state's value: nothing settles before the end of the line.
    n, time = 400, 50.0
    line = csr_matrix((np.ones(n - 1), (np.arange(n - 1), np.arange(1, n))), shape=(n, n))
    exits = np.ones(n)
    exits[-1] = 0.0
    found = transient(line, np.arange(n, dtype=float), time, exit_rates=exits, epsilon=0.9)
    assert found.products == 16
    assert 30.0 < time - found.values[0] <= found.error < 40.0


def test_every_step_costs_its_rounding() -> None:
    worst = 0.0
    for value in MANY:
        leaving = np.zeros(LONG)
        leaving[0] = float(exact_sum(value))
        found = transient(one_row(value), np.ones(LONG), 3.0 / leaving[0], exit_rates=leaving, epsilon=1e-14)
        # The exact value is 1 but for a unit or so.
        off = abs(found.values[0] - 1.0)
        assert off <= found.error
        assert found.rounding is not None
        worst = max(worst, off)
    assert worst > 500 * UNIT


@pytest.mark.parametrize("transposed", [False, True])
def test_values_next_to_underflow_cost_the_least_doubles(transposed: bool) -> None:
    least = 2.0**-1074
    dense, x = np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([least, 0.0])
    found = transient(csr_matrix(dense), x, 0.3, exit_rates=np.array([1.0, 2.0]), transposed=transposed)
    # The first state's share of the least double, which no double is.
    stays, moves = (2.0 + math.exp(-0.9)) / 3.0, (1.0 - math.exp(-0.9)) * (1.0 if transposed else 2.0) / 3.0
    off = [abs(v / least - e) for v, e in zip(found.values.tolist(), (stays, moves), strict=True)]
    assert 0.0 < (sum(off) if transposed else max(off)) <= found.error / least


def test_sums_of_magnitudes_are_rounded_up() -> None:
    dense = csr_matrix((LONG, LONG))
    for value in MANY:
        chain = uniformised(dense, np.zeros(LONG), 1.0, True)
        rng = np.random.default_rng(3)
        for _ in range(5):
            x = value * rng.random(LONG)
            course = _UniformisationRun(chain, x, 1.0, 1e-3, True)
            assert sum(map(Fraction, x.tolist()), Fraction(0)) <= Fraction(course._start)
