"""Where expressions have a value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from mtbdd.language import EvaluationError, parse_expression, to_text
from mtbdd.language.evaluate import Definedness, evaluate
from mtbdd.language.syntax import Expression
from tests.mtbdd.language.strategies import typed


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("x + 1 < y / 0", "true"),
        ("min(x, floor(y/2))", "true"),
        ("pow(2.0, -1) > x", "true"),
        ("pow(2, x - 1)", "x - 1 >= 0"),
        ("mod(x, y) + mod(y, x)", "y > 0 & x > 0"),
        ("log(x, 2)", "x > 0"),
        ("x > 0 & mod(y, x) = 1", "!x > 0 | x > 0"),
        ("x = 0 | mod(y, x) = 1", "x = 0 | x > 0"),
        ("b => mod(y, x) = 1", "!b | x > 0"),
        ("b <=> mod(y, x) = 1", "x > 0"),
        ("b ? mod(y, x) : 3", "b ? x > 0 : true"),
        ("mod(y, x) = 1 ? 1 : 2", "x > 0"),
        ("!(max(1, mod(mod(x, y), x)) = 1)", "y > 0 & x > 0"),
    ],
)
def test_definedness(text: str, condition: str) -> None:
    assert to_text(Definedness(None)(parse_expression(text))) == condition


# Divisions, overflows and real powers are no part of the condition.
PARTIAL = ("positive modulus", "exponent of at least 0", "the logarithm of")


def holds(condition: Expression, values: dict[str, bool | int]) -> bool:
    """Return whether a condition has a value and it is true."""
    try:
        return evaluate(condition, values) is True
    except EvaluationError:
        return False


@pytest.mark.parametrize("kind", ["bool", "int", "double"])
def test_single_values_are_defined_where_the_condition_holds(kind: str) -> None:
    @settings(max_examples=50)
    @given(typed(kind))
    def check(expression: Expression) -> None:
        condition = Definedness(None)(expression)
        for x, y, b in np.ndindex(3, 3, 2):
            values: dict[str, bool | int] = {"x": x - 1, "y": y, "b": bool(b)}
            fault = ""
            try:
                evaluate(expression, values)
            except EvaluationError as error:
                fault = str(error)
            if not fault:
                assert holds(condition, values), (to_text(expression), values)
            elif any(words in fault for words in PARTIAL):
                assert not holds(condition, values), (to_text(expression), values)

    check()
