"""Conditional probabilities of path formulas, as quotients of exact ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import hybrid
from hybrid.analysis.conditional import _quotient
from hybrid.base.errors import HybridError
from hybrid.base.state_values import StateValues
from hybrid.properties import parse_properties
from hybrid.properties.automata.choosing import automaton_of
from hybrid.properties.tree import ConditionalPath, Path
from mtbdd.language import LanguageError
from tests.builders.known_answers import in_every_way
from tests.builders.labelled import LABELS, random_labelled
from tests.builders.models import build
from tests.exploring import rounds
from tests.oracles.lasso_words import random_tree, tree_text
from tests.oracles.ltl import chain_probabilities


@pytest.mark.parametrize("kind", ["dtmc", "ctmc"])
def test_random_chains_and_formulas(kind: str, rng: np.random.Generator) -> None:
    between = impossible = number = 0
    while number < rounds(30):
        labelled = random_labelled(rng, kind)
        trees = [random_tree(rng, int(rng.integers(2, 6)), 3) for _ in range(2)]
        both = chain_probabilities(labelled.rows, labelled.letters, ("&", *trees))
        given = chain_probabilities(labelled.rows, labelled.letters, trees[1])
        # Of chance, most values are 0 or 1: two of three cases have others, some of the rest none at all.
        if number % 3 and not any(0 < p < q for p, q in zip(both, given, strict=True)):
            continue
        number += 1
        model = build(labelled.text())
        path, condition = (tree_text(tree, LABELS) for tree in trees)
        asked = f"P=? [ ({path}) || ({condition}) ]"
        if 0 in given:
            impossible += 1
            with pytest.raises(HybridError, match="condition after '||' has probability 0"):
                hybrid.check(model, f"filter(state, {asked}, s={given.index(0)})", backend="cpu")
        possible = {s: p / q for s, (p, q) in enumerate(zip(both, given, strict=True)) if q}
        inside = " | ".join(f"s={s}" for s in possible)
        for word, right in (("min", min), ("max", max)) if possible else ():
            found = hybrid.check(model, f"filter({word}, {asked}, {inside})", backend="cpu")
            value = right(possible.values())
            assert Fraction(found.lower) <= value <= Fraction(found.upper) and found.proven
            assert found.upper - found.lower <= 1e-8
            between += 0 < value < 1
    assert between and impossible


DIE = """
{}
module die
  s : [0..7] init 0;
  d : [0..6] init 0;
  [] s=0 -> 0.5:(s'=1) + 0.5:(s'=2);
  [] s=1 -> 0.5:(s'=3) + 0.5:(s'=4);
  [] s=2 -> 0.5:(s'=5) + 0.5:(s'=6);
  [] s=3 -> 0.5:(s'=1) + 0.5:(s'=7)&(d'=1);
  [] s=4 -> 0.5:(s'=7)&(d'=2) + 0.5:(s'=7)&(d'=3);
  [] s=5 -> 0.5:(s'=7)&(d'=4) + 0.5:(s'=7)&(d'=5);
  [] s=6 -> 0.5:(s'=2) + 0.5:(s'=7)&(d'=6);
  [] s=7 -> true;
endmodule
"""

BY_HAND = [
    ("P=? [ F d=2 || F (d=2 | d=4 | d=6) ]", Fraction(1, 3)),
    ("P=? [ F d=6 || X s=2 ]", Fraction(1, 3)),
    ("P=? [ X s=2 || F d=6 ]", 1),
    ("P=? [ F d=1 || F d=2 ]", 0),
    ("P=? [ F<=3 d=1 || F d=1 ]", Fraction(3, 4)),
    ("P=? [ s!=2 U d=3 || d<1 U d=3 ]", 1),
    ("P=? [ G d!=1 || s=0 ]", Fraction(5, 6)),
    ("P=? [ s=0 || s=0 ]", 1),
    ("P=? [ F d=6 || F d=6 {s=2}{max} ]", 1),
    ("P>=0.33 [ F d=2 || F (d=2 | d=4 | d=6) ]", True),
    ("P<0.33 [ F d=2 || F (d=2 | d=4 | d=6) ]", False),
    ("P=? [ F (s=2 & P>0.9 [ F d=6 || F d=6 ]) || true ]", None),
]


@pytest.mark.parametrize(
    ("prop", "exact", "options"),
    in_every_way(BY_HAND),
    ids=str,
)
def test_die_by_hand(prop: str, exact: object, options: dict[str, object]) -> None:
    answer = hybrid.check(build(DIE.format("dtmc")), prop, **options, throw=False)
    if exact is None:
        assert "has probability 0" in str(answer.error)
    elif isinstance(exact, bool):
        assert answer.value is exact
    else:
        assert answer.error is None, answer.error
        assert Fraction(answer.lower) <= exact <= Fraction(answer.upper) and answer.proven
        assert answer.upper - answer.lower <= 1e-8


def test_estimates_have_no_bounds() -> None:
    prop = "P=? [ F d=2 || F (d=2 | d=4 | d=6) ]"
    answer = hybrid.check(build(DIE.format("dtmc")), prop, method="jacobi", backend="cpu")
    assert answer.lower is None and answer.upper is None and abs(answer.value - 1 / 3) < 1e-6


def test_bounds_are_divided_outward() -> None:
    three, ten = np.array([3.0, 0.0, 0.0, 0.25]), np.array([10.0, 0.5, 1.0, 0.0])
    found = _quotient(
        StateValues(three / 16, three / 16, three / 16), StateValues(ten / 16, ten / 16, ten / 16 + 0.0)
    )
    assert Fraction(found.lower[0]) < Fraction(3, 10) < Fraction(found.upper[0])
    assert found.lower[1] == found.upper[1] == 0 and np.isnan(found.values[3])
    unknown = _quotient(
        StateValues(np.zeros(1), np.zeros(1), np.array([1e-300])),
        StateValues(np.zeros(1), np.zeros(1), np.array([1e-290]), np.array([True])),
    )
    assert (unknown.lower[0], unknown.upper[0]) == (0.0, 1.0)


def test_what_is_read() -> None:
    (found,) = parse_properties("P=? [ x=1 | y=2 U z || !(F (a | b)) ]").properties
    path = found.formula.path
    assert isinstance(path, ConditionalPath) and isinstance(path.path, Path)
    for text in (
        "P=? [ F (a || b) ]",
        "P=? [ (a || b) ]",
        "a || b",
        "R=? [ F a || F b ]",
        "E [ F a || F b ]",
    ):
        with pytest.raises(LanguageError, match="'or' is a single|expected"):
            parse_properties(text)
    with pytest.raises(HybridError, match="'or' is a single"):
        automaton_of("F a || F b")


@pytest.mark.parametrize(
    ("kind", "prop", "message"),
    [
        ("dtmc", "P=? [ F d=1 || F d=7 ]", "the condition after '||' has probability 0 in (s=0, d=0)"),
        ("dtmc", "P=? [ F d=1 || d ]", "the condition after '||'"),
        ("mdp", "Pmax=? [ X s=1 || F d=1 ]", "those of F, G, U, W and R without bounds"),
        ("mdp", "Pmax=? [ F d=1 || F<=2 d=1 ]", "those of F, G, U, W and R without bounds"),
        ("mdp", "Pmin=? [ F d=1 || G d!=1 ]", "has to be F or U on an MDP"),
        ("mdp", "Pmin=? [ F d=1 || F d=7 ]", "the condition after '||' has probability 0 in (s=0, d=0)"),
        ("mdp", "P=? [ F d=1 || F d=1 ]", "write Pmin=? or Pmax=?"),
        ("mdp", "multi(Pmax=? [ F d=1 || F d=1 ], P>=0.1 [ F d=1 ])", "conditional probabilities are no"),
        ("ctmc", "P=? [ F<=2 d=1 || F d=1 ]", "bounds on time"),
    ],
)
def test_refusals(kind: str, prop: str, message: str) -> None:
    with pytest.raises((LanguageError, HybridError)) as caught:
        hybrid.check(build(DIE.format(kind)), prop, backend="cpu")
    assert message in str(caught.value)
