"""Strongly connected components on the device: one entry for all variants, and those with queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels.graph.fbt import PUBLISHED, ComponentOptions, laid_out, search_regions
from gpu_kernels.graph.format import (
    WIDE_SHARE,
    Graph,
    Queue,
    check_room,
    launch,
    none_word,
    resident_blocks,
    transposed_bytes,
    word_type,
)
from gpu_kernels.runtime.device import Device

Array = Any

SEARCH_LAUNCHES = 24
"""Launches after which ``auto`` gives up the search from its pivot: the graph is too deep for it."""

_SWEEPS = 8
"""Sweeps over the edges between two synchronisations of the host; those after the last change do nothing."""

_TILE_ROUNDS = 128
"""Repetitions of a block's tile of edges in a sweep."""


@dataclass(frozen=True, eq=False)
class ComponentResult:
    """The strongly connected components of a graph.

    Attributes
    ----------
    labels : ndarray, shape (n_states,), int64
        The least state of each state's component; on the device.
    count : int
        Number of components.
    rounds : dict of str to int
        How often each phase was repeated: what an explanation of the time needs.
    variant : str
        The variant that ran; ``max-id`` where ``auto`` gave up its search.
    """

    labels: Array
    count: int
    rounds: dict[str, int]
    variant: str


def scc(device: Device, graph: Graph, options: ComponentOptions | None = None) -> ComponentResult:
    """Return the strongly connected components of a graph.

    Parameters
    ----------
    device : Device
    graph : Graph
        Not changed. The transposed graph is made if it is needed and missing.
    options : ComponentOptions, optional

    Returns
    -------
    ComponentResult
        The same for every variant and every run: components are named by their least states.

    Raises
    ------
    MemoryError
        If what is needed besides the graph does not fit on the device, with both numbers.

    Notes
    -----
    Synchronises: yes. Time: trimming is linear; ``max-id`` takes O(transitions) for each sweep, ``fbt``
    O(n_states) for each step of its searches.

    References
    ----------
    [WKB16] §§2.2 and 5; see :class:`ComponentOptions` for the variants. Trimming, one search and names after
    it: G. Slota and others, "BFS and Coloring-based Parallel Algorithms for Strongly Connected Components
    and Related Problems", IPDPS 2014 (Multistep).
    """
    options = options if options is not None else ComponentOptions()
    if options.variant in PUBLISHED:
        layout = laid_out(device, graph, options, "searching for components")
        found = search_regions(device, graph, options, layout)
        labels, count = canonical_labels(device, graph.bits, found.component, found.order)
        return ComponentResult(labels, count, found.rounds, options.variant)
    component, rounds, variant = components_of(device, graph, options.variant)
    labels, count = canonical_labels(device, graph.bits, component)
    return ComponentResult(labels, count, rounds, variant)


def components_of(
    device: Device, graph: Graph, variant: str, trims: bool = True
) -> tuple[Array, dict[str, int], str]:
    """Return components by the variants with queues: a word for each state, rounds, and the variant taken."""
    xp, n = device.xp, graph.n_states
    needs_transpose = trims or variant == "auto"
    needed = components_bytes(graph) + (transposed_bytes(graph) if needs_transpose else 0)
    check_room(device, needed, "finding components, besides the graph,")
    rounds: dict[str, int] = {}
    component = xp.full(n, none_word(graph.bits), graph.word)
    listed, degrees = None, xp.empty(n, graph.word)
    if trims:
        graph = graph.with_transpose(device)
        rounds["trim_launches"] = trim_components(device, graph, component, degrees, None)
        listed = _without_component(device, graph, component)
        if len(listed) == 0:
            return component, rounds, variant
    if listed is None:
        listed = xp.arange(n, dtype=graph.word)
        degrees = _count_others(device, graph)
    if variant == "auto" and len(listed):
        graph = graph.with_transpose(device)
        pivot = _busiest(device, graph, listed)
        rounds["search_launches"], done = search_component(device, graph, component, pivot)
        if not done:
            variant = "max-id"
        else:
            listed = _without_component(device, graph, component)
        if done and len(listed):
            # Counts among what is left are needed in any case; trimming gives them.
            launches = trim_components(device, graph, component, degrees, listed)
            rounds["trim_launches"] = rounds.get("trim_launches", 0) + launches
            listed = _without_component(device, graph, component)
    if len(listed):
        rounds["iterations"], rounds["sweeps"] = propagate_components(
            device, graph, component, listed, degrees
        )
    return component, rounds, variant


def _without_component(device: Device, graph: Graph, component: Array) -> Array:
    """Return the states without a component. Synchronises: yes, for their number."""
    return device.xp.flatnonzero(component == graph.word(none_word(graph.bits))).astype(graph.word)


def _count_others(device: Device, graph: Graph) -> Array:
    """Return, for each state, its transitions to other states; loops are left out. Synchronises: no."""
    n, counts = graph.n_states, device.xp.empty(graph.n_states, graph.word)
    arguments = (n, graph.mask, graph.offsets, graph.trans, counts)
    launch(device, graph.bits, "scc.cu", "count_others", n, arguments)
    return counts


def _busiest(device: Device, graph: Graph, listed: Array) -> Array:
    """Return the listed state with the greatest product of its degrees, as an array of one word."""
    xp = device.xp
    assert graph.back_offsets is not None

    def degree(offsets: Array) -> Array:
        return (offsets[listed + graph.word(1)] - offsets[listed]).astype(np.float64)

    at = xp.argmax(degree(graph.offsets) * degree(graph.back_offsets))
    return listed[at.reshape(1)]


# ------------------------------------------------------------------ steps


def trim_components(
    device: Device, graph: Graph, component: Array, out_count: Array, listed: Array | None
) -> int:
    """Make every state a component that has no predecessor or no successor left; return the launches.

    Changes ``component`` in place. ``out_count`` becomes, for each state left, its transitions to others that
    are left. ``listed`` are the states without a component, None if no state has one yet. The graph has its
    transposed graph. Time: O(n_listed + transitions at the states listed). Synchronises: yes.
    """
    xp, n = device.xp, graph.n_states if listed is None else len(listed)
    in_count = xp.empty(graph.n_states, graph.word)
    queue = Queue(device, graph.bits, n, 2 * graph.n_transitions)
    lists = (graph.mask, graph.offsets, graph.trans, graph.back_offsets, graph.back_trans)
    arguments: tuple[Any, ...] = (n, listed, np.int32(listed is None), *lists, in_count, out_count, component)
    launch(device, graph.bits, "scc.cu", "seed_trim", n, (*arguments, queue.items, queue.state))
    launch(device, graph.bits, "scc.cu", "open_trim", n, (queue.items, queue.state, component), queue.blocks)
    queue.drain("scc.cu", "drain_trim", graph.n_states, (*lists, in_count, out_count, component))
    return queue.launches


def search_component(device: Device, graph: Graph, component: Array, pivot: Array) -> tuple[int, bool]:
    """Give the pivot and all states that it reaches and that reach it their component.

    Changes ``component`` in place; states that have one take no part. ``pivot`` is an array of one word.
    Returns the launches, and False if the search was given up after `SEARCH_LAUNCHES`, without a trace. The
    graph has its transposed graph. Time: O(n_states + transitions of the states reached). Synchronises: yes.
    Source: one step of [WKB16], section 2.2.
    """
    xp, n = device.xp, graph.n_states
    marks = xp.empty(n, np.uint32)
    queue = Queue(device, graph.bits, 2 * n, 2 * graph.n_transitions)
    arguments = (n, component, pivot, marks, queue.items, queue.state)
    launch(device, graph.bits, "scc.cu", "mark_idle", n, arguments)
    lists = (graph.mask, graph.offsets, graph.trans, graph.back_offsets, graph.back_trans)
    done = queue.drain("scc.cu", "drain_reach", n, (*lists, marks), SEARCH_LAUNCHES)
    if done:
        launch(device, graph.bits, "scc.cu", "close_reach", n, (n, marks, pivot, component))
    return queue.launches, done


def propagate_components(
    device: Device, graph: Graph, component: Array, listed: Array, degrees: Array
) -> tuple[int, int]:
    """Give every listed state its component, and return iterations and sweeps.

    Each state takes the greatest name among the states that reach it, and among those that it reaches. Where
    the two agree, the name is the component's. Edges between states that disagree in either name are
    dropped, and the rest starts again until no edge is left. ``listed`` are the states without a component,
    ``degrees`` their transitions to each other. Edges that do not fit on the device twice are a MemoryError.
    Time: O(edges) a sweep. Synchronises: yes, once for every few sweeps.

    References
    ----------
    G. Liu, M. Burtscher and others, "A High-Performance Strongly Connected Components Implementation for
    GPUs", SC 2023 (ECL-SCC): two names a state, propagation over edges, removal of edges.
    """
    xp, word, n, bits = device.xp, graph.word, len(listed), graph.bits
    first = xp.zeros(n + 1, word)
    first[1:] = xp.cumsum(degrees[listed], dtype=word)
    n_edges = int(first[-1])
    check_room(device, edges_bytes(graph, n, n_edges), f"propagating names over {n_edges} edges")
    sources, targets = xp.empty(n_edges, word), xp.empty(n_edges, word)
    arguments: tuple[Any, ...] = (n, listed, first, graph.mask, graph.offsets, graph.trans, component)
    launch(device, bits, "scc.cu", "list_edges", n, (*arguments, sources, targets))
    before, after = xp.empty(graph.n_states, word), xp.empty(graph.n_states, word)
    launch(device, bits, "scc.cu", "start_names", n, (n, listed, before, after))
    spare_sources, spare_targets = xp.empty(n_edges, word), xp.empty(n_edges, word)
    blocks = 4 * resident_blocks(device)
    iterations = sweeps = 0
    while n_edges:
        changed, count = xp.zeros(_SWEEPS, np.uint32), xp.zeros(1, word)
        names = (before, after)
        for step in range(_SWEEPS):
            flags = (changed, np.int32(step), np.int32(_TILE_ROUNDS))
            arguments = (n_edges, sources, targets, *names, *flags)
            launch(device, bits, "scc.cu", "propagate_names", n_edges, arguments, blocks)
        last = changed[_SWEEPS - 1 :]
        arguments = (n_edges, last, sources, targets, *names, spare_sources, spare_targets, count)
        launch(device, bits, "scc.cu", "filter_edges", n_edges, arguments, blocks)
        launch(device, bits, "scc.cu", "settle_names", n, (n, last, listed, *names, component))
        sweeps += _SWEEPS
        unfinished, left = xp.concatenate([last.astype(word), count]).tolist()
        if not unfinished:
            iterations += 1
            n_edges = int(left)
            sources, spare_sources = spare_sources, sources
            targets, spare_targets = spare_targets, targets
    # States whose last edges were dropped stand for themselves since.
    arguments = (n, xp.zeros(1, np.uint32), listed, before, after, component)
    launch(device, bits, "scc.cu", "settle_names", n, arguments)
    return iterations, sweeps


def canonical_labels(
    device: Device, bits: int, component: Array, order: Array | None = None
) -> tuple[Array, int]:
    """Name components by their least states, int64 and -1 for none, and count them.

    ``component`` has equal words below n_states for states of one component, the two greatest words for none;
    ``order`` is the state that each position stands for. Time: O(n_states). Synchronises: yes.
    """
    xp, word, n = device.xp, word_type(bits), len(component)
    least = xp.full(n, none_word(bits), word)
    labels, count = xp.empty(n, word), xp.zeros(1, word)
    launch(device, bits, "format.cu", "find_least", n, (n, component, order, least))
    launch(device, bits, "format.cu", "name_components", n, (n, component, order, least, labels, count))
    # The word for nothing has all bits set and becomes -1.
    signed = labels.view(np.int64 if bits == 64 else np.int32).astype(np.int64)
    return signed, int(count[0])


def components_bytes(graph: Graph) -> int:
    """Return the bytes of components, counts, queues and lists of the variants with queues.

    The edges that `propagate_components` lists are not among them; see :func:`edges_bytes`.
    """
    word = graph.word_bytes
    queues = (3 * graph.n_states + 3 * graph.n_transitions // WIDE_SHARE + 16) * word
    return queues + (5 * word + 24) * (graph.n_states + 1)


def edges_bytes(graph: Graph, n_listed: int, n_edges: int) -> int:
    """Return the bytes of edges, twice, of names before and after, and of sums of degrees."""
    return (4 * n_edges + 2 * n_listed + 2 * graph.n_states) * graph.word_bytes
