"""Gains by dictionary: every row has its gain and its factor, and many values stay what they are."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid.matrix.operators import hybrid_choices as module
from hybrid.matrix.operators.hybrid_choices import coded_gains


@pytest.mark.parametrize("values", [1, 5, 300])
@pytest.mark.parametrize("factors", [0, 1, 4])
def test_every_row_has_its_gain_and_factor(rng: np.random.Generator, values: int, factors: int) -> None:
    rows = 9000
    gain = rng.choice(np.append(rng.random(values), np.inf), rows)
    factor = rng.choice(rng.random(factors), rows) if factors else None
    codes, gains, found = coded_gains(gain, factor)
    met = len({*zip(gain, gain if factor is None else factor, strict=True)})
    if met > rows // 8:
        assert codes is None
        codes = np.arange(rows)
    else:
        assert codes is not None and len(gains) == met
        assert codes.dtype == (np.uint8 if met <= 256 else np.uint16)
    np.testing.assert_array_equal(gains[codes], gain)
    if factor is None:
        assert found.size == 0
    else:
        np.testing.assert_array_equal(found[codes], factor)


def test_pairs_may_be_too_many_where_gains_and_factors_are_few(rng: np.random.Generator) -> None:
    gain, factor = (rng.integers(0, 50, 2000).astype(float) for _ in range(2))
    codes, gains, factors = coded_gains(gain, factor)
    assert codes is None
    np.testing.assert_array_equal(gains, gain)
    np.testing.assert_array_equal(factors, factor)


@pytest.mark.parametrize("late", [False, True])
def test_many_values_have_no_dictionary(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    monkeypatch.setattr(module, "_SAMPLES", (8, 64))
    gain = rng.random(4000)
    if late:
        gain[:1000] = 0.5
    codes, gains, factors = coded_gains(gain, None)
    assert codes is None and factors.size == 0
    np.testing.assert_array_equal(gains, gain)


def test_no_rows_have_no_gains() -> None:
    codes, gains, factors = coded_gains(np.zeros(0), None)
    assert codes is not None and codes.size == gains.size == factors.size == 0
