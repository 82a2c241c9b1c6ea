"""Maximal end components on the device: one entry for all variants."""

from __future__ import annotations

import numpy as np

from gpu_kernels.device import Device
from gpu_kernels.graph._launch import launch
from gpu_kernels.graph.format import Graph
from gpu_kernels.graph.mec_attractor import mec_by_attractors
from gpu_kernels.graph.mec_trim import mec_by_trimming
from gpu_kernels.graph.options import MecOptions
from gpu_kernels.graph.result import MecResult, canonical_labels


def mec(device: Device, graph: Graph, options: MecOptions | None = None) -> MecResult:
    """Return the maximal end components of a graph.

    An end component is a set of states, with for each of them at least one choice whose transitions all stay
    inside, in which these choices lead from every state to every other. A maximal one is contained in
    no other; no two of them share a state.

    Parameters
    ----------
    device : Device
    graph : Graph
        Not changed. The transposed graph is made if it is needed and missing.
    options : MecOptions, optional

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
    [WKB16], definitions 5 and 6, sections 2.4 and 6; see :class:`MecOptions` for the variants.
    """
    options = options if options is not None else MecOptions()
    variant = "trim" if options.variant == "auto" else options.variant
    run = mec_by_trimming if variant == "trim" else mec_by_attractors
    component, rounds = run(device, graph, options)
    kept = device.xp.zeros(graph.n_choices, np.uint8)
    lists = (graph.trans, graph.choice_ptr, graph.choice_offsets)
    arguments = (graph.n_states, graph.mask, *lists, component, kept)
    launch(device, graph.bits, "mec_trim.cu", "keep_choices", graph.n_states, arguments)
    labels, count = canonical_labels(device, graph.bits, component)
    return MecResult(labels, count, kept.view(np.bool_), rounds, variant)
