"""Policy iteration in rational numbers: the first policy, when it is changed, and when it is the best."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hybrid.analysis.exact import optima as policies
from hybrid.analysis.exact.optima import Option, solve_optima
from hybrid.analysis.exact.systems import OperationBudget

ONE, HALF = Fraction(1), Fraction(1, 2)
STAY_OR_LEAVE = [
    [Option(ONE, {1: ONE}), Option(Fraction(5), {})],
    [Option(ONE, {0: ONE}), Option(Fraction(5), {})],
]
"""Two states: going on to the other costs 1, leaving 5; going on for ever is improper."""


def solve(options: list[list[Option]], maximise: bool) -> list[Fraction]:
    return solve_optima(options, maximise, OperationBudget(10_000))


def test_an_improper_policy_is_not_the_first_one() -> None:
    assert solve(STAY_OR_LEAVE, False) == [5, 5]


def test_a_policy_that_rounding_made_improper_is_not_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doubles that tell nothing let both states go on for ever."""
    monkeypatch.setattr(np.linalg, "solve", lambda system, right: np.zeros(len(right)))
    assert solve(STAY_OR_LEAVE, False) == [5, 5]


def test_a_system_that_doubles_cannot_solve_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(system: np.ndarray, right: np.ndarray) -> np.ndarray:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(np.linalg, "solve", refuse)
    assert solve(STAY_OR_LEAVE, False) == [5, 5]


@pytest.mark.parametrize("maximise", [False, True])
def test_choices_of_equal_worth_do_not_take_turns(maximise: bool) -> None:
    tie = [[Option(ONE, {0: HALF}), Option(Fraction(2), {}), Option(ONE, {0: HALF})]]
    assert solve(tie, maximise) == [2]


def test_a_better_choice_is_found_by_several_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of states, each better off by the next one's change."""
    monkeypatch.setattr(policies, "_approximate", lambda options, policy, maximise: policy)
    row = [[Option(Fraction(-1), {}), Option(Fraction(0), {i + 1: ONE})] for i in range(5)]
    last = [[Option(Fraction(-1), {}), Option(Fraction(7), {})]]
    assert solve(row + last, True) == [7] * 6
