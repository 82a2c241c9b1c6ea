"""Explicit graphs of models in flat arrays or for networkx; their components on the host and on a device."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.csr import index_types
from hybrid.base.arrays import to_host
from hybrid.base.errors import OptionError
from hybrid.matrix.explicit.extract import (
    LayerRows,
    explicit_matrix,
    explicit_sizes,
    merge_layers,
    renumbered,
)
from mtbdd.base.errors import option
from mtbdd.base.memory import free_memory_bytes
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import for_users

if TYPE_CHECKING:  # what a device needs is loaded when one is used
    from gpu_kernels import Device
    from gpu_kernels.graph import ComponentOptions, Graph


IntArray = NDArray[np.int32] | NDArray[np.int64]

LIMIT = 1_000_000
"""Transitions up to which a graph is exported by default: networkx takes about 500 bytes each."""


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
        Probabilities (in a CTMC rates), if requested.

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
        """Index of the first transition of each state, shape (n_states + 1,)."""
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
        States by number, see `mtbdd.offset.states`; the choices of a state in the order of the model's
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


# Strongly connected, bottom and maximal end components, on the CPU and on a device.

SCC_VARIANTS = ("auto", "scipy", "tarjan")

_VECTORS = 16
"""Vectors over the states that a decomposition on a device holds at most."""

Int64Array = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Decomposition:
    """States in components, each named by its least state.

    Attributes
    ----------
    labels : ndarray, shape (n_states,), int64
        The least state of each state's component, -1 for states in none.
    """

    labels: Int64Array

    @cached_property
    def sizes(self) -> Int64Array:
        """Number of states of each component, in the order of their names, shape (count,)."""
        counts = np.bincount(self.labels[self.labels >= 0], minlength=1)
        return counts[counts > 0].astype(np.int64)

    @property
    def count(self) -> int:
        """Number of components."""
        return len(self.sizes)

    @property
    def n_trivial(self) -> int:
        """Number of components of one state."""
        return int(np.count_nonzero(self.sizes == 1))

    @property
    def largest(self) -> int:
        """States of the largest component; 0 if there is none."""
        return int(self.sizes.max(initial=0))


@dataclass(frozen=True, eq=False)
class EndDecomposition(Decomposition):
    """Maximal end components.

    Attributes
    ----------
    choice_kept : ndarray, shape (n_choices,), bool
        The choices that stay in the component of their state.
    """

    choice_kept: NDArray[np.bool_]


def decompose(graph: ModelGraph, variant: str = "auto") -> Decomposition:
    """Return the strongly connected components, all choices' transitions taken together.

    Parameters
    ----------
    graph : ModelGraph
    variant : {"auto", "scipy", "tarjan"}
        SciPy's code on a copy of the graph in which parallel transitions are one, or Tarjan's algorithm
        compiled here on the graph as it is; ``auto`` is ``tarjan``.

    Returns
    -------
    Decomposition

    Raises
    ------
    OptionError
        If the variant is none of these.

    Notes
    -----
    Time: O(states + transitions), on one thread.
    """
    if variant not in SCC_VARIANTS:
        raise OptionError(f"variant: expected one of {', '.join(SCC_VARIANTS)}, got {variant!r}")
    if variant == "scipy":
        return Decomposition(_by_scipy(graph))
    from hybrid.matrix.cpu.graph_kernels import strong_components

    labels = np.empty(graph.n_states, np.int64)
    strong_components(graph.targets, graph.choice_ptr, graph.choice_offsets, labels)
    return Decomposition(labels)


def decompose_bottom(graph: ModelGraph, components: Decomposition | None = None) -> Decomposition:
    """Return the strongly connected components that no transition leaves.

    Parameters
    ----------
    graph : ModelGraph
    components : Decomposition, optional
        The strongly connected components if they are known.

    Returns
    -------
    Decomposition
        States of no such component have the label -1.
    """
    labels = (components or decompose(graph)).labels
    sources = np.repeat(labels, np.diff(graph.offsets))
    left = np.zeros(graph.n_states, np.bool_)
    left[sources[sources != labels[graph.targets]]] = True
    return Decomposition(np.where(left[labels], -1, labels))


def mec_decomposition(graph: ModelGraph) -> EndDecomposition:
    """Return the maximal end components; those of a chain are its bottom components.

    Parameters
    ----------
    graph : ModelGraph

    Returns
    -------
    EndDecomposition

    Notes
    -----
    Time: O(states + transitions) a decomposition of what changed, on one thread; see
    :func:`hybrid.matrix.cpu.graph_kernels.decompose_end_components`.

    References
    ----------
    [WKB16] §2.4.
    """
    from hybrid.matrix.cpu.graph_kernels import decompose_end_components

    labels = np.empty(graph.n_states, np.int64)
    kept = np.empty(graph.n_choices, np.bool_)
    decompose_end_components(graph.targets, graph.choice_ptr, graph.choice_offsets, labels, kept)
    return EndDecomposition(labels, kept)


def _by_scipy(graph: ModelGraph) -> Int64Array:
    """Return the least state of every state's component."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = graph.n_states
    if n == 0:
        return np.zeros(0, np.int64)
    # SciPy wants values of its own type, and copies what has another.
    values = np.ones(graph.n_transitions)
    # The copy is changed: SciPy's search may not end where two entries have the same row and column.
    matrix = csr_array((values, graph.targets, graph.offsets), shape=(n, n), copy=True)
    matrix.sum_duplicates()
    _, component = connected_components(matrix, directed=True, connection="strong")
    _, first, place = np.unique(component, return_index=True, return_inverse=True)
    return np.asarray(first[place], np.int64)


# ------------------------------------------------------------------ on a device


def device_options(variant: str) -> ComponentOptions:
    """Return the options of a variant by its name.

    Parameters
    ----------
    variant : str
        One of :class:`gpu_kernels.graph.ComponentOptions`.

    Returns
    -------
    ComponentOptions

    Raises
    ------
    OptionError
        If there is no such variant; for those of the release before with what to use instead.
    """
    from gpu_kernels.graph import ComponentOptions, VariantError
    from gpu_kernels.graph.fbt import Variant

    name, comma, _ = variant.partition(",")
    if comma:
        raise OptionError(
            f"variant: options after a comma are gone, got {variant!r}; use {', '.join(get_args(Variant))} "
            "(bfbt for fbt,bounded, fb for fbt,trim=false), or in Python gpu_kernels.graph.ComponentOptions"
        )
    if name == "multistep":
        raise OptionError("variant: 'multistep' is gone; use 'auto', which does the same on flat graphs")
    try:
        return ComponentOptions(variant)  # type: ignore[arg-type]
    except VariantError as error:
        raise OptionError(str(error)) from None


@dataclass(frozen=True, eq=False)
class DeviceGraph:
    """A graph that lies on the device.

    Attributes
    ----------
    device : Device
    graph : Graph
    seconds : float
        What it took to bring it there, checks included.
    """

    device: Device
    graph: Graph
    seconds: float

    @classmethod
    def of(cls, graph: ModelGraph) -> DeviceGraph:
        """Copy a graph to the device in use.

        Raises
        ------
        OptionError
            No device can be used.
        MemoryError
            The graph and the vectors of a decomposition do not fit; with required and available bytes.
        """
        from gpu_kernels import current_device, device_problem
        from gpu_kernels.graph import Graph

        problem = device_problem()
        if problem is not None:
            raise OptionError(f"backend: 'gpu' cannot run here: {problem}; or use 'cpu' or 'symbolic'")
        device = current_device()
        required, available = _device_bytes(graph), device.free_bytes()
        if required > available:
            raise MemoryError(
                f"decomposing {graph.n_transitions} transitions needs {required} bytes on {device.name}, "
                f"{available} are available; use {option('backend', 'cpu', 'symbolic')}"
            )
        started = time.perf_counter()
        copy = Graph.from_arrays(device, graph.offsets, graph.targets, choice_offsets=graph.choice_offsets)
        device.synchronise()
        return cls(device, copy, time.perf_counter() - started)

    def decompose(self, options: ComponentOptions | None = None) -> tuple[Decomposition, float]:
        """Return the strongly connected components and the seconds of the search, copying them back excluded.

        Synchronises: yes.
        """
        from gpu_kernels.graph import scc

        found, seconds = self._timed(scc, options)
        return Decomposition(to_host(found.labels)), seconds

    def mec_decomposition(self, options: ComponentOptions | None = None) -> tuple[EndDecomposition, float]:
        """Return the maximal end components and the seconds of the search, copying them back excluded.

        Synchronises: yes.
        """
        from gpu_kernels.graph import mec

        found, seconds = self._timed(mec, options)
        return EndDecomposition(to_host(found.labels), to_host(found.choice_kept)), seconds

    def _timed(self, search: Callable[..., Any], options: ComponentOptions | None) -> tuple[Any, float]:
        from gpu_kernels.graph import VariantError

        started = time.perf_counter()
        try:
            found = search(self.device, self.graph, options)
        except VariantError as error:
            raise OptionError(str(error)) from None
        self.device.synchronise()
        return found, time.perf_counter() - started


def _device_bytes(graph: ModelGraph) -> int:
    """Return the device memory that copying and decomposing takes at most, estimated."""
    m, n, choices = graph.n_transitions, graph.n_states, graph.n_choices
    # Copies, borders of choices and running counts; then words of the graph and its transposed graph.
    copying = m * (graph.targets.itemsize + 25) + 24 * (n + choices)
    return copying + 8 * (2 * m + 3 * n + choices) + 8 * _VECTORS * n
