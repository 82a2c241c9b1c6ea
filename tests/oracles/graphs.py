"""Small decision processes as lists, their components by definition, networkx and SciPy, and random ones."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import networkx
import numpy as np
import scipy.sparse
from hypothesis import strategies as st

from hybrid.analysis.graphs import ModelGraph
from mtbdd.diagrams.manager import Manager, Node
from tests.builders.models import node_set

__all__ = [
    "Mdp",
    "cyclic_mdps",
    "end_components_by_definition",
    "end_components_by_networkx",
    "labels_of",
    "model_graph_of",
    "random_mdps",
    "reference_mec",
    "reference_scc",
    "relations_of",
    "strong_components_by_definition",
    "strong_components_by_networkx",
]

Mdp = list[list[frozenset[int]]]
"""Every state's choices, each the set of its successors."""

# A maximal end component: its states, and the choices (state, number) that stay.
End = tuple[frozenset[int], frozenset[tuple[int, int]]]


@st.composite
def random_mdps(draw: st.DrawFn, most_states: int = 6, most_choices: int = 3) -> Mdp:
    """Draw an MDP; some states may have no choice at all."""
    n = draw(st.integers(1, most_states))
    successors = st.frozensets(st.integers(0, n - 1), min_size=1, max_size=3)
    return [draw(st.lists(successors, max_size=most_choices)) for _ in range(n)]


@st.composite
def cyclic_mdps(draw: st.DrawFn) -> Mdp:
    """Draw an MDP of rings with ways between them, in which components are large and nested searches deep."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    n = sum(sizes)
    mdp: Mdp = [[] for _ in range(n)]
    start = 0
    for size in sizes:
        for i in range(size):
            mdp[start + i].append(frozenset({start + (i + 1) % size}))
        start += size
    states = st.integers(0, n - 1)
    for state, one, two in draw(st.lists(st.tuples(states, states, states), max_size=2 * n)):
        mdp[state].append(frozenset({one, two}))
    shuffled = draw(st.permutations(range(n)))
    renamed: Mdp = [[] for _ in range(n)]
    for state, own in enumerate(mdp):
        renamed[shuffled[state]] = [frozenset(shuffled[t] for t in choice) for choice in own]
    return renamed


def _staying(mdp: Mdp, states: frozenset[int]) -> frozenset[tuple[int, int]]:
    return frozenset((s, c) for s in states for c, to in enumerate(mdp[s]) if to <= states)


def _reach(states: frozenset[int], edges: dict[int, set[int]], start: int) -> set[int]:
    found, waiting = {start}, [start]
    while waiting:
        for t in edges.get(waiting.pop(), set()) & states:
            if t not in found:
                found.add(t)
                waiting.append(t)
    return found


def end_components_by_definition(mdp: Mdp) -> set[End]:
    """Try every set of states: closed under one choice a state at least, connected by those that stay."""
    ends: list[End] = []
    for size in range(len(mdp), 0, -1):
        for chosen in combinations(range(len(mdp)), size):
            states = frozenset(chosen)
            if any(states <= larger for larger, _ in ends):
                continue
            staying = _staying(mdp, states)
            edges: dict[int, set[int]] = {}
            for s, c in staying:
                edges.setdefault(s, set()).update(mdp[s][c])
            if set(edges) == states and all(_reach(states, edges, s) == states for s in states):
                ends.append((states, staying))
    return set(ends)


def strong_components_by_definition(mdp: Mdp) -> set[frozenset[int]]:
    """Group states that reach each other."""
    everything = frozenset(range(len(mdp)))
    edges = {s: set().union(*own) for s, own in enumerate(mdp)}
    reach = [_reach(everything, edges, s) for s in everything]
    return {frozenset(t for t in reach[s] if s in reach[t]) for s in everything}


def _graph(mdp: Mdp, choices: frozenset[tuple[int, int]]) -> networkx.DiGraph:
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(mdp)))
    graph.add_edges_from((s, t) for s, c in choices for t in mdp[s][c])
    return graph


def strong_components_by_networkx(mdp: Mdp) -> set[frozenset[int]]:
    """Ask networkx."""
    every = _staying(mdp, frozenset(range(len(mdp))))
    return {frozenset(c) for c in networkx.strongly_connected_components(_graph(mdp, every))}


def end_components_by_networkx(mdp: Mdp) -> set[End]:
    """Drop choices that leave their component, as networkx finds it, until none does."""
    choices = _staying(mdp, frozenset(range(len(mdp))))
    while True:
        components = [frozenset(c) for c in networkx.strongly_connected_components(_graph(mdp, choices))]
        home = {s: c for c in components for s in c}
        kept = frozenset((s, c) for s, c in choices if mdp[s][c] <= home[s])
        if kept == choices:
            break
        choices = kept
    with_choice = {s for s, _ in choices}
    return {(c, frozenset(p for p in choices if p[0] in c)) for c in components if c & with_choice}


def labels_of(components: set[frozenset[int]], n: int) -> list[int]:
    """Return the least state of every state's component, -1 for states in none."""
    labels = [-1] * n
    for component in components:
        for state in component:
            labels[state] = min(component)
    return labels


def model_graph_of(mdp: Mdp) -> ModelGraph:
    """Return the arrays of an MDP."""
    choices = [sorted(to) for own in mdp for to in own]
    layers = [c for own in mdp for c in range(len(own))]
    return ModelGraph(
        np.array([t for to in choices for t in to], np.int32),
        np.cumsum([0, *(len(to) for to in choices)]).astype(np.int32),
        np.cumsum([0, *(len(own) for own in mdp)]).astype(np.int32),
        np.array(layers, np.uint8),
    )


def relations_of(mdp: Mdp, package: str = "auto") -> tuple[Manager, list[Node], Node]:
    """Return an MDP as one relation for every number of a choice, and its set of states."""
    manager = Manager(max(len(mdp) - 1, 0).bit_length(), package)
    rows = [node_set(manager, manager.rows, [s]) for s in range(len(mdp))]
    relations = []
    for number in range(max((len(own) for own in mdp), default=0)):
        relation = manager.false
        for s, own in enumerate(mdp):
            if number < len(own):
                relation = relation | (rows[s] & node_set(manager, manager.columns, sorted(own[number])))
        relations.append(relation)
    return manager, relations, manager.disjunction(rows)


# ------------------------------------------------------------------ by SciPy, on arrays


def reference_scc(offsets: Any, targets: Any) -> np.ndarray:
    """The least state of each state's strongly connected component."""
    n = len(offsets) - 1
    if n == 0:
        return np.empty(0, np.int64)
    # On copies: merging works in place, and without it SciPy's search may never end.
    arrays = np.ones(len(targets)), np.array(targets), np.array(offsets)
    graph = scipy.sparse.csr_matrix(arrays, (n, n))
    graph.sum_duplicates()
    _, component = scipy.sparse.csgraph.connected_components(graph, directed=True, connection="strong")
    _, first, place = np.unique(component, return_index=True, return_inverse=True)
    return first[place].astype(np.int64)


def reference_mec(offsets: Any, targets: Any, choice_offsets: Any) -> tuple[np.ndarray, np.ndarray]:
    """Least states of maximal end components, -1 for none, and the choices that stay inside.

    Choices that leave the component of their state are taken away until none does; what then has a choice
    is in an end component ([WKB16] section 2.3, without attractors).
    """
    offsets, targets = np.asarray(offsets, np.int64), np.asarray(targets, np.int64)
    choice_offsets = np.asarray(choice_offsets, np.int64)
    n, n_choices = len(offsets) - 1, len(choice_offsets) - 1
    source = np.repeat(np.arange(n), np.diff(offsets))
    choice = np.repeat(np.arange(n_choices), np.diff(choice_offsets))
    state_of = source[choice_offsets[:-1]]
    kept = np.ones(n_choices, np.bool_)
    while True:
        live = kept[choice]
        counts = np.bincount(source[live], minlength=n)
        labels = reference_scc(np.concatenate([[0], np.cumsum(counts)]), targets[live])
        leaves = live & (labels[source] != labels[targets])
        if not leaves.any():
            break
        kept[choice[leaves]] = False
    inside = np.bincount(state_of[kept], minlength=n) > 0
    return np.where(inside, labels, -1), kept
