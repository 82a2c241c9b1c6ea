"""The component of one pivot by a forward and a backward search at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.device import Device
from gpu_kernels.graph._launch import Queue, launch
from gpu_kernels.graph.format import Graph
from gpu_kernels.graph.options import SccOptions

Array = Any


def search_component(
    device: Device,
    graph: Graph,
    component: Array,
    pivot: Array,
    options: SccOptions,
    most_launches: int | None = None,
) -> tuple[int, bool]:
    """Give the pivot and all states that it reaches and that reach it their component.

    Parameters
    ----------
    device : Device
    graph : Graph
        With its transposed graph.
    component : ndarray, shape (n_states,), words
        Components found so far, changed in place; states that have one take no part.
    pivot : ndarray, shape (1,), words
        A state without a component; on the device, which nobody waits for.
    options : SccOptions
        ``rounds`` and ``look_every``.
    most_launches : int, optional
        Launches after which the search is given up, without a trace.

    Returns
    -------
    launches : int
    done : bool
        False if the search was given up.

    Notes
    -----
    Time: O(n_states + transitions of the states reached). Synchronises: yes. Source: one step of [WKB16],
    section 2.2.
    """
    xp, n = device.xp, graph.n_states
    marks = xp.empty(n, np.uint32)
    queue = Queue(device, graph.bits, 2 * n, 2 * graph.n_transitions)
    launch(
        device, graph.bits, "reach.cu", "mark_idle", n, (n, component, pivot, marks, queue.items, queue.state)
    )
    lists = (graph.mask, graph.offsets, graph.trans, graph.back_offsets, graph.back_trans)
    arguments = (*lists, marks, queue.items, queue.wide, queue.state, np.int32(options.rounds))

    def once() -> None:
        launch(device, graph.bits, "reach.cu", "drain_reach", n, arguments, queue.blocks)

    done = queue.drain(once, options.look_every, most_launches)
    if done:
        launch(device, graph.bits, "reach.cu", "close_reach", n, (n, marks, pivot, component))
    return queue.launches, done
