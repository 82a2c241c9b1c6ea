"""Strongly connected components on the device: one entry for all variants."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.device import Device
from gpu_kernels.graph._launch import check_room, launch, none_word
from gpu_kernels.graph.fbt import search_regions
from gpu_kernels.graph.format import Graph
from gpu_kernels.graph.max_id import propagate_components
from gpu_kernels.graph.memory import components_bytes, transposed_bytes
from gpu_kernels.graph.options import SccOptions
from gpu_kernels.graph.reachability import search_component
from gpu_kernels.graph.result import ComponentResult, canonical_labels
from gpu_kernels.graph.trimming import trim_components

Array = Any

_SEARCH_LAUNCHES = 24
"""Launches after which ``auto`` gives up the search from its pivot: the graph is too deep for it."""


def scc(device: Device, graph: Graph, options: SccOptions | None = None) -> ComponentResult:
    """Return the strongly connected components of a graph.

    Parameters
    ----------
    device : Device
    graph : Graph
        Not changed. The transposed graph is made if it is needed and missing.
    options : SccOptions, optional

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
    [WKB16] §§2.2 and 5; see :class:`SccOptions` for the variants.
    """
    options = options if options is not None else SccOptions()
    if options.variant == "fbt":
        found = search_regions(device, graph, options)
        labels, count = canonical_labels(device, graph.bits, found.component, found.order)
        return ComponentResult(labels, count, found.rounds, "fbt")
    component, rounds, variant = components_of(device, graph, options)
    labels, count = canonical_labels(device, graph.bits, component)
    return ComponentResult(labels, count, rounds, variant)


def components_of(device: Device, graph: Graph, options: SccOptions) -> tuple[Array, dict[str, int], str]:
    """Return components by the variants with queues: a word for each state, rounds, and the variant taken."""
    xp, n = device.xp, graph.n_states
    needs_transpose = options.trim or options.variant in ("auto", "multistep")
    needed = components_bytes(graph) + (transposed_bytes(graph) if needs_transpose else 0)
    check_room(device, needed, "finding components, besides the graph,")
    rounds: dict[str, int] = {}
    component = xp.full(n, none_word(graph.bits), graph.word)
    variant = "multistep" if options.variant == "auto" else str(options.variant)
    listed, degrees = None, xp.empty(n, graph.word)
    if options.trim:
        graph = graph.with_transpose(device)
        rounds["trim_launches"] = trim_components(device, graph, component, degrees, options, None)
        listed = _without_component(device, graph, component)
        if len(listed) == 0:
            return component, rounds, variant
    if listed is None:
        listed = xp.arange(n, dtype=graph.word)
        degrees = _count_others(device, graph)
    if variant == "multistep" and len(listed):
        graph = graph.with_transpose(device)
        pivot = _busiest(device, graph, listed)
        most = _SEARCH_LAUNCHES if options.variant == "auto" else None
        rounds["search_launches"], done = search_component(device, graph, component, pivot, options, most)
        variant = variant if done else "max-id"
        listed = _without_component(device, graph, component) if done else listed
        if done and len(listed):
            # Counts among what is left are needed in any case; trimming gives them.
            launches = trim_components(device, graph, component, degrees, options, listed)
            rounds["trim_launches"] = rounds.get("trim_launches", 0) + launches
            listed = _without_component(device, graph, component)
    if len(listed):
        rounds["iterations"], rounds["sweeps"] = propagate_components(
            device, graph, component, listed, degrees, options
        )
    return component, rounds, variant


def _without_component(device: Device, graph: Graph, component: Array) -> Array:
    """Return the states without a component. Synchronises: yes, for their number."""
    return device.xp.flatnonzero(component == graph.word(none_word(graph.bits))).astype(graph.word)


def _count_others(device: Device, graph: Graph) -> Array:
    """Return, for each state, its transitions to other states; loops are left out. Synchronises: no."""
    n, counts = graph.n_states, device.xp.empty(graph.n_states, graph.word)
    launch(
        device, graph.bits, "trim.cu", "count_others", n, (n, graph.mask, graph.offsets, graph.trans, counts)
    )
    return counts


def _busiest(device: Device, graph: Graph, listed: Array) -> Array:
    """Return the listed state with the greatest product of its degrees, as an array of one word."""
    xp = device.xp
    assert graph.back_offsets is not None

    def degree(offsets: Array) -> Array:
        return (offsets[listed + graph.word(1)] - offsets[listed]).astype(np.float64)

    at = xp.argmax(degree(graph.offsets) * degree(graph.back_offsets))
    return listed[at.reshape(1)]
