"""Rewards until a co-safe formula holds, by definition and by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hybrid
from hybrid.automata.reading_formulas import automaton_of
from tests.builders.labelled import LABELS, random_labelled
from tests.builders.models import build
from tests.exploring import rounds, taken_in_turn
from tests.oracles.cosafe import cosafe_rewards, random_cosafe, with_constants
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
        automaton = automaton_of(tree_text(with_constants(tree, labelled.letters)))
        letters = labelled.letters_for(automaton.propositions)
        exact = cosafe_rewards(labelled, earned, moved, letters, automaton, kind == "ctmc")
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
    # What holds of every run from the state on, at once; what no run or not almost every run satisfies.
    ("R=? [ x=0 ]", 0),
    ("R=? [ X (X x<7) ]", 0),
    ("R=? [ F ((X x=1) | (X x!=1)) ]", 0),
    ("R=? [ x=1 ]", math.inf),
    ("R=? [ (X x=3) & (X x=2) ]", math.inf),
    ("R=? [ x=0 U x=2 ]", math.inf),
    ("filter(max, R=? [ (X x=0) | (F x=3) ], x=3)", 0),
    ("filter(min, R=? [ (F x=0) & (F x=1) ], x=3)", math.inf),
]


OPTIONS: list[dict[str, object]] = [
    {},
    {"backend": "reference", "level": 0},
    {"engine": "explicit"},
    {"method": "interval"},
]


@pytest.mark.shortened
@pytest.mark.parametrize(
    ("prop", "exact", "options"),
    [
        *((*case, options) for k, case in enumerate(BY_HAND) for options in taken_in_turn(OPTIONS, k)),
        *(pytest.param(*case, {"backend": "gpu"}, marks=pytest.mark.gpu) for case in BY_HAND),
    ],
    ids=str,
)
def test_chain_by_hand(prop: str, exact: float, options: dict[str, object]) -> None:
    answer = hybrid.check(build(WALK), prop, **{"backend": "cpu", **options}, throw=False)
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
        (WALK.replace("dtmc", "mdp"), "R=? [ X x=3 ]", "write Rmin=? or Rmax=?"),
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


def test_an_automaton_of_another_program_whose_marks_tell_nothing() -> None:
    """Once x>=2 its runs take one mark or the other, all accepted; that is for certain as well."""
    two = (
        'HOA: v1 Start: 0 AP: 2 "p0" "p1" Acceptance: 2 Inf(0) | Inf(1) --BODY-- '
        "State: 0 [0 | 1] 1 [!0 & !1] 0 State: 1 [0] 1 {0} [!0] 1 {1} --END--"
    )
    model, prop = build(WALK), "R=? [ (F x=2) | (F x=3) ]"
    answer = hybrid.check(model, prop, backend="cpu", automaton_tool=f"printf '{two}'")
    assert answer.proven and answer.lower <= 8 <= answer.upper
