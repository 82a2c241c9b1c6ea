"""What is known of the error of a listed model's entries, against rational numbers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hybrid.models.interchange import ExplicitModel
from hybrid.models.interchange.compressing import with_loops
from hybrid.models.interchange.compressing.moves import terminals_of
from hybrid.models.interchange.explicit_model import validate
from mtbdd.language.syntax import ModelType
from tests.builders.explicit_models import random_explicit_model

UNIT = Fraction(1, 2**53)


def _exact(given: ExplicitModel) -> list[Fraction]:
    """Every entry, in a row of probabilities divided by the row's sum."""
    values = [Fraction(v) for v in given.values.tolist()]
    if given.type is ModelType.CTMC:
        return values
    found = []
    for begin, end in zip(given.row_starts[:-1].tolist(), given.row_starts[1:].tolist(), strict=True):
        total = sum(values[begin:end], Fraction(0))
        found += [value / total for value in values[begin:end]]
    return found


@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
def test_entries_lie_within_their_units(kind: str) -> None:
    for number in range(60):
        rng = np.random.default_rng([912, number])
        given, _ = with_loops(validate(random_explicit_model(rng, kind)))
        if number % 3 == 1 and kind != "ctmc":
            # Rounded decimals: rows that are off by up to 1e-5.
            off = replace(given, values=np.round(given.values, 6))
            if bool((off.values > 0).all()):
                given = off
        elif number % 3 == 2:
            given = replace(
                given, values=given.values * (1 + rng.integers(-2, 3, given.n_entries) * 2.0**-52)
            )
        numbers, terminals, units = terminals_of(given)
        found = [Fraction(v) for v in terminals[numbers].tolist()]
        for value, exact in zip(found, _exact(given), strict=True):
            assert abs(value - exact) <= Fraction(units) * UNIT * exact


def test_rows_of_halves_are_exact() -> None:
    given = ExplicitModel(
        ModelType.DTMC, 2, np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([0.5, 0.5, 1.0]),
        np.array([True, False]),
    )  # fmt: skip
    numbers, terminals, units = terminals_of(given)
    assert units == 0.0
    assert terminals[numbers].tolist() == [0.5, 0.5, 1.0]
    # Three tenths and seven tenths add up to 1 in doubles, but their doubles do not.
    rounded = replace(given, values=np.array([0.1 + 0.2, 0.7, 1.0]))
    assert rounded.row_sums.tolist() == [1.0, 1.0]
    assert terminals_of(rounded)[2] > 0.0


def test_values_that_are_united_are_off_by_their_distance() -> None:
    rates = np.array([0.1, 0.1 + 3 * np.spacing(0.1), 0.7])
    given = ExplicitModel(
        ModelType.CTMC, 3, np.arange(4), np.array([1, 2, 0]), rates, np.array([True, False, False])
    )
    numbers, terminals, units = terminals_of(given)
    found = terminals[numbers].tolist()
    assert found[0] == found[1]
    for value, rate in zip(found, rates.tolist(), strict=True):
        assert abs(Fraction(value) - Fraction(rate)) <= Fraction(units) * UNIT * Fraction(rate)


@pytest.mark.parametrize("units", [0.0, 2.0**10, 2.0**30])
@pytest.mark.parametrize("weights", [(1, 2, 97), (1, 1), (3, 4, 5, 6), (1, 999)])
def test_rows_are_off_by_no_more_than_is_told(weights: tuple[int, ...], units: float) -> None:
    exact = [Fraction(weight, sum(weights)) for weight in weights]
    # The first is too small, the others are too great: their sum moves the first one further down.
    off = [Fraction(-units if k == 0 else units) / 2**53 for k in range(len(weights))]
    values = np.array([float(e * (1 + d)) for e, d in zip(exact, off, strict=True)])
    n = len(weights)
    rows = np.append(np.arange(1), np.full(n, n))
    model = ExplicitModel(
        ModelType.DTMC,
        n,
        rows,
        np.arange(n),
        values,
        np.ones(n, dtype=np.bool_),
        None,
        value_units=units + 1.0,
    )
    numbers, terminals, told = terminals_of(model)
    for place, number in enumerate(exact):
        found = Fraction(float(terminals[numbers[place]]))
        assert abs(found - number) <= Fraction(told) / 2**53 * number
