"""Transitions interleaved by warps, so that the lanes of a warp read side by side ([WKB16] §5.1.1).

:mod:`gpu_kernels.formats.segments` does so with the entries of matrices, all of whose rows are in segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels.device import Device
from gpu_kernels.graph.format import Graph
from gpu_kernels.graph.options import VariantError

Array = Any

_LANES = 32


@dataclass(frozen=True, eq=False)
class Layout:
    """The transitions of a graph as the searches of [WKB16] read them, a list a state.

    States of few transitions come first, 32 a segment: the first transitions of all 32, then the second ones,
    with padding up to the longest list of the segment. The others follow, one list after the other.

    Attributes
    ----------
    n_segmented : int
        States in segments.
    order : ndarray of words, or None
        The state at each position; None where positions are states.
    offsets : ndarray, shape (n_states + 1,), words
        Where lists begin; a segment ends where the next one, or the rest, begins.
    trans : ndarray, words
        Targets are positions.
    back_offsets, back_trans : ndarray or None
        The transposed graph in the same way, where it is used.
    """

    n_segmented: int
    order: Array | None
    offsets: Array
    trans: Array
    back_offsets: Array | None
    back_trans: Array | None

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        arrays = (self.order, self.offsets, self.trans, self.back_offsets, self.back_trans)
        return sum(int(a.nbytes) for a in arrays if a is not None)


def source_states(device: Device, offsets: Array, n_transitions: int) -> Array:
    """Return the state that each transition belongs to, int64."""
    xp = device.xp
    return xp.searchsorted(offsets[1:], xp.arange(n_transitions, dtype=offsets.dtype), side="right")


def build_layout(device: Device, graph: Graph, interval: int, transpose: bool) -> Layout:
    """Return copies of a graph's lists, interleaved.

    Parameters
    ----------
    device : Device
    graph : Graph
        With its transposed graph if ``transpose``.
    interval : int
        The segment interval u: states with at most so many transitions, in either graph where the
        transposed one is used, go to segments; 0 for none.
    transpose : bool
        Use the transposed graph too.

    Raises
    ------
    VariantError
        If padding makes the lists too long for the words of the graph.

    Notes
    -----
    Time: that of sorting by one bit, and O(transitions). Synchronises: yes, for sizes.
    """
    xp, n = device.xp, graph.n_states
    pairs = [(graph.offsets, graph.trans)]
    if transpose:
        pairs.append((graph.back_offsets, graph.back_trans))
    if interval == 0:
        copies = [(offsets.copy(), trans.copy()) for offsets, trans in pairs]
        back = copies[1] if transpose else (None, None)
        return Layout(0, None, *copies[0], *back)
    degrees = [(offsets[1:] - offsets[:-1]).astype(np.int64) for offsets, _ in pairs]
    greatest = xp.maximum(*degrees) if transpose else degrees[0]
    order = xp.argsort((greatest > interval).astype(np.uint8), kind="stable")
    n_segmented = int((greatest <= interval).sum())
    position = xp.empty(n, np.int64)
    position[order] = xp.arange(n)
    lists: list[Array] = []
    for (offsets, trans), degree in zip(pairs, degrees, strict=True):
        lists += _interleave(device, graph, offsets, trans, degree[order], n_segmented, position)
    back = (lists[2], lists[3]) if transpose else (None, None)
    return Layout(n_segmented, order.astype(graph.word), lists[0], lists[1], *back)


def _interleave(
    device: Device,
    graph: Graph,
    offsets: Array,
    trans: Array,
    degree: Array,
    n_segmented: int,
    position: Array,
) -> tuple[Array, Array]:
    """Return offsets and words of one graph; ``degree`` is by position."""
    xp, n, word = device.xp, graph.n_states, graph.word
    n_segments = -(-n_segmented // _LANES)
    padded = xp.zeros(n_segments * _LANES, np.int64)
    padded[:n_segmented] = degree[:n_segmented]
    begins = xp.zeros(n_segments + 1, np.int64)
    if n_segments:
        begins[1:] = xp.cumsum(padded.reshape(n_segments, _LANES).max(axis=1) * _LANES)
    starts = xp.zeros(n + 1, np.int64)
    at = xp.arange(n_segmented)
    starts[:n_segmented] = begins[at // _LANES] + at % _LANES
    starts[n_segmented] = begins[-1]
    starts[n_segmented + 1 :] = begins[-1] + xp.cumsum(degree[n_segmented:])
    length = int(starts[-1])
    if length.bit_length() + 3 > graph.bits:
        raise VariantError(
            f"segments of interval up to {length} words are too long for words of {graph.bits} bits; use a "
            "smaller segment_interval, or a graph made with wide=True"
        )
    words = xp.full(length, (1 << (graph.bits - 1)) - 1, word)
    source = source_states(device, offsets, graph.n_transitions)
    place = position[source]
    within = xp.arange(graph.n_transitions) - offsets[source].astype(np.int64)
    to = starts[place] + within * xp.where(place < n_segmented, _LANES, 1)
    mask = word(graph.mask)
    words[to] = (trans & ~mask) | position[trans & mask].astype(word)
    return starts.astype(word), words
