"""Values over arrays with the bound on their rounding, against the real numbers."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtbdd.language.enclosing import LEAST, enclose, has_doubles, units_of
from mtbdd.language.errors import EvaluationError
from mtbdd.language.evaluate import evaluate
from mtbdd.language.expression_parser import parse_expression
from mtbdd.language.reals import bounds, real_of
from mtbdd.language.scalars import TooCloseError

X = np.arange(-3, 5)[:, None]
Y = np.arange(0, 6)[None, :]
SHAPE = (8, 6)

decimals = st.sampled_from(
    ["0.1", "0.3", "1/3", "2.5", "1e-9", "0.2999999", "1e17", "7", "x", "y", "x*y", "1e-200"]
)


@st.composite
def numbers(draw: st.DrawFn, depth: int = 3) -> str:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(decimals)
    kind = draw(st.sampled_from(["+", "-", "*", "/", "min", "max", "?", "neg", "pow", "floor"]))
    a, b = draw(numbers(depth - 1)), draw(numbers(depth - 1))
    if kind in "+-*/":
        return f"({a}) {kind} ({b})"
    if kind in ("min", "max"):
        return f"{kind}({a}, {b})"
    if kind == "?":
        return f"({a} {draw(st.sampled_from(['<', '<=', '=', '>']))} {b} ? {a} : {b})"
    if kind == "neg":
        return f"-({a})"
    return f"pow({a}, {draw(st.integers(0, 3))})" if kind == "pow" else f"floor(({a}) / 3 + 0.0)"


def exact(text: str, x: int, y: int) -> Any:
    """The value on the reals, None without one."""
    try:
        return evaluate(parse_expression(text), {"x": x, "y": y})
    except EvaluationError:
        return None


@settings(max_examples=60)
@given(numbers())
def test_numbers_are_within_their_errors(text: str) -> None:
    # Differences may cancel, and the least of two numbers has the error of both.
    is_product = re.search(r"\) [+-] \(|min|max|\?", text) is None
    text = f"({text}) + 0.0"
    try:
        found = enclose(parse_expression(text), {"x": X, "y": Y}, SHAPE)
    except EvaluationError:  # a part without variables that has no value
        assert any(exact(text, i - 3, j) is None for i, j in np.ndindex(SHAPE))
        return
    error = np.zeros(SHAPE) if found.error is None else found.error
    for i, j in np.ndindex(SHAPE):
        value = exact(text, i - 3, j)
        if value is None:
            continue
        low, high = bounds(real_of(value))
        double = Fraction(found.values[i, j].item())
        assert max(abs(double - low), abs(double - high)) <= Fraction(error[i, j].item())
        if error[i, j] == 0 or is_product and abs(double) > 2.0**-1022:
            assert (double == 0) == (low == high == 0)
        if abs(double) > 2.0**-1022 and is_product:
            assert error[i, j] <= 33 * 2.0**-53 * abs(double)


@settings(max_examples=60)
@given(numbers(), numbers(), st.sampled_from(["<", "<=", "=", "!=", ">", ">="]))
def test_comparisons_are_those_of_the_reals(a: str, b: str, operator: str) -> None:
    text = f"({a}) {operator} ({b})"
    try:
        found = enclose(parse_expression(text), {"x": X, "y": Y}, SHAPE).values
    except EvaluationError:  # a part without variables that has no value
        assert any(exact(text, i - 3, j) is None for i, j in np.ndindex(SHAPE))
        return
    for i, j in np.ndindex(SHAPE):
        value = exact(text, i - 3, j)
        if value is not None:
            assert bool(found[i, j]) is value


def test_entries_are_put_right_where_the_first_variable_does_not_occur() -> None:
    text = "1e17 < 0.1 + (0.1 + (1e17 + y))"
    assert enclose(parse_expression(text), {"x": X, "y": Y}, SHAPE).values.all()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x*0.1 <= 0.3", [v <= 3 for v in range(-3, 5)]),
        ("x*0.1 = 0.1*3", [v == 3 for v in range(-3, 5)]),
        ("1e-9*x < 7 + (0.1 = 7 ? 0.1 : 7)", [True] * 8),
        ("x < 0.5 + (0.1 = 7 ? 1 : 9223372036854775807)", [True] * 8),
        ("floor(x*0.1/0.3)", [-1, -1, -1, 0, 0, 0, 1, 1]),
        ("0.1*x + 0.2 - 0.3 = 0", [v == 1 for v in range(-3, 5)]),
    ],
)
def test_doubles_would_decide_otherwise(text: str, expected: list[Any]) -> None:
    found = enclose(parse_expression(text), {"x": np.arange(-3, 5)}, (8,))
    assert found.values.tolist() == expected


def test_zero_is_zero_alone() -> None:
    """A difference that doubles leave at 1e-17 vanishes; a positive number below all doubles does not."""
    x = np.array([0, 1])
    cancelled = enclose(parse_expression("0.1*x + 0.2 - 0.3*x"), {"x": x}, (2,))
    assert cancelled.values.tolist() == [0.2, 0.0]
    tiny = enclose(parse_expression("x*1e-200*1e-200"), {"x": x}, (2,))
    assert tiny.values.tolist() == [0.0, LEAST]


def test_entries_that_do_not_count_are_left_alone() -> None:
    x = np.arange(4)
    expression = parse_expression("1 / (x*0.1)")
    found = enclose(expression, {"x": x}, (4,), x > 0)
    assert units_of(found, x > 0) <= 4
    assert not has_doubles(parse_expression("x + mod(x, 3)"))
    assert has_doubles(parse_expression("x / 2"))


@pytest.mark.parametrize(
    "text",
    [
        "9007199254740993*x > 9007199254740992.0",
        "9007199254740992.0 + 1.0*x > 9007199254740992.0",
        "3.0*3002399751580331.0*x > 9007199254740992.0",
        "floor((9007199254740992.0 + 1.0*x) / 1.0) > 9007199254740992",
    ],
)
def test_the_integer_after_the_last_that_all_doubles_hold_is_another_one(text: str) -> None:
    """2^53 + 1 becomes 2^53, and no difference is left to tell so."""
    assert enclose(parse_expression(text), {"x": np.array([1, 1])}, (2,)).values.all()


def test_units_are_those_of_the_worst_entry() -> None:
    found = enclose(parse_expression("0.1*x + 0.7"), {"x": X[:, 0]}, (8,))
    exact = [Fraction(x, 10) + Fraction(7, 10) for x in X[:, 0].tolist()]
    assert found.error is not None
    shares = [
        Fraction(e) / abs(Fraction(v))
        for v, e in zip(found.values.tolist(), found.error.tolist(), strict=True)
    ]
    told = Fraction(units_of(found)) * Fraction(1, 2**53)
    assert max(shares) <= told <= 2 * max(shares)
    for value, wanted in zip(found.values.tolist(), exact, strict=True):
        assert abs(Fraction(value) - wanted) <= abs(Fraction(value)) * told


def test_irrational_numbers_that_agree_are_refused() -> None:
    text = "pow(2, 0.5*x) * pow(3, 0.5*x) > pow(6, 0.5*x)"
    with pytest.raises(TooCloseError, match="60 digits tell apart"):
        enclose(parse_expression(text), {"x": np.array([1])}, (1,))


@pytest.mark.parametrize("text", ["x*1e308*10 - x*1e308*10 = 0", "floor(x*1e300*1e10/1e310)"])
def test_numbers_that_leave_the_doubles_decide_nothing(text: str) -> None:
    """Infinity minus infinity is not a number, and no comparison with that holds."""
    with pytest.raises(EvaluationError, match="a double ends at 1.79e308"):
        enclose(parse_expression(text.replace("/1e310", "/1e300/1e10")), {"x": np.array([1])}, (1,))


@pytest.mark.parametrize(
    "text",
    [
        "(1 - x*0.0999999999)*3",
        "3*(1 - x*0.0999999999)",
        "1/(1 - x*0.0999999999)",
        "(1 - x*0.0999999999)/7",
        "pow(1 - x*0.0999999999, 3)",
        "x*0.1*3*3*3*3*3*3*3*3/7/7/7/7/7/7",
        "max(1 - x*0.0999999999, 1e-30)",
        "x>3 ? 1 - x*0.0999999999 : 2",
    ],
)
def test_errors_travel_through_operators(text: str) -> None:
    """What cancels leaves few correct digits, whichever operand it is."""
    x = np.arange(11)
    expression = parse_expression(text)
    found = enclose(expression, {"x": x}, (11,))
    assert found.error is not None
    for i, (value, error) in enumerate(zip(found.values.tolist(), found.error.tolist(), strict=True)):
        exact = real_of(evaluate(expression, {"x": i}))  # type: ignore[arg-type]
        assert isinstance(exact, Fraction)
        assert abs(Fraction(value) - exact) <= Fraction(error) <= abs(exact) * 33 * Fraction(1, 2**53)
