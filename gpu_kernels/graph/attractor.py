"""The attractor of a set of states: where every choice may lead into the set, again and again."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels._launch import check_vector
from gpu_kernels.device import Device
from gpu_kernels.graph._launch import check_room, launch
from gpu_kernels.graph.format import Graph

Array = Any

_ROUNDS = 8


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
    check_room(device, graph.n_states + 4 * (_ROUNDS + 1), "the attractor")
    xp, inside = device.xp, states.astype(np.uint8)
    changed = xp.zeros(_ROUNDS + 1, np.uint32)
    lists = (graph.trans, graph.choice_ptr, graph.choice_offsets)
    while True:
        changed[0] = 1
        for step in range(_ROUNDS):
            arguments = (graph.n_states, graph.mask, *lists, inside, changed, np.int32(step))
            launch(device, graph.bits, "mec_attractor.cu", "grow_attractor", graph.n_states, arguments)
        if not int(changed[_ROUNDS]):
            return inside.view(np.bool_)
        changed[:] = 0
