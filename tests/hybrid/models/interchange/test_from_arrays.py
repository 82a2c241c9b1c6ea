"""Matrices that are no models are refused by name; all kinds of matrices are taken."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import hybrid
from hybrid.models.interchange import ExplicitModel, InterchangeError
from hybrid.models.interchange.explicit_model import validate
from mtbdd.language.syntax import ModelType

CHAIN = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    "form", [np.array, sparse.csr_array, sparse.coo_matrix, sparse.csc_array, np.ndarray.tolist]
)
def test_forms_of_matrices(form: Any) -> None:
    model = hybrid.from_scipy(form(CHAIN), labels={"goal": np.array([False, False, True]), "first": [0]})
    assert hybrid.check(model, 'P=? [ F "goal" ]').value == 1.0
    assert hybrid.check(model, 'P=? [ "first" U "goal" ]').value == 0.0
    assert hybrid.check(model, "P=? [ F<=2 state=2 ]").value == 0.5


def test_rewards_and_several_initial_states() -> None:
    model = hybrid.from_scipy(CHAIN, initial=[0, 1], rewards={"steps": np.ones(3)}, labels={"goal": [2]})
    assert hybrid.check(model, 'filter(max, R{"steps"}=? [ F "goal" ], "init")').value == pytest.approx(3.0)
    assert hybrid.check(model, 'filter(min, R{"steps"}=? [ F "goal" ], "init")').value == pytest.approx(1.0)


def test_decision_processes() -> None:
    rows = sparse.csr_array(np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    model = hybrid.from_scipy(
        rows,
        "mdp",
        choices=[0, 2, 3],
        actions=["a", "b", None, "a"],
        labels={"goal": [2]},
        choice_rewards={"cost": [1.0, 2.0, 3.0, 0.0]},
    )
    assert hybrid.check(model, 'Pmin=? [ F "goal" ]').value == 0.0
    assert hybrid.check(model, 'Pmax=? [ F "goal" ]').value == 1.0
    assert hybrid.check(model, 'R{"cost"}min=? [ F "goal" ]').value == pytest.approx(4.0)
    assert {part.action for layer in model.layers for part in layer.parts} == {"a", "b", None}


def test_exact_answers_of_exact_doubles() -> None:
    model = hybrid.from_scipy(CHAIN, labels={"goal": [2]}, rewards={"r": [0.1, 0.0, 0.0]})
    answer = hybrid.check_all(model, 'R{"r"}=? [ F "goal" ]', method="auto")[0]
    assert answer.value == pytest.approx(0.2)
    twice = hybrid.check(model, "P>=0.5 [ X state=0 ]")
    assert twice.value is True
    assert twice.kind == "exact"


def _chain(row: int, column: int, value: float) -> np.ndarray:
    found = CHAIN.copy()
    found[row, column] = value
    return found


@pytest.mark.parametrize(
    ("matrix", "options", "message"),
    [
        (_chain(0, 1, np.nan), {}, "entry 1: expected a probability, a finite number that is not negative"),
        (_chain(0, 1, np.inf), {}, "entry 1: expected a probability"),
        (_chain(1, 1, -0.5), {}, "entry 2: expected a probability, a finite number that is not negative"),
        (_chain(1, 2, 0.9), {}, "row 1: expected probabilities that add up to 1 within 1e-05, got"),
        (_chain(1, 1, 1e-310), {}, "entry 2: expected a probability of 0 or of at least 2.23e-308"),
        (_chain(0, 0, -0.5), {"type": "ctmc"}, "entry 0: expected a rate"),
        (_chain(0, 0, 1.7e308) + _chain(0, 1, 1.7e308), {"type": "ctmc"}, "expected rates that add up to"),
        (CHAIN, {"type": "pomdp"}, "type: expected dtmc, ctmc or mdp, got 'pomdp'"),
        (CHAIN, {"type": "mdp"}, "choices: expected the row where each state's choices begin"),
        (CHAIN, {"type": "mdp", "choices": [0, 1]}, "choices: expected 3 or 4 numbers, got 2"),
        (CHAIN, {"type": "mdp", "choices": [0, 2, 1]}, "choice starts[2]: expected no fall"),
        (CHAIN, {"type": "mdp", "choices": [0.0, 1.0, 2.0]}, "choices: expected integers in one dimension"),
        (CHAIN, {"choices": [0, 1, 2]}, "choices: expected none"),
        (CHAIN, {"actions": ["a"] * 3}, "actions: expected none"),
        (CHAIN, {"type": "mdp", "choices": [0, 1, 2], "actions": ["a"]}, "actions: expected 3 names, got 1"),
        (CHAIN, {"type": "mdp", "choices": [0, 1, 2], "actions": ["a", 2, "b"]}, "actions[1]: expected"),
        (CHAIN[:2], {}, "matrix: expected a square one for a dtmc, got shape (2, 3)"),
        (CHAIN[0], {}, "matrix: expected two dimensions"),
        (np.zeros((0, 0)), {"initial": []}, "expected at least one state, got 0"),
        (CHAIN.astype(complex), {}, "matrix: expected real numbers, got complex128"),
        (sparse.csr_array(CHAIN.astype(complex)), {}, "two dimensions of real numbers, got 2 of complex128"),
        ("abc", {}, "matrix: expected real numbers, got str"),
        (CHAIN, {"initial": 3}, "initial: expected states from 0 to 2, got 3"),
        (CHAIN, {"initial": []}, "expected an initial state, got none"),
        (CHAIN, {"initial": 0.5}, "initial: expected a mask of 3 states or their numbers"),
        (CHAIN, {"labels": {"g": np.array([True])}}, 'label "g": expected 3 elements, got 1'),
        (CHAIN, {"labels": {"g": [-1]}}, 'label "g": expected states from 0 to 2, got -1'),
        (CHAIN, {"rewards": {"r": [1.0, 2.0]}}, 'reward "r": expected 3 elements, got shape (2,)'),
        (CHAIN, {"rewards": {"r": [1.0, np.nan, 2.0]}}, 'state 1: reward "r": expected a finite number, got'),
        (CHAIN, {"rewards": {"r": ["x"]}}, 'reward "r": expected numbers, got list'),
        (CHAIN, {"choice_rewards": {"r": [1.0]}}, 'reward "r": expected 3 elements'),
        (CHAIN, {"variables": {"x": [0.5, 1.0, 2.0]}}, "variable x: expected 3 integers or booleans"),
        (CHAIN, {"variables": {"x": [1]}}, "variable x: expected 3 integers or booleans"),
        (CHAIN, {"variables": {"no name": [0, 1, 2]}}, "variables: expected names, got 'no name'"),
    ],
)  # fmt: skip
def test_what_is_no_model(matrix: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InterchangeError) as caught:
        hybrid.from_scipy(matrix, **options)
    assert message in str(caught.value)
    assert str(caught.value).startswith("from_scipy: ")


def test_deadlocks_may_be_refused() -> None:
    matrix = CHAIN.copy()
    matrix[2] = 0.0
    assert hybrid.from_scipy(matrix).warnings
    with pytest.raises(hybrid.HybridError, match="no outgoing transition"):
        hybrid.from_scipy(matrix, fix_deadlocks=False)


def test_repeated_entries_are_off_by_their_additions() -> None:
    """A tenth ten times is a unit less than 1 in doubles, and an entry of its own."""
    n = 10
    rows = np.array([0, n, n + 1])
    columns, values = np.append(np.ones(n, dtype=np.int64), 0), np.append(np.full(n, 0.1), 1.0)
    model = ExplicitModel(ModelType.CTMC, 2, rows, columns, values, np.array([True, False]))
    found = validate(model)
    exact = n * Fraction(0.1)
    assert found.values.shape == (2,) and Fraction(float(found.values[0])) != exact
    assert abs(Fraction(float(found.values[0])) - exact) <= Fraction(found.value_units) / 2**53 * exact
