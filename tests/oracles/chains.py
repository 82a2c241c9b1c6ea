"""Independent answers about Markov chains: graph questions by definition, exact rational solutions.

Written one state at a time with fractions; good for about a hundred states.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

__all__ = [
    "Chain",
    "backward_states",
    "bottom_components",
    "forward_states",
    "prob0",
    "prob1",
    "reachability_rewards",
    "solve_exactly",
    "stationary_distribution",
    "until_probabilities",
]

# A chain is one mapping a state: successor -> rate or probability (positive).
Chain = Sequence[Mapping[int, Fraction]]

# ------------------------------------------------------------------ graphs


def forward_states(chain: Chain, start: Iterable[int]) -> set[int]:
    """Return the states reachable from `start`, itself included."""
    found: set[int] = set()
    waiting = list(start)
    while waiting:
        state = waiting.pop()
        if state not in found:
            found.add(state)
            waiting += chain[state]
    return found


def backward_states(chain: Chain, target: Iterable[int], through: Iterable[int] | None = None) -> set[int]:
    """Return the states with a path to `target` whose states before it lie in `through` (default: any)."""
    inside = set(range(len(chain))) if through is None else set(through)
    found = set(target)
    while True:
        more = {s for s in inside - found if any(t in found for t in chain[s])}
        if not more:
            return found
        found |= more


def prob0(chain: Chain, safe: set[int], target: set[int]) -> set[int]:
    """Return the states from which `safe U target` has probability 0: no path."""
    return set(range(len(chain))) - backward_states(chain, target, safe - target)


def prob1(chain: Chain, safe: set[int], target: set[int]) -> set[int]:
    """Return the states from which `safe U target` has probability 1: no path to a state of probability 0."""
    zero = prob0(chain, safe, target)
    return set(range(len(chain))) - backward_states(chain, zero, safe - target)


def bottom_components(chain: Chain) -> list[set[int]]:
    """Return the closed strongly connected sets, by definition, in order of their smallest states."""
    ahead = [forward_states(chain, [s]) for s in range(len(chain))]
    found = []
    for state, reach in enumerate(ahead):
        if state == min(reach) and all(state in ahead[t] for t in reach):
            found.append(reach)
    return found


# ------------------------------------------------------------------ exact solutions


def solve_exactly(matrix: Sequence[Sequence[Fraction]], right: Sequence[Fraction]) -> list[Fraction]:
    """Return the solution of a regular linear system.

    By Bareiss' elimination of integers, whose divisions leave no rest: fractions would be cancelled anew.

    Raises
    ------
    ZeroDivisionError
        The matrix is singular.
    """
    size = len(right)
    rows = [_integers([*row, b]) for row, b in zip(matrix, right, strict=True)]
    before = 1
    for column in range(size):
        pivot = next((r for r in range(column, size) if rows[r][column] != 0), None)
        if pivot is None:
            raise ZeroDivisionError("the matrix is singular")
        rows[column], rows[pivot] = rows[pivot], rows[column]
        own = rows[column]
        scale = own[column]
        for r in range(column + 1, size):
            row = rows[r]
            factor = row[column]
            row[column:] = [
                (scale * x - factor * y) // before for x, y in zip(row[column:], own[column:], strict=True)
            ]
        before = scale
    found = [Fraction(0)] * size
    for r in reversed(range(size)):
        known = sum((rows[r][k] * found[k] for k in range(r + 1, size) if rows[r][k]), Fraction(0))
        found[r] = (rows[r][size] - known) / rows[r][r]
    return found


def _integers(row: Sequence[Fraction]) -> list[int]:
    """The numbers of a row times their common denominator."""
    common = math.lcm(*(Fraction(x).denominator for x in row))
    return [int(Fraction(x) * common) for x in row]


def _normalised(chain: Chain) -> list[dict[int, Fraction]]:
    """Return the embedded DTMC: every row divided by its sum."""
    found = []
    for row in chain:
        total = sum(row.values())
        found.append(dict(row) if total == 1 else {t: rate / total for t, rate in row.items()})
    return found


def _solve_on(
    chain: Chain, unknown: Sequence[int], known: Mapping[int, Fraction], gain: Sequence[Fraction]
) -> dict[int, Fraction]:
    """Solve x = gain + P x for the unknown states, the others' values given (default 0)."""
    place = {s: k for k, s in enumerate(unknown)}
    matrix, right = [], []
    for s in unknown:
        row = [Fraction(0)] * len(unknown)
        row[place[s]] += 1
        b = gain[s]
        for t, p in chain[s].items():
            if t in place:
                row[place[t]] -= p
            else:
                b += p * known.get(t, Fraction(0))
        matrix.append(row)
        right.append(b)
    return dict(zip(unknown, solve_exactly(matrix, right), strict=True))


def until_probabilities(chain: Chain, safe: set[int], target: set[int]) -> list[Fraction]:
    """Return the probability of `safe U target` from every state; rates are normalised first."""
    one, zero = prob1(chain, safe, target), prob0(chain, safe, target)
    unknown = [s for s in range(len(chain)) if s not in one and s not in zero]
    steps = _normalised(chain) if unknown else []
    solved = _solve_on(steps, unknown, dict.fromkeys(one, Fraction(1)), [Fraction(0)] * len(chain))
    return [Fraction(1) if s in one else solved.get(s, Fraction(0)) for s in range(len(chain))]


def reachability_rewards(
    chain: Chain, rewards: Sequence[Fraction], target: set[int], continuous: bool
) -> list[Fraction | float]:
    """Return the expected reward earned before `target` is reached, infinite where that is not certain.

    Parameters
    ----------
    chain : sequence of mapping
    rewards : sequence of Fraction
        Per step (DTMC) or per time unit (CTMC), transition rewards included.
    target : set of int
    continuous : bool
        Whether `chain` holds rates (CTMC): a visit then lasts 1 / exit rate on average.
    """
    everything = set(range(len(chain)))
    sure = prob1(chain, everything, target)
    stay = [1 / sum(row.values()) if continuous else Fraction(1) for row in chain]
    gain = [reward * time for reward, time in zip(rewards, stay, strict=True)]
    solved = _solve_on(_normalised(chain), sorted(sure - target), {}, gain)
    return [solved.get(s, Fraction(0)) if s in sure else math.inf for s in range(len(chain))]


def stationary_distribution(chain: Chain, start: Mapping[int, Fraction], continuous: bool) -> list[Fraction]:
    """Return the long-run fraction of time in every state.

    Parameters
    ----------
    chain : sequence of mapping
        Probabilities (the average over time is meant, so periods do not matter) or rates.
    start : mapping
        Initial distribution.
    continuous : bool
        Whether `chain` holds rates.
    """
    steps = chain if continuous else _normalised(chain)
    result = [Fraction(0)] * len(chain)
    for component in bottom_components(chain):
        reach = until_probabilities(chain, set(range(len(chain))), component)
        weight = sum((p * reach[s] for s, p in start.items()), Fraction(0))
        members = sorted(component)
        place = {s: k for k, s in enumerate(members)}
        # Balance: flow in equals flow out in every state; the last equation becomes "adds up to 1".
        balance = [[Fraction(0)] * len(members) for _ in members]
        for s in members:
            for t, rate in steps[s].items():
                if s != t:
                    balance[place[t]][place[s]] += rate
                    balance[place[s]][place[s]] -= rate
        balance[-1] = [Fraction(1)] * len(members)
        right = [Fraction(0)] * (len(members) - 1) + [Fraction(1)]
        for s, p in zip(members, solve_exactly(balance, right), strict=True):
            result[s] += weight * p
    return result


def mean(row, x):
    return sum(p * x[j] for j, p in row.items())


def exact_steps(chain, safe, target, lower, upper):
    """Probability of reaching a target within a window of steps, from the definition."""
    n = len(chain)
    x = [Fraction(i in target) for i in range(n)]
    for _ in range(upper - lower):
        x = [
            Fraction(1)
            if i in target
            else sum(p * x[j] for j, p in chain[i].items())
            if i in safe
            else Fraction(0)
            for i in range(n)
        ]
    for _ in range(lower):
        x = [mean(chain[i], x) if i in safe else Fraction(0) for i in range(n)]
    return x
