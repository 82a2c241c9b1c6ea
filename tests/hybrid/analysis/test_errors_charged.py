"""Each error that an analysis charges, alone: it happens or is made to, and bounds allow for it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.analysis import long_run, systems, transient
from hybrid.analysis.choice_systems import _digits_lost
from hybrid.analysis.long_run import _apart_from_zero, _Flow
from hybrid.analysis.reward_bounded import BudgetSystem, FlowBuilder
from hybrid.analysis.rewards import reward_units
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.transient import TransientAnalysis
from hybrid.matrix.operators.rounding import Discount
from hybrid.matrix.space.bounded_solution import TINY, UNIT
from hybrid.models.interchange import ExplicitModel, ExplicitReward
from hybrid.models.interchange.compressing import compressed
from mtbdd.build.model import SymbolicModel
from mtbdd.build.reward_split import split_by_reward
from mtbdd.graph.prob01 import bottom_components
from mtbdd.language.syntax import ModelType
from mtbdd.offset.states import index_states
from tests.builders.models import build

UNITS = 2.0**24
SHARE = UNITS * UNIT

COIN = """
{kind}
module m
  s : [0..2];
  [] s=0 -> 0.25:(s'=0) + 0.5:(s'=1) + 0.25:(s'=2);
  [] s=1 -> 0.5:(s'=0) + 0.5:(s'=2);
  [] s=2 -> true;
endmodule
rewards "r" s<2 : 1; endrewards
rewards "moves" [] s=0 : 1; endrewards
"""


def coin(kind: str) -> SymbolicModel:
    return build(COIN.format(kind=kind))


def listed(kind: str, units: float = 0.0) -> SymbolicModel:
    """The coin state by state, entries off by a unit: no exact answer takes the place of wide bounds."""
    n = 3
    return compressed(
        ExplicitModel(
            ModelType[kind],
            n,
            np.array([0, 3, 5, 6]),
            np.array([0, 1, 2, 0, 2, 2]),
            np.array([0.25, 0.5, 0.25, 0.5, 0.5, 1.0]),
            np.arange(n) == 0,
            np.arange(n + 1) if kind == "MDP" else None,
            labels={"a": np.arange(n) == 1, "b": np.arange(n) == 2},
            rewards=(ExplicitReward("r", states=np.array([1.0, 1.0, 0.0]), units=units),),
            value_units=1.0,
        )
    )


def check(model: SymbolicModel, question: str, **options: Any) -> hybrid.Answer:
    return hybrid.check(model, question, backend="cpu", epsilon=1e-12, **options)


def width(answer: hybrid.Answer) -> float:
    assert answer.lower is not None and answer.upper is not None
    return answer.upper - answer.lower


# ------------------------------------------------------------------ entries, rewards, discounts


def test_budgets_are_charged_with_the_errors_of_exit_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    model = coin("ctmc")
    monkeypatch.setattr(SymbolicModel, "exit_units", property(lambda _: UNITS))
    (target,) = bottom_components(model)
    options = CheckOptions.of(backend="cpu")
    found = BudgetSystem(model, split_by_reward(model, 1), model.reachable, target, True, options)
    assert found.slack >= SHARE


def test_rewards_of_choices_are_off_by_their_units() -> None:
    model = listed("MDP", UNITS)
    assert reward_units(model, 0) >= UNITS
    for question in ("C<=3", "I=1"):
        assert width(check(model, f'R{{"r"}}max=? [ {question} ]', scheduler=True)) >= SHARE / 2


@pytest.mark.parametrize(("kind", "question"), [("DTMC", "=?"), ("MDP", "max=?")])
def test_discounts_are_charged_with_their_errors(
    kind: str, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Discount.of
    monkeypatch.setattr(Discount, "of", staticmethod(lambda value: replace(own(value), units=UNITS)))
    assert width(check(listed(kind), f'R{{"r",discount=0.5}}{question} [ C ]')) >= SHARE


def test_systems_are_charged_with_shared_blocks_of_their_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    own = systems.leaving_rates

    def shared(*arguments: Any) -> Any:
        rates, units = own(*arguments)
        return rates, units + UNITS

    model, question = listed("DTMC"), 'P=? [ !"b" U "a" ]'
    assert width(check(model, question)) < 1e-11
    monkeypatch.setattr(systems, "leaving_rates", shared)
    assert width(check(model, question)) >= SHARE / 2


def test_written_digits_that_are_lost_are_counted() -> None:
    for power in (1000, 1021, 1022, 1030, 1050, 1070):
        for part in (Fraction(4, 3), Fraction(8, 7), Fraction(9, 7)):
            exact = part / 2**power
            written = float(exact)
            lost = abs(Fraction(written) - exact) / exact
            assert lost <= (Fraction(_digits_lost(written)) + Fraction(UNIT)) * (1 + Fraction(1, 4))
    assert _digits_lost(0.0) == np.inf


@pytest.mark.parametrize("off", [0.0, 1e-9])
def test_rows_that_do_not_add_up_to_one_are_divided_by_their_sums(
    off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = coin("dtmc")
    unknown, none = index_states(model.manager, model.reachable), model.manager.false
    monkeypatch.setattr(SymbolicModel, "exit_rates", lambda _, rows: np.full(rows.size, 1.0 + off))
    (factor,) = FlowBuilder(model, unknown, none, CheckOptions.of(backend="cpu")).factors()
    assert (factor is None) == (off == 0.0)


def test_steps_of_a_process_may_underflow() -> None:
    text = """
    mdp
    module m s : [0..3];
      [] s=0 -> 1e-200:(s'=1) + 1-1e-200:(s'=3);
      [] s=1 -> 1e-200:(s'=2) + 1-1e-200:(s'=3);
      [] s>1 -> true;
    endmodule
    """
    answer = check(build(text), "Pmax=? [ F<=2 s=2 ]")
    assert answer.lower == 0.0 < answer.upper < 1e-290


# ------------------------------------------------------------------ averages of several classes


def falling(first: float, second: float) -> tuple[SymbolicModel, _Flow]:
    """A state that leaves for two others, and its ways into them."""
    model = build(
        f"ctmc module m s:[0..2]; [] s=0 -> {first!r}:(s'=1) + {second!r}:(s'=2); [] s>0 -> true; endmodule"
        "\nrewards s=1 : 1e-300; s=2 : 2e-300; endrewards"
    )
    bottom = model.manager.disjunction(bottom_components(model))
    maybe = index_states(model.manager, model.reachable & ~bottom)
    entered = index_states(model.manager, bottom)
    return model, _Flow(model, maybe, entered, CheckOptions.of(backend="cpu"))


def test_averages_are_far_from_underflow_only_with_what_they_are_weighed_with() -> None:
    _, flow = falling(1e-4, 1.0)
    assert flow.is_far(np.array([1.0, 1.0]))
    assert not flow.is_far(np.array([1e-300, 1.0]))
    assert not flow.is_far(np.array([1e-290, 0.0]))
    assert flow.is_far(np.array([0.0, 0.0]))


def test_weighed_averages_that_underflow_lie_between_those_told() -> None:
    for rate in (1.7e-30, 3.3e-31, 5.1e-32):
        _, flow = falling(rate, 1.0)
        for weight in (TINY, 1.3 * TINY):
            low, high = (float(flow.of(np.array([weight, 0.0]), up)[0]) for up in (False, True))
            assert Fraction(low) <= Fraction(rate) * Fraction(weight) <= Fraction(high)
            assert low < high < 1e-300


def test_numbers_next_to_underflow_are_rounded_one_way() -> None:
    numbers = np.array([0.0, 1e-300, TINY, 1.0])
    np.testing.assert_array_equal(_apart_from_zero(numbers, True), [0.0, TINY, TINY, 1.0])
    np.testing.assert_array_equal(_apart_from_zero(numbers, False), [0.0, 0.0, TINY, 1.0])


def test_averages_are_bounded_by_no_less_than_what_they_are_raised_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, met = long_run.solve_linear, []

    def noted(*arguments: Any) -> Any:
        met.append(arguments[3])
        return own(*arguments)

    monkeypatch.setattr(long_run, "solve_linear", noted)
    model, _ = falling(0.5, 1.0)
    answer = check(model, "R=? [ S ]")
    assert met and min(met) >= TINY
    assert answer.lower <= 5e-300 / 3 <= answer.upper


# ------------------------------------------------------------------ lengths of time


@pytest.mark.parametrize("question", ["P=? [ F<=2 s=2 ]", 'R{"r"}=? [ C<=2 ]'])
def test_weights_that_are_off_cost_their_slack(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own, model = transient.poisson_weights, coin("ctmc")

    def off(mean: float) -> Any:
        exact = own(mean)
        return replace(exact, weights=exact.weights * (1.0 + 1e-9), slack=1.01e-9)

    exact = check(model, question)
    monkeypatch.setattr(transient, "poisson_weights", off)
    found = check(model, question)
    assert width(exact) < 1e-11
    assert abs(found.value - exact.value) > 1e-11
    assert found.lower <= exact.lower <= exact.upper <= found.upper


def test_steps_left_out_cost_as_long_as_the_time_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    own = TransientAnalysis._weighted

    def left_out(*arguments: Any) -> Any:
        result, course, greatest = own(*arguments)
        course.left_out += 1e-3
        return result, course, greatest

    monkeypatch.setattr(TransientAnalysis, "_weighted", left_out)
    answer = check(coin("ctmc"), 'R{"r"}=? [ C<=4 ]')
    assert answer.upper - answer.value >= 3.99e-3


def test_what_is_earned_at_rest_is_off_by_the_rounding_of_a_product() -> None:
    model = build("ctmc module m s:[0..1]; [] s=1 -> true; endmodule\nrewards true : 3; endrewards")
    for time in ("0.1", "0.3", "0.7", "1.1", "2.3"):
        answer = check(model, f"R=? [ C<={time} ]")
        assert Fraction(answer.lower) <= 3 * Fraction(time) <= Fraction(answer.upper)
