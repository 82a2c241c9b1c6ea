"""Quantiles of a bound on a reward, against budgets unfolded by definition."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hybrid
from hybrid.base.errors import HybridError
from mtbdd.build.reward_split import split_by_reward
from tests.builders.chain_texts import FALLING_WALK
from tests.builders.models import build
from tests.builders.random_budgets import DrawnRewards
from tests.exploring import rounds
from tests.oracles.budgets import bounded_until

ON_THE_HOST: list[dict[str, object]] = [
    {"backend": "cpu"},
    {"backend": "reference", "level": 0},
    {"engine": "explicit", "backend": "cpu"},
]
ON_A_DEVICE: list[dict[str, object]] = [
    {"backend": "gpu"},
]
_LAST = 25


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param(kind, options, marks=marks)
        for k, kind in enumerate(["dtmc", "mdp"])
        for found, marks in ((ON_THE_HOST[k::2], ()), (ON_A_DEVICE, pytest.mark.gpu))
        for options in found
    ],
    ids=str,
)
def test_random_models(kind: str, options: dict[str, object], rng: np.random.Generator) -> None:
    answered = 0
    for number in range(rounds(12)):
        unit = (Fraction(1), Fraction(3, 2))[number % 2]
        drawn = DrawnRewards(rng, kind, unit, initial=0)
        model, own = hybrid.parse(drawn.text), split_by_reward(build(drawn.text), 0).unit
        every, target = set(range(drawn.n)), {drawn.n - 1}
        goal = f"s={drawn.n - 1}"
        for optimum in ("",) if kind == "dtmc" else ("min", "max"):
            exact = [v[0] for v in bounded_until(drawn.choices, every, target, _LAST, optimum != "min")]
            threshold = Fraction(int(rng.integers(1, 1000)), 1009)
            asked = f'F{{"r"}}<=B {goal}'
            least = hybrid.check(
                model, f"quantile(B, P{optimum}>={threshold} [ {asked} ])", throw=False, **options
            )
            most = hybrid.check(
                model, f"quantile(max B, P{optimum}<{threshold} [ {asked} ])", throw=False, **options
            )
            turned = {"": "", "min": "max", "max": "min"}[optimum]
            kept = f'quantile(max B, P{turned}>{1 - threshold} [ G{{"r"}}<=B !({goal}) ])'
            dual = hybrid.check(model, kept, throw=False, **options)
            first = next((k for k, v in enumerate(exact) if v >= threshold), None)
            if first is not None:
                assert least.value == float(first * unit) and least.lower == least.upper == least.value
                answered += 1
                for answer in (most, dual):
                    if first == 0:
                        assert answer.error is not None and "no bound will do" in answer.error
                    else:
                        # The greatest multiple of what all rewards are multiples of.
                        assert answer.value == float(first * unit - own)
            elif least.error is None:
                # Later than the oracle looked, or never.
                step = 0 if least.value == math.inf else own
                assert least.value > _LAST * unit and most.value == least.value - step
    assert answered


WALK = (
    FALLING_WALK
    + """rewards "steps" s<2 : 1; endrewards
rewards "seldom" s=3 : 1; endrewards
"""
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('quantile(min B, P>0.2 [ F{"steps"}<=B s=2 ])', 2),
        ('quantile(B, P>=0.26 [ F{"steps"}<=B s=2 ])', 3),
        ('quantile(B, P>=0.26 [ F{rew{"steps"}<=B} s=2 ])', 3),
        ('quantile(B, P>=0.25 [ F{"steps"}<=B s=2 ])', 2),
        ('quantile(B, P>0.25 [ F{"steps"}<=B s=2 ])', 3),
        ('quantile(max B, P>=0.625 [ G{"steps"}<=B s!=2 ])', 3),
        ('quantile(max B, P>0.625 [ G{"steps"}<=B s!=2 ])', 2),
        ('quantile(B, P>0 [ s<2 U{"steps"}<=B s=2 ])', 2),
        ('quantile(B, P>=0 [ F{"steps"}<=B s=2 ])', 0),
        ('quantile(B, P>=1 [ F{"steps"}<=B s=2 | s=3 ])', math.inf),
        ('quantile(B, P>=0.4445 [ F{"steps"}<=B s=2 ])', math.inf),
        ('quantile(B, P>=0.4 [ F{"seldom"}<=B s=2 ])', 0),
        ('quantile(B, P>=0.5 [ F{"seldom"}<=B s=2 ])', math.inf),
        ('quantile(max B, P<0.3 [ F{"steps"}<=B s=2 ])', 2),
        ('quantile(max B, P<0.5 [ F{"steps"}<=B s=2 ])', math.inf),
        ('quantile(max B, P>0.7 [ G{"steps"}<=B s!=2 ])', 2),
    ],
)
def test_answers_by_hand(text: str, value: float) -> None:
    answer = hybrid.check(hybrid.parse(WALK), text, backend="cpu")
    assert answer.value == answer.lower == answer.upper == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('quantile(max B, P<=0 [ F{"steps"}<=B s<2 ])', "no bound will do, not even 0"),
        ('quantile(max B, P>0.2 [ F{"steps"}<=B s=2 ])', "ask with min"),
        ('quantile(min B, P<0.2 [ F{"steps"}<=B s=2 ])', "ask with max"),
        ('quantile(min B, P=? [ F{"steps"}<=B s=2 ])', "needs a bound on the probability"),
        ('quantile(min B, P>0.2 [ F{"steps"}<=3 s=2 ])', "whose bound on a reward is the one asked for"),
        ("quantile(min B, P>0.2 [ F<=3 s=2 ])", "whose bound on a reward is the one asked for"),
        ("quantile(min B, s=2)", "whose bound on a reward is the one asked for"),
        ('quantile(min B, P>0.2 [ F{"steps"}<=B (X s=2) ])', "one path operator over state formulas"),
        ('1 + quantile(min B, P>0.2 [ F{"steps"}<=B s=2 ])', "stands alone"),
        ('filter(max, quantile(min B, P>0.2 [ F{"steps"}<=B s=2 ]))', "stands alone"),
        ('quantile(min B, P>0.2 [ F{"steps"}<=B+1 s=2 ])', "unknown name 'B'"),
        ('quantile(min B, P>0.2 [ F{"none"}<=B s=2 ])', "unknown reward structure"),
    ],
)
def test_what_has_no_answer_is_told(text: str, message: str) -> None:
    with pytest.raises(HybridError) as caught:
        hybrid.check(hybrid.parse(WALK), text, backend="cpu")
    assert message in str(caught.value)


def test_a_search_ends_with_how_far_it_came() -> None:
    """The probability comes as close to 4/9 as one likes, and never there."""
    text = 'quantile(B, P>=0.44444 [ F{"steps"}<=B s=2 ])'
    with pytest.raises(HybridError, match="the bound is at least 6, and 6 budgets of reward are done"):
        hybrid.check(hybrid.parse(WALK), text, backend="cpu", max_iterations=6)


def test_it_is_about_one_initial_state() -> None:
    model = hybrid.parse(WALK + "init s<2 endinit")
    with pytest.raises(HybridError, match="expected one initial state, .* got 2"):
        hybrid.check(model, 'quantile(B, P>=0.4 [ F{"steps"}<=B s=2 ])', backend="cpu")


@pytest.mark.parametrize(("least", "value"), [("0.25", "0.2"), ("0.26", "0.3"), ("0.4", "0.4")])
def test_sums_of_rewards_that_are_no_doubles_have_bounds(least: str, value: str) -> None:
    text = FALLING_WALK + 'rewards "tenths" s<2 : 0.1; endrewards'
    found = hybrid.check(hybrid.parse(text), f'quantile(B, P>={least} [ F{{"tenths"}}<=B s=2 ])')
    assert found.lower < Fraction(value) < found.upper
    assert found.upper - found.lower < 1e-15


# For nothing the process comes round again and again: 0 may be left at once, or tried often.
ROUND = """mdp module m s : [0..2];
  [once] s=0 -> 1/3:(s'=1) + 2/3:(s'=2);
  [again] s=0 -> 3/10:(s'=1) + 3/10:(s'=2) + 2/5:(s'=0);
  [] s=1 -> (s'=1);
  [] s=2 -> (s'=0);
endmodule
rewards "paid" [once] true : 1; s=1 : 1; endrewards"""


def test_ties_on_cycles_of_free_steps_are_decided_in_rational_numbers() -> None:
    model = hybrid.parse(ROUND)
    for text, least in (("Pmax>=1/2", 0), ("Pmax>1/2", 1), ("Pmax>=2/3", 1), ("Pmin>=1/2", 1)):
        answer = hybrid.check(model, f'quantile(min B, {text} [ F{{"paid"}}<=B s=2 ])')
        assert (answer.value, answer.kind) == (least, "exact"), text
    assert hybrid.check(model, 'Pmax=? [ F{"paid"}<=0 s=2 ]', exact=True).exact == Fraction(1, 2)
