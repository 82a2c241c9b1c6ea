"""Elimination of states against Gauss-Jordan elimination of rows."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hybrid.analysis.exact.systems import OperationBudget, solve_rationals
from hybrid.base.errors import NotExactError
from tests.oracles.chains import solve_exactly


@pytest.mark.parametrize("size", [1, 2, 5, 15])
def test_every_right_hand_side_is_solved(size, rng):
    for _ in range(5):
        rows = []
        for _ in range(size):
            columns = rng.permutation(size)[: rng.integers(0, min(size, 4) + 1)].tolist()
            rows.append({j: Fraction(int(rng.integers(1, 9)), 33) for j in columns})
        right = [[Fraction(int(v), 7) for v in rng.integers(-5, 9, 3)] for _ in range(size)]
        found = solve_rationals(rows, right, OperationBudget(10**6))
        system = [[Fraction(int(i == j)) - rows[i].get(j, 0) for j in range(size)] for i in range(size)]
        for k in range(3):
            assert [x[k] for x in found] == solve_exactly(system, [b[k] for b in right])


def test_nothing_to_solve():
    assert solve_rationals([], [], OperationBudget(0)) == []


def test_work_is_limited():
    size = 30
    rows = [{j: Fraction(1, 31 + i + j) for j in range(size)} for i in range(size)]
    budget = OperationBudget(500)
    with pytest.raises(NotExactError, match="more operations"):
        solve_rationals(rows, [[Fraction(1)]] * size, budget)


def test_a_state_that_is_never_left_has_no_solution():
    with pytest.raises(ZeroDivisionError):
        solve_rationals([{0: Fraction(1)}], [[Fraction(1)]], OperationBudget(100))


def test_the_budget_counts_the_size_of_numbers():
    budget = OperationBudget(100)
    budget.spend(10, Fraction(1, 3))
    assert budget.left == 90
    budget.spend(10, Fraction(1, 2**1024))
    assert budget.left == 40
    with pytest.raises(NotExactError, match="more operations than it is granted"):
        budget.spend(1, Fraction(1, 2**20_000))
