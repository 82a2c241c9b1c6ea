"""Components on one thread of the CPU, compiled: what the device is measured against.

Tarjan's algorithm; for maximal end components over the choices that are left.  Choices that leave their
component go, with the states that have lost their last one and the choices into those, by a stack.  Only
components that have lost something are decomposed again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["compiled_mec", "compiled_scc"]

Ints = NDArray[Any]


def compiled_scc(offsets: Ints, targets: Ints) -> Ints:
    """Return some state of each state's strongly connected component, the same for all states of it.

    ``offsets``, where the transitions of each state begin, and ``targets`` are int32. Time: linear.
    """
    return _scc(offsets, targets)  # type: ignore[no-any-return]


def compiled_mec(offsets: Ints, targets: Ints, choice_offsets: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return labels (the least state of each state's component, -1 for none) and the choices kept.

    ``choice_offsets`` are where the transitions of each choice begin, int32. Time: linear an iteration.
    """
    return _mec(offsets, targets, choice_offsets)  # type: ignore[no-any-return]


@njit(cache=True)
def _scc(offsets, targets):  # type: ignore[no-untyped-def]
    n = len(offsets) - 1
    component = np.empty(n, np.int32)
    number = np.full(n, -1, np.int32)
    low, stack = np.empty(n, np.int32), np.empty(n, np.int32)
    calls, edge = np.empty(n, np.int32), np.empty(n, np.int32)
    listed = np.arange(n).astype(np.int32)
    _tarjan(listed, offsets, targets, None, None, component, number, low, stack, calls, edge)
    return component


@njit(cache=True)
def _mec(offsets, targets, choice_offsets):  # type: ignore[no-untyped-def]
    n, m, n_choices = len(offsets) - 1, len(targets), len(choice_offsets) - 1
    choice_of = np.empty(m, np.int32)
    state_of = np.empty(n_choices, np.int32)
    for c in range(n_choices):
        choice_of[choice_offsets[c] : choice_offsets[c + 1]] = c
    live_choices = np.zeros(n, np.int32)
    for v in range(n):
        e = offsets[v]
        while e < offsets[v + 1]:
            state_of[choice_of[e]] = v
            live_choices[v] += 1
            e = choice_offsets[choice_of[e] + 1]
    # For every state, the choices with a transition into it.
    into = np.zeros(n + 1, np.int32)
    for e in range(m):
        into[targets[e] + 1] += 1
    for v in range(n):
        into[v + 1] += into[v]
    cursor = into[:n].copy()
    into_choice = np.empty(m, np.int32)
    for e in range(m):
        into_choice[cursor[targets[e]]] = choice_of[e]
        cursor[targets[e]] += 1
    live = np.ones(n_choices, np.bool_)
    component = np.full(n, -1, np.int32)
    is_dirty = np.zeros(n, np.bool_)
    number = np.full(n, -1, np.int32)
    low = np.empty(n, np.int32)
    stack = np.empty(n, np.int32)
    calls = np.empty(n, np.int32)
    edge = np.empty(n, np.int32)
    removed = np.empty(n, np.int32)
    listed = np.arange(n).astype(np.int32)
    n_listed = n
    while n_listed > 0:
        _tarjan(
            listed[:n_listed], offsets, targets, choice_of, live, component, number, low, stack, calls, edge
        )
        n_removed = 0
        for i in range(n_listed):
            is_dirty[listed[i]] = False
        for i in range(n_listed):
            v = listed[i]
            e = offsets[v]
            while e < offsets[v + 1]:
                c = choice_of[e]
                end = choice_offsets[c + 1]
                if live[c]:
                    while e < end and component[targets[e]] == component[v]:
                        e += 1
                    if e < end:
                        live[c] = False
                        live_choices[v] -= 1
                        is_dirty[component[v]] = True
                e = end
            if live_choices[v] == 0:
                is_dirty[component[v]] = True
                removed[n_removed] = v
                n_removed += 1
        while n_removed > 0:
            n_removed -= 1
            v = removed[n_removed]
            for k in range(into[v], into[v + 1]):
                c = into_choice[k]
                if not live[c]:
                    continue
                live[c] = False
                u = state_of[c]
                is_dirty[component[u]] = True
                live_choices[u] -= 1
                if live_choices[u] == 0:
                    removed[n_removed] = u
                    n_removed += 1
        n_left = 0
        for i in range(n_listed):
            v = listed[i]
            if live_choices[v] > 0 and is_dirty[component[v]]:
                listed[n_left] = v
                number[v] = -1
                n_left += 1
        n_listed = n_left
    least = np.full(n, n, np.int32)
    labels = np.full(n, -1, np.int64)
    for v in range(n):
        if live_choices[v] > 0:
            least[component[v]] = min(least[component[v]], v)
    for v in range(n):
        if live_choices[v] > 0:
            labels[v] = least[component[v]]
    return labels, live


@njit(cache=True)
def _tarjan(listed, offsets, targets, choice_of, live, component, number, low, stack, calls, edge):  # type: ignore[no-untyped-def]
    """Name the components of the listed states, whose number is -1, by states of theirs.

    Edges are those of live choices; all of them where there is no such list.
    """
    count = 0
    top = 0
    for root in listed:
        if number[root] >= 0:
            continue
        depth = 0
        calls[0] = root
        number[root] = low[root] = count
        count += 1
        edge[root] = offsets[root]
        stack[top] = root
        top += 1
        while depth >= 0:
            v = calls[depth]
            e = edge[v]
            end = offsets[v + 1]
            descends = False
            while e < end:
                if live is None or live[choice_of[e]]:
                    w = targets[e]
                    if number[w] < 0:
                        edge[v] = e
                        number[w] = low[w] = count
                        count += 1
                        edge[w] = offsets[w]
                        stack[top] = w
                        top += 1
                        depth += 1
                        calls[depth] = w
                        descends = True
                        break
                    low[v] = min(low[v], low[w])
                e += 1
            if descends:
                continue
            if low[v] == number[v]:
                w = -1
                while w != v:
                    top -= 1
                    w = stack[top]
                    component[w] = v
                    # Never lower than any number: finished components do not count.
                    low[w] = 2147483647
            depth -= 1
            if depth >= 0:
                low[calls[depth]] = min(low[calls[depth]], low[v])
                edge[calls[depth]] += 1
    return count
