"""Real numbers: rationals exactly, others enclosed."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtbdd.language import reals
from mtbdd.language.expression_parser import parse_expression
from mtbdd.language.reals import (
    Enclosure,
    Real,
    RealOverflowError,
    Rounded,
    UndecidedError,
    decimal_text,
    doubles_around,
    from_real,
    from_text,
    real_of,
)
from mtbdd.language.scalars import Folder
from mtbdd.language.syntax import Literal

fractions = st.fractions(min_value=-1000, max_value=1000, max_denominator=10**6)
positive = st.fractions(min_value=Fraction(1, 10**6), max_value=1000, max_denominator=10**6)


@st.composite
def numbers(draw: st.DrawFn) -> tuple[Real, Fraction]:
    """A number and one that it may be: itself, or a member of an enclosure."""
    value = draw(fractions)
    if draw(st.booleans()):
        return value, value
    below, above = draw(positive), draw(positive)
    return Enclosure(value - below, value + above), value


@given(numbers(), numbers())
def test_results_hold_the_numbers_they_stand_for(a: tuple[Real, Fraction], b: tuple[Real, Fraction]) -> None:
    (one, x), (other, y) = a, b
    cases = [(reals.add(one, other), x + y), (reals.multiply(one, other), x * y), (reals.negate(one), -x)]
    try:
        cases.append((reals.divide(one, other), x / y))
    except (ZeroDivisionError, UndecidedError):
        low, high = reals.bounds(other)
        assert low <= 0 <= high
    for found, exact in cases:
        low, high = reals.bounds(found)
        assert low <= exact <= high
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        assert [found for found, _ in cases] == [exact for _, exact in cases]


@given(numbers(), numbers(), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
def test_comparisons_are_decided_or_refused(
    a: tuple[Real, Fraction], b: tuple[Real, Fraction], operator: str
) -> None:
    (one, x), (other, y) = a, b
    expected = {"=": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[operator]
    try:
        assert reals.compare(operator, one, other) is expected
    except UndecidedError:
        (low, high), (least, most) = reals.bounds(one), reals.bounds(other)
        assert low <= most
        assert least <= high
        assert isinstance(one, Enclosure) or isinstance(other, Enclosure)


@given(positive, positive, st.fractions(min_value=-5, max_value=5, max_denominator=12))
def test_powers_and_logarithms_enclose(x: Fraction, y: Fraction, exponent: Fraction) -> None:
    """Raised to the denominator, the bounds of a root lie on both sides of the power."""
    low, high = reals.bounds(reals.power(x, exponent))
    p, q = exponent.numerator, exponent.denominator
    assert low**q <= x**p <= high**q
    assert high - low <= high * Fraction(1, 10**40)
    if y != 1:
        least, most = reals.bounds(reals.logarithm(x, y))
        estimate = math.log(x) / math.log(y)
        assert math.isclose(least, estimate, rel_tol=1e-9, abs_tol=1e-12)
        assert least <= most


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.3 - 0.2999999", Fraction(1, 10**7)),
        ("0.1 + 0.2 - 0.3", Fraction(0)),
        ("1/3*3", Fraction(1)),
        ("log(8, 2)", Fraction(3)),
        ("log(8, 4)", Fraction(3, 2)),
        ("log(0.001, 10)", Fraction(-3)),
        ("pow(4, 0.5)", Fraction(2)),
        ("pow(0.125, 2/3)", Fraction(1, 4)),
        ("pow(0.1, 400)", Fraction(1, 10**400)),
        ("1e-320 * 1e300 * 1e20", Fraction(1)),
        ("min(0.1, 1/10, 0.2)", Fraction(1, 10)),
        ("349807651257/310100", Fraction(349807651257, 310100)),
        ("9007199254740993 * 1.0", Fraction(2**53 + 1)),
    ],
)
def test_constants_are_folded_exactly(text: str, expected: Fraction) -> None:
    folded = Folder({}, {})(parse_expression(text))
    assert isinstance(folded, Literal)
    assert real_of(folded.value) == expected
    assert float(folded.value) == float(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("floor(log(8, 2))", 3),
        ("ceil(log(9, 2))", 4),
        ("floor(0.1*3/0.3)", 1),
        ("round(2.5)", 3),
        ("0.1*3 <= 0.3", True),
        ("0.1*3 < 0.3", False),
        ("0.9999999999999999 < 0.99999999999999995", True),
        ("pow(2, 0.5) * pow(2, 0.5) > 1.99999", True),
        ("9007199254740993 > 9007199254740992.0", True),
    ],
)
def test_constants_are_compared_exactly(text: str, expected: bool | int) -> None:
    folded = Folder({}, {})(parse_expression(text))
    assert isinstance(folded, Literal)
    assert folded.value == expected


def test_long_rationals_become_short_enclosures() -> None:
    found = reals.power(Fraction(99999, 100000), Fraction(10**9))
    assert isinstance(found, Enclosure)
    assert 0 < found.low < found.high
    assert found.high.denominator.bit_length() < 70_000
    assert math.isclose(
        math.log(found.low.denominator) - math.log(found.low.numerator), 10000.05, rel_tol=1e-5
    )
    third = reals.power(Fraction(1, 3), Fraction(5000))
    low, high = reals.bounds(third)
    assert low <= Fraction(1, 3**5000) <= high
    assert (high - low) * 2**400 < high
    with pytest.raises(RealOverflowError):
        reals.power(Fraction(10), Fraction(10**9))


@given(st.fractions())
def test_doubles_around_a_number(value: Fraction) -> None:
    low, high = doubles_around(from_real(value))
    assert Fraction(low) <= value <= Fraction(high)
    assert high in (low, math.nextafter(low, math.inf))
    assert (low == high) == (Fraction(low) == value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_shown_decimals_are_the_number(value: float) -> None:
    shown = decimal_text(value)
    assert Fraction(shown) == Fraction(value) or real_of(from_text(shown)) == Fraction(value)


def test_rounded_numbers_travel() -> None:
    number = from_text("0.1")
    assert isinstance(number, Rounded)
    copy = pickle.loads(pickle.dumps(number))
    assert (copy, real_of(copy)) == (0.1, Fraction(1, 10))
    assert repr(number) == "0.1"


@pytest.mark.parametrize("text", ["1e999", "0." + "1" * 1001, "1e-10001", "1e-" + "9" * 18])
def test_decimals_have_limits(text: str) -> None:
    with pytest.raises(ValueError, match=r"a (number|decimal)"):
        from_text(text)
