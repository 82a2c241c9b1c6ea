"""Distinct values gathered from samples are those of the whole array."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid.base import arrays as module
from hybrid.base.arrays import few_values


@pytest.mark.parametrize("few", [0, 3, 5000])
def test_every_element_stands_at_its_value(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(module, "_SAMPLE", 4)
    monkeypatch.setattr(module, "_CHUNK", 7)
    monkeypatch.setattr(module, "_FEW", few)
    for values in (
        rng.integers(0, 9, 100),
        np.repeat([5, 1, 9, -3], 25),  # new values appear late, below and between those known
        rng.choice([0.1, 0.3, -2.0], 50),
        np.zeros(0),
    ):
        found, places = few_values(values)
        np.testing.assert_array_equal(found, np.unique(values))
        np.testing.assert_array_equal(found[places], values)
