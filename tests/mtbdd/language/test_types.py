"""Types of expressions."""

from __future__ import annotations

import pytest
from hypothesis import given

from mtbdd.language import LanguageError, expression_type, parse_expression
from mtbdd.language.syntax import Expression, Type
from mtbdd.language.types import is_double
from tests.mtbdd.language.strategies import typed

TYPES = {"i": Type.INT, "j": Type.INT, "d": Type.DOUBLE, "b": Type.BOOL}


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("1", "int"),
        ("1.0", "double"),
        ("true", "bool"),
        ("-i", "int"),
        ("-d", "double"),
        ("!b", "bool"),
        ("i+j", "int"),
        ("i*d", "double"),
        ("i-j-d", "double"),
        ("i/j", "double"),
        ("4/2", "double"),
        ("i<d", "bool"),
        ("i=d", "bool"),
        ("b=true", "bool"),
        ("b!=(i>1)", "bool"),
        ("b&i>1=>b", "bool"),
        ("b<=>i=j", "bool"),
        ("b?i:j", "int"),
        ("b?i:d", "double"),
        ("b?b:i>0", "bool"),
        ("b?i:b?d:j", "double"),
        ("min(i,j)", "int"),
        ("max(i,j,d)", "double"),
        ("floor(d)", "int"),
        ("ceil(i/j)", "int"),
        ("round(i)", "int"),
        ("pow(i,j)", "int"),
        ("pow(i,d)", "double"),
        ("mod(i,j)", "int"),
        ("log(i,2)", "double"),
    ],
)
def test_type_rules(text: str, type_: str) -> None:
    expression = parse_expression(text)
    assert expression_type(expression, TYPES).value == type_
    assert is_double(expression, lambda name: name == "d") == (type_ == "double")


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("i + b", 5, "the right operand of '+' must be a number, got a bool 'b'"),
        ("-(b)", 3, "the operand of '-' must be a number"),
        ("!i", 2, "the operand of '!' must be a bool, got an int 'i'"),
        ("i & b", 1, "the left operand of '&' must be a bool"),
        ("i = b", 5, "must compare two numbers or two bools, got an int 'i' and a bool 'b'"),
        ("b < 1", 1, "the left operand of '<' must be a number"),
        ("i ? 1 : 2", 1, "the condition of '?' must be a bool"),
        ("b ? 1 : b", 9, "the branches of '?'"),
        ("mod(d, 2)", 5, "an argument of 'mod' must be an int, got a double 'd'; use floor, ceil or round"),
        ("floor(i, j)", 1, "'floor' takes 1 argument, got 2"),
        ("pow(i)", 1, "'pow' takes 2 arguments, got 1"),
        ("log(i)", 1, "'log' takes 2 arguments, got 1"),
        ("sqrt(i)", 1, "unknown function 'sqrt'"),
        ("flor(i)", 1, "did you mean 'floor'?"),
        ("k + 1", 1, "unknown name 'k'"),
        ('"done"', 1, "cannot be used here"),
    ],
)
def test_type_faults(text: str, column: int, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        expression_type(parse_expression(text), TYPES)
    (fault,) = caught.value.faults
    assert fault.position.column == column
    assert message in fault.message


def test_type_faults_are_collected_without_consequences() -> None:
    with pytest.raises(LanguageError) as caught:
        expression_type(parse_expression("(k + 1 < 2 & i) | mod(d, b) = 1"), TYPES)
    assert [f.position.column for f in caught.value.faults] == [2, 14, 23, 26]


@given(typed("int"))
def test_types_of_random_ints(expression: Expression) -> None:
    assert expression_type(expression, {"x": Type.INT, "y": Type.INT, "b": Type.BOOL}) is Type.INT
    assert not is_double(expression, lambda _: False)


@given(typed("double"))
def test_types_of_random_doubles(expression: Expression) -> None:
    assert expression_type(expression, {"x": Type.INT, "y": Type.INT, "b": Type.BOOL}) is Type.DOUBLE
    assert is_double(expression, lambda _: False)
