"""Languages of automata compared: a word that one of two formulas has and the other has not, or none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hybrid.base.errors import UnsupportedError
from hybrid.properties.automata.automaton import DeterministicAutomaton
from hybrid.properties.automata.choosing import automaton_of, distinguishing_word
from tests.builders.labelled import NAMES
from tests.exploring import rounds
from tests.oracles.lasso_words import Tree, holds, random_tree, tree_text


def over_all_names(tree: Tree) -> DeterministicAutomaton:
    """A formula's automaton over the three propositions."""
    found = automaton_of(tree_text(tree))
    letters = np.arange(8)
    own = np.zeros_like(letters)
    for i, name in enumerate(found.propositions):
        own |= (letters >> NAMES.index(name) & 1) << i
    return replace(found, propositions=NAMES, successors=found.successors[:, own], marks=found.marks[:, own])


def test_the_word_found_is_in_one_language_by_definition(rng: np.random.Generator) -> None:
    same = 0
    for _ in range(rounds(150)):
        first, second = (random_tree(rng, int(rng.integers(2, 8)), 3) for _ in range(2))
        found = distinguishing_word(over_all_names(first), over_all_names(second))
        if found is None:
            same += 1
            words = rng.integers(0, 8, size=(50, 5))
            np.testing.assert_array_equal(holds(first, words, 2), holds(second, words, 2))
        else:
            word = np.array([[*found[0], *found[1]]])
            assert holds(first, word, len(found[0]))[0] != holds(second, word, len(found[0]))[0]
    assert same < rounds(75)


def test_formulas_with_one_language(rng: np.random.Generator) -> None:
    for _ in range(rounds(100)):
        tree = random_tree(rng, int(rng.integers(2, 9)), 3)
        other = ("!", ("!", ("&", tree, ("|", ("G", ("F", tree)), ("F", ("G", ("!", tree)))))))
        negation = distinguishing_word(over_all_names(tree), over_all_names(("!", tree)))
        assert negation is not None
        word = distinguishing_word(over_all_names(tree), over_all_names(other))
        if word is not None:
            letters = np.array([[*word[0], *word[1]]])
            assert holds(tree, letters, len(word[0]))[0] != holds(other, letters, len(word[0]))[0]
        assert distinguishing_word(over_all_names(tree), over_all_names(("&", tree, tree))) is None


def test_what_is_not_compared_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = automaton_of("G F a"), automaton_of("G F b")
    with pytest.raises(ValueError, match="expected the same propositions"):
        distinguishing_word(a, b)
    monkeypatch.setattr("hybrid.properties.automata.choosing.MOST_TRANSITIONS", 3)
    big = automaton_of("F (a & (X a))")
    with pytest.raises(UnsupportedError, match="too large to be compared"):
        distinguishing_word(big, big)
