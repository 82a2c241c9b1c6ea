"""The explicit graph of a model: transitions by choice, choices by state, in flat arrays or for networkx."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.csr import index_types
from hybrid.matrix.explicit.extract import (
    LayerRows,
    explicit_matrix,
    explicit_sizes,
    merge_layers,
    renumbered,
)
from mtbdd.base.memory import free_memory_bytes
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import for_users

IntArray = NDArray[np.int32] | NDArray[np.int64]

LIMIT = 1_000_000
"""Transitions up to which a graph is exported unless told otherwise: networkx takes about 500 bytes each."""


@dataclass(frozen=True, eq=False)
class ModelGraph:
    """The graph of a chain or decision process.

    Attributes
    ----------
    targets : ndarray, shape (n_transitions,), int32 or int64
        By source, then by choice, then ascending.
    choice_offsets : ndarray, shape (n_choices + 1,), int32 or int64
        Transitions of choice c are ``choice_offsets[c] .. choice_offsets[c + 1]``, at least one.
    choice_ptr : ndarray, shape (n_states + 1,), int32 or int64
        Choices of state s are ``choice_ptr[s] .. choice_ptr[s + 1]``.
    choice_layers : ndarray, shape (n_choices,), unsigned integers
        The layer of the model that each choice comes from; they ascend within a state.
    probabilities : ndarray, shape (n_transitions,), float64, or None
        Probabilities (in a CTMC rates), if asked for.

    Notes
    -----
    The distribution group of a transition ([WKB16] §5.1) is the number of its choice within its state.
    """

    targets: IntArray
    choice_offsets: IntArray
    choice_ptr: IntArray
    choice_layers: NDArray[np.unsignedinteger]
    probabilities: NDArray[np.float64] | None = None

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.choice_ptr) - 1

    @property
    def n_choices(self) -> int:
        """Number of choices; in a chain one for every state with transitions."""
        return len(self.choice_offsets) - 1

    @property
    def n_transitions(self) -> int:
        """Number of transitions, those of different choices counted apart."""
        return len(self.targets)

    @cached_property
    def offsets(self) -> IntArray:
        """Where the transitions of each state begin, shape (n_states + 1,)."""
        return self.choice_offsets[self.choice_ptr]

    @property
    def average_out_degree(self) -> float:
        """Transitions a state; 0 for a graph without states."""
        return self.n_transitions / max(self.n_states, 1)

    @property
    def maximum_out_degree(self) -> int:
        """Most transitions of a state."""
        return int(np.diff(self.offsets).max(initial=0))

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.targets, self.choice_offsets, self.choice_ptr, self.choice_layers)
        return sum(a.nbytes for a in arrays) + (
            0 if self.probabilities is None else self.probabilities.nbytes
        )


def graph_bytes(model: SymbolicModel, probabilities: bool = False) -> int:
    """Return the bytes that building a model's graph takes at its peak, estimated.

    Time: O(nodes of the diagrams); nothing is expanded.

    Parameters
    ----------
    model : SymbolicModel
    probabilities : bool
        Whether the graph has the values of its transitions.

    Returns
    -------
    int
    """
    layers = [explicit_sizes(model.layer_transitions(i)) for i in range(len(model.layers))]
    entries = sum(s.entries for s in layers)
    _, state = index_types(model.n_states, 0)
    place, _ = index_types(0, entries)
    entry = np.dtype(state).itemsize + (8 if probabilities else 0)
    choices = model.n_choices if model.n_choices is not None else model.n_states
    # The layers' entries and the merged ones, a count for every state and layer, offsets and two cursors.
    kept = (
        2 * entries * entry + model.n_states * (len(layers) + 24) + choices * (1 + np.dtype(place).itemsize)
    )
    # While a layer is taken in, the list of its entries' places and its own temporary arrays.
    return int(kept + max((max(s.peak_bytes, 24 * s.entries) for s in layers), default=0))


def model_graph(
    model: SymbolicModel, *, probabilities: bool = False, memory_budget: int | None = None
) -> ModelGraph:
    """Write out the graph of a model.

    Parameters
    ----------
    model : SymbolicModel
        A chain or a decision process.
    probabilities : bool
        Whether to keep the probabilities.
    memory_budget : int, optional
        Bytes that it may take; default what is free.

    Returns
    -------
    ModelGraph
        States by number, see `mtbdd.build.numbering`; the choices of a state in the order of the model's
        layers.

    Raises
    ------
    MemoryError
        If there is no room, before anything is allocated; with required and available bytes.

    Notes
    -----
    Layers are expanded one after the other and merged by counting.  Time: O(transitions + states * layers).
    """
    n_layers, n = len(model.layers), model.n_states
    required = graph_bytes(model, probabilities)
    available = free_memory_bytes() if memory_budget is None else memory_budget
    if required > available:
        raise MemoryError(
            f"the graph has {n} states and {model.n_transitions} transitions and needs {required} bytes in "
            f"the host's memory, {available} are available; decompose it symbolically or take a smaller model"
        )
    layers = []
    for number in range(n_layers):
        matrix = explicit_matrix(model.layer_transitions(number), memory_budget=available)
        if model.numbering is not None:
            matrix = renumbered(matrix, model.numbering)
        lengths = np.diff(matrix.row_starts)
        lengths = lengths.astype(np.min_scalar_type(int(lengths.max(initial=0))))
        values = matrix.values if probabilities else None
        layers.append(LayerRows(number, None, lengths, matrix.columns, values))
    rows = merge_layers(layers, n, np.min_scalar_type(max(n_layers - 1, 0)))
    return ModelGraph(
        rows.columns, rows.offsets, rows.choice_ptr, rows.layers, rows.values if probabilities else None
    )


def choice_actions(
    model: SymbolicModel, graph: ModelGraph
) -> tuple[tuple[str | None, ...], NDArray[np.int64]]:
    """Return the actions of a decision process's choices.

    Parameters
    ----------
    model : SymbolicModel
        An MDP.
    graph : ModelGraph
        Its graph.

    Returns
    -------
    names : tuple of str or None
        The actions that occur; None stands for unlabelled choices.
    numbers : ndarray, shape (n_choices,), int64
        The place in `names` of each choice's action.

    Raises
    ------
    ValueError
        The model is a chain, in which the commands of a state add up.

    Notes
    -----
    Time: O(states) for every part of every layer.
    """
    if not model.is_mdp:
        raise ValueError(
            f"actions of choices: expected an mdp, got a {model.type.value}, which has no choices"
        )
    names: list[str | None] = []
    numbers = np.zeros(graph.n_choices, np.int64)
    state_of = np.repeat(np.arange(graph.n_states), np.diff(graph.choice_ptr))
    for number, layer in enumerate(model.layers):
        chosen = np.flatnonzero(graph.choice_layers == number)
        for part in layer.parts:
            if part.action not in names:
                names.append(part.action)
            inside = for_users(model, model.indicator(part.states))[state_of[chosen]]
            numbers[chosen[inside]] = names.index(part.action)
    return tuple(names), numbers


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
            "use the arrays of hybrid.analysis.graphs.model_graph(model), or raise limit"
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
