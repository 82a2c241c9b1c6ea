"""Maximal end components on the device: one entry for all variants; attractors."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels.graph.fbt import (
    PUBLISHED,
    ComponentOptions,
    Layout,
    Regions,
    Searches,
    VariantError,
    laid_out,
    search_regions,
)
from gpu_kernels.graph.format import (
    LOOK_EVERY,
    WIDE_SHARE,
    Graph,
    Queue,
    check_room,
    launch,
    none_word,
    part_of,
    repeat_rounds,
    transposed_bytes,
)
from gpu_kernels.graph.scc import canonical_labels, components_of
from gpu_kernels.runtime._launch import check_vector
from gpu_kernels.runtime.device import Device

Array = Any

_MOST_CHOICES = 1 << 28
"""Choices of a state that a word of counts has room for, beside transitions (cuda/graph/mec_trim.cu)."""


@dataclass(frozen=True, eq=False)
class MecResult:
    """The maximal end components of a graph.

    Attributes
    ----------
    labels : ndarray, shape (n_states,), int64
        The least state of each state's component, -1 for states in none; on the device.
    count : int
        Number of components.
    choice_kept : ndarray, shape (n_choices,), bool
        The choices that stay inside the component of their state; False for all choices of other states.
    rounds : dict of str to int
        How often each phase was repeated.
    """

    labels: Array
    count: int
    choice_kept: Array
    rounds: dict[str, int]


def mec(device: Device, graph: Graph, options: ComponentOptions | None = None) -> MecResult:
    """Return the maximal end components of a graph.

    An end component is a set of states, with for each of them at least one choice whose transitions all stay
    inside, in which these choices lead from every state to every other. A maximal one is contained in
    no other; no two of them share a state.

    Parameters
    ----------
    device : Device
    graph : Graph
        Not changed. The transposed graph is made if it is needed and missing.
    options : ComponentOptions, optional

    Returns
    -------
    MecResult
        The same for every variant and every run. In a chain the components are the bottom components.

    Raises
    ------
    MemoryError
        If what is needed besides the graph does not fit on the device, with both numbers.

    Notes
    -----
    Synchronises: yes. Time: at most n_states decompositions; for graphs of models a few.

    References
    ----------
    [WKB16], definitions 5 and 6, sections 2.4 and 6; see :class:`ComponentOptions` for the variants.
    """
    options = options if options is not None else ComponentOptions()
    run = _by_attractors if options.variant in PUBLISHED else _by_queue
    component, rounds = run(device, graph, options)
    kept = device.xp.zeros(graph.n_choices, np.uint8)
    lists = (graph.trans, graph.choice_ptr, graph.choice_offsets)
    arguments = (graph.n_states, graph.mask, *lists, component, kept)
    launch(device, graph.bits, "mec_trim.cu", "keep_choices", graph.n_states, arguments)
    labels, count = canonical_labels(device, graph.bits, component)
    return MecResult(labels, count, kept.view(np.bool_), rounds)


def attractor(device: Device, graph: Graph, states: Array) -> Array:
    """Return the least set with ``states`` and every state all of whose choices have a transition into it.

    Parameters
    ----------
    device : Device
    graph : Graph
    states : ndarray, shape (n_states,), bool
        On the device; not changed.

    Returns
    -------
    ndarray, shape (n_states,), bool
        States without choices are in it only if they are in ``states``.

    Raises
    ------
    TypeError, ValueError
        If ``states`` is no vector of the device with an element for each state.
    MemoryError
        If there is no room for the result.

    Notes
    -----
    Time: O(n_states) a round, one round for each step of the definition at most. Synchronises: yes, once for
    every few rounds.

    References
    ----------
    [WKB16], definition 7.
    """
    check_vector(device, states, graph.n_states, "states", np.bool_)
    check_room(device, graph.n_states + 4 * (LOOK_EVERY + 1), "the attractor")
    n, inside = graph.n_states, states.astype(np.uint8)
    lists = (graph.mask, graph.trans, graph.choice_ptr, graph.choice_offsets)

    def once(changed: Array, step: Any) -> None:
        launch(device, graph.bits, "fbt.cu", "grow_attractor", n, (n, *lists, inside, changed, step))

    repeat_rounds(device, once)
    return inside.view(np.bool_)


# ------------------------------------------------------------------ by a queue


def _by_queue(device: Device, graph: Graph, options: ComponentOptions) -> tuple[Array, dict[str, int]]:
    """Return a name of the end component of every state, and how often each phase was repeated.

    Each iteration removes what a queue can find: states that nothing leads to or that lead nowhere, choices
    into them, and what follows from that. What is left becomes a graph of its own, is decomposed, and
    loses the choices between components. Components that lose none are end components; the others go on as
    a graph of their own. Time: an iteration is linear in what is left, besides the decomposition.
    """
    xp, word, none = device.xp, graph.word, none_word(graph.bits)
    # Parts that are left need no more, besides themselves, which are requested when their sizes are known.
    needed = transposed_bytes(graph) + removal_bytes(graph)
    check_room(device, needed, "finding end components, besides the graph,")
    component = xp.full(graph.n_states, none, word)
    rounds: Counter[str] = Counter()
    # The numbers in the graph of the states of `part`; None for the same ones.
    part, states = graph, None
    while part.n_states:
        rounds["iterations"] += 1
        part = part.with_transpose(device)
        found, choices, removed, launches = _trim(device, part)
        rounds["trim_launches"] += launches
        _hand_up(device, part, found, states, component)
        if removed == part.n_states:
            break
        if removed:
            smaller = part_of(device, part, found == word(none), choices)
            states = smaller.states if states is None else states[smaller.states]
            part = smaller.graph
        # Greatest names need no transposed graph, which a part does not have yet.
        variant = options.variant if part.back_offsets is not None else "max-id"
        labels, scc_rounds, _ = components_of(device, part, variant, trims=False)
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


def _trim(device: Device, graph: Graph) -> tuple[Array, Array, int, int]:
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
    queue.drain("mec_trim.cu", "drain_mec", n, (n, graph.mask, *lists, back_choices, *known))
    removed = n - int((found == graph.word(none_word(graph.bits))).sum())
    return found, choices, removed, queue.launches


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


# ------------------------------------------------------------------ as published


def _by_attractors(device: Device, graph: Graph, options: ComponentOptions) -> tuple[Array, dict[str, int]]:
    """Return a name of the end component of every state, and how often each phase was repeated.

    Choices are taken away one by one, and states with the last of theirs: first those that leave their
    component (U and its attractor within the component, in one fixpoint), then those into end components
    found. Transitions of lost choices become padding, because definition 5 of the paper would else accept
    components that hang together only by choices that leave them. With sets J, regions in which no state may
    become a pivot stay undivided; they lose choices like the others, but are end components only once a
    search has found them, and when no candidate is left, all states may become pivots again.
    Time: O(n_states + transitions) an iteration besides its searches, and O(n_states) a round.

    References
    ----------
    [WKB16] §2.4 and algorithm 7; section 5.3.2 for sets J.
    """
    xp, n = device.xp, graph.n_states
    rounds: Counter[str] = Counter()
    if n == 0:
        return xp.zeros(0, graph.word), {}
    layout = laid_out(device, graph, options, "finding end components", attractor_bytes(graph))
    mec = xp.full(n, none_word(graph.bits), graph.word)
    status, choices = xp.zeros(n, np.uint32), xp.ones(graph.n_choices, np.uint32)
    region, candidates = xp.zeros(n, graph.word), None
    while True:
        rounds["iterations"] += 1
        # Components of one iteration are the regions of the next, each with a pivot of its own.
        found = search_regions(device, graph, options, layout, Regions(region, status == 0, candidates))
        for phase, times in found.rounds.items():
            rounds[phase if phase != "iterations" else "scc_iterations"] += times
        component, region = _by_state(device, graph, found)
        loses, is_open = xp.zeros(n, np.uint8), xp.zeros(n, np.uint32)
        changing = (region, choices, status, is_open, loses)
        rounds["attractor_rounds"] += _remove(device, graph, changing)
        arguments = (n, component, is_open, status, mec)
        launch(device, graph.bits, "fbt.cu", "mark_mecs", n, arguments)
        rounds["attractor_rounds"] += _remove(device, graph, changing)
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
    order = found.order
    has_component = found.component != none
    component, region = xp.full(n, none, graph.word), xp.empty(n, graph.word)
    names = order[xp.where(has_component, found.component, graph.word(0))]
    component[order] = xp.where(has_component, names, none)
    unsearched = xp.where(has_component, none, found.region)
    least = xp.full(n, none, graph.word)
    launch(device, graph.bits, "format.cu", "find_least", n, (n, unsearched, order, least))
    region[order] = xp.where(has_component, names, least[found.region])
    return component, region


def _remove(device: Device, graph: Graph, changing: tuple[Array, ...]) -> int:
    """Take choices and states away until none leaves its region, and return the rounds."""
    n, lists = graph.n_states, (graph.trans, graph.choice_ptr, graph.choice_offsets)

    def once(changed: Array, step: Any) -> None:
        arguments = (n, graph.mask, *lists, *changing, changed, step)
        launch(device, graph.bits, "fbt.cu", "remove_leaving", n, arguments)

    return repeat_rounds(device, once)


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
        launch(device, bits, "fbt.cu", "drop_transitions", n, arguments)


def removal_bytes(graph: Graph) -> int:
    """Return the bytes of taking choices away over a queue, and of counting what a part keeps."""
    n, choices, m, word = graph.n_states, graph.n_choices, graph.n_transitions, graph.word_bytes
    removing = (4 * word + 16) * n + (2 * word + 8) * choices + (m + 3 * m // WIDE_SHARE + 16) * word
    counting = 2 * (n + 2 * choices + 3) * word + 6 * (n + choices) + (word + 8) * n
    return 2 * word * n + max(removing, counting)


def attractor_bytes(graph: Graph) -> int:
    """Return the bytes that the published end components take beside a layout and its searches."""
    return (10 * graph.word_bytes + 24) * (graph.n_states + 1) + 4 * graph.n_choices
