"""Rewards until a co-safe formula holds, by definition and by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hybrid
from tests.builders.known_answers import in_every_way
from tests.builders.labelled import LABELS, random_labelled
from tests.builders.models import build
from tests.exploring import rounds
from tests.oracles.cosafe import cosafe_rewards, random_cosafe
from tests.oracles.lasso_words import tree_text
from tests.oracles.optima import assert_encloses, checked


@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
def test_random_models_and_formulas(kind: str, rng: np.random.Generator) -> None:
    asked = finite = 0
    for _ in range(rounds(30)):
        labelled = random_labelled(rng, kind)
        earned = [Fraction(int(r), 2) for r in rng.integers(0, 5, size=labelled.n_states)]
        moved = [Fraction(int(r), 4) for r in rng.integers(0, 4, size=3)]
        tree = random_cosafe(rng, int(rng.integers(2, 8)))
        if kind == "ctmc" and "'in'" in repr(tree):
            continue
        exact = cosafe_rewards(labelled, earned, moved, tree, kind == "ctmc")
        if exact is None:
            continue
        asked += 1
        items = [f"s={s} : {r};" for s, r in enumerate(earned)] + [
            f"[c{k}] true : {r};" for k, r in enumerate(moved[: max(map(len, labelled.choices))])
        ]
        model = build(labelled.text("\n".join(['rewards "r"', *items, "endrewards"])))
        for optimum, values in exact.items():
            operator = f"R{optimum}=?" if kind == "mdp" else "R=?"
            found = checked(model, f"{operator} [ {tree_text(tree, LABELS)} ]", backend="cpu")
            assert_encloses(found, values)
            finite += any(0 < v < math.inf for v in values)
    assert asked >= 3 and finite >= 2


WALK = """
dtmc
module m
  x : [0..3] init 0;
  [] x=0 -> 0.5:(x'=1) + 0.5:(x'=2);
  [go] x=1 -> 0.25:(x'=0) + 0.75:(x'=3);
  [] x>=2 -> true;
endmodule
rewards "r" x=0 : 1; x=1 : 2; [go] true : 10; endrewards
rewards "steps" true : 1; endrewards
"""

BY_HAND = [
    ("R=? [ (F x=2) | (F x=3) ]", 8),
    ("R=? [ !(G x<2) ]", 8),
    ("R=? [ X (x=1 | x=2) ]", 1),
    ("R=? [ F<=1 x>0 ]", 1),
    ('R{"steps"}=? [ F (x>=2 & (X x>=2)) ]', Fraction(19, 7)),
    ('R{"steps"}=? [ G[1,3] x>0 ]', math.inf),
    # What the state tells; what takes steps, though it holds of every run; what some runs do not satisfy.
    ("R=? [ x=0 ]", 0),
    ("R=? [ F x<7 ]", 0),
    ("R=? [ x>7 U x=0 ]", 0),
    ("R=? [ X true ]", 1),
    ("R=? [ X x<7 ]", 1),
    ("R=? [ !(X false) ]", 1),
    ("R=? [ X (x=1 | x!=1) ]", 1),
    ("R=? [ X ((F x=7) | x=1 | x!=1) ]", 1),
    ("R=? [ (X x=1) | (X x!=1) ]", 1),
    ("R=? [ X X true ]", Fraction(1) + Fraction(2 + 10, 2)),
    ("R=? [ X (X x<7) ]", Fraction(1) + Fraction(2 + 10, 2)),
    ("R=? [ F=2 true ]", Fraction(1) + Fraction(2 + 10, 2)),
    ("R=? [ G<=1 x<7 ]", 1),
    ("R=? [ F ((X x=1) | (X x!=1)) ]", 1),
    ("R=? [ (X X true) U x=0 ]", 0),
    ('R{"steps"}=? [ (X true) U x>=2 ]', Fraction(12, 7)),
    ('R{"steps"}=? [ (X X true) U x>=2 ]', Fraction(19, 7)),
    ('R{"steps"}=? [ (X x<7) U x>=2 ]', Fraction(12, 7)),
    ("T=? [ X X X true ]", 3),
    ("R=? [ x=1 ]", math.inf),
    ("R=? [ (X x=3) & (X x=2) ]", math.inf),
    ("R=? [ x=0 U x=2 ]", math.inf),
    ("filter(max, R=? [ (X x=0) | (F x=3) ], x=3)", 0),
    ("filter(min, R=? [ (F x=0) & (F x=1) ], x=3)", math.inf),
]


@pytest.mark.parametrize(
    ("prop", "exact", "options"),
    in_every_way(BY_HAND),
    ids=str,
)
def test_chain_by_hand(prop: str, exact: float, options: dict[str, object]) -> None:
    answer = hybrid.check(build(WALK), prop, **options, throw=False)
    assert answer.error is None, answer.error
    assert answer.lower <= exact <= answer.upper
    assert exact == math.inf or answer.upper - answer.lower <= 1e-7 * max(exact, 1)
    assert answer.proven


def test_bounds_of_a_comparison_decide() -> None:
    assert hybrid.check(build(WALK), "R>7 [ (F x=2) | (F x=3) ]", backend="cpu").value is True
    assert hybrid.check(build(WALK), "R<7 [ (F x=2) | (F x=3) ]", backend="cpu").value is False
    # Met exactly, which only rational numbers would decide.
    answer = hybrid.check(build(WALK), "R<=8 [ (F x=2) | (F x=3) ]", backend="cpu", throw=False)
    assert answer.value is None and "unknown" in str(answer.error)


@pytest.mark.parametrize(
    ("text", "prop", "message"),
    [
        (WALK, "R=? [ G x=0 ]", "co-safe"),
        (WALK, "R=? [ G F x=0 ]", "co-safe"),
        (WALK, "R=? [ !(F x=0) ]", "co-safe"),
        (WALK, "R=? [ x<2 W x=3 ]", "co-safe"),
        (WALK.replace("dtmc", "ctmc"), "R=? [ F<=2 x=3 ]", "bounds on time"),
        (
            WALK.replace("dtmc", "mdp").replace("[go] true : 10", "[go] true : -5"),
            "Rmin=? [ (F x=2) | (F x=3) ]",
            "negative",
        ),
    ],
)
def test_refusals(text: str, prop: str, message: str) -> None:
    answer = hybrid.check(build(text), prop, backend="cpu", throw=False)
    assert answer.value is None and message in str(answer.error)


@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
@pytest.mark.parametrize(
    "formula",
    ["X {0}", "X X {0}", "(X X {0}) U x=3", "F (x>=1 & (X {0}))", "{0} U x=2", "X ({0} & (X {0}))"],
)
def test_f25_a_label_that_holds_everywhere_changes_no_value(formula: str, kind: str) -> None:
    text = WALK.replace("dtmc", kind) + 'label "all" = x<=3; label "most" = x!=3;'
    model, letter = build(text), "Rmax" if kind == "mdp" else "R"
    everywhere = ("true", '"all"', "!(x>3)", '("most" | x=3)', "(x<7 | x=1)")
    values = {
        hybrid.check(model, f"{letter}=? [ {formula.format(states)} ]", backend="cpu").value
        for states in everywhere
    }
    assert len(values) == 1


def test_f25_a_scheduler_takes_the_steps_that_are_read() -> None:
    text = """mdp module m s:[0..2]; [a] s<2 -> (s'=s+1); [b] s<2 -> (s'=2); [c] s=2 -> true; endmodule
    rewards "r" [a] true : 1; [b] true : 5; [c] true : 2; endrewards"""
    for prop, right in (("Rmin=? [ X X true ]", 2), ("Rmax=? [ X X true ]", 7), ("Rmax=? [ F true ]", 0)):
        for options in ({}, {"engine": "explicit"}, {"scheduler": prop[:9] != "Rmax=? [ F"}):
            answer = hybrid.check(build(text), prop, backend="cpu", **options)
            assert answer.lower <= right <= answer.upper and answer.value == pytest.approx(right)
