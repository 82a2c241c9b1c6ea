"""Numbers of written-out models as terminals: off by no more than is told, also where rows are divided."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hybrid.models.interchange.compressing.moves import terminals_of
from hybrid.models.interchange.explicit_model import ExplicitModel
from mtbdd.language.syntax import ModelType


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
