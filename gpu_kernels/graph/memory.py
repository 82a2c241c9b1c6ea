"""Bytes that decompositions take besides the graph, asked for once before they begin.

The numbers bound what is held at one time, temporary arrays of CuPy's sweeps included. What is known only on
the way, such as the edges that trimming leaves, is asked for where it is known.
"""

from __future__ import annotations

from gpu_kernels.graph.format import Graph

_WIDE_SHARE = 4096
"""Transitions for each word of the queue's room for states of very many: a quarter of the least number."""


def transposed_bytes(graph: Graph) -> int:
    """Return the bytes of making the transposed graph; 0 if it is there."""
    if graph.back_offsets is not None:
        return 0
    return (3 * (graph.n_states + 1) + graph.n_transitions) * _word(graph)


def layout_bytes(graph: Graph, interval: int, transpose: bool) -> int:
    """Return the bytes of the lists of `build_layout`, with the greatest padding, and of making them."""
    n, m, word, lists = graph.n_states, graph.n_transitions, _word(graph), 2 if transpose else 1
    if interval == 0:
        return lists * (n + 1 + m) * word
    made = lists * (n + 1 + m + interval * (n + 31)) * word + n * word
    # Degrees, order, positions and starts by state; place, rank and word by transition.
    return made + (8 * lists + 64) * n + (48 + 4 * word) * m


def search_bytes(graph: Graph) -> int:
    """Return the bytes of searches over a layout: offsets, results, regions, and what is found."""
    return (8 * _word(graph) + 24) * (graph.n_states + 1)


def components_bytes(graph: Graph) -> int:
    """Return the bytes of components, counts, queues and lists of the variants with queues.

    The edges that `propagate_components` lists are not among them; see :func:`edges_bytes`.
    """
    word = _word(graph)
    queues = (3 * graph.n_states + 3 * graph.n_transitions // _WIDE_SHARE + 16) * word
    return queues + (5 * word + 24) * (graph.n_states + 1)


def edges_bytes(graph: Graph, n_listed: int, n_edges: int) -> int:
    """Return the bytes of edges, twice, of names before and after, and of sums of degrees."""
    return (4 * n_edges + 2 * n_listed + 2 * graph.n_states) * _word(graph)


def removal_bytes(graph: Graph) -> int:
    """Return the bytes of taking choices away over a queue, and of counting what a part keeps."""
    n, choices, m, word = graph.n_states, graph.n_choices, graph.n_transitions, _word(graph)
    removing = (4 * word + 16) * n + (2 * word + 8) * choices + (m + 3 * m // _WIDE_SHARE + 16) * word
    counting = 2 * (n + 2 * choices + 3) * word + 6 * (n + choices) + (word + 8) * n
    return 2 * word * n + max(removing, counting)


def attractor_bytes(graph: Graph) -> int:
    """Return the bytes that the published end components take beside a layout and its searches."""
    return (10 * _word(graph) + 24) * (graph.n_states + 1) + 4 * graph.n_choices


def part_bytes(graph: Graph, n_states: int, n_choices: int, n_transitions: int) -> int:
    """Return the bytes of a part of a graph, with the numbers that its states and choices had."""
    return (3 * n_states + 2 * n_choices + n_transitions + 3) * _word(graph)


def _word(graph: Graph) -> int:
    return graph.bits // 8
