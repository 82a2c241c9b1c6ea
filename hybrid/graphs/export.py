"""Small graphs as networkx objects, to draw them or to ask what networkx can answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybrid.graphs.arrays import ModelGraph, choice_actions, model_graph
from mtbdd.model import SymbolicModel

LIMIT = 1_000_000
"""Transitions up to which a graph is exported unless told otherwise: networkx takes about 500 bytes each."""


def to_networkx(model: SymbolicModel, graph: ModelGraph | None = None, *, limit: int = LIMIT) -> Any:
    """Return a model's graph as a networkx graph.

    Parameters
    ----------
    model : SymbolicModel
    graph : ModelGraph, optional
        The model's graph if it is known.
    limit : int
        Most transitions that are exported.

    Returns
    -------
    networkx.DiGraph or networkx.MultiDiGraph
        Nodes are state numbers 0 to n_states - 1.  A chain is a DiGraph, an MDP a MultiDiGraph whose edges
        have the attributes ``choice``, the number of the choice within its state, and ``action``, a name or
        None.  All edges have ``probability`` (in a CTMC ``rate``) unless the given graph was made without.

    Raises
    ------
    ValueError
        The model has more transitions than the limit.
    ImportError
        networkx is not installed.
    """
    if model.n_transitions > limit:
        raise ValueError(
            f"networkx graph: expected at most {limit} transitions, the model has {model.n_transitions}; "
            "use the arrays of hybrid.graphs.model_graph(model), or raise limit"
        )
    import networkx

    graph = graph if graph is not None else model_graph(model, probabilities=True)
    degrees = np.diff(graph.choice_offsets)
    state_of = np.repeat(np.arange(graph.n_states), np.diff(graph.choice_ptr))
    attributes: dict[str, list[Any]] = {}
    if model.is_mdp:
        names, numbers = choice_actions(model, graph)
        within = np.arange(graph.n_choices) - graph.choice_ptr[state_of]
        attributes["choice"] = np.repeat(within, degrees).tolist()
        attributes["action"] = [names[i] for i in np.repeat(numbers, degrees).tolist()]
    if graph.probabilities is not None:
        attributes["rate" if model.type.value == "ctmc" else "probability"] = graph.probabilities.tolist()
    result = networkx.MultiDiGraph() if model.is_mdp else networkx.DiGraph()
    result.add_nodes_from(range(graph.n_states))
    sources = np.repeat(state_of, degrees).tolist()
    rows = zip(*attributes.values(), strict=True) if attributes else [()] * len(sources)
    result.add_edges_from(
        (s, t, dict(zip(attributes, row, strict=True)))
        for s, t, row in zip(sources, graph.targets.tolist(), rows, strict=True)
    )
    return result
