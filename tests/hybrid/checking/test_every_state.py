"""Values of all states: held or found again, of filters those of the formula inside, bounds or none."""

from __future__ import annotations

import numpy as np
import pytest

import hybrid
from hybrid.checking import checker
from hybrid.checking import formulas as operators

LINE = """
dtmc
module m
  x : [0..4];
  [] x < 4 & x > 0 -> 0.5 : (x' = x + 1) + 0.5 : (x' = x - 1);
  [] x = 0 | x = 4 -> true;
endmodule
init true endinit
"""
WALK = [0.0, 0.25, 0.5, 0.75, 1.0]


@pytest.fixture
def model() -> hybrid.Model:
    return hybrid.parse(LINE)


@pytest.mark.parametrize("kept", [0, 5])
def test_values_are_held_or_found_again(
    model: hybrid.Model, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operators, "KEPT", kept)
    again = []
    found = checker._every_state
    monkeypatch.setattr(checker, "_every_state", lambda *given: again.append(given) or found(*given))
    answer = hybrid.check(model, "P=? [ F x=4 ]")
    for _ in range(2):
        np.testing.assert_allclose(answer.values, WALK, atol=1e-7)
        assert (answer.lower_values <= WALK).all() and (answer.upper_values >= WALK).all()
    assert len(again) == (0 if kept else 1)
    held = hybrid.check(model, "P=? [ F x=4 ]", values=True)
    np.testing.assert_array_equal(held.values, answer.values)
    assert len(again) == (0 if kept else 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("filter(max, P=? [ F x=4 ], x<3)", WALK),
        ("filter(print, P=? [ F x=4 ], x=1)", WALK),
        ("1 - P=? [ F x=4 ]", WALK[::-1]),
        ("x * 2", [0, 2, 4, 6, 8]),
        ("P>=0.4 [ F x=4 ]", [False, False, True, True, True]),
        ("P>=0.4 [ F x=4 ] & x<4", [False, False, True, True, False]),
        ("x>2", [False, False, False, True, True]),
        ("filter(forall, P>=0.4 [ F x=4 ], x=1)", [False, False, True, True, True]),
    ],
)
def test_the_formula_in_all_states(model: hybrid.Model, text: str, expected: list[float]) -> None:
    answer = hybrid.check(model, text)
    np.testing.assert_allclose(answer.values, expected, atol=1e-7)
    assert answer.values.dtype == np.asarray(expected[:1] if isinstance(expected[0], bool) else [0.0]).dtype
    assert (answer.lower_values <= answer.values).all() and (answer.values <= answer.upper_values).all()


def test_estimates_have_no_bounds(model: hybrid.Model) -> None:
    answer = hybrid.check(model, "P=? [ F x=4 ]", method="jacobi")
    inside = slice(1, 4)
    assert np.isnan(answer.lower_values[inside]).all() and np.isnan(answer.upper_values[inside]).all()
    truth = hybrid.check(model, "P>=0.4 [ F x=4 ]", method="jacobi")
    assert truth.values.tolist() == [False, False, True, True, True]
    assert not truth.lower_values[inside].any() and truth.upper_values[inside].all()
    nested = hybrid.check(model, "P=? [ X P>=0.4 [ F x=4 ] ]", method="jacobi")
    assert np.isnan(nested.lower_values).all()


def test_values_that_are_missing(model: hybrid.Model) -> None:
    quotient = hybrid.check(model, "filter(max, P=? [ F x=4 ] / x, x>0)")
    assert quotient.value == pytest.approx(0.25)
    np.testing.assert_allclose(quotient.values, [np.nan, 0.25, 0.25, 0.25, 0.25], atol=1e-7)
    with pytest.raises(hybrid.HybridError, match="x=0"):
        hybrid.check(model, "filter(max, mod(5, x), x>0)").values  # noqa: B018
    unanswered = hybrid.check(model, "T=? [ G x=4 ]", throw=False)
    with pytest.raises(hybrid.HybridError):
        unanswered.values  # noqa: B018


def test_values_belong_to_the_answer(model: hybrid.Model) -> None:
    answer = hybrid.check(model, "P=? [ F x=4 ]")
    with pytest.raises(ValueError, match="read-only"):
        answer.values[0] = 1.0


def test_a_listing_is_a_sequence(model: hybrid.Model) -> None:
    listing = hybrid.check(model, "filter(print, P=? [ F x=4 ])").listing
    assert [name for name, _ in listing] == [f"(x={k})" for k in (1, 2, 3, 4)]
    assert listing[-1] == ("(x=4)", 1.0) == listing[3]
    assert list(listing[1:3]) == list(listing)[1:3]
    with pytest.raises(IndexError, match="below 4"):
        listing[4]
    assert "4 states" in repr(listing)


def test_a_record_has_the_listing(model: hybrid.Model) -> None:
    answer = hybrid.check(model, "filter(argmax, P=? [ F x=4 ])")
    assert answer.record()["listing"] == [{"state": {"x": 4}, "value": 1.0, "lower": 1.0, "upper": 1.0}]
    assert "listing" not in answer.record(listing=False)
    assert "listing" not in hybrid.check(model, "P=? [ F x=4 ]").record()
