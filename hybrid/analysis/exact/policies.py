"""Exact solution of ``x = opt over options (gain + A x)`` by policy iteration in rational numbers.

A policy takes one option of every state.  It is proper if the system is left almost surely under it.
Every policy has to be proper, or an improper one to be worth infinitely much to a minimum; then each policy
found is better than the one before and proper, and the last one is optimal (D. Bertsekas and J. Tsitsiklis,
An analysis of stochastic shortest path problems, Mathematics of Operations Research, 1991, section 3).
The first policy is found in doubles, so that rational numbers have little or nothing to improve.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.exact.elimination import Budget
from hybrid.analysis.exact.systems import solve_systems
from hybrid.base.errors import NotExactError

MAX_UNKNOWN = 1000
"""States whose optimal values may have to be solved for where operations are counted."""

_DENSE = 500  # states up to which the system of a policy is a dense matrix
_TRIES = 100  # policies tried in doubles: a poor first policy costs time, never the answer
_GAIN = 1e-9  # relative; less is rounding


@dataclass(frozen=True)
class Option:
    """A choice of an unknown state.

    Attributes
    ----------
    gain : Fraction
        What it is worth by itself.
    row : mapping
        Unknown successor -> probability; what is missing to 1 leaves the system.
    """

    gain: Fraction
    row: Mapping[int, Fraction]


Policy = list[int]


def solve_optima(options: Sequence[Sequence[Option]], maximise: bool, budget: Budget) -> list[Fraction]:
    """Return the optimal values.

    Parameters
    ----------
    options : sequence of sequences of Option, length n
        At least one for every state.
    maximise : bool
    budget : Budget

    Returns
    -------
    list of Fraction, length n

    Raises
    ------
    NotExactError
        There are too many states or operations, or from some state no policy leaves the system.

    Notes
    -----
    A policy costs one elimination, see `hybrid.analysis.exact.elimination`, and one look at every option.
    """
    if not options:
        return []
    if budget.left is not None and len(options) > MAX_UNKNOWN:
        raise NotExactError(f"{len(options)} unknown states are too many for exact solution")
    policy = _approximate(options, _leaving(options), maximise)
    while True:
        own = [of[k] for of, k in zip(options, policy, strict=True)]
        solved = solve_systems([o.row for o in own], [[o.gain] for o in own], budget)
        values = [x[0] for x in solved]
        changed = False
        for i, of in enumerate(options):
            best = values[i]
            for k, option in enumerate(of):
                worth = option.gain + sum((p * values[j] for j, p in option.row.items()), Fraction(0))
                budget.spend(1 + len(option.row), worth)
                if worth > best if maximise else worth < best:
                    best, policy[i], changed = worth, k, True
        if not changed:
            return values


def _leaving(options: Sequence[Sequence[Option]]) -> Policy:
    """Return a proper policy: in every state an option that may come closer to the way out.

    Raises
    ------
    NotExactError
    """
    before: list[list[tuple[int, int]]] = [[] for _ in options]
    policy = [-1] * len(options)
    reached = []
    for i, of in enumerate(options):
        for k, option in enumerate(of):
            for j in option.row:
                before[j].append((i, k))
            if policy[i] < 0 and sum(option.row.values()) < 1:
                policy[i] = k
                reached.append(i)
    for j in reached:  # grows meanwhile
        for i, k in before[j]:
            if policy[i] < 0:
                policy[i] = k
                reached.append(i)
    if len(reached) < len(options):
        raise NotExactError("some states cannot leave the system that is solved")
    return policy


def _solution(
    size: int,
    row: NDArray[np.int64],
    column: NDArray[np.int64],
    weight: NDArray[np.float64],
    gains: NDArray[np.float64],
) -> NDArray[np.float64] | None:
    """Solve the system of one policy in doubles; None if they see none that is unique."""
    if size > _DENSE:
        from scipy.sparse import csc_array, eye_array
        from scipy.sparse.linalg import MatrixRankWarning, spsolve

        system = eye_array(size, format="csc") - csc_array((weight, (row, column)), shape=(size, size))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatrixRankWarning)
            found: NDArray[np.float64] = np.asarray(spsolve(system, gains), np.float64)
        return found if bool(np.isfinite(found).all()) else None
    dense = np.eye(size)
    np.subtract.at(dense, (row, column), weight)
    try:
        solved: NDArray[np.float64] = np.linalg.solve(dense, gains).astype(np.float64)
        return solved
    except np.linalg.LinAlgError:
        return None


def _approximate(options: Sequence[Sequence[Option]], policy: Policy, maximise: bool) -> Policy:
    """Return a proper policy that policy iteration in doubles comes to from a proper one."""
    size = len(options)
    sign = 1.0 if maximise else -1.0
    owner = np.repeat(np.arange(size), [len(of) for of in options])
    first = np.searchsorted(owner, np.arange(size))
    every = [option for of in options for option in of]
    gains = np.array([float(option.gain) for option in every])
    lengths = np.array([len(option.row) for option in every])
    number = np.repeat(np.arange(len(every)), lengths)
    column = np.array([j for option in every for j in option.row], dtype=np.int64)
    weight = np.array([float(p) for option in every for p in option.row.values()])
    current = np.array(policy) + first
    for _ in range(_TRIES):
        where = np.full(len(every), -1)
        where[current] = np.arange(size)
        mine = where[number] >= 0
        x = _solution(size, where[number[mine]], column[mine], weight[mine], gains[current])
        if x is None:
            break
        with np.errstate(over="ignore", invalid="ignore"):
            worth = sign * (gains + np.bincount(number, weight * x[column], len(every)))
        if not bool(np.isfinite(worth).all()):
            break
        best = np.maximum.reduceat(worth, first)
        better = best > worth[current] + _GAIN * np.abs(worth[current])
        if not bool(better.any()):
            break
        # The first option of every state that is as good as its best one.
        top = np.flatnonzero(worth == best[owner])
        tops, at = np.unique(owner[top], return_index=True)
        chosen = current.copy()
        chosen[tops] = top[at]
        current = np.where(better, chosen, current)
    found: Policy = (current - first).tolist()
    only = [[of[k]] for of, k in zip(options, found, strict=True)]
    try:
        _leaving(only)
    except NotExactError:
        return policy  # rounding led astray
    return found
