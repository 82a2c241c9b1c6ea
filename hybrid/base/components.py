"""Strongly connected components of small graphs, without a library to load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def components_from_bottom(successors: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Return the component of every state, numbered from the bottom: no arrow leads to a greater number.

    Parameters
    ----------
    successors : sequence of sequences of int
        Of every state; one may be listed more than once.

    Returns
    -------
    ndarray, shape (n,), int64

    Notes
    -----
    Tarjan's search without recursion.  Time: O(n + arrows).
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
