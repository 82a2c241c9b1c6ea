"""What speaks of the states that blocks are made of is refused by name, with what to do instead."""

from __future__ import annotations

import pytest

import hybrid
from hybrid.base.errors import OptionError, UnsupportedError
from mtbdd.base.budget import Budget, BudgetError, spending

TWINS = """dtmc
module m
  x : [0..4] init 0;
  [] x=0 -> 0.25:(x'=1) + 0.25:(x'=2) + 0.5:(x'=3);
  [] x=1 -> 0.5:(x'=3) + 0.5:(x'=4);
  [] x=2 -> 0.5:(x'=3) + 0.5:(x'=4);
  [] x>2 -> true;
endmodule
label "goal" = x=3;
rewards "steps" x<3 : 1; endrewards
"""


@pytest.fixture
def twins() -> hybrid.Model:
    return hybrid.parse(TWINS)


@pytest.mark.parametrize(
    "operator", ["count", "sum", "avg", "first", "argmin", "argmax", "print", "printall"]
)
def test_filters_that_speak_of_states_are_refused(twins: hybrid.Model, operator: str) -> None:
    operand = '"goal"' if operator == "count" else 'P=? [ F "goal" ]'
    prop = f"filter({operator}, {operand}, x<3)"
    assert hybrid.check(twins, prop, throw=False).error is None
    with pytest.raises(UnsupportedError, match=rf"filter\({operator}, .*leave bisimulation out"):
        hybrid.check(twins, prop, bisimulation=True)


def test_filters_that_speak_of_states_are_refused_inside_of_others(twins: hybrid.Model) -> None:
    prop = 'P=? [ F (P>=0.5 [ X "goal" ] & filter(count, "goal", true)>0) ]'
    with pytest.raises(UnsupportedError, match="count"):
        hybrid.check(twins, prop, bisimulation=True)


def test_filter_state_wants_one_state(twins: hybrid.Model) -> None:
    answer = hybrid.check(twins, 'filter(state, P=? [ F "goal" ], x=1)', bisimulation=True)
    assert answer.value == pytest.approx(0.5)
    for states in ("x=1|x=2", "P>=0.75 [ X x>2 ]"):
        with pytest.raises(UnsupportedError, match=r"filter\(state, .*one state satisfies"):
            hybrid.check(twins, f'filter(state, P=? [ F "goal" ], {states})', bisimulation=True)


def test_numbers_that_depend_on_variables_are_refused(twins: hybrid.Model) -> None:
    for prop in ('P=? [ F "goal" ] + x', "x + 1", "filter(max, 2*x)"):
        with pytest.raises(UnsupportedError, match=r"the number .*x.* depends on the state"):
            hybrid.check(twins, prop, bisimulation=True)


def test_a_refusal_hides_no_other_answer(twins: hybrid.Model) -> None:
    text = 'x + 1; P=? [ F "goal" ]; P=? [ F "nowhere" ]; filter(max, R=? [ F x>2 ]);'
    first, second, third, last = hybrid.check_all(twins, text, bisimulation=True)
    assert first.error is not None and first.reduction is None
    assert second.value == pytest.approx(0.75)
    assert third.error is not None and "nowhere" in third.error
    assert last.value == pytest.approx(1.5)


@pytest.mark.parametrize("option", ["scheduler", "witness", "exact"])
def test_options_that_speak_of_states_are_refused(twins: hybrid.Model, option: str) -> None:
    with pytest.raises(OptionError, match=f"bisimulation: .*leave it or {option} out"):
        hybrid.check(twins, 'P=? [ F "goal" ]', bisimulation=True, **{option: True})


def test_parts_of_a_model_are_refused(twins: hybrid.Model) -> None:
    with pytest.raises(OptionError, match="bisimulation: .*processes"):
        hybrid.check(twins, 'P=? [ F "goal" ]', bisimulation=True, ranks=2)


def test_a_list_that_does_not_fit_is_refused_before_it_is_made(
    twins: hybrid.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtbdd.base.memory._SMALL", 0)
    monkeypatch.setattr("mtbdd.base.memory.free_memory_bytes", lambda *_: 100)
    with pytest.raises(MemoryError, match=r"list of 9 transitions.*check without the quotient"):
        hybrid.check(twins, 'P=? [ F "goal" ]', bisimulation=True)


def test_refinement_ends_when_the_time_is_spent(twins: hybrid.Model) -> None:
    with spending(Budget.of(1e-9, None)), pytest.raises(BudgetError):
        hybrid.check(twins, 'P=? [ F "goal" ]', bisimulation=True)


def test_a_comparison_that_rounding_leaves_open_is_decided_on_the_model(twins: hybrid.Model) -> None:
    answer = hybrid.check(twins, 'P>=0.75 [ F "goal" ]', bisimulation=True)
    assert answer.value is True
    assert answer.reduction is not None and answer.reduction.block_transitions is None


def test_deep_formulas_are_refused_or_answered(twins: hybrid.Model) -> None:
    chain = " | ".join(["x=3"] * 5000)
    assert hybrid.check(twins, f"P=? [ F {chain} ]", bisimulation=True).value == pytest.approx(0.75)
