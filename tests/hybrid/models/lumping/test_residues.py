"""Numbers that add up exactly: simplest fractions, and what they are modulo a prime."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.base.errors import UnsupportedError
from hybrid.models.lumping.partition import PRIME, meant_by, residues, simplest_between


@given(st.fractions(min_value=Fraction(1, 50), max_value=50, max_denominator=60), st.integers(0, 60))
def test_simplest_between_is_the_fraction_of_the_least_denominator(low: Fraction, parts: int) -> None:
    high = low + Fraction(parts, 100)
    found = simplest_between(low, high)
    assert low <= found <= high
    least = next(q for q in range(1, 101) if -(-low.numerator * q // low.denominator) <= high * q)
    assert found.denominator == least


@pytest.mark.parametrize(
    ("value", "meant"),
    [(0.1, Fraction(1, 10)), (1 / 3, Fraction(1, 3)), (-2.5e-7, Fraction(-1, 4_000_000)), (0.0, Fraction(0))],
)
def test_meant_by_a_double_is_the_fraction_that_people_write(value: float, meant: Fraction) -> None:
    assert meant_by(value, 1.0) == meant


@pytest.mark.parametrize("units", [1.0, 5.0, 2.0**20])
def test_meant_by_a_double_is_within_its_error(units: float, rng: np.random.Generator) -> None:
    for value in [0.1 * (1 + 2.0**-45), *rng.random(20).tolist(), *(-rng.random(20)).tolist()]:
        exact = Fraction(value)
        assert abs(meant_by(value, units) - exact) <= abs(exact) * Fraction(units) / 2**53
    assert meant_by(0.1 * (1 + 2.0**-45), 5.0) != Fraction(1, 10)


def test_meant_by_an_exact_double_is_that_double() -> None:
    assert meant_by(0.1, 0.0) == Fraction(0.1)


def test_residues_of_tenths_add_up_as_tenths_do() -> None:
    one, two, three = residues(np.array([0.1, 0.2, 0.3]), 1.0).tolist()
    assert 0.1 + 0.2 != 0.3
    assert (one + two) % PRIME == three
    one, two, three = residues(np.array([0.1, 0.2, 0.3]), 0.0).tolist()
    assert (one + two) % PRIME != three


def test_residues_of_many_numbers_are_those_of_their_doubles(rng: np.random.Generator) -> None:
    values = np.append(np.unique(rng.random(20_001)), 0.1)
    found = residues(values, 4.0)
    exact = Fraction(0.1)
    assert int(found[-1]) * exact.denominator % PRIME == exact.numerator % PRIME


def test_residues_refuse_what_is_not_finite() -> None:
    with pytest.raises(UnsupportedError, match="finite"):
        residues(np.array([1.0, np.inf]), 1.0)
