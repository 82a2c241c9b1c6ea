"""Exact long-run averages of decision processes, by policy iteration in rational numbers.

A policy has an average g and a bias h in every state.  The average is that of the recurrent classes ahead,
weighed by the probabilities of ending in them.  The bias satisfies ``g + h = r + P h``, and is zero in the
first state of every class.

A state changes its choice where another one leads to a greater g.  It does, too, where another one leads to
an equal g and is worth more than g + h.  Each policy is better than the one before, in g, or in h where g
stays the same.  In the second case recurrent classes stay as they are.  So none comes twice, and the last
one is optimal (M. Puterman, Markov Decision Processes, 1994, section 9.2).

The first policy is found in doubles, so that rational numbers have little or nothing to improve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from hybrid.analysis.exact.systems import OperationBudget, components_in_order, solve_systems

Rows = Sequence[Sequence[Mapping[int, Fraction]]]
Gains = Sequence[Sequence[Fraction]]
Policy = list[int]

_STEPS = 300  # in doubles, from which the first policy is taken
_DAMPING = 0.9  # share of a step that is made, below 1 so that periodic chains settle


def greatest_averages(choices: Rows, gains: Gains, budget: OperationBudget) -> list[Fraction]:
    """Return the greatest long-run average of gains from every state; see `best_policy`."""
    return best_policy(choices, gains, budget)[0]


def greatest_ratio(choices: Rows, above: Gains, below: Gains, budget: OperationBudget) -> Fraction:
    """Return the greatest ratio of two long-run averages in an end component, the second one positive.

    The best policy for ``above - x below`` has the next x as its ratio, which is the greatest one where that
    average is zero (W. Dinkelbach, 1967).
    """
    x = Fraction(0)
    while True:
        gains = [
            [a - x * b for a, b in zip(own, spent, strict=True)]
            for own, spent in zip(above, below, strict=True)
        ]
        average, policy = best_policy(choices, gains, budget)
        if average[0] == 0:
            return x
        rows = [own[k] for own, k in zip(choices, policy, strict=True)]
        spent, _ = _evaluated(rows, [own[k] for own, k in zip(below, policy, strict=True)], budget)
        x += average[0] / spent[0]


def best_policy(choices: Rows, gains: Gains, budget: OperationBudget) -> tuple[list[Fraction], Policy]:
    """Return the greatest long-run average of gains from every state, and a policy that has it.

    A policy costs eliminations in its recurrent classes and outside of them, and one evaluation of every
    choice.
    """
    policy = _approximate(choices, gains)
    while True:
        rows = [own[k] for own, k in zip(choices, policy, strict=True)]
        average, bias = _evaluated(rows, [own[k] for own, k in zip(gains, policy, strict=True)], budget)
        changed = False
        for i, (own, earned) in enumerate(zip(choices, gains, strict=True)):
            best = average[i], average[i] + bias[i]
            for k, row in enumerate(own):
                if k == policy[i]:
                    continue
                ahead = _mean(row, average)
                budget.spend(2 * len(row), ahead)
                if ahead >= best[0] and (ahead, earned[k] + _mean(row, bias)) > best:
                    best, policy[i], changed = (ahead, earned[k] + _mean(row, bias)), k, True
        if not changed:
            return average, policy


def _mean(row: Mapping[int, Fraction], x: Sequence[Fraction]) -> Fraction:
    return sum((p * x[j] for j, p in row.items()), Fraction(0))


def _evaluated(
    rows: Sequence[Mapping[int, Fraction]], gains: Sequence[Fraction], budget: OperationBudget
) -> tuple[list[Fraction], list[Fraction]]:
    """Return the average and the bias of a chain in every state."""
    average, bias = [Fraction(0)] * len(rows), [Fraction(0)] * len(rows)
    transient = []
    for members in components_in_order(rows):
        inside = set(members)
        if any(j not in inside for i in members for j in rows[i]):
            transient += members
            continue
        # The average is the reward of a round trip from the first state over its steps; the bias, that of
        # the way there.
        home, others = members[0], members[1:]
        trip = _solve(rows, others, [[gains[i], Fraction(1)] for i in others], budget)
        ahead = dict(zip(others, trip, strict=True))
        earned, taken = (
            own + sum((p * ahead[j][k] for j, p in rows[home].items() if j != home), Fraction(0))
            for k, own in enumerate((gains[home], Fraction(1)))
        )
        for i in members:
            average[i] = earned / taken
        for i in others:
            bias[i] = ahead[i][0] - average[i] * ahead[i][1]
    outside = set(transient)
    known = [
        [
            sum((p * x[j] for j, p in rows[i].items() if j not in outside), Fraction(0))
            for x in (average, bias)
        ]
        for i in transient
    ]
    for i, (value,) in zip(transient, _solve(rows, transient, [[a] for a, _ in known], budget), strict=True):
        average[i] = value
    right = [[gains[i] - average[i] + h] for i, (_, h) in zip(transient, known, strict=True)]
    for i, (value,) in zip(transient, _solve(rows, transient, right, budget), strict=True):
        bias[i] = value
    return average, bias


def _solve(
    rows: Sequence[Mapping[int, Fraction]],
    unknown: Sequence[int],
    right: Sequence[Sequence[Fraction]],
    budget: OperationBudget,
) -> list[list[Fraction]]:
    """Solve ``x = right + P x`` on some states, all others being worth nothing."""
    place = {s: k for k, s in enumerate(unknown)}
    own = [{place[j]: p for j, p in rows[i].items() if j in place} for i in unknown]
    return solve_systems(own, right, budget)


def _approximate(choices: Rows, gains: Gains) -> Policy:
    """Return the policy that is best after some steps of value iteration in doubles."""
    owner = np.repeat(np.arange(len(choices)), [len(own) for own in choices])
    first = np.searchsorted(owner, np.arange(len(choices)))
    every = [row for own in choices for row in own]
    number = np.repeat(np.arange(len(every)), [len(row) for row in every])
    column = np.array([j for row in every for j in row], dtype=np.int64)
    weight = np.array([float(p) for row in every for p in row.values()])
    earned = np.array([float(gain) for own in gains for gain in own])
    x, worth = np.zeros(len(choices)), earned
    for _ in range(_STEPS):
        worth = earned + np.bincount(number, weight * x[column], len(every))
        x += _DAMPING * (np.maximum.reduceat(worth, first) - x)
    top = np.flatnonzero(worth == np.maximum.reduceat(worth, first)[owner])
    _, at = np.unique(owner[top], return_index=True)
    found: Policy = (top[at] - first).tolist()
    return found
