"""The oracle of the attack against Storm's exact engine, where stormpy is installed."""

from __future__ import annotations

import pytest

from tests.attack.storm import compare_case

CASES = 40


@pytest.mark.slow
@pytest.mark.parametrize("averages", [False, True], ids=["all", "averages"])
@pytest.mark.parametrize("first", range(0, CASES, 10))
def test_oracle_agrees_with_storm(first: int, averages: bool) -> None:
    pytest.importorskip("stormpy", reason="stormpy is not installed")
    numbers = range(first, first + 10)
    found = [entry for number in numbers for entry in compare_case(3, number, averages=averages)]
    assert any(verdict == "same" for _, verdict, _ in found)
    assert not [entry for entry in found if entry[1] == "different"]
