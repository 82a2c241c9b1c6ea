"""Bounds on several rewards, and lower ones: against models whose text counts, in rational numbers."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.properties import parse_properties
from hybrid.properties.tree import RewardBound, RewardBounds
from tests.builders.two_rewards import BOUNDS, PATHS, TwoRewards, filled
from tests.exploring import each, rounds


@pytest.mark.parametrize(
    ("kind", "options"),
    each(["dtmc", "mdp", "ctmc"], [{}, {"engine": "explicit"}, {"method": "interval"}]),
)
def test_random_models(kind: str, options: dict[str, Any], rng: np.random.Generator) -> None:
    between = 0
    while between < rounds(9):  # most values are 0 or 1
        units = Fraction(1, 2), Fraction(3)
        drawn = TwoRewards(rng, kind, units)
        own, of_text = [], []
        for i, name in enumerate("xy"):
            kept, number = str(rng.choice(list(BOUNDS))), int(rng.integers(1, 5))
            shown, counted = drawn.bound(i, kept, number)
            own.append(f'{{"{name}"}}{shown}')
            of_text.append(counted)
        spelling = ",".join(own) if rng.random() < 0.5 else f"^{{{','.join(own)}}}"
        path = str(rng.choice(list(PATHS)))
        target, safe = f"s={int(rng.integers(0, drawn.n))}", f"s!={int(rng.integers(0, drawn.n))}"
        model, counting = hybrid.parse(drawn.text), hybrid.parse(drawn.counting)
        for word in ("min", "max") if kind == "mdp" else ("",):
            asked = f"P{word}=? [ {filled(path, spelling, target, safe)} ]"
            right = PATHS[path].format(" & ".join(of_text), target, safe)
            exact = hybrid.check(counting, f"P{word}=? [ {right} ]", exact=True).exact
            answer = hybrid.check(model, asked, **options)
            assert answer.lower <= exact <= answer.upper, asked
            assert answer.upper - answer.lower <= 1e-6
            between += 0 < exact < 1


WALK = """{kind} module m s : [0..3];
  [go] s=0 -> 1/2:(s'=1) + 1/2:(s'=2);
  [go] s=1 -> 1/3:(s'=2) + 2/3:(s'=0);
  [] s=2 -> 1/2:(s'=0) + 1/2:(s'=3);
  [] s=3 -> true;
endmodule
rewards "a" s=0 : 1; s=2 : 1/2; endrewards
rewards "b" [go] true : 2; endrewards"""
BY_HAND = {
    'F{"a"}<=1,{"b"}<=2 s=2': Fraction(1, 2),
    'F{"a"}<=1,{"b"}<=4 s=2': Fraction(2, 3),
    'F{"b"}>2 s=2': Fraction(3, 4),
    'F{"a"}[0,1] s=2': Fraction(2, 3),
    'F{"a"}=1.5 s=3': Fraction(1, 3),
    'F{"a"}>=0,{"b"}<100 s=3 & s=2': Fraction(0),
    'G{"a"}>=2 s=3': Fraction(1, 3),
}


@pytest.mark.parametrize("kind", ["dtmc", "mdp"])
def test_values_by_hand(kind: str) -> None:
    model = hybrid.parse(WALK.format(kind=kind))
    for path, right in BY_HAND.items():
        answer = hybrid.check(model, f"P{'max' if kind == 'mdp' else ''}=? [ {path} ]")
        assert answer.lower <= right <= answer.upper, (path, answer.value)


def test_one_upper_bound_is_the_budget_s_own() -> None:
    for text in ('F{"a"}<=2 s=2', 'F{rew{"a"}<=2} s=2', 'F^{rew{"a"}<=2} s=2'):
        (found,) = parse_properties(f"P=? [ {text} ]").properties
        assert isinstance(found.formula.path.bound, RewardBound)
    for text in ('F{"a"}>=2 s=2', 'F rew{"a"}<=2,rew{"b"}<=3 s=2', 'F{rew{"a"}[1,2]} s=2'):
        (found,) = parse_properties(f"P=? [ {text} ]").properties
        assert isinstance(found.formula.path.bound, RewardBounds)


def test_states_that_settle_a_bound_from_below_have_successors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The target may be passed too early, so that the command builds the model beyond it."""
    model = tmp_path / "walk.prism"
    model.write_text(WALK.format(kind="dtmc"))
    for path, right, states in (
        ('F{"a"}>=2 s=2', Fraction(2, 3), 4),
        ('F{"a"}<=2,{"b"}<=100 s=2', Fraction(8, 9), 3),
    ):
        assert main(["check", str(model), f"P=? [ {path} ]", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        (answer,) = found["results"]
        assert answer["lower"] <= right <= answer["upper"]
        assert found["model"]["states"] == states


@pytest.mark.parametrize(
    ("prop", "options", "message"),
    [
        ('P=? [ F{"a"}<=200,{"b"}<=20000 s=2 ]', {}, "402 by 10002 numbers, 4020804 for every state"),
        ('P=? [ F{"a"}[3,2] s=2 ]', {}, "must leave something"),
        ('P=? [ F{"a"}>=2 s=2 ]', {"ranks": 2}, "not found in parts"),
        ('P=? [ F{"a"}>=2 s=2 ]', {"exact": True}, "is not solved exactly"),
        ('P=? [ F{"a"}>=2 s=2 ]', {"engine": "symbolic"}, "not answered by the engine symbolic"),
        ('A [ F{"a"}>=2 s=2 ]', {}, "take no bounds on rewards"),
        ('P=? [ F{"a"}>=2 s=2 || F s=3 ]', {}, "stands on a path operator of its own"),
        ('quantile(min B, P>=0.5 [ F{"a"}<=B,{"b"}<=2 s=2 ])', {}, "bound on a reward is the one asked for"),
    ],
)
def test_refusals(prop: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(hybrid.HybridError, match=message):
        hybrid.check(hybrid.parse(WALK.format(kind="dtmc")), prop, **options)
