"""Conditional probabilities of decision processes: against all schedulers, in fractions, and by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import hybrid
from tests.builders.models import build
from tests.exploring import rounds
from tests.oracles.chains import Chain, until_probabilities

Rows = list[list[dict[int, Fraction]]]
Until = tuple[set[int], set[int]]  # safe and target states
FORMULAS = {"F {1}": False, "({0}) U ({1})": False, "!(F {1})": True, "G !({1})": True, "{1}": False}
"""How an until is written, and whether it is the complement of one."""


def drawn(rng: np.random.Generator) -> tuple[str, Rows]:
    """Return a process of three to five states, of which two have two choices, as text and as rows.

    Most have a state that is not left, so that something may never happen.
    """
    n, lines = int(rng.integers(3, 6)), []
    rows: Rows = []
    two = set(rng.choice(n, size=2, replace=False).tolist())
    last = n - 1 if rng.random() < 0.8 else n
    for s in range(n):
        own = []
        for _ in range(2 if s in two else 1):
            targets = [s] if s == last else rng.permutation(n)[: int(rng.integers(1, 4))].tolist()
            weights = rng.integers(1, 4, size=len(targets)).tolist()
            parts = " + ".join(f"{w}/{sum(weights)}:(s'={t})" for w, t in zip(weights, targets, strict=True))
            lines.append(f"[] s={s} -> {parts};")
            own.append({t: Fraction(w, sum(weights)) for w, t in zip(weights, targets, strict=True)})
        rows.append(own)
    return f"mdp module m s : [0..{n - 1}]; {' '.join(lines)} endmodule", rows


def after(decided: int, state: int, until: Until) -> int:
    """Return what is decided of an until when a state has been seen: open 0, met 1, missed 2."""
    if decided:
        return decided
    return 1 if state in until[1] else 0 if state in until[0] else 2


def ratios(rows: Rows, path: Until, condition: Until) -> list[Fraction] | None:
    """Return P(path and condition) / P(condition) for all choices by state and what is decided.

    None where these are too many.
    """
    begin = (0, after(0, 0, path), after(0, 0, condition))
    pairs = [begin]
    place = {begin: 0}
    moves: list[list[dict[int, Fraction]]] = []
    for s, a, b in pairs:  # grows meanwhile
        own = []
        for row in rows[s]:
            then: dict[int, Fraction] = {}
            for t, p in row.items():
                pair = (t, after(a, t, path), after(b, t, condition))
                if pair not in place:
                    place[pair] = len(pairs)
                    pairs.append(pair)
                then[place[pair]] = then.get(place[pair], Fraction(0)) + p
            own.append(then)
        moves.append(own)
    every = set(range(len(pairs)))
    met = {i for i, (_, _, b) in enumerate(pairs) if b == 1}
    both = {i for i, (_, a, b) in enumerate(pairs) if a == b == 1}
    found: list[Fraction] = []
    if math.prod(map(len, moves)) > 16:
        return None
    for picked in product(*moves):
        chain: Chain = list(picked)
        given = until_probabilities(chain, every, met)[0]
        if given:
            joint = until_probabilities(chain, every, both)[0]
            found.append(joint / given)
    return found


def asked_of(n: int, rng: np.random.Generator) -> tuple[str, bool, Until, Until]:
    """Return a question about n states: its text, whether its formula is a complement, and both untils.

    Most are not decided in the first state.
    """
    first = int(rng.random() < 0.8)
    path, condition = (
        (set(rng.choice(n, size=n - 1, replace=False).tolist()), {int(rng.integers(first, n))})
        for _ in range(2)
    )
    if first:
        path[0].add(0)
        condition[0].add(0)
    written = list(FORMULAS)[int(rng.integers(0, len(FORMULAS)))]
    under = ["F {1}", "({0}) U ({1})"][int(rng.integers(0, 2))]
    text = " || ".join(f.format(*map(_states, u)) for f, u in ((written, path), (under, condition)))
    every = set(range(n))
    own = {"({0}) U ({1})": path, "{1}": (set[int](), path[1])}.get(written, (every, path[1]))
    return text, FORMULAS[written], own, condition if "U" in under else (every, condition[1])


# lemma: conditions
def test_random_processes(rng: np.random.Generator) -> None:
    """Some of each kind: values between 0 and 1, values that are certain, conditions that are impossible."""
    left = {"between": rounds(12), "certain": rounds(30), "impossible": rounds(6)}
    while any(left.values()):
        text, rows = drawn(rng)
        asked, is_complement, own, given = asked_of(len(rows), rng)
        found = ratios(rows, own, given)
        if found is None or len(set(found)) == 1:
            continue
        is_certain = bool(found) and {min(found), max(found)} <= {0, 1}
        kind = "impossible" if not found else "certain" if is_certain else "between"
        if not left[kind]:
            continue
        left[kind] -= 1
        model = build(text)
        options: dict[str, Any] = [{}, {"engine": "explicit", "method": "interval"}][left[kind] % 2]
        values = [1 - p for p in found] if is_complement else found
        for word in ("min", "max"):
            answer = hybrid.check(model, f"P{word}=? [ {asked} ]", throw=False, **options)
            if not found:
                assert "has probability 0" in str(answer.error)
                continue
            right = max(values) if word == "max" else min(values)
            assert answer.lower <= right <= answer.upper, (text, asked, right)
            assert answer.upper - answer.lower <= 1e-6


def _states(states: set[int]) -> str:
    return " | ".join(f"s={s}" for s in sorted(states))


TEXT = """mdp module m s : [0..5];
  [a] s=0 -> 1/2:(s'=1) + 1/2:(s'=2); [b] s=0 -> 1/3:(s'=3) + 2/3:(s'=5);
  [a] s=1 -> 1/2:(s'=3) + 1/2:(s'=4); [b] s=1 -> (s'=0);
  [a] s=2 -> (s'=5); [b] s=2 -> 1/4:(s'=3) + 3/4:(s'=2);
  [] s=3 -> 1/2:(s'=4) + 1/2:(s'=5); [] s>3 -> true;
endmodule"""
KNOWN: dict[str, Fraction | bool] = {
    "Pmin=? [ F s=3 || F s=4 ]": Fraction(1, 3),
    "Pmax=? [ F s=3 || F s=4 ]": Fraction(1),
    "Pmax=? [ G s!=3 || F s=4 ]": Fraction(2, 3),
    "Pmin=? [ F s=4 || F s=3 ]": Fraction(1, 2),
    "filter(max, Pmin=? [ F s=4 || s!=0 U s=3 ], s=1 | s=2)": Fraction(1, 2),
    "P>=0.3 [ F s=3 || F s=4 ]": True,
    "P<=0.9 [ F s=3 || F s=4 ]": False,
    "Pmax=? [ F (s=1 & P>=0.3 [ F s=3 || F s=4 ]) ]": Fraction(1, 2),
}  # fmt: skip


@pytest.mark.parametrize("prop", KNOWN)
def test_values_by_hand(prop: str) -> None:
    right = KNOWN[prop]
    if "&" in prop:  # asked of all states, in one of which the condition is impossible
        with pytest.raises(hybrid.HybridError, match="has probability 0 in"):
            hybrid.check(hybrid.parse(TEXT), prop)
        return
    answer = hybrid.check(hybrid.parse(TEXT), prop)
    if isinstance(right, bool):
        assert answer.value is right
        return
    assert answer.lower <= right <= answer.upper and answer.upper - answer.lower <= 1e-6


@pytest.mark.parametrize(
    ("prop", "options", "message"),
    [
        ("Pmax=? [ F s=3 || F s=4 ]", {"scheduler": True}, "without parts and schedulers"),
        ("Pmax=? [ F s=3 || F s=4 ]", {"ranks": 2}, "without parts and schedulers"),
        ("Pmax=? [ F s=3 || F s=4 ]", {"exact": True}, "is not solved exactly"),
        ("Pmax=? [ (F s=3) & (F s=1) || F s=4 ]", {}, "those of F, G, U, W and R without bounds"),
    ],
)
def test_refusals(prop: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(hybrid.HybridError, match=message):
        hybrid.check(hybrid.parse(TEXT), prop, **options)


def test_many_states_are_not_asked_of_at_once() -> None:
    text = "mdp module m s : [0..2000]; [] s<2000 -> (s'=s+1); [] s=2000 -> true; endmodule"
    with pytest.raises(hybrid.HybridError, match="take a system for every state asked for, got 2,001"):
        hybrid.check(hybrid.parse(text), "filter(max, Pmax=? [ F s=3 || F s=4 ])")
