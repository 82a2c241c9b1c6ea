"""Automata accept the words that satisfy their formulas, by definition."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from hybrid.base.errors import HybridError, PropertyError, UnsupportedError
from hybrid.properties.automata.automaton import MOST_PROPOSITIONS
from hybrid.properties.automata.choosing import automaton_of
from mtbdd.base.budget import Budget, BudgetError, spending
from mtbdd.language.errors import LanguageError
from tests.exploring import rounds
from tests.logic.languages import first_difference, language_case
from tests.oracles.lasso_words import Tree, random_tree, tree_text


@pytest.mark.parametrize("hundred", range(rounds(9)))
def test_random_formulas_and_their_automata_have_one_language(hundred: int, rng: np.random.Generator) -> None:
    """A share of the two thousand that `python -m tests.logic` translates; every fourth has windows."""
    seed = int(rng.integers(1 << 31))
    cases = [language_case(seed, number, 8, None) for number in range(100)]
    assert not [case.difference for case in cases if case.difference is not None]


def test_random_formulas_against_spot(rng: np.random.Generator) -> None:
    spot = pytest.importorskip("spot", reason="the package spottl is not installed")
    seed = int(rng.integers(1 << 31))
    cases = [language_case(seed, number, 0, spot) for number in range(100)]
    assert not [case.difference for case in cases if case.difference is not None]
    assert statistics.median(case.states / case.spot_states for case in cases) <= 1.5


def test_random_formulas_about_the_long_run(rng: np.random.Generator) -> None:
    for outer in (("G", "F"), ("F", "G")):
        for _ in range(rounds(60)):
            parts = [random_tree(rng, int(rng.integers(2, 6)), 3) for _ in range(2)]
            tree: Tree = (outer[0], (outer[1], ("&" if outer[0] == "G" else "|", *parts)))
            assert first_difference(tree, automaton_of(tree_text(tree)), rng, 8) is None


# A word: the letters of the prefix and of the loop, each the names that hold.
WORDS = [
    ("a U b", "a a", "b", True),
    ("a U b", "a a", "a", False),
    ("a W b", "a a", "a", True),
    ("a W b", "a -", "b", False),
    ("b R a", "a a", "a", True),
    ("b R a", "a ab", "-", True),
    ("b R a", "a b", "-", False),
    ("G (a => (F b))", "a", "b a", True),
    ("G (a => (F b))", "b", "a", False),
    ("F<=2 a", "- -", "a", True),
    ("F<=2 a", "- - -", "a", False),
    ("F<2 a", "- -", "a", False),
    ("F=2 a", "a a", "-", False),
    ("F>=2 a", "a a", "-", False),
    ("F[1,2] a", "a - a", "-", True),
    ("G[1,2] a", "- a a", "-", True),
    ("G[1,2] a", "- a -", "a", False),
    ("a W<=1 b", "a a -", "-", True),
    ("a W<=1 b", "a -", "b", False),
    ("b R<=1 a", "a a", "-", True),
    ("b R<=1 a", "a -", "a", False),
    ("a U[1,2] b", "ab a b", "-", True),
    ("a U[2,3] b", "ab b b", "-", False),
    ("(X a) <=> (X b)", "-", "ab", True),
    ("G F (c & (a W b))", "", "cb -", True),
    ("G F (c & (a W b))", "", "c b -", False),
    ("F G (c | (a U b))", "", "c a b", True),
    ("true", "", "-", True),
    ("false", "", "-", False),
]


@pytest.mark.parametrize(("formula", "prefix", "loop", "expected"), WORDS)
def test_words_by_hand(formula: str, prefix: str, loop: str, expected: bool) -> None:
    automaton = automaton_of(formula)

    def letters(text: str) -> list[int]:
        return [sum((p in word) << i for i, p in enumerate(automaton.propositions)) for word in text.split()]

    assert automaton.accepts(letters(prefix), letters(loop)) == expected


SIZES = [
    ("a U b", 3, "Inf(0)"),
    ("G F a", 1, "Inf(0)"),
    ("F G a", 1, "Fin(0)"),
    ("G (a => (F b))", 2, "Inf(0)"),
    ("(G F a) => (G F b)", 1, "Inf(0) | Fin(1)"),
    ("(G F a) & (G F b) & (G F c)", 1, "Inf(0) & Inf(1) & Inf(2)"),
    ("(F a) & (F b) & (F c)", 8, "Inf(0)"),
    ("G (a => (X b))", 3, "Inf(0)"),
    ("F F (a | (F a))", 2, "Inf(0)"),
    ("X X X a", 6, "Inf(0)"),
    ("F G (a & b)", 1, "Fin(0)"),
    ("X (F (X (G (X b))))", 1, "Fin(0)"),
    ("((X a) U (X b)) & (X (G (F (X a))))", 4, "Inf(0) & Inf(1)"),
]


@pytest.mark.parametrize(("formula", "states", "acceptance"), SIZES)
def test_automata_are_small(formula: str, states: int, acceptance: str) -> None:
    automaton = automaton_of(formula)
    assert (automaton.n_states, str(automaton.acceptance)) == (states, acceptance)


def test_weak_automata_are_minimal(rng: np.random.Generator) -> None:
    """Formulas with one language have automata of one size, however they are written."""
    for same in (
        ("F (a & (X b))", "!(G (!a | (X !b)))", "true U (a & (X b))"),
        ("a U (b | c)", "(a U b) | (a U c)"),
        ("(a & b) U c", "(a U c) & (b U c)"),
        ("X (a U b)", "(X a) U (X b)"),
    ):
        assert len({automaton_of(formula).n_states for formula in same}) == 1


def test_too_many_propositions_are_refused_by_name() -> None:
    text = " & ".join(f"(F a{i})" for i in range(MOST_PROPOSITIONS + 1))
    with pytest.raises(
        UnsupportedError, match=f"at most {MOST_PROPOSITIONS} different state formulas, got 13"
    ):
        automaton_of(text)


def test_too_many_states_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.properties.automata.translation.MOST_STATES", 10)
    with pytest.raises(UnsupportedError, match="more than 10 states; split the formula"):
        automaton_of("(F a) & (F b) & (F c) & (F d)")
    assert automaton_of("(F a) & (F b) & (F c)").n_states == 8


def test_too_many_alternations_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.properties.automata.translation.MOST_GUESSES", 0)
    with pytest.raises(UnsupportedError, match="alternates between until and weak until in 1 places"):
        automaton_of("(a U (b W (c U a))) & (a W (b U (c W a)))")


def test_translation_looks_at_its_budget() -> None:
    with spending(Budget(0.0, None, 0.0)), pytest.raises(BudgetError):
        automaton_of("F a")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("a U", LanguageError, r"^<formula>:1:\d+: expected an expression"),
        ("", LanguageError, "expected an expression"),
        ("a ]; P=? [ b", LanguageError, "^<formula>:1:3: expected the end of the formula, got ']'"),
        ("a; b", LanguageError, "^<formula>:1:2: expected the end of the formula, got ';'"),
        ("G (a =>", LanguageError, "^<formula>:1:8: expected an expression, got the end of the text"),
        ("F (P>0.5 [ X a ])", PropertyError, "which needs a model"),
        ("F (a + 1)", PropertyError, r"expected a proposition, true or false, got 'a \+ 1'"),
        ("F<=T a", UnsupportedError, "expected a number as a bound"),
        ("G (F<=1001 a)", UnsupportedError, "at most 1000 steps inside .* got 1001"),
        ('F{"r"}<=3 a', UnsupportedError, "a bound on a reward stands on a path operator of its own"),
        ("F{discount=0.5} a", LanguageError, "options in braces"),
        ("F " + "(" * 5000 + "a" + ")" * 5000, LanguageError, "at most 100 levels of nesting"),
        ("(X a)" + " & (X a)" * 5000, HybridError, "nested less deeply"),
    ],
)
def test_what_is_no_formula_is_told(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        automaton_of(text)
