"""Trivial components removed by counting, over a queue that the device drains by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.device import Device
from gpu_kernels.graph._launch import Queue, launch
from gpu_kernels.graph.format import Graph
from gpu_kernels.graph.options import SccOptions

Array = Any


def trim_components(
    device: Device,
    graph: Graph,
    component: Array,
    out_count: Array,
    options: SccOptions,
    listed: Array | None,
) -> int:
    """Make every state a component that has no predecessor or no successor left, again and again.

    Parameters
    ----------
    device : Device
    graph : Graph
        With its transposed graph.
    component : ndarray, shape (n_states,), words
        Components found so far, changed in place; the greatest word for none.
    out_count : ndarray, shape (n_states,), words
        Overwritten: for each state left, its transitions to others that are left.
    options : SccOptions
        ``rounds`` and ``look_every``.
    listed : ndarray of words, or None
        The states without a component; None if no state has one yet.

    Returns
    -------
    int
        Launches made.

    Notes
    -----
    Time: O(n_listed + transitions at the states listed). Synchronises: yes. The states removed do not depend
    on the order of the work.
    """
    xp, n = device.xp, graph.n_states if listed is None else len(listed)
    in_count = xp.empty(graph.n_states, graph.word)
    queue = Queue(device, graph.bits, n, 2 * graph.n_transitions)
    lists = (graph.mask, graph.offsets, graph.trans, graph.back_offsets, graph.back_trans)
    arguments: tuple[Any, ...] = (n, listed, np.int32(listed is None), *lists, in_count, out_count, component)
    launch(device, graph.bits, "trim.cu", "seed_trim", n, (*arguments, queue.items, queue.state))
    launch(device, graph.bits, "trim.cu", "open_trim", n, (queue.items, queue.state, component), queue.blocks)
    arguments = (
        *lists, in_count, out_count, component, queue.items, queue.wide, queue.state,
        np.int32(options.rounds),
    )  # fmt: skip

    def once() -> None:
        launch(device, graph.bits, "trim.cu", "drain_trim", graph.n_states, arguments, queue.blocks)

    queue.drain(once, options.look_every)
    return queue.launches
