"""Sorted values are those of NumPy, which loads masked arrays for them."""

from __future__ import annotations

import numpy as np
import pytest

from mtbdd.base.sorting import sorted_values


@pytest.mark.parametrize("values", [[], [3, 1, 3, 2], [0.5, np.nan, -0.0, np.nan, 0.0], [True, False, True]])
def test_values_are_those_of_unique(values: list[float]) -> None:
    array = np.array(values)
    found = sorted_values(array)
    np.testing.assert_array_equal(found, np.unique(array))
    assert found.dtype == array.dtype
