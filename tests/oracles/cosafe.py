"""Rewards until a co-safe formula holds, by definition: pairs of a state and an automaton's, one by one.

The automaton's language is tested elsewhere, by words.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np

from hybrid.automata.automaton import DeterministicAutomaton
from tests.builders.labelled import LabelledModel
from tests.oracles.chains import reachability_rewards
from tests.oracles.lasso_words import Tree

__all__ = ["MOST_SCHEDULERS", "cosafe_rewards", "random_cosafe", "with_constants"]

MOST_SCHEDULERS = 600
Exact = Fraction | float


def random_cosafe(rng: np.random.Generator, size: int) -> Tree:
    """A formula of X, F, U, &, |, windows and literals."""
    if size <= 1:
        literal: Tree = ("p", int(rng.integers(3)))
        return ("!", literal) if rng.random() < 0.3 else literal
    if size == 2 or rng.random() < 0.5:
        kind = ("X", "F", "F", "window")[rng.integers(4)]
        inner = random_cosafe(rng, size - 1)
        if kind != "window":
            return (kind, inner)
        low = int(rng.integers(0, 2))
        return ("in", low, low + int(rng.integers(0, 2)), (("F", "G")[rng.integers(2)], inner))
    first = int(rng.integers(1, size - 1))
    kind = ("U", "U", "&", "|")[rng.integers(4)]
    return (kind, random_cosafe(rng, first), random_cosafe(rng, size - 1 - first))


def with_constants(tree: Tree, letters: list[int]) -> Tree:
    """A formula with constants for state formulas that hold in all states or none, and one state formula for
    those that hold in the same states, or in the opposite ones."""
    named: dict[tuple[bool, ...], Tree] = {}
    for k in range(3):
        named.setdefault(_shown(("p", k), letters), ("p", k))

    def replaced(tree: Tree) -> Tree:
        if tree[0] == "!" or not _is_about_states(tree):
            return tuple(replaced(part) if isinstance(part, tuple) else part for part in tree)
        shown = _shown(tree, letters)
        if len(set(shown)) == 1:
            return ("true",) if shown[0] else ("false",)
        opposite = tuple(not x for x in shown)
        # Of the two the one that was named first.
        first = next((x for x in named if x in (shown, opposite)), shown)
        found = named.setdefault(first, tree)
        return found if first == shown else ("!", found)

    return replaced(tree)


def _is_about_states(tree: Tree) -> bool:
    """Whether a formula has no temporal operator."""
    return tree[0] in ("p", "true", "false") or (
        tree[0] in ("!", "&", "|") and all(_is_about_states(part) for part in tree[1:])
    )


def _shown(tree: Tree, letters: list[int]) -> tuple[bool, ...]:
    """In which states a formula without temporal operators holds."""
    kind, *parts = tree
    if kind == "p":
        return tuple(bool(x >> parts[0] & 1) for x in letters)
    if not parts:
        return tuple(kind == "true" for _ in letters)
    shown = [_shown(part, letters) for part in parts]
    if kind == "!":
        return tuple(not x for x in shown[0])
    return tuple((all if kind == "&" else any)(both) for both in zip(*shown, strict=True))


def certain_states(automaton: DeterministicAutomaton) -> set[int]:
    """The states from which all words are accepted: no cycle without a mark is reached from them."""
    n = automaton.n_states
    if automaton.acceptance.kind in ("t", "f"):
        return set(range(n)) if automaton.acceptance.kind == "t" else set()
    assert str(automaton.acceptance) == "Inf(0)"
    steps = automaton.successors.tolist()
    free = [
        {t for t, m in zip(steps[q], automaton.marks[q].tolist(), strict=True) if not m} for q in range(n)
    ]

    def ahead(starts: set[int], arrows: list[set[int]]) -> set[int]:
        found: set[int] = set()
        waiting = list(starts)
        while waiting:
            q = waiting.pop()
            if q not in found:
                found.add(q)
                waiting += arrows[q]
        return found

    rejecting = {q for q in range(n) if q in ahead(free[q], free)}
    every = [set(row) for row in steps]
    return {q for q in range(n) if not ahead({q}, every) & rejecting}


def cosafe_rewards(
    labelled: LabelledModel,
    state_rewards: list[Fraction],
    choice_rewards: list[Fraction],
    letters: list[int],
    automaton: DeterministicAutomaton,
    continuous: bool = False,
) -> dict[str, list[Exact]] | None:
    """Least and greatest rewards from every state, over all schedulers without memory on the pairs; None if
    these are too many.  The k-th choice of a state earns `choice_rewards[k]`."""
    certain = certain_states(automaton)
    pairs = [(s, automaton.initial) for s in range(labelled.n_states)]
    place = {pair: k for k, pair in enumerate(pairs)}
    rows: list[list[dict[int, Fraction]]] = []
    target: set[int] = set()
    for s, q in pairs:
        then = int(automaton.successors[q, letters[s]])
        if then in certain:
            target.add(len(rows))
        for row in labelled.choices[s]:
            for t in row:
                if (t, then) not in place:
                    place[t, then] = len(pairs)
                    pairs.append((t, then))
        rows.append([{place[t, then]: p for t, p in row.items()} for row in labelled.choices[s]])
    if math.prod(len(own) for own in rows) > MOST_SCHEDULERS:
        return None
    found = []
    for picked in product(*(range(len(own)) for own in rows)):
        chain = [rows[k][choice] for k, choice in enumerate(picked)]
        exits = [sum(row.values()) if continuous else 1 for row in chain]
        earned = [
            state_rewards[s] + choice_rewards[choice] * exits[k]
            for k, ((s, _), choice) in enumerate(zip(pairs, picked, strict=True))
        ]
        found.append(reachability_rewards(chain, earned, target, continuous)[: labelled.n_states])
    columns = list(zip(*found, strict=True))
    return {"min": [min(column) for column in columns], "max": [max(column) for column in columns]}
