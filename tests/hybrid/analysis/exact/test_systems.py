"""Sparse systems by digits and by fractions, component by component, against dense elimination."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.analysis.exact import systems
from hybrid.analysis.exact import systems as lifting
from hybrid.analysis.exact.systems import (
    PRIMES,
    OperationBudget,
    solve_by_lifting,
    solve_rationals,
    solve_systems,
)
from hybrid.base.errors import NotExactError
from mtbdd.base.budget import Budget as Limits
from mtbdd.base.budget import BudgetError, spending
from tests.oracles.chains import solve_exactly

Rows = list[dict[int, Fraction]]


def random_system(seed: int, size: int, degree: int) -> tuple[Rows, list[list[Fraction]]]:
    """A system that is left from every state, with numbers short and long, and two right-hand sides."""
    rng = np.random.default_rng(seed)
    rows: Rows = []
    right = []
    for _ in range(size):
        columns = rng.choice(size, min(size, int(rng.integers(0, degree + 1))), replace=False)
        weights = [Fraction(int(w)) for w in rng.integers(1, 20, len(columns) + 1)]
        if rng.random() < 0.2:
            weights = [w / 10 ** int(rng.integers(0, 60)) for w in weights]
        total = sum(weights)
        rows.append({int(j): w / total for j, w in zip(columns, weights, strict=False)})
        right.append([weights[-1] / total, Fraction(int(rng.integers(-3, 4)), int(rng.integers(1, 9)))])
    return rows, right


def dense_solution(rows: Rows, right: list[list[Fraction]]) -> list[list[Fraction]]:
    n = len(rows)
    matrix = [[Fraction(i == j) - rows[i].get(j, Fraction(0)) for j in range(n)] for i in range(n)]
    columns = [solve_exactly(matrix, [own[k] for own in right]) for k in range(2)]
    return [list(values) for values in zip(*columns, strict=True)]


@given(st.integers(0, 2**32), st.integers(1, 24), st.integers(0, 5))
def test_all_ways_give_the_solution(seed: int, size: int, degree: int) -> None:
    rows, right = random_system(seed, size, degree)
    exact = dense_solution(rows, right)
    assert solve_by_lifting(rows, right) == exact
    assert solve_systems(rows, right, OperationBudget(None)) == exact
    assert solve_systems(rows, right, OperationBudget(10**9)) == exact


def test_filled_patterns_are_solved_by_digits_and_thin_ones_by_fractions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = []
    for name in ("solve_rationals", "solve_by_lifting"):
        whole = getattr(systems, name)

        def noted(*given: object, name: str = name, whole: object = whole) -> object:
            taken.append((name, len(given[0])))  # type: ignore[arg-type]
            return whole(*given)  # type: ignore[operator]

        monkeypatch.setattr(systems, name, noted)
    half = Fraction(1, 2)
    # A walk of 50 states beside a block of 20 where all lead to all, and states that lead to both.
    walk = [{j: half for j in (i - 1, i + 1) if 0 <= j < 50} for i in range(50)]
    block = [{j: Fraction(1, 50 + i) for j in range(50, 70)} for i in range(20)]
    rows = [*walk, *block, {0: half, 50: half}]
    right = [[Fraction(1)] for _ in rows]
    found = solve_systems(rows, right, OperationBudget(None))
    assert sorted(taken) == [("solve_by_lifting", 20), ("solve_rationals", 1), ("solve_rationals", 50)]
    assert found[:50] == [[Fraction((i + 1) * (50 - i))] for i in range(50)]
    assert found[70] == [1 + (found[0][0] + found[50][0]) / 2]


def test_a_prime_that_divides_a_pivot_gives_way_to_the_next() -> None:
    p = PRIMES[0]
    # The determinant of I - A is p / 2^32.
    rows = [{0: 1 - Fraction(p, 2**32)}]
    assert solve_by_lifting(rows, [[Fraction(1)]]) == [[Fraction(2**32, p)]]
    with pytest.raises(NotExactError, match="no factors modulo any prime"):
        solve_by_lifting(rows, [[Fraction(1)]], primes=PRIMES[:1])
    with pytest.raises(NotExactError, match="no factors modulo any prime"):
        solve_by_lifting([{0: Fraction(1)}], [[Fraction(1)]])


def test_wrong_guesses_fail_in_the_equations_and_more_digits_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, right = random_system(5, 20, 4)
    exact = dense_solution(rows, right)
    whole, guesses = lifting._reconstructed, []

    def misled(x: list[int], modulus: int) -> object:
        found = whole(x, modulus)
        guesses.append(found)
        return ([n + 1 for n in found[0]], found[1]) if found is not None and len(guesses) < 3 else found

    monkeypatch.setattr(lifting, "_reconstructed", misled)
    assert solve_by_lifting(rows, right) == exact
    assert len(guesses) >= 4
    # Too few digits at first: what is read from them is no solution, or cannot be read.
    monkeypatch.setattr(lifting, "_FIRST_DIGITS", 1)
    assert solve_by_lifting(rows, right) == exact


def test_entries_of_many_digits_leave_the_machines_integers() -> None:
    tiny = Fraction(1, 10**170)
    rows = [{1: tiny, 0: 1 - 3 * tiny}, {0: Fraction(1, 3), 1: Fraction(1, 7)}]
    right = [[tiny], [Fraction(2, 10**300)]]
    assert solve_by_lifting(rows, right) == solve_rationals(rows, right, OperationBudget(10**6))


def test_the_time_that_is_left_is_looked_at() -> None:
    rows, right = random_system(1, 24, 5)
    with spending(Limits(1.0, None, time.monotonic() - 5)), pytest.raises(BudgetError):
        solve_by_lifting(rows, right)
    walk = [{j: Fraction(1, 2) for j in (i - 1, i + 1) if 0 <= j < 400} for i in range(400)]
    with spending(Limits(1.0, None, time.monotonic() - 5)), pytest.raises(BudgetError):
        solve_rationals(walk, [[Fraction(1)]] * 400, OperationBudget(None, looked=10**9))
