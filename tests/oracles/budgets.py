"""Reward-bounded until by definition: budget after budget, all choices of steps that earn nothing."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from tests.oracles.chains import solve_exactly

Choice = list[tuple[Fraction, int, int]]
"""Probability, reward and successor of every branch of one choice."""


def bounded_until(
    choices: Sequence[Sequence[Choice]], safe: set[int], target: set[int], budget: int, maximise: bool
) -> list[list[Fraction]]:
    """Return the optimal probabilities of every budget from 0, by budget and state.

    A scheduler that knows what is left needs no more memory: within one budget it picks one choice a state
    for the steps that earn nothing.
    """
    n = len(choices)
    found: list[list[Fraction]] = []
    for k in range(budget + 1):
        best: list[Fraction] | None = None
        for picked in product(*(range(len(own)) for own in choices)):
            own = _evaluated([choices[s][c] for s, c in enumerate(picked)], safe, target, k, found)
            if best is None:
                best = own
            else:
                best = [max(a, b) if maximise else min(a, b) for a, b in zip(best, own, strict=True)]
        assert best is not None and len(best) == n
        found.append(best)
    return found


def _evaluated(
    rows: list[Choice], safe: set[int], target: set[int], k: int, before: list[list[Fraction]]
) -> list[Fraction]:
    """Return a chain's probabilities of budget k from those of lesser ones."""
    n = len(rows)
    inner = [[Fraction(0)] * n for _ in range(n)]
    gain = [Fraction(0)] * n
    open_states = [s for s in range(n) if s in safe and s not in target]
    for s in open_states:
        for p, reward, t in rows[s]:
            if reward > k:
                continue
            if t in target:
                gain[s] += p
            elif reward:
                gain[s] += p * before[k - reward][t]
            elif t in safe:
                inner[s][t] += p
    # The least solution: states that reach no gain are worth nothing.
    worth = {s for s in open_states if gain[s]}
    while True:
        more = {s for s in open_states if s not in worth and any(inner[s][t] for t in worth)}
        if not more:
            break
        worth |= more
    place = sorted(worth)
    matrix = [[Fraction(s == t) - inner[s][t] for t in place] for s in place]
    solved = solve_exactly(matrix, [gain[s] for s in place]) if place else []
    values = [Fraction(int(s in target)) for s in range(n)]
    for s, value in zip(place, solved, strict=True):
        values[s] = value
    return values
