"""Probabilities of linear temporal logic against answers by definition, and by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import hybrid
from hybrid.automata.reading_formulas import automaton_of
from tests.builders.models import build
from tests.oracles.lasso_words import random_tree, tree_text
from tests.oracles.ltl import Row, chain_probabilities, greatest_probabilities
from tests.oracles.optima import assert_encloses, checked

NAMES = ("a", "b", "c")
LABELS = tuple(f'"{name}"' for name in NAMES)


def random_row(rng: np.random.Generator, n: int) -> Row:
    targets = rng.choice(n, size=int(rng.integers(1, min(n, 3) + 1)), replace=False).tolist()
    weights = [int(w) for w in rng.integers(1, 4, size=len(targets))]
    return {t: Fraction(w, sum(weights)) for t, w in zip(targets, weights, strict=True)}


def model_text(kind: str, choices: list[list[Row]], letters: list[int]) -> str:
    lines = [
        f"[] s={s} -> " + " + ".join(f"{p}:(s'={t})" for t, p in row.items()) + ";"
        for s, own in enumerate(choices)
        for row in own
    ]
    labels = [
        f"label {label} = "
        + (" | ".join(f"s={s}" for s, x in enumerate(letters) if x >> i & 1) or "false")
        + ";"
        for i, label in enumerate(LABELS)
    ]
    body = [f"s : [0..{len(choices) - 1}];", *lines, "endmodule", "init true endinit", *labels]
    return "\n".join([kind, "module m", *body])


def own_letters(letters: list[int], names: tuple[str, ...]) -> list[int]:
    """Letters in an automaton's own order of propositions."""
    return [sum((x >> NAMES.index(p) & 1) << i for i, p in enumerate(names)) for x in letters]


@pytest.mark.parametrize("kind", ["dtmc", "ctmc"])
def test_random_chains_and_formulas(kind: str, rng: np.random.Generator) -> None:
    for _ in range(25):
        n = int(rng.integers(2, 6))
        rows = [random_row(rng, n) for _ in range(n)]
        letters = rng.integers(0, 8, size=n).tolist()
        model = build(model_text(kind, [[row] for row in rows], letters))
        for _ in range(2):
            tree = random_tree(rng, int(rng.integers(3, 9)), 3)
            found = checked(model, f"P=? [ {tree_text(tree, LABELS)} ]", backend="cpu")
            assert_encloses(found, chain_probabilities(rows, letters, tree))


def test_random_processes_and_formulas(rng: np.random.Generator) -> None:
    for _ in range(40):
        n = int(rng.integers(2, 5))
        choices = [[random_row(rng, n) for _ in range(int(rng.integers(1, 4)))] for _ in range(n)]
        letters = rng.integers(0, 8, size=n).tolist()
        model = build(model_text("mdp", choices, letters))
        tree = random_tree(rng, int(rng.integers(3, 11)), 3)
        automaton = automaton_of(tree_text(tree))
        own = own_letters(letters, automaton.propositions)
        text = tree_text(tree, LABELS)
        greatest = greatest_probabilities(choices, own, automaton, False)
        least = [1 - p for p in greatest_probabilities(choices, own, automaton, True)]
        assert_encloses(checked(model, f"Pmax=? [ {text} ]", backend="cpu"), greatest)
        assert_encloses(checked(model, f"Pmin=? [ {text} ]", backend="cpu"), least)
        # Whatever a memoryless scheduler does lies between, by an oracle that knows no automata.
        policy = [own[int(rng.integers(len(own)))] for own in choices]
        for low, p, high in zip(least, chain_probabilities(policy, letters, tree), greatest, strict=True):
            assert low <= p <= high, text


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


@pytest.mark.parametrize(("prop", "exact"), BY_HAND)
@pytest.mark.parametrize(
    "options",
    [
        {"backend": "cpu"},
        {"backend": "reference", "level": 0},
        {"engine": "explicit"},
        {"method": "interval"},
    ],
    ids=str,
)
def test_chain_by_hand(prop: str, exact: Fraction, options: dict[str, object]) -> None:
    answer = hybrid.check(build(WALK), prop, **{"backend": "cpu", **options}, throw=False)
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
        (ARBITER, "P=? [ F (X s=1) ]", "write Pmin=? or Pmax=?"),
    ],
)
def test_refusals(text: str, prop: str, message: str) -> None:
    answer = hybrid.check(build(text), prop, backend="cpu", throw=False)
    assert answer.value is None and message in str(answer.error)
