"""A part of a graph: some states with some of their choices, numbered anew, on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels.device import Device
from gpu_kernels.graph._launch import check_room, launch
from gpu_kernels.graph.format import Graph
from gpu_kernels.graph.memory import part_bytes

Array = Any


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a graph and where its states and choices come from.

    Attributes
    ----------
    graph : Graph
    states : ndarray, shape (graph.n_states,), words
        Their numbers in the graph that this is a part of, rising.
    choices : ndarray, shape (graph.n_choices,), words
    """

    graph: Graph
    states: Array
    choices: Array


def part_of(device: Device, graph: Graph, kept_state: Array, kept_choice: Array) -> Part:
    """Return what a graph keeps, without the transposed graph.

    Parameters
    ----------
    device : Device
    graph : Graph
    kept_state : ndarray, shape (n_states,), bool
    kept_choice : ndarray, shape (n_choices,), uint32
        Not zero for choices to keep; those of states that are left out go with them. No transition of a
        kept choice of a kept state may lead to a state that is left out.

    Returns
    -------
    Part

    Raises
    ------
    MemoryError
        If the part does not fit on the device beside the graph.

    Notes
    -----
    Time: O(n_states + n_choices + transitions kept). Synchronises: yes, for the sizes.
    """
    xp, word = device.xp, graph.word
    kept_state = kept_state.view(np.uint8)
    states = xp.zeros(graph.n_states + 1, word)
    choices = xp.zeros(graph.n_choices + 1, word)
    transitions = xp.zeros(graph.n_choices + 1, word)
    lists = (graph.choice_ptr, graph.choice_offsets)
    arguments = (graph.n_states, kept_state, kept_choice, *lists, states, choices, transitions)
    launch(device, graph.bits, "format.cu", "count_part", graph.n_states, arguments)
    states, choices, transitions = (xp.cumsum(a, dtype=word) for a in (states, choices, transitions))
    sizes = xp.stack([states[-1], choices[-1], transitions[-1]]).tolist()
    n_states, n_choices, n_transitions = (int(size) for size in sizes)
    check_room(device, part_bytes(graph, n_states, n_choices, n_transitions), "the part of the graph")
    part = Graph(
        n_states, n_choices, n_transitions, graph.bits, graph.state_bits, xp.zeros(n_states + 1, word),
        xp.empty(n_transitions, word), xp.zeros(n_states + 1, word), xp.zeros(n_choices + 1, word),
    )  # fmt: skip
    result = Part(part, xp.empty(n_states, word), xp.empty(n_choices, word))
    copied = (
        graph.n_states, np.int32(graph.state_bits), graph.mask, kept_state, kept_choice, *lists, graph.trans,
        states, choices, transitions, part.offsets, part.trans, part.choice_ptr, part.choice_offsets,
        result.states, result.choices,
    )  # fmt: skip
    launch(device, graph.bits, "format.cu", "copy_part", graph.n_states, copied)
    return result
