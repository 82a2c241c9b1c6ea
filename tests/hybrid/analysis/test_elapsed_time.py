"""T: expected steps and times, by definition and by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hybrid
from hybrid.base.errors import HybridError
from hybrid.properties import parse_properties
from hybrid.properties.tree import Elapsed, Reward
from mtbdd.build.rewards import action_rewards, state_rewards
from mtbdd.language import LanguageError
from mtbdd.language.syntax import ELAPSED
from tests.builders.known_answers import in_every_way
from tests.builders.labelled import LABELS, random_labelled
from tests.builders.models import build
from tests.exploring import rounds
from tests.oracles.cosafe import cosafe_rewards, random_cosafe
from tests.oracles.lasso_words import Tree, tree_text
from tests.oracles.optima import assert_encloses, checked

REWARDS = 'rewards "other" true : 7; [c0] true : 3; endrewards'


@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
def test_random_models(kind: str, rng: np.random.Generator) -> None:
    asked = finite = 0
    for number in range(rounds(30)):
        labelled = random_labelled(rng, kind)
        tree: Tree = ("F", ("p", 0)) if number % 2 else random_cosafe(rng, int(rng.integers(2, 7)))
        if kind == "ctmc" and "'in'" in repr(tree):
            continue
        one, none = [Fraction(1)] * labelled.n_states, [Fraction(0)] * 3
        exact = cosafe_rewards(labelled, one, none, tree, kind == "ctmc")
        if exact is None:
            continue
        asked += 1
        model = build(labelled.text(REWARDS if number % 3 else ""))
        for optimum, values in exact.items():
            operator = f"T{optimum}=?" if kind == "mdp" else "T=?"
            found = checked(model, f"{operator} [ {tree_text(tree, LABELS)} ]", backend="cpu")
            assert_encloses(found, values)
            finite += any(0 < v < math.inf for v in values)
    assert asked >= 3 and finite >= 2


WALK = """
{}
const int T = 3;
module m
  x : [0..3] init 0;
  [] x=0 -> 0.5:(x'=1) + 0.5:(x'=0);
  [] x=1 -> 0.5:(x'=2) + 0.5:(x'=0);
  [] x=2 -> 1:(x'=2);
  [] x=3 -> 1:(x'=2);
endmodule
"""

BY_HAND = [
    ("dtmc", "T=? [ F x=2 ]", 6),
    ("dtmc", "T<=6 [ F x=2 ]", True),
    ("dtmc", "T<6 [ F x=2 ]", False),
    ("dtmc", "T>2*T-1 [ F x=2 ]", True),
    ("dtmc", "T>=7 [ F x=2 ] | T<=T", True),
    ("dtmc", "T<=3 & P>0 [ F<=T x=2 ]", True),
    ("dtmc", "T=? [ F x=3 ]", math.inf),
    ("dtmc", "T=? [ F x=0 ] + T", 3),
    ("dtmc", "T=? [ F x=2 {x=1}{min} ]", 4),
    ("dtmc", "filter(max, T=? [ F T<=5 [ F x=2 ] ])", 2),
    ("ctmc", "T=? [ F x=2 ]", 6),
    ("ctmc", "T=? [ F x=1 ]", 2),
    ("mdp", "Tmin=? [ F x=2 ]", 6),
    ("mdp", "T max=? [ F x=2 ]", 6),
    ("mdp", "T>=6 [ F x=2 ]", True),
]


@pytest.mark.parametrize(
    ("kind", "prop", "exact", "options"),
    in_every_way(BY_HAND),
    ids=str,
)
def test_by_hand(kind: str, prop: str, exact: float, options: dict[str, object]) -> None:
    answer = hybrid.check(build(WALK.format(kind)), prop, **options)
    if isinstance(exact, bool):
        assert answer.value is exact
    else:
        assert answer.lower <= exact <= answer.upper and answer.proven
        assert exact == math.inf or answer.upper - answer.lower <= 1e-7 * exact


def test_a_scheduler_that_is_quickest() -> None:
    text = "mdp module m x:[0..2]; [slow] x=0 -> 0.5:(x'=1)+0.5:(x'=0); [quick] x=0 -> (x'=1); endmodule"
    model = build(text)
    answer = hybrid.check(model, "Tmin=? [ F x=1 ]", scheduler=True, backend="cpu")
    assert answer.scheduler is not None
    names, taken = answer.scheduler.actions()
    assert names[taken[0]] == "quick"


def test_the_built_in_structure_has_no_transition_rewards() -> None:
    model = build(WALK.format("ctmc"))
    assert state_rewards(model, ELAPSED, model.index).tolist() == [1.0] * model.n_states
    assert action_rewards(model, ELAPSED, model.index).tolist() == [0.0] * model.n_states


def test_what_is_read_as_the_operator() -> None:
    for text, letter in [("T=? [ F a ]", "T"), ("Tmax<=T*2 [ F a ]", "T"), ("T min>1 [ F a ]", "T")]:
        (found,) = parse_properties(text).properties
        assert isinstance(found.formula, Reward) and isinstance(found.formula.structure, Elapsed)
        assert found.formula.letter == letter
    for text in ("T<=5", "T", "T=3 & Tmin<Tmax", "T<(1", "Tmax>2 | T<=(T)"):
        try:
            (found,) = parse_properties(text).properties
        except LanguageError:
            assert text == "T<(1"
        else:
            assert not isinstance(found.formula, Reward)


@pytest.mark.parametrize(
    ("kind", "prop", "message"),
    [
        ("dtmc", "T=? [ C ]", "T counts steps or time until one holds"),
        ("dtmc", "T=? [ C<=5 ]", "expected a path formula"),
        ("dtmc", "T=? [ S ]", "expected a path formula"),
        ("dtmc", "T<=-1 [ F x=2 ]", "a bound on an expected time"),
        ("dtmc", "T<=x [ F x=2 ]", "a bound on an expected time"),
        ("mdp", "T=? [ F x=2 ]", "write Tmin=? or Tmax=?"),
        ("dtmc", "T=? [ G x=2 ]", "co-safe"),
        ("dtmc", "T=? [ F x ]", "the operand of 'F'"),
    ],
)
def test_refusals(kind: str, prop: str, message: str) -> None:
    with pytest.raises((LanguageError, HybridError)) as caught:
        hybrid.check(build(WALK.format(kind)), prop, backend="cpu")
    assert message in str(caught.value)
