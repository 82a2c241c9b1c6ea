"""Expressions worked out state by state: the real numbers, within the errors told."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.checking.simulation.functions import Variables
from hybrid.models.exploration import explore as programs_module
from hybrid.models.exploration.explore import Programs, UnsuitableError
from hybrid.models.exploration.search_kernel import run_program
from mtbdd.language import parse_model, resolve
from mtbdd.language.errors import EvaluationError
from mtbdd.language.evaluate import evaluate
from mtbdd.language.expression_parser import parse_expression
from mtbdd.language.reals import bounds, real_of
from mtbdd.language.syntax import Binary, Expression, Literal, Name
from tests.mtbdd.language.strategies import HERE, typed

VARIABLES = Variables(resolve(parse_model("dtmc module m x:[-4..4]; y:[0..6]; b:bool; endmodule"), None))
STATES = [np.array(state, dtype=np.int64) for state in product((-3, 0, 1, 4), (0, 1, 6), (0, 1))]


def ran(expression: Expression) -> list[tuple[Any, float] | None]:
    """Return the value and the error in every state, None where the machine gives up."""
    programs = Programs(VARIABLES)
    number = programs.number(expression)
    code = programs.code()
    integers = np.zeros(code.depth, dtype=np.int64)
    doubles, errors = np.zeros(code.depth), np.zeros(code.depth)
    found: list[tuple[Any, float] | None] = []
    for state in STATES:
        if not run_program(number, code, state, integers, doubles, errors):
            found.append(None)
        elif code.kinds[number]:
            found.append((float(doubles[0]), float(errors[0])))
        else:
            found.append((int(integers[0]), 0.0))
    return found


def expected(expression: Expression, state: Any) -> Any:
    try:
        return evaluate(expression, {"x": int(state[0]), "y": int(state[1]), "b": bool(state[2])})
    except EvaluationError:
        return None


def assert_right(expression: Expression) -> int:
    """Every value that is given is the number, within its error; return how many are."""
    found = ran(expression)
    for state, pair in zip(STATES, found, strict=True):
        if pair is None:
            continue
        value, error = pair
        wanted = expected(expression, state)
        if not isinstance(wanted, float):
            if np.isfinite(error) and wanted is not None:
                assert value == wanted
            continue
        low, high = bounds(real_of(wanted))
        if np.isfinite(error) and np.isfinite(value):
            double = Fraction(value)
            assert max(abs(double - low), abs(double - high)) <= Fraction(error)
    return sum(pair is not None for pair in found)


@settings(max_examples=150)
@given(st.sampled_from(["int", "double", "bool"]).flatmap(lambda kind: typed(kind)))
def test_values_are_those_of_the_reals(expression: Expression) -> None:
    assert_right(expression)


@pytest.mark.parametrize(
    "text",
    [
        "0.1 * x + 0.2 * y",
        "x * y / 7",
        "pow(0.97, y) * (1 - 0.3)",
        "pow(0.5 * y, 2) + 1.99",
        "0.99 / (1.99 + pow(0.6 * y, 2))",
        "log(y + 1.5, 2.5)",
        "max(0.1 * y, x, 0.3)",
        "y > 3 ? y / 3 : x",
        "y > 3 ? x : y / 3",
        "pow(2, y) - mod(x + 4, 3)",
        "x > 0 & y > 0 | b => x + y > 3 & !b",
        "(x = 1 <=> b) & x != y",
        "floor(x / 3) + ceil(0.3 * y + 0.05) - round(x / 4 + 0.1)",
        "-x * y - min(x, y, 3)",
    ],
)
def test_operators_and_functions_are_certain_everywhere(text: str) -> None:
    assert assert_right(parse_expression(text)) == len(STATES)


@pytest.mark.parametrize(
    "text",
    [
        "9007199254740993 + 0*x > 9007199254740992.0",
        "9007199254740992.0 + 1.0*max(x, 1) > 9007199254740992.0",
        "3.0*3002399751580331.0 + 0.0*x > 9007199254740992.0",
    ],
)
def test_integers_that_no_double_holds_decide_nothing_wrongly(text: str) -> None:
    """2^53 + 1 becomes 2^53."""
    assert_right(parse_expression(text))


@pytest.mark.parametrize(
    "text",
    [
        "0.1 * 3 * (x - x + 1) = 0.3",  # equal on the reals, apart in doubles
        "mod(3, y - y)",
        "pow(y + 2, x - 5)",
        "log(x - 9, 2)",
        "9223372036854775807 - y + 7",
        "floor(0.1 * 3 * 10 + 0 * x)",
        "1 / (x - x) < 2",
    ],
)
def test_what_is_not_certain_or_has_no_value_is_given_up(text: str) -> None:
    assert all(pair is None for pair in ran(parse_expression(text)))


def test_chains_and_equal_expressions_take_one_program() -> None:
    programs = Programs(VARIABLES)
    chain = parse_expression(" & ".join(f"x != {k + 5}" for k in range(5000)))
    again = parse_expression(" & ".join(f"x != {k + 5}" for k in range(5000)))
    assert programs.number(chain) == programs.number(again)
    assert ran(chain) == [(1, 0.0)] * len(STATES)


def test_what_is_too_long_or_too_large_is_none_for_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsuitableError):
        Programs(VARIABLES).number(Literal(HERE, 1 << 63))
    monkeypatch.setattr(programs_module, "MOST_INSTRUCTIONS", 100)
    shared: Expression = Name(HERE, "x")
    for _ in range(10):
        shared = Binary(HERE, "+", shared, shared)
    with pytest.raises(UnsuitableError):
        Programs(VARIABLES).number(shared)
