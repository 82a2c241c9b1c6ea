"""Probabilities of linear temporal logic against answers by definition, and by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import hybrid
from tests.builders.known_answers import in_every_way
from tests.builders.labelled import LABELS, random_labelled
from tests.builders.models import build
from tests.exploring import rounds
from tests.logic.values import value_case
from tests.oracles.lasso_words import random_tree, tree_text
from tests.oracles.ltl import chain_probabilities
from tests.oracles.optima import checked


@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
def test_random_models_and_formulas(kind: str, rng: np.random.Generator) -> None:
    """A share of the five hundred models of each kind that `python -m tests.logic` asks."""
    seed = int(rng.integers(1 << 31))
    cases = [
        case
        for number in range(rounds(20 if kind == "mdp" else 40))
        for case in value_case(seed, number, kind, False)
    ]
    assert not [case.difference for case in cases if case.difference is not None]


@pytest.mark.parametrize("kind", ["dtmc", "mdp"])
def test_random_models_and_formulas_against_storm(kind: str, rng: np.random.Generator) -> None:
    pytest.importorskip("stormpy", reason="stormpy is not installed")
    seed = int(rng.integers(1 << 31))
    cases = [case for number in range(15) for case in value_case(seed, number, kind, True)]
    assert not [case.difference for case in cases if case.difference is not None]
    assert any(case.storm == "agrees" for case in cases)


def test_schedulers_without_memory_lie_between_the_optima(rng: np.random.Generator) -> None:
    """By an oracle that knows no automata."""
    for _ in range(rounds(25)):
        labelled = random_labelled(rng, "mdp")
        tree = random_tree(rng, int(rng.integers(3, 11)), 3)
        model, text = build(labelled.text()), tree_text(tree, LABELS)
        greatest = checked(model, f"Pmax=? [ {text} ]", backend="cpu").upper.tolist()
        least = checked(model, f"Pmin=? [ {text} ]", backend="cpu").lower.tolist()
        policy = [own[int(rng.integers(len(own)))] for own in labelled.choices]
        exact = chain_probabilities(policy, labelled.letters, tree)
        for low, p, high in zip(least, exact, greatest, strict=True):
            assert Fraction(low) <= p <= Fraction(high), text


WALK = """
dtmc
module m
  x : [0..3] init 0;
  [] x=0 -> 0.5:(x'=1) + 0.5:(x'=2);
  [] x=1 -> 0.25:(x'=0) + 0.75:(x'=3);
endmodule
label "end" = x>=2;
"""

BY_HAND = [
    ("P=? [ X (X x=0) ]", Fraction(1, 8)),
    ("P=? [ F (x=1 & (X x=0)) ]", Fraction(1, 8)),
    ("P=? [ (F x=1) & (G x!=3) ]", Fraction(1, 14)),
    ("P=? [ (F x=1) => (F x=2) ]", Fraction(4, 7)),
    ('P=? [ (x=0 U x=1) & (F (G "end")) ]', Fraction(1, 2)),
    ("P=? [ (G F x=2) | (G F x=3) ]", 1),
    ("P=? [ (G F x=2) & (G F x=3) ]", 0),
    ("P=? [ (F<=1 x=1) & (F>=2 x=2) ]", Fraction(1, 14)),
    ("P=? [ G (x=0 => (X x=1)) ]", Fraction(3, 7)),
    ("P=? [ F ((P>=0.75 [ X x=3 ]) & (X x=3)) ]", Fraction(3, 7)),
    ("P=? [ (F (P>=1 [ (G F x=2) | (F x=3) ])) & (X x=2) ]", Fraction(1, 2)),
    ("P=? [ !(F (x=1 & (X x=0))) ]", Fraction(7, 8)),
    ("P=? [ (X true) & (F x=7) ]", 0),
    ("P=? [ x=0 & (X x=1) ]", Fraction(1, 2)),
    ("filter(max, P=? [ (X x=3) & (G F x=3) ], x<2)", Fraction(3, 4)),
]


@pytest.mark.parametrize(
    ("prop", "exact", "options"),
    in_every_way(BY_HAND),
    ids=str,
)
def test_chain_by_hand(prop: str, exact: Fraction, options: dict[str, object]) -> None:
    answer = hybrid.check(build(WALK), prop, **options, throw=False)
    assert answer.error is None, answer.error
    assert answer.lower <= exact <= answer.upper
    assert answer.upper - answer.lower <= 1e-7
    assert answer.proven


# A resource that two clients share; who is served is the scheduler's choice.
ARBITER = """
mdp
module m
  a : [0..1] init 0;  // whether the first client waits
  b : [0..1] init 0;
  s : [0..2] init 0;  // who was served last
  [] true -> 0.5:(a'=1)&(s'=0) + 0.5:(b'=1)&(s'=0);
  [] a=1 -> 0.9:(a'=0)&(s'=1) + 0.1:(s'=0);
  [] b=1 -> 0.9:(b'=0)&(s'=2) + 0.1:(s'=0);
endmodule
"""
FAIR = "((G F a=1) => (G F s=1)) & ((G F b=1) => (G F s=2))"


@pytest.mark.parametrize(
    ("prop", "exact"),
    [
        ("Pmin=? [ G (a=1 => (F s=1)) ]", 0),
        ("Pmax=? [ G (a=1 => (F s=1)) ]", 1),
        # With fairness as an assumption of the formula every request is answered.
        (f"Pmin=? [ ({FAIR}) => (G (a=1 => (F s=1))) ]", 1),
        (f"Pmax=? [ {FAIR} ]", 1),
        (f"Pmin=? [ {FAIR} ]", 0),
        ("Pmax=? [ (G F s=1) & (G F s=2) & (F (G (a=1 | (X a=0)))) ]", 0),
        ("Pmax=? [ (G F s=1) & (F (G s!=1)) ]", 0),
        ("Pmin=? [ (G F s=1) | (F (G s!=1)) ]", 1),
        ("Pmax=? [ F ((s=1) & (X s=1)) ]", 0),
    ],
)
def test_fairness_as_a_formula(prop: str, exact: float) -> None:
    answer = hybrid.check(build(ARBITER), prop, backend="cpu", throw=False)
    assert answer.error is None, answer.error
    assert answer.lower <= exact <= answer.upper and answer.upper - answer.lower <= 1e-7


def test_comparisons_ask_for_the_optimum_that_decides() -> None:
    model = build(ARBITER)
    assert hybrid.check(model, "P>=1 [ G (a=1 => (F s=1)) ]", backend="cpu").value is False
    assert hybrid.check(model, f"P>=1 [ ({FAIR}) => (G (b=1 => (F s=2))) ]", backend="cpu").value is True
    assert hybrid.check(model, "P<=0 [ (G F s=1) & (F (G s!=1)) ]", backend="cpu").value is True


def test_models_from_arrays_and_rates() -> None:
    """The rates of a race decide; the product carries them over from arrays, too."""
    matrix = csr_matrix(np.array([[0.0, 3.0, 1.0], [2.0, 0.0, 2.0], [0.0, 0.0, 1.0]]))
    labels = {name: np.arange(3) == i for i, name in enumerate(("one", "two", "three"))}
    for kind, scale in (("ctmc", np.ones(3)), ("dtmc", np.array([4.0, 4.0, 1.0]))):
        rows = csr_matrix(matrix.toarray() / scale[:, None])
        model = hybrid.from_scipy(rows, type=kind, initial=0, labels=labels)
        answer = hybrid.check(model, 'P=? [ X ("two" & (X "one")) ]', backend="cpu")
        assert answer.lower <= 0.375 <= answer.upper
        answer = hybrid.check(model, 'P=? [ (F "two") & (X (X "three")) ]', backend="cpu")
        assert answer.lower <= 0.375 <= answer.upper


@pytest.mark.parametrize(
    ("text", "prop", "message"),
    [
        (
            WALK.replace("dtmc", "ctmc"),
            "P=? [ F (x=1 & (F<=2 x=0)) ]",
            "bounds on time stand on a path operator",
        ),
        (WALK, "P=? [ F (x=1 & (F<=2000 x=0)) ]", "at most 1000 steps"),
    ],
)
def test_refusals(text: str, prop: str, message: str) -> None:
    answer = hybrid.check(build(text), prop, backend="cpu", throw=False)
    assert answer.value is None and message in str(answer.error)


def test_a_question_without_min_or_max_is_wrong_usage() -> None:
    with pytest.raises(hybrid.LanguageError, match=r"write Pmin=\? or Pmax=\?"):
        hybrid.check(build(ARBITER), "P=? [ F (X s=1) ]", backend="cpu", throw=False)


ROUGH = """
module m
  s : [0..3];
  [a] s=0 -> 0.333333:(s'=1) + 0.333333:(s'=2) + 0.333333:(s'=3);
  [b] s=1 -> 0.333333:(s'=0) + 0.333333:(s'=2) + 0.333333:(s'=3);
  [] s>1 -> true;
endmodule
"""
"""Thirds as decimals: rows count as divided by what they add up to, and either end has one half."""


@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
@pytest.mark.parametrize("path", ["F s=2", "(s<2) U (s=2 & (X s=2))", "(G s!=3) & (F s=2)", "G F s=2"])
def test_rows_that_add_up_to_one_only_roughly_are_divided(kind: str, path: str) -> None:
    text = kind + ROUGH
    if kind == "mdp":
        text = text.replace("[] s>1", "[c] s=1 -> 0.4:(s'=0) + 0.6:(s'=3);\n  [] s>1")
    model = hybrid.parse(text)
    answer = hybrid.check(model, f"{'Pmax' if kind == 'mdp' else 'P'}=? [ {path} ]", scheduler=kind == "mdp")
    assert answer.lower <= 0.5 <= answer.upper
    if kind == "mdp":
        chain = model.with_scheduler(answer.scheduler)
        for again in (path, "F (s=2 & (X s=2))"):
            found = hybrid.check(chain, f"P=? [ {again} ]")
            assert found.lower <= 0.5 <= found.upper
            assert found.upper - found.lower < 1e-7
