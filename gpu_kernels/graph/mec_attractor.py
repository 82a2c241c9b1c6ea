"""Maximal end components as published: decompositions, sets U, attractors, sets J ([WKB16] §6)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from gpu_kernels.device import Device
from gpu_kernels.graph._launch import check_room, launch, none_word
from gpu_kernels.graph.fbt import Regions, Searches, search_regions
from gpu_kernels.graph.format import Graph
from gpu_kernels.graph.memory import attractor_bytes, layout_bytes, search_bytes, transposed_bytes
from gpu_kernels.graph.options import MecOptions
from gpu_kernels.graph.segments import Layout, build_layout

Array = Any


def mec_by_attractors(device: Device, graph: Graph, options: MecOptions) -> tuple[Array, dict[str, int]]:
    """Return a name of the end component of every state, and how often each phase was repeated.

    Parameters
    ----------
    device : Device
    graph : Graph
    options : MecOptions
        ``scc`` with the options marked ``fbt``, ``join_sets``, ``reuse_regions``.

    Returns
    -------
    component : ndarray, shape (n_states,), words
        The greatest word for states in no end component.
    rounds : dict of str to int

    Notes
    -----
    Choices are taken away one by one, and states with the last of theirs: first those that leave their
    component (U and its attractor within the component, in one fixpoint), then those into end components
    found. Transitions of lost choices become padding, because definition 5 of the paper would else accept
    components that hang together only by choices that leave them. With sets J, regions in which no state may
    become a pivot stay undivided; they lose choices like the others, but are end components only once a
    search has found them, and when no candidate is left, all states may become pivots again.
    Time: O(n_states + transitions) an iteration besides its searches, and O(n_states) a round; at most
    n_choices iterations. Synchronises: yes.

    References
    ----------
    [WKB16] §2.4 and algorithm 7; section 5.3.2 for sets J.
    """
    xp, n = device.xp, graph.n_states
    rounds: Counter[str] = Counter()
    if n == 0:
        return xp.zeros(0, graph.word), {}
    scc = replace(options.scc, variant="fbt")
    needed = layout_bytes(graph, scc.segment_interval, scc.transpose) + search_bytes(graph)
    needed += attractor_bytes(graph) + (transposed_bytes(graph) if scc.transpose else 0)
    check_room(device, needed, "finding end components, besides the graph,")
    if scc.transpose:
        graph = graph.with_transpose(device)
    layout = build_layout(device, graph, scc.segment_interval, scc.transpose)
    mec = xp.full(n, none_word(graph.bits), graph.word)
    status, choices = xp.zeros(n, np.uint32), xp.ones(graph.n_choices, np.uint32)
    region, candidates = xp.zeros(n, graph.word), None
    while True:
        rounds["iterations"] += 1
        names = region if options.reuse_regions else xp.zeros(n, graph.word)
        found = search_regions(device, graph, scc, Regions(names, status == 0, candidates), layout)
        for phase, times in found.rounds.items():
            rounds[phase if phase != "iterations" else "scc_iterations"] += times
        component, region = _by_state(device, graph, found)
        loses, is_open = xp.zeros(n, np.uint8), xp.zeros(n, np.uint32)
        changing = (region, choices, status, is_open, loses)
        rounds["attractor_rounds"] += _remove(device, graph, scc.look_every, changing)
        arguments = (n, component, is_open, status, mec)
        launch(device, graph.bits, "mec_attractor.cu", "mark_mecs", n, arguments)
        rounds["attractor_rounds"] += _remove(device, graph, scc.look_every, changing)
        active = status == 0
        if not bool(active.any()):
            return mec, dict(rounds)
        _drop(device, graph, layout, choices)
        joins = loses.view(np.bool_) & active
        candidates = joins if options.join_sets and bool(joins.any()) else None


def _by_state(device: Device, graph: Graph, found: Searches) -> tuple[Array, Array]:
    """Return components and regions by state, named by some state of theirs.

    A region that was not searched may still bear the name of a component that was found beside it; it is
    called by its least state, as no other region can be.
    """
    xp, n, none = device.xp, graph.n_states, graph.word(none_word(graph.bits))
    order = xp.arange(n, dtype=graph.word) if found.order is None else found.order
    has_component = found.component != none
    component, region = xp.full(n, none, graph.word), xp.empty(n, graph.word)
    names = order[xp.where(has_component, found.component, graph.word(0))]
    component[order] = xp.where(has_component, names, none)
    unsearched = xp.where(has_component, none, found.region)
    least = xp.full(n, none, graph.word)
    launch(device, graph.bits, "format.cu", "find_least", n, (n, unsearched, found.order, least))
    region[order] = xp.where(has_component, names, least[found.region])
    return component, region


def _remove(device: Device, graph: Graph, steps: int, changing: tuple[Array, ...]) -> int:
    """Take choices and states away until none leaves its region, and return the rounds."""
    n, total = graph.n_states, 0
    lists = (graph.trans, graph.choice_ptr, graph.choice_offsets)
    changed = device.xp.zeros(steps + 1, np.uint32)
    while True:
        changed[0] = 1
        for step in range(steps):
            arguments = (n, graph.mask, *lists, *changing, changed, np.int32(step))
            launch(device, graph.bits, "mec_attractor.cu", "remove_leaving", n, arguments)
        total += steps
        if not int(changed[steps]):
            return total
        changed[:] = 0


def _drop(device: Device, graph: Graph, layout: Layout, choices: Array) -> None:
    """Put padding in the place of transitions whose choices are gone."""
    n, bits = graph.n_states, graph.bits
    pairs = [(0, layout.offsets, layout.trans)]
    if layout.back_trans is not None:
        pairs.append((1, layout.back_offsets, layout.back_trans))
    for is_back, offsets, trans in pairs:
        arguments = (
            n, layout.n_segmented, graph.mask, np.int32(graph.state_bits), np.int32(is_back), offsets, trans,
            layout.order, graph.choice_ptr, choices,
        )  # fmt: skip
        launch(device, bits, "mec_attractor.cu", "drop_transitions", n, arguments)
