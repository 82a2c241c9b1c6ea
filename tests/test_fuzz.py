"""A few hundred cases of the fuzz test; `python -m tests.fuzz` runs more."""

from __future__ import annotations

import pytest

from tests import fuzz

_SEED = 20261122


@pytest.mark.parametrize("hundred", range(3))
def test_damaged_texts_are_built_or_refused(hundred: int) -> None:
    outcomes = {number: fuzz.run_case(_SEED, number) for number in range(100 * hundred, 100 * hundred + 100)}
    assert {k: o.result for k, o in outcomes.items() if not o.is_sound} == {}
    assert {o.result for o in outcomes.values()} >= {"built", "refused"}


def test_a_defect_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> object:
        raise IndexError("list index out of range")

    monkeypatch.setattr(fuzz, "parse_model", broken)
    outcome = fuzz.run_case(_SEED, 0)
    assert outcome.result == "IndexError: list index out of range" and not outcome.is_sound


def test_a_case_is_made_from_its_seed_and_number() -> None:
    assert fuzz.run_case(3, 5).text == fuzz.run_case(3, 5).text != fuzz.run_case(3, 6).text
