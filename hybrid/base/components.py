"""Strongly connected components of small graphs, without a library to load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Searches backward over the choices of a decision process, held as blocks: as they are, and to be compiled.
#
# The lists are those of :class:`hybrid.analysis.precomputation.PredecessorLists`. A state is taken from the
# stack once at most, when all instances over its column are examined: O(transitions) in all, and O(1) more
# for every instance that has no entry there. One thread. Arguments are arrays where the functions are
# compiled (:mod:`hybrid.matrix.cpu.graph_kernels`), and views of memory where the interpreter runs them. A
# search stops where `most` states wait or none, and returns how many.


def search_states(  # type: ignore[no-untyped-def]
    starts,
    shift,
    near,
    instance_ptr,
    row,
    choice,
    slot,
    column_ptr,
    entry_row,
    allowed,
    stack,
    waiting,
    found,
    most,
):
    """Mark all states with a path to marked ones by allowed choices.

    `allowed`, shape (n,), has one bit for every layer whose choice may be taken. The first `waiting` elements
    of `stack`, int32, shape (n,), are the marked states; `found`, bool, shape (n,), has the marks, changed in
    place.
    """
    while 0 < waiting < most:
        waiting -= 1
        state = stack[waiting]
        group = near[state >> shift]
        while starts[group + 1] <= state:
            group += 1
        local = state - starts[group]
        for i in range(instance_ptr[group], instance_ptr[group + 1]):
            place = slot[i] + local
            for e in range(column_ptr[place], column_ptr[place + 1]):
                source = row[i] + entry_row[e]
                if not found[source] and allowed[source] & choice[i]:
                    found[source] = True
                    stack[waiting] = source
                    waiting += 1
    return waiting


def withdraw_states(  # type: ignore[no-untyped-def]
    starts, shift, near, instance_ptr, row, choice, slot, column_ptr, entry_row, kept, stack, waiting, gone,
    most,
):  # fmt: skip
    """Drop all choices that may lead to marked states, and mark the states that lose their last one.

    `kept`, shape (n,), has one bit for every layer whose choice is there, none in marked states; changed in
    place. A state that has none to begin with is never marked. `stack`, `waiting` and `gone` are as `stack`,
    `waiting` and `found` of :func:`search_states`.
    """
    while 0 < waiting < most:
        waiting -= 1
        state = stack[waiting]
        group = near[state >> shift]
        while starts[group + 1] <= state:
            group += 1
        local = state - starts[group]
        for i in range(instance_ptr[group], instance_ptr[group + 1]):
            place = slot[i] + local
            for e in range(column_ptr[place], column_ptr[place + 1]):
                source = row[i] + entry_row[e]
                if kept[source] & choice[i]:
                    kept[source] ^= choice[i]
                    if kept[source] == 0:
                        gone[source] = True
                        stack[waiting] = source
                        waiting += 1
    return waiting


def components_from_bottom(successors: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Return the component of every state, int64, numbered from the bottom.

    No arrow leads to a greater number. Successors of a state may be listed more than once. Tarjan's search
    without recursion. Time: O(n + arrows).
    """
    lists = [list(dict.fromkeys(row)) for row in successors]
    n = len(lists)
    index = [-1] * n
    low = [0] * n
    component = [-1] * n
    stack: list[int] = []
    visited = found = 0
    for root in range(n):
        if index[root] >= 0:
            continue
        index[root] = low[root] = visited
        visited += 1
        stack.append(root)
        work = [(root, iter(lists[root]))]
        while work:
            state, rest = work[-1]
            for following in rest:
                if index[following] < 0:
                    index[following] = low[following] = visited
                    visited += 1
                    stack.append(following)
                    work.append((following, iter(lists[following])))
                    break
                if component[following] < 0:
                    low[state] = min(low[state], index[following])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[state])
                if low[state] == index[state]:
                    while True:
                        member = stack.pop()
                        component[member] = found
                        if member == state:
                            break
                    found += 1
    return np.array(component, np.int64)
