"""Automata of random formulas: their languages by definition on words, and against Spot."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np

from hybrid.properties.automata.automaton import DeterministicAutomaton
from hybrid.properties.automata.choosing import automaton_of
from hybrid.properties.automata.hoa import hoa_text
from tests.builders.labelled import NAMES
from tests.oracles.lasso_words import Tree, holds, random_tree, tree_text, without_windows

SHAPES = ((0, 1), (0, 2), (1, 2), (2, 1), (2, 3), (1, 5))  # lengths of prefix and loop

# Spot writes these operators otherwise.
_SPOT = (("<=>", "<->"), ("=>", "->"))


@dataclass(frozen=True)
class LanguageCase:
    """What a random formula gave: its text, states here and in Spot, what differs."""

    text: str
    states: int
    spot_states: int | None
    difference: str | None


def random_formula(seed: int, number: int) -> Tree:
    """A formula of up to twelve operators and propositions, made from a seed and its number alone; every
    fourth one with windows."""
    rng = np.random.default_rng([seed, number])
    windows = number % 4 == 3
    return random_tree(rng, int(rng.integers(1, 9 if windows else 13)), len(NAMES), windows)


def first_difference(
    tree: Tree, automaton: DeterministicAutomaton, rng: np.random.Generator, n: int
) -> str | None:
    """A random word on which an automaton and the definition disagree, of n words a shape; None: there is
    none."""
    places = [NAMES.index(name) for name in automaton.propositions]
    for prefix, loop in SHAPES:
        words = rng.integers(0, 8, size=(n, prefix + loop))
        own = np.zeros_like(words)
        for i, place in enumerate(places):
            own |= (words >> place & 1) << i
        for word, expected in zip(own.tolist(), holds(tree, words, prefix).tolist(), strict=True):
            if automaton.accepts(word[:prefix], word[prefix:]) != expected:
                return f"{tree_text(tree)}: {word[:prefix]} then {word[prefix:]} for ever, is {expected}"
    return None


def language_case(seed: int, number: int, n_words: int, spot: ModuleType | None) -> LanguageCase:
    """Translate a random formula and compare."""
    tree = random_formula(seed, number)
    text = tree_text(tree)
    automaton = automaton_of(text)
    difference = first_difference(tree, automaton, np.random.default_rng([seed, number, 1]), n_words)
    if spot is None:
        return LanguageCase(text, automaton.n_states, None, difference)
    theirs_text = tree_text(without_windows(tree))
    for ours, theirs in _SPOT:
        theirs_text = theirs_text.replace(ours, theirs)
    # Spot 2.13 translates (G F a <-> a) <-> b to a wrong deterministic automaton; equality is that with its
    # nondeterministic one.
    plain = spot.translate(theirs_text, "BA", "low")
    if difference is None and not spot.are_equivalent(spot.automaton(hoa_text(automaton)), plain):
        difference = f"{text}: another language than Spot's automaton"
    small = spot.complete(spot.translate(theirs_text, "deterministic", "generic"))
    return LanguageCase(text, automaton.n_states, small.num_states(), difference)
