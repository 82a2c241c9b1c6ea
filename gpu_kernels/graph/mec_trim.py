"""Maximal end components by taking choices away over a queue, and decomposing what is left as a graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from gpu_kernels.device import Device
from gpu_kernels.graph._launch import Queue, check_room, launch, none_word
from gpu_kernels.graph.fbt import search_regions
from gpu_kernels.graph.format import Graph
from gpu_kernels.graph.memory import removal_bytes, transposed_bytes
from gpu_kernels.graph.options import MecOptions, VariantError
from gpu_kernels.graph.part import part_of
from gpu_kernels.graph.scc import components_of

Array = Any

_MOST_CHOICES = 1 << 28
"""Choices of a state that a word of counts has room for, beside transitions (cuda/graph/mec_trim.cu)."""


def mec_by_trimming(device: Device, graph: Graph, options: MecOptions) -> tuple[Array, dict[str, int]]:
    """Return a name of the end component of every state, and how often each phase was repeated.

    Each iteration removes what a queue can find: states that nothing leads to or that lead nowhere, choices
    into them, and what follows from that. What is left becomes a graph of its own, is decomposed, and
    loses the choices between components. Components that lose none are end components; the others go on as
    a graph of their own.

    Parameters
    ----------
    device : Device
    graph : Graph
    options : MecOptions
        ``scc``: how to decompose, without trimming, since nothing trivial is left.

    Returns
    -------
    component : ndarray, shape (n_states,), words
        The greatest word for states in no end component.
    rounds : dict of str to int

    Notes
    -----
    Time: an iteration is linear in what is left, besides the decomposition; at most n_states iterations.
    Synchronises: yes.
    """
    xp, word, none = device.xp, graph.word, none_word(graph.bits)
    # Parts that are left need no more, besides themselves, which are asked for when their sizes are known.
    needed = transposed_bytes(graph) + removal_bytes(graph)
    check_room(device, needed, "finding end components, besides the graph,")
    component = xp.full(graph.n_states, none, word)
    rounds: Counter[str] = Counter()
    # The numbers in the graph of the states of `part`; None for the same ones.
    part, states = graph, None
    while part.n_states:
        rounds["iterations"] += 1
        part = part.with_transpose(device)
        found, choices, removed, launches = _trim(device, part, options)
        rounds["trim_launches"] += launches
        _hand_up(device, part, found, states, component)
        if removed == part.n_states:
            break
        if removed:
            smaller = part_of(device, part, found == word(none), choices)
            states = smaller.states if states is None else states[smaller.states]
            part = smaller.graph
        labels, scc_rounds = _decompose(device, part, options)
        for phase, times in scc_rounds.items():
            rounds[phase if phase != "iterations" else "scc_iterations"] += times
        choices, is_cut, cut = _cut(device, part, labels)
        open_states = is_cut[labels] != 0
        _hand_up(device, part, xp.where(open_states, word(none), labels), states, component)
        if not cut:
            break
        smaller = part_of(device, part, open_states, choices)
        states = smaller.states if states is None else states[smaller.states]
        part = smaller.graph
    return component, dict(rounds)


def _trim(device: Device, graph: Graph, options: MecOptions) -> tuple[Array, Array, int, int]:
    """Return components of removed states, the choices left, states removed and launches."""
    xp, n = device.xp, graph.n_states
    if graph.n_choices >= _MOST_CHOICES:
        most = int((graph.choice_ptr[1:] - graph.choice_ptr[:-1]).max())
        if most >= _MOST_CHOICES:
            raise VariantError(f"a state has {most} choices; expected fewer than {_MOST_CHOICES}")
    found, counts = xp.empty(n, graph.word), xp.empty(n, np.uint64)
    choices, sources = xp.empty(graph.n_choices, np.uint32), xp.empty(graph.n_choices, graph.word)
    back_choices = xp.empty(graph.n_transitions, graph.word)
    queue = Queue(device, graph.bits, n + graph.n_choices, 3 * graph.n_transitions)
    assert graph.back_offsets is not None
    arguments: tuple[Any, ...] = (
        graph.n_transitions, graph.mask, np.int32(graph.state_bits), graph.choice_ptr, graph.back_trans,
        back_choices,
    )  # fmt: skip
    launch(device, graph.bits, "mec_trim.cu", "list_choices", graph.n_transitions, arguments)
    lists = (graph.trans, graph.choice_ptr, graph.choice_offsets, graph.back_offsets)
    known = (sources, counts, found, choices)
    arguments = (n, graph.mask, *lists, *known, queue.items, queue.state)
    launch(device, graph.bits, "mec_trim.cu", "seed_mec", n, arguments)
    launch(device, graph.bits, "mec_trim.cu", "open_mec", 1, (queue.state,))
    arguments = (
        n, graph.mask, *lists, back_choices, *known, queue.items, queue.wide, queue.state,
        np.int32(options.scc.rounds),
    )  # fmt: skip

    def once() -> None:
        launch(device, graph.bits, "mec_trim.cu", "drain_mec", n, arguments, queue.blocks)

    queue.drain(once, options.scc.look_every)
    removed = n - int((found == graph.word(none_word(graph.bits))).sum())
    return found, choices, removed, queue.launches


def _decompose(device: Device, graph: Graph, options: MecOptions) -> tuple[Array, dict[str, int]]:
    """Return for every state some state of its component, the same for all of them, and rounds."""
    if options.scc.variant == "fbt":
        found = search_regions(device, graph, options.scc)
        if found.order is None:
            return found.component, found.rounds
        labels = device.xp.empty_like(found.component)
        labels[found.order] = found.order[found.component]
        return labels, found.rounds
    scc = replace(options.scc, trim=False)
    if scc.variant == "auto" and graph.back_offsets is None:
        # Greatest names need no transposed graph, which a part does not have yet.
        scc = replace(scc, variant="max-id")
    labels, rounds, _ = components_of(device, graph, scc)
    return labels, rounds


def _cut(device: Device, graph: Graph, labels: Array) -> tuple[Array, Array, int]:
    """Return the choices that stay, the components that lose one (by name), and the states that lose one."""
    xp = device.xp
    choices, is_cut = xp.empty(graph.n_choices, np.uint32), xp.zeros(graph.n_states, np.uint32)
    count = xp.zeros(1, graph.word)
    lists = (graph.trans, graph.choice_ptr, graph.choice_offsets)
    arguments = (graph.n_states, graph.mask, *lists, labels, choices, is_cut, count)
    launch(device, graph.bits, "mec_trim.cu", "cut_choices", graph.n_states, arguments)
    return choices, is_cut, int(count[0])


def _hand_up(device: Device, graph: Graph, found: Array, states: Array | None, component: Array) -> None:
    """Write names that a part has found, by its own numbers, to the whole graph."""
    arguments = (graph.n_states, found, states, component)
    launch(device, graph.bits, "mec_trim.cu", "hand_up", graph.n_states, arguments)
