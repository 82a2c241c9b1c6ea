"""Exact solution of sparse systems ``x = A x + b``, component by component, each by what is quickest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from hybrid.analysis.exact.elimination import Budget, solve_rationals
from hybrid.analysis.exact.lifting import elimination, solve_by_lifting

_FEW = 12
"""Unknowns that are eliminated in fractions whatever the pattern."""

_THIN = 5
"""Entries of the factors over the unknowns up to which fractions are quicker: nothing is filled in."""


def solve_systems(
    rows: Sequence[Mapping[int, Fraction]], right: Sequence[Sequence[Fraction]], budget: Budget
) -> list[list[Fraction]]:
    """Return x for every right-hand side b at once.

    Parameters
    ----------
    rows : sequence of mappings, length n
        Row i of A: column -> entry, not negative; from every state the system is left almost surely.
    right : sequence of sequences, shape (n, m)
        Row i of the m right-hand sides.
    budget : Budget
        Where it limits operations, all is done in fractions, which it counts.

    Returns
    -------
    list of lists, shape (n, m)

    Raises
    ------
    NotExactError
        More operations are needed than are granted.
    BudgetError
        The time or the memory is spent.

    Notes
    -----
    Strongly connected components are solved one after the other, those first that lead to no other. Within
    one, thin patterns are eliminated in fractions (`hybrid.analysis.exact.elimination`), others by digits
    (`hybrid.analysis.exact.lifting`).
    """
    if budget.left is not None:
        return solve_rationals(rows, right, budget)
    x: list[list[Fraction]] = [[] for _ in rows]
    for members in _components(rows):
        place = {s: k for k, s in enumerate(members)}
        inner: list[dict[int, Fraction]] = []
        known: list[list[Fraction]] = []
        for s in members:
            own, worth = {}, list(right[s])
            for j, p in rows[s].items():
                if j in place:
                    own[place[j]] = p
                else:
                    worth = [
                        value + p * more if more else value for value, more in zip(worth, x[j], strict=True)
                    ]
            inner.append(own)
            known.append(worth)
        solved = _solved(inner, known, budget)
        for s, values in zip(members, solved, strict=True):
            x[s] = values
    return x


def _solved(
    rows: Sequence[Mapping[int, Fraction]], right: Sequence[Sequence[Fraction]], budget: Budget
) -> list[list[Fraction]]:
    """Solve the system of one component."""
    if len(rows) > _FEW:
        order, filled = elimination(rows)
        if filled > _THIN * len(rows):
            return solve_by_lifting(rows, right, order)
    return solve_rationals(rows, right, budget)


def _components(rows: Sequence[Mapping[int, Fraction]]) -> list[list[int]]:
    """Return the strongly connected components of a system's graph, those first that lead to no other."""
    if all(j == i for i, row in enumerate(rows) for j in row):
        return [[i] for i in range(len(rows))]
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    size = len(rows)
    ptr = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    columns = np.fromiter((j for row in rows for j in row), np.int64, int(ptr[-1]))
    graph = csr_array((np.ones(len(columns)), columns, ptr), shape=(size, size))
    count, label = connected_components(graph, directed=True, connection="strong")
    owner = np.repeat(label, np.diff(ptr))
    # Kahn's algorithm on the components, from the ends.
    edges = np.unique(owner.astype(np.int64) * count + label[columns])
    source, target = edges // count, edges % count
    source, target = source[source != target], target[source != target]
    left = np.bincount(source, minlength=count)
    by_target = np.argsort(target, kind="stable")
    begins = np.searchsorted(target[by_target], np.arange(count + 1))
    sources = source[by_target].tolist()
    waiting = np.flatnonzero(left == 0).tolist()
    open_edges = left.tolist()
    members: list[list[int]] = [[] for _ in range(count)]
    for s, own in enumerate(label.tolist()):
        members[own].append(s)
    found = []
    for component in waiting:  # grows meanwhile
        found.append(members[component])
        for e in range(int(begins[component]), int(begins[component + 1])):
            open_edges[sources[e]] -= 1
            if open_edges[sources[e]] == 0:
                waiting.append(sources[e])
    return found
