"""The order in which definitions that mention one another can be worked out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_MOST_CYCLES = 20


def dependency_order(graph: Mapping[str, Iterable[str]]) -> tuple[list[str], list[list[str]]]:
    """Sort names so that each comes after those it depends on.

    Parameters
    ----------
    graph : mapping of str to iterable of str
        What each name depends on; names that are no key are passed over.

    Returns
    -------
    order : list of str
        Every key that is not on a cycle nor depends on one.
    cycles : list of list of str
        The cycles met, each without its first name repeated; at most 20, since all of them together may be
        longer than the graph by far.

    Notes
    -----
    Depth-first search with its own stack.  Time: O(names + dependencies).
    """
    order: list[str] = []
    cycles: list[list[str]] = []
    state: dict[str, str] = {}  # "open" while below the search, then "good" or "bad"
    for root in graph:
        if root in state:
            continue
        path = [root]
        pending = [iter(graph[root])]
        state[root] = "open"
        bad = {root: False}
        while path:
            name = path[-1]
            for below in pending[-1]:
                if below not in graph:
                    continue
                known = state.get(below)
                if known is None:
                    state[below] = "open"
                    bad[below] = False
                    path.append(below)
                    pending.append(iter(graph[below]))
                    break
                if known == "open":
                    if len(cycles) < _MOST_CYCLES:
                        cycles.append(path[path.index(below) :])
                    bad[name] = True
                elif known == "bad":
                    bad[name] = True
            else:
                path.pop()
                pending.pop()
                state[name] = "bad" if bad[name] else "good"
                if bad[name]:
                    if path:
                        bad[path[-1]] = True
                else:
                    order.append(name)
    return order, cycles
