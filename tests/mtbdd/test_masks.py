"""Questions to masks, answered by the least and the greatest byte."""

from __future__ import annotations

import numpy as np
import pytest

from mtbdd.offset import states as masks
from mtbdd.offset.states import all_finite, is_all, is_any


@pytest.mark.parametrize("values", [[], [True], [False], [True, False], [False, True, True], [False, False]])
def test_agree_with_numpy(values: list[bool]) -> None:
    mask = np.array(values, dtype=np.bool_)
    assert is_all(mask) is bool(mask.all())
    assert is_any(mask) is bool(mask.any())


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_finds_what_is_not_finite_in_any_part(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "_PART", 3)
    vector = np.arange(8.0)
    assert all_finite(np, vector) and all_finite(np, vector[:0])
    for place in range(8):
        lost = vector.copy()
        lost[place] = wrong
        assert not all_finite(np, lost)
