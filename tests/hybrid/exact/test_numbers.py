"""Doubles read as the rational numbers that they stand for."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.exact.numbers import read_number, simplest_between


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(-30, 30))
def test_simplest_between_has_the_least_denominator(numerator, denominator, offset):
    low = Fraction(numerator, denominator)
    high = low + Fraction(abs(offset), 997)
    found = simplest_between(low, high)
    assert low <= found <= high
    smaller = range(1, min(found.denominator, 60))
    assert not any(-(-low.numerator * d // low.denominator) <= high * d for d in smaller)


@given(st.integers(-(10**5), 10**5), st.integers(1, 10**4))
def test_quotients_are_read_as_what_was_divided(numerator, denominator):
    assert read_number(numerator / denominator) == Fraction(numerator, denominator)


@given(st.decimals(-1000, 1000, places=9))
def test_decimals_are_read_as_they_were_written(number):
    assert read_number(float(number)) == Fraction(number)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1 + 0.2, Fraction(3, 10)),
        (0.1 * 3, Fraction(3, 10)),
        (1 / 3 * 0.1, Fraction(1, 30)),
        (1 / 3 + 1 / 3 + 1 / 3, Fraction(1)),
        (1 - 2 / 3, Fraction(1, 3)),
        (0.123 * 0.456 * 0.789, Fraction("0.044253432")),
        (5e-7, Fraction(1, 2_000_000)),
        (1e-300, Fraction(1, 10**300)),
        (-0.25, Fraction(-1, 4)),
        (123456789.0, Fraction(123456789)),
        (0.66666666666667, Fraction("0.66666666666667")),
        (9.04054054054054, Fraction(669, 74)),
    ],
)
def test_numbers_that_lost_their_last_digits(value, expected):
    assert read_number(value) == expected


@pytest.mark.parametrize("value", [2**0.5, 3.141592653589793, 0.1234567890123456789, 1e-300 / 7])
def test_what_stands_for_nothing_simple_is_not_guessed(value):
    assert read_number(value) is None
