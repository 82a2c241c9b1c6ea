"""Components by propagation of greatest names over the edges that are left."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.device import Device
from gpu_kernels.graph._launch import check_room, launch, resident_blocks
from gpu_kernels.graph.format import Graph
from gpu_kernels.graph.memory import edges_bytes
from gpu_kernels.graph.options import SccOptions

Array = Any

_SWEEPS = 8
"""Sweeps over the edges between two looks of the host; those after the last change do nothing."""


def propagate_components(
    device: Device, graph: Graph, component: Array, listed: Array, degrees: Array, options: SccOptions
) -> tuple[int, int]:
    """Give every listed state its component.

    Each state takes the greatest name among the states that reach it, and among those that it reaches. Where
    the two agree, the name is the component's. Edges between states that disagree in either name are
    dropped, and the rest starts anew until no edge is left.

    Parameters
    ----------
    device : Device
    graph : Graph
        The transposed graph is not used.
    component : ndarray, shape (n_states,), words
        Components found so far, changed in place.
    listed : ndarray of words
        The states without a component.
    degrees : ndarray, shape (n_states,), words
        For each listed state, its transitions to other listed states.
    options : SccOptions
        ``rounds``: repetitions of a block's tile of edges.

    Returns
    -------
    iterations, sweeps : int

    Raises
    ------
    MemoryError
        If the edges that are left do not fit on the device twice.

    Notes
    -----
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
    launch(device, bits, "max_id.cu", "list_edges", n, (*arguments, sources, targets))
    before, after = xp.empty(graph.n_states, word), xp.empty(graph.n_states, word)
    launch(device, bits, "max_id.cu", "start_names", n, (n, listed, before, after))
    spare_sources, spare_targets = xp.empty(n_edges, word), xp.empty(n_edges, word)
    blocks = 4 * resident_blocks(device)
    iterations = sweeps = 0
    while n_edges:
        changed, count = xp.zeros(_SWEEPS, np.uint32), xp.zeros(1, word)
        names = (before, after)
        for step in range(_SWEEPS):
            arguments = (
                n_edges,
                sources,
                targets,
                *names,
                changed,
                np.int32(step),
                np.int32(options.tile_rounds),
            )
            launch(device, bits, "max_id.cu", "propagate_names", n_edges, arguments, blocks)
        last = changed[_SWEEPS - 1 :]
        arguments = (n_edges, last, sources, targets, *names, spare_sources, spare_targets, count)
        launch(device, bits, "max_id.cu", "filter_edges", n_edges, arguments, blocks)
        launch(device, bits, "max_id.cu", "settle_names", n, (n, last, listed, *names, component))
        sweeps += _SWEEPS
        unfinished, left = xp.concatenate([last.astype(word), count]).tolist()
        if not unfinished:
            iterations += 1
            n_edges = int(left)
            sources, spare_sources = spare_sources, sources
            targets, spare_targets = spare_targets, targets
    # States whose last edges were dropped stand for themselves since.
    launch(
        device,
        bits,
        "max_id.cu",
        "settle_names",
        n,
        (n, xp.zeros(1, np.uint32), listed, before, after, component),
    )
    return iterations, sweeps
