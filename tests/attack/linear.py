"""Exact answers about a chain: graph questions by definition, linear systems by elimination on fractions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

__all__ = ["Rows", "bottom_components", "can_reach", "long_run", "reach", "solve", "total", "until"]

# A chain is one mapping a state: successor -> positive rate or probability.
Rows = Sequence[Mapping[int, Fraction]]
Value = Fraction | float  # infinity is the only float


def can_reach(rows: Rows, target: Iterable[int], through: set[int] | None = None) -> set[int]:
    """Return the states with a path to `target` whose states before it lie in `through` (default: any)."""
    before: dict[int, list[int]] = {}
    for s, row in enumerate(rows):
        if through is None or s in through:
            for t in row:
                before.setdefault(t, []).append(s)
    found = set(target)
    waiting = list(found)
    while waiting:
        for s in before.get(waiting.pop(), ()):
            if s not in found:
                found.add(s)
                waiting.append(s)
    return found


def reach(rows: Rows, start: int) -> set[int]:
    """Return the states that are reachable from one, itself included."""
    found, waiting = {start}, [start]
    while waiting:
        for t in rows[waiting.pop()]:
            if t not in found:
                found.add(t)
                waiting.append(t)
    return found


def bottom_components(rows: Rows) -> list[set[int]]:
    """Return the closed strongly connected sets."""
    found: list[set[int]] = []
    ahead = [reach(rows, s) for s in range(len(rows))]
    for s, states in enumerate(ahead):
        if s == min(states) and all(s in ahead[t] for t in states):
            found.append(states)
    return found


def solve(rows: Rows, inside: set[int], right: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """Return x with ``d[s] x[s] - sum of rows[s][t] x[t] = right[s]`` over `inside`, d the rows' sums.

    Every state of `inside` has to have a path out of it, so that the solution is unique.
    """
    system: dict[int, dict[int, Fraction]] = {}
    columns: dict[int, set[int]] = {s: set() for s in inside}
    b = {s: right.get(s, Fraction(0)) for s in inside}
    for s in inside:
        # The diagonal is what leaves the state: no subtraction of nearly equal numbers, exact in any case.
        line = {t: -p for t, p in rows[s].items() if t != s and t in inside}
        line[s] = sum((p for t, p in rows[s].items() if t != s), Fraction(0))
        system[s] = line
        for t in line:
            columns[t].add(s)
    order: list[int] = []
    left = set(inside)
    while left:
        s = min(left, key=lambda s: ((len(system[s]) - 1) * (len(columns[s]) - 1), s))
        left.remove(s)
        order.append(s)
        line, pivot = system[s], system[s][s]
        line = {t: a / pivot for t, a in line.items() if t != s}
        system[s], b[s] = line, b[s] / pivot
        for r in columns[s] & left:
            factor = system[r].pop(s)
            for t, a in line.items():
                new = system[r].get(t, 0) - factor * a
                system[r][t] = new
                columns[t].add(r)
            b[r] -= factor * b[s]
        for t in line:
            columns[t].discard(s)
    x: dict[int, Fraction] = {}
    for s in reversed(order):
        x[s] = b[s] - sum((a * x[t] for t, a in system[s].items()), Fraction(0))
    return x


# ------------------------------------------------------------------ quantities


def until(rows: Rows, safe: set[int], target: set[int]) -> list[Fraction]:
    """Return the probability of ``safe U target`` from every state."""
    some = can_reach(rows, target, safe - target)
    inside = some - target
    # Certain states need no system; those of probability 0 must not be part of one.
    never = set(range(len(rows))) - some
    sure = inside - can_reach(rows, never, inside)
    inside -= sure
    into = {s: sum((p for t, p in rows[s].items() if t in target or t in sure), Fraction(0)) for s in inside}
    x = solve(rows, inside, into)
    return [Fraction(1) if s in target or s in sure else x.get(s, Fraction(0)) for s in range(len(rows))]


def total(rows: Rows, earned: Sequence[Fraction], target: set[int]) -> list[Value | None]:
    """Return what is earned before `target` is reached, a step or unit of time at a time.

    Infinite where it is not reached almost surely; None where, besides, rewards below zero can be earned
    before.
    """
    n = len(rows)
    never = set(range(n)) - can_reach(rows, target)
    unsure = can_reach(rows, never, set(range(n)) - target)
    inside = set(range(n)) - unsure - target
    x = solve(rows, inside, {s: earned[s] for s in inside})
    before = set(range(n)) - target
    losing = can_reach(rows, [s for s in before if earned[s] < 0], before)
    return [(None if s in losing else math.inf) if s in unsure else x.get(s, Fraction(0)) for s in range(n)]


def stationary(rows: Rows, component: set[int]) -> dict[int, Fraction]:
    """Return the long-run shares of a closed component's states: of time for rates, else of steps."""
    some = min(component)
    others = component - {some}
    leaving = {s: sum((p for t, p in rows[s].items() if t != s), Fraction(0)) for s in component}
    # Balance: leaving[s] y[s] = sum of y[r] rows[r][s]; fix y[some] = 1.
    reverse: list[dict[int, Fraction]] = [{} for _ in rows]
    for r in component:
        for s, p in rows[r].items():
            if r != s:
                reverse[s][r] = p
    y = {some: Fraction(1)}
    y.update(_balanced(reverse, others, leaving, some))
    whole = sum(y.values())
    return {s: v / whole for s, v in y.items()}


def _balanced(
    reverse: Rows, inside: set[int], leaving: Mapping[int, Fraction], some: int
) -> dict[int, Fraction]:
    """Return y with ``leaving[s] y[s] = sum of reverse[s][r] y[r]`` over `inside`, where y[some] = 1."""
    order, b = sorted(inside), {s: reverse[s].get(some, Fraction(0)) for s in inside}
    system = {s: {**{r: -p for r, p in reverse[s].items() if r in inside}, s: leaving[s]} for s in inside}
    for i, s in enumerate(order):
        pivot = system[s][s]
        for r in order[i + 1 :]:
            factor = system[r].get(s)
            if factor:
                ratio = factor / pivot
                for t, a in system[s].items():
                    if a:
                        system[r][t] = system[r].get(t, Fraction(0)) - ratio * a
                b[r] -= ratio * b[s]
    y: dict[int, Fraction] = {}
    for i in range(len(order) - 1, -1, -1):
        s = order[i]
        rest = sum((system[s].get(t, Fraction(0)) * y[t] for t in order[i + 1 :]), Fraction(0))
        y[s] = (b[s] - rest) / system[s][s]
    return y


def long_run(rows: Rows, earned: Sequence[Fraction]) -> list[Fraction]:
    """Return the long-run average of what is earned a step or unit of time, from every state."""
    result = [Fraction(0)] * len(rows)
    for component in bottom_components(rows):
        shares = stationary(rows, component)
        average = sum((p * earned[s] for s, p in shares.items()), Fraction(0))
        if average:
            into = until(rows, set(range(len(rows))), component)
            result = [a + p * average for a, p in zip(result, into, strict=True)]
    return result
