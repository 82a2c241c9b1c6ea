"""Reading and writing expressions."""

from __future__ import annotations

import pytest
from hypothesis import given

from mtbdd.language import LanguageError, expression_variables, parse_expression, substitute, to_text
from mtbdd.language.syntax import Binary, Call, Conditional, Expression, LabelReference, Literal, Name, Unary
from tests.mtbdd.language.strategies import HERE, expressions


@pytest.mark.parametrize(
    ("text", "bracketed"),
    [
        ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
        ("a ? b ? c : d : e", "a ? (b ? c : d) : e"),
        ("a => b ? c : d", "(a => b) ? c : d"),
        ("a => b => c", "(a => b) => c"),
        ("a => b <=> c", "a => (b <=> c)"),
        ("a <=> b | c", "a <=> (b | c)"),
        ("a | b & c | d", "(a | (b & c)) | d"),
        ("!a & b", "(!a) & b"),
        ("!a = b", "!(a = b)"),
        ("!!a", "!(!a)"),
        ("a & !b | c", "(a & (!b)) | c"),
        ("a = b < c", "a = (b < c)"),
        ("a = b != c", "(a = b) != c"),
        ("a < b + c", "a < (b + c)"),
        ("a - b - c", "(a - b) - c"),
        ("a - b * c / d", "a - ((b * c) / d)"),
        ("-a * b", "(-a) * b"),
        ("a - -b", "a - (-b)"),
        ("a*-b+c", "(a * (-b)) + c"),
        ("- -a", "-(-a)"),
    ],
)
def test_parser_precedence(text: str, bracketed: str) -> None:
    assert parse_expression(text) == parse_expression(bracketed)
    assert parse_expression(text) == parse_expression(to_text(parse_expression(bracketed)))


def test_parser_precedence_shape() -> None:
    a, b, c = (Name(HERE, name) for name in "abc")
    assert parse_expression("a+b*c") == Binary(HERE, "+", a, Binary(HERE, "*", b, c))
    assert parse_expression("(a+b)*c") == Binary(HERE, "*", Binary(HERE, "+", a, b), c)
    assert parse_expression("!a=b") == Unary(HERE, "!", Binary(HERE, "=", a, b))
    assert parse_expression("a?b:c") == Conditional(HERE, a, b, c)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("17", 17),
        ("9223372036854775807", 2**63 - 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.5e-3", 0.0015),
        ("2E+2", 200.0),
        ("1e3", 1000.0),
        ("true", True),
        ("false", False),
    ],
)
def test_parser_literals(text: str, value: bool | int | float) -> None:
    literal = parse_expression(text)
    assert isinstance(literal, Literal)
    assert literal.value == value
    assert isinstance(literal.value, type(value))


def test_literals_of_different_types_differ() -> None:
    different = {Literal(HERE, True), Literal(HERE, 1), Literal(HERE, 1.0)}
    assert len(different) == 3
    assert Literal(HERE, 1) == Literal(HERE, 1)
    assert Literal(HERE, 1) != 1


def test_parser_calls_old_and_new() -> None:
    a, b = Name(HERE, "a"), Name(HERE, "b")
    assert parse_expression("min(a,b)") == Call(HERE, "min", (a, b))
    assert parse_expression("func(min, a, b)") == parse_expression("min(a, b)")
    assert parse_expression("func(mod, a, b)") == Call(HERE, "mod", (a, b))
    # Only min and max are reserved words: the other functions may be names as well.
    assert parse_expression("floor") == Name(HERE, "floor")


def test_parser_labels_and_comments() -> None:
    text = '"init" // the first state\n & x = 1'
    assert parse_expression(text) == Binary(
        HERE, "&", LabelReference(HERE, "init"), Binary(HERE, "=", Name(HERE, "x"), Literal(HERE, 1))
    )


def test_parser_positions() -> None:
    expression = parse_expression("a +\n  min(b,\n\t(3))", "f")
    assert isinstance(expression, Binary)
    call = expression.right
    assert isinstance(call, Call)
    positions = [expression.position, expression.left.position, call.position, call.arguments[1].position]
    assert [str(p) for p in positions] == ["f:1:1", "f:1:1", "f:2:3", "f:3:3"]


@given(expressions)
def test_text_parses_back(expression: Expression) -> None:
    assert parse_expression(to_text(expression)) == expression


@pytest.mark.parametrize(
    "text",
    [
        "a + b + c",
        "a - (b - c)",
        "a => b ? 1 : c ? 2 : 3",
        "(a ? b : c) + 1",
        "!(a & b) | !c",
        "(!a) = b",
        "-(a + b)*2/(c*d)",
        'max(a, b + 1, -c) >= 1.5 & "done"',
    ],
)
def test_text_has_no_needless_brackets(text: str) -> None:
    assert to_text(parse_expression(text)) == text


def test_text_of_negative_literals() -> None:
    product = Binary(HERE, "*", Literal(HERE, -2), Name(HERE, "x"))
    assert to_text(product) == "-2*x"
    assert to_text(Binary(HERE, "-", Name(HERE, "x"), Literal(HERE, -0.5))) == "x - -0.5"


def test_variables_of_an_expression() -> None:
    expression = parse_expression('min(x, y+1) > 0 ? !b : "l" & floor(z/2)=1')
    assert expression_variables(expression) == {"x", "y", "b", "z"}


def test_substitute_is_simultaneous() -> None:
    swapped = substitute(
        parse_expression("x - y*min(x, z)"), {"x": parse_expression("y"), "y": parse_expression("x+1")}
    )
    assert swapped == parse_expression("y - (x+1)*min(y, z)")


def test_substitute_shares_what_does_not_change() -> None:
    expression = parse_expression("(a + b) * (c ? d : -e)")
    assert substitute(expression, {"x": Name(HERE, "y")}) is expression


def test_long_chains_need_no_stack() -> None:
    for operator in "+&":
        text = operator.join(["x"] * 20_000)
        expression = parse_expression(text)
        assert expression_variables(expression) == {"x"}
        renamed = substitute(expression, {"x": Name(HERE, "y")})
        assert to_text(renamed).replace(" ", "") == text.replace("x", "y")


@pytest.mark.parametrize("opening", ["(", "-", "!", "min(1,", "x?", "floor("])
def test_deep_nesting_is_a_fault(opening: str) -> None:
    with pytest.raises(LanguageError, match="levels of nesting"):
        parse_expression(opening * 50_000)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a^b", "pow(a, b)"),
        ("2^3^2", "pow(2, pow(3, 2))"),
        ("-a^2", "-pow(a, 2)"),
        ("2^-1.0*3", "pow(2, -1.0)*3"),
        ("a*b^c/d", "a*pow(b, c)/d"),
        ("(a+b)^(c-1)", "pow(a+b, c-1)"),
        ("!x^2=4", "!(pow(x, 2)=4)"),
        ("a^b=c^d", "pow(a, b)=pow(c, d)"),
    ],
)
def test_powers_are_calls(text: str, same: str) -> None:
    assert parse_expression(text) == parse_expression(same)
