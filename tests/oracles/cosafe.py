"""Rewards until a co-safe formula holds, by definition: pairs of a state and what is still asked, one by one.

What is asked is a disjunction of conjunctions of formulas, and every letter is read by all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import reduce
from itertools import product

import numpy as np

from tests.builders.labelled import LabelledModel
from tests.oracles.chains import reachability_rewards
from tests.oracles.lasso_words import Tree

__all__ = ["MOST_SCHEDULERS", "TOLD", "begun", "cosafe_rewards", "random_cosafe", "read"]

MOST_SCHEDULERS = 600
Exact = Fraction | float
Asked = frozenset[frozenset[Tree]]
TOLD: Asked = frozenset([frozenset()])


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


def begun(tree: Tree) -> Asked:
    """What a formula asks of a word before any letter is read."""
    return frozenset([frozenset([tree])])


def read(asked: Asked, letter: int) -> Asked:
    """What is asked of the rest once a letter is read."""
    return _least(
        one for clause in asked for one in reduce(_both, (_after(part, letter) for part in clause), TOLD)
    )


def _after(tree: Tree, letter: int) -> Asked:
    """What one formula asks of the rest once the first letter is read: ``X`` always asks for one more."""
    kind, *parts = tree
    if kind == "p" or kind == "!":
        holds = letter >> (parts[0] if kind == "p" else parts[0][1]) & 1
        return TOLD if bool(holds) is (kind == "p") else frozenset()
    if kind == "X":
        return begun(parts[0])
    if kind == "in":
        low, high, (operator, inner) = parts
        if low:
            return begun(("in", low - 1, high - 1, (operator, inner)))
        now = _after(inner, letter)
        if not high:
            return now
        later = begun(("in", 0, high - 1, (operator, inner)))
        return _least(now | later) if operator == "F" else _both(now, later)
    if kind == "F":
        return _least(_after(parts[0], letter) | begun(tree))
    left, right = (_after(part, letter) for part in parts)
    if kind == "U":
        return _least(right | _both(left, begun(tree)))
    return _both(left, right) if kind == "&" else _least(left | right)


def _both(a: Asked, b: Asked) -> Asked:
    """The conjunction."""
    return _least(one | other for one in a for other in b)


def _least(clauses: Iterable[frozenset[Tree]]) -> Asked:
    """Clauses without those that another one implies."""
    every = set(clauses)
    return frozenset(one for one in every if not any(other < one for other in every))


def cosafe_rewards(
    labelled: LabelledModel,
    state_rewards: list[Fraction],
    choice_rewards: list[Fraction],
    tree: Tree,
    continuous: bool = False,
) -> dict[str, list[Exact]] | None:
    """Least and greatest rewards from every state, over all schedulers without memory on the pairs; None if
    these are too many.  The k-th choice of a state earns `choice_rewards[k]`."""
    pairs = [(s, begun(tree)) for s in range(labelled.n_states)]
    place = {pair: k for k, pair in enumerate(pairs)}
    rows: list[list[dict[int, Fraction]]] = []
    target: set[int] = set()
    for s, q in pairs:
        then = read(q, labelled.letters[s])
        if then == TOLD:
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
