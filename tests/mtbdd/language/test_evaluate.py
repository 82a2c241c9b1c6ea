"""Values of expressions, single and in arrays."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtbdd.language import EvaluationError, parse_expression
from mtbdd.language.evaluate import evaluate
from mtbdd.language.scalars import Folder
from mtbdd.language.syntax import Expression, Literal
from tests.mtbdd.language.strategies import typed


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7/2", 3.5),
        ("4/2", 2.0),
        ("floor(7/2)", 3),
        ("floor(-7/2)", -4),
        ("ceil(7/2)", 4),
        ("ceil(-0.5)", 0),
        ("round(2.5)", 3),
        ("round(-2.5)", -2),
        ("round(-2.51)", -3),
        ("round(0.49999999999999994)", 0),
        ("pow(2, 10)", 1024),
        ("pow(3, 39)", 3**39),
        ("pow(2, 0.5)", math.sqrt(2)),
        ("pow(2.0, -1)", 0.5),
        ("pow(-2, 3)", -8),
        ("mod(7, 3)", 1),
        ("mod(-7, 3)", 2),
        ("log(8, 2)", 3.0),
        ("min(3, 1, 2)", 1),
        ("max(3, 1.5)", 3.0),
        ("true ? 1 : 2.5", 1.0),
        ("pow(true ? 2 : 0.5, -1)", 0.5),
        ("1 - 2 - 3", -4),
        ("9007199254740993 + 0", 2**53 + 1),
        ("true & !false => false", False),
        ("false => 1/0 > 1", True),
        ("false & 1/0 > 1", False),
        ("true | 1/0 > 1", True),
        ("true ? 1 : mod(1, 0)", 1),
        ("true <=> false", False),
        ("true != false", True),
        ("1 = 1.0", True),
        ("3 >= 4", False),
    ],
)
def test_evaluate_single_values(text: str, value: bool | int | float) -> None:
    result = evaluate(parse_expression(text), {})
    assert result == value
    assert isinstance(result, type(value)) and isinstance(value, bool) == isinstance(result, bool)
    folded = Folder({}, {})(parse_expression(text))
    assert isinstance(folded, Literal)
    assert folded.value == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1/0", "expected a divisor other than zero, got 1 / 0"),
        ("0.0/0", "expected a divisor other than zero"),
        ("mod(3, 0)", "expected a positive modulus, got mod(3, 0)"),
        ("mod(3, -2)", "expected a positive modulus"),
        ("pow(2, -1)", "expected an exponent of at least 0"),
        ("pow(2, 64)", "expected an integer of 64 bits"),
        ("pow(10, 1000000000000)", "expected an integer of 64 bits"),
        ("pow(0.0, -1)", "expected a power that is a finite real number"),
        ("pow(-2.0, 0.5)", "expected a power that is a finite real number"),
        ("log(-1, 2)", "expected the logarithm of a positive number"),
        ("log(0, 2)", "expected the logarithm of a positive number"),
        ("log(2, 1)", "expected a positive base other than 1"),
        ("9223372036854775807 + 1", "expected an integer of 64 bits"),
        ("1e308 * 10", "expected a finite number"),
        ("floor(1e300)", "expected an integer of 64 bits"),
        ("x + 1", "expected a value for 'x', got none"),
        ('"init"', "it has no value in a single state"),
    ],
)
def test_evaluate_faults(text: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        evaluate(parse_expression(text), {})
    assert message in caught.value.faults[0].message


def test_evaluate_numpy_scalars() -> None:
    environment = {"x": np.int32(3), "b": np.bool_(True), "d": np.float64(0.5)}
    result = evaluate(parse_expression("b ? x : 0"), environment)
    assert (result, type(result)) == (3, int)
    assert evaluate(parse_expression("x*d"), environment) == 1.5


def test_evaluate_refuses_other_arrays() -> None:
    with pytest.raises(TypeError, match="dtype"):
        evaluate(parse_expression("x"), {"x": np.array(["a"])})
    with pytest.raises(TypeError, match="got str"):
        evaluate(parse_expression("x"), {"x": "a"})


def array(text: str, **values: object) -> np.ndarray:
    result = evaluate(parse_expression(text), {name: np.asarray(v) for name, v in values.items()})
    assert isinstance(result, np.ndarray)
    return result


def test_arrays_keep_their_types() -> None:
    x = np.arange(4, dtype=np.uint8)
    assert array("x - 2", x=x).tolist() == [-2, -1, 0, 1]
    assert array("x - 2", x=x).dtype == np.int64
    assert array("x/2", x=x).dtype == np.float64
    assert array("x > 1", x=x).dtype == np.bool_
    assert array("floor(x/2)", x=x).dtype == np.int64
    assert array("x > 1 ? 1 : 0", x=x).dtype == np.int64
    assert array("x > 1 ? 1 : 0.5", x=x).dtype == np.float64
    assert array("min(x, 2)", x=x).dtype == np.int64


def test_arrays_broadcast() -> None:
    x, y = np.arange(3).reshape(3, 1), np.arange(4).reshape(1, 4)
    expected = [[min(a, b) + 10 * a for b in range(4)] for a in range(3)]
    assert array("min(x, y) + 10*x", x=x, y=y).tolist() == expected


def test_arrays_mark_undefined_entries() -> None:
    y = np.array([0, 2])
    assert array("1/y", y=y).tolist() == [math.inf, 0.5]
    assert array("-1/y", y=y).tolist() == [-math.inf, -0.5]
    assert np.isnan(array("0/y", y=y)[0])
    assert np.isnan(array("mod(5, y)", y=y)).tolist() == [True, False]
    assert array("mod(5, y)", y=y)[1] == 1
    assert np.isnan(array("pow(2, y - 1)", y=y)).tolist() == [True, False]
    assert np.isnan(array("floor(1/y)", y=y)).tolist() == [True, False]
    assert np.isnan(array("log(y - 1, 2)", y=y)).tolist() == [True, False]
    assert np.isnan(array("log(2, y)", y=np.array([0, 1, 2]))).tolist() == [True, True, False]


def test_arrays_recover_ints_where_all_entries_are_defined() -> None:
    y = np.array([0, 2])
    guarded = array("y = 0 ? 7 : mod(5, y)", y=y)
    assert guarded.tolist() == [7, 1]
    assert guarded.dtype == np.int64


def test_arrays_integers_are_exact_or_undefined() -> None:
    x = np.array([1, 39, 40])
    powers = array("pow(3, x)", x=x[:2])
    assert powers.dtype == np.int64
    assert powers.tolist() == [3, 3**39]
    assert np.isnan(array("pow(3, x)", x=x)).tolist() == [False, False, True]
    large = np.array([1, 2**62])
    assert np.isnan(array("x*2", x=large)).tolist() == [False, True]
    assert np.isnan(array("x+x", x=large)).tolist() == [False, True]
    assert np.isnan(array("-x-x-1", x=large)).tolist() == [False, True]
    assert array("x-1", x=large).tolist() == [0, 2**62 - 1]


def test_arrays_of_no_entries() -> None:
    empty = np.array([], dtype=np.int64)
    assert array("x*2 + pow(x, 2) + mod(x, 3)", x=empty).shape == (0,)


def undefined_as_nan(expression: Expression, values: dict[str, bool | int]) -> bool | int | float:
    try:
        result = evaluate(expression, values)
    except EvaluationError:
        return math.nan
    assert isinstance(result, (bool, int, float))
    return result


@given(st.sampled_from(["int", "double", "bool"]).flatmap(typed))
def test_arrays_agree_with_single_values(expression: Expression) -> None:
    ranges = {"x": range(-2, 4), "y": range(3), "b": (False, True)}
    grid = list(product(*ranges.values()))
    columns = {name: np.array(column) for name, column in zip(ranges, zip(*grid, strict=True), strict=True)}
    together = np.broadcast_to(np.asarray(evaluate_or_nan(expression, columns)), (len(grid),))
    for point, value in zip(grid, together.tolist(), strict=True):
        single = undefined_as_nan(expression, dict(zip(ranges, point, strict=True)))
        # Where a single value is undefined, an array holds what IEEE arithmetic makes of it.
        if not (isinstance(single, float) and math.isnan(single)):
            assert value == single or value == pytest.approx(single, rel=1e-12)


def evaluate_or_nan(expression: Expression, columns: dict[str, np.ndarray]) -> object:
    try:
        return evaluate(expression, columns)
    except EvaluationError:
        # A constant part without a value: it may matter nowhere.
        grid = zip(*(column.tolist() for column in columns.values()), strict=True)
        return np.array(
            [undefined_as_nan(expression, dict(zip(columns, point, strict=True))) for point in grid]
        )


@given(
    st.sampled_from(["int", "double", "bool"]).flatmap(typed),
    st.integers(-2, 4),
    st.integers(0, 3),
    st.booleans(),
)
def test_folding_agrees_with_evaluation(expression: Expression, x: int, y: int, b: bool) -> None:
    try:
        folded = Folder({"x": x, "y": y, "b": b}, {})(expression)
    except EvaluationError:
        # A part without a value need not be reached by the evaluation, but a value never goes missing.
        return
    assert isinstance(folded, Literal)
    value = evaluate(expression, {"x": x, "y": y, "b": b})
    assert folded.value == value
    assert isinstance(folded.value, type(value))


@given(
    st.sampled_from(["int", "double", "bool"]).flatmap(typed),
    st.integers(-2, 4),
    st.integers(0, 3),
    st.booleans(),
)
def test_partial_folding_keeps_the_value(expression: Expression, x: int, y: int, b: bool) -> None:
    try:
        folded = Folder({"y": y}, {})(expression)
    except EvaluationError:
        return
    before = undefined_as_nan(expression, {"x": x, "y": y, "b": b})
    after = undefined_as_nan(folded, {"x": x, "y": y, "b": b})
    if not (isinstance(before, float) and math.isnan(before)):
        assert after == before
        assert isinstance(after, type(before))


def test_extremes_of_one_number() -> None:
    x = np.array([3, -1])
    assert evaluate(parse_expression("min(4)"), {}) == 4
    assert evaluate(parse_expression("max(2.5)"), {}) == 2.5
    assert np.array_equal(evaluate(parse_expression("max(x)"), {"x": x}), x)


def test_labels_have_values_under_their_quoted_names() -> None:
    e = parse_expression('"l" ? x : 0')
    found = evaluate(e, {"x": np.array([1, 2]), '"l"': np.array([True, False])})
    assert np.array_equal(found, [1, 0])
    with pytest.raises(EvaluationError, match="no value in a single state"):
        evaluate(e, {"x": 1})
