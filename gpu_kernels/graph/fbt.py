"""The published decomposition: forward-backward search with trimming, all regions at once ([WKB16] §5)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from gpu_kernels.graph.format import (
    LOOK_EVERY,
    Graph,
    check_room,
    launch,
    none_word,
    repeat_rounds,
    transposed_bytes,
)
from gpu_kernels.runtime.device import Device

Array = Any

PUBLISHED = ("fb", "fbt", "bfbt")
"""Variants of [WKB16]: forward-backward search, with trimming, and bounded besides."""

_AHEAD, _BACK = 1, 2
_LANES = 32

Variant = Literal["auto", "max-id", "fb", "fbt", "bfbt"]


class VariantError(ValueError):
    """An option that does not exist, or that does not suit a graph."""


@dataclass(frozen=True)
class ComponentOptions:
    """Options of the decomposition into components and end components.

    All but the variant concern the published searches, ``fb``, ``fbt`` and ``bfbt``.

    Attributes
    ----------
    variant : {"auto", "max-id", "fb", "fbt", "bfbt"}
        ``auto`` trims by counting, takes the component of one pivot by a search both ways, and propagates
        greatest names over the edges that are left; a search of over 24 launches is given up. ``max-id``
        does not search: faster in deep graphs, where ``auto`` gives up, and slower in flat ones. ``fb`` is
        forward-backward search ([WKB16], algorithm 1 without trimming), ``fbt`` trims before every search,
        and ``bfbt``, its algorithm 2, goes on inside the states of the direction that is done. For end
        components ``auto`` and ``max-id`` remove choices that leave, with the states that this removes in
        turn, by a queue, and decompose what is left as a graph of its own; the published variants have
        sets U and attractors on top (§6).
    transpose : bool
        Search backwards on the transposed graph; without it by scans of the graph (§5.1).
    combined : bool
        One kernel for a step of both searches, else one for each (§5.2).
    segment_interval : int
        u of §5.1.1: transitions of states with at most so many of them are interleaved, a warp's worth of
        states at a time; 0 for none.
    iterations : int
        NrIters of §5.2, the search steps in a launch; those after the first one work on states that the
        block keeps in shared memory. At least 1, which uses no cache.
    aggregate : bool
        One lane of a warp competes for each pivot (§5.3.1).
    join_sets : bool
        For end components: only states next to removed ones can become pivots (sets J, §5.3.2).
    """

    variant: Variant = "auto"
    transpose: bool = True
    combined: bool = True
    segment_interval: int = 7
    iterations: int = 1
    aggregate: bool = True
    join_sets: bool = False

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        if self.variant not in get_args(Variant):
            raise VariantError(f"variant: expected one of {get_args(Variant)}, got {self.variant!r}")
        for name, least in {"segment_interval": 0, "iterations": 1}.items():
            if getattr(self, name) < least:
                raise VariantError(f"{name}: expected at least {least}, got {getattr(self, name)}")


# ------------------------------------------------------------------ transitions interleaved by warps


@dataclass(frozen=True, eq=False)
class Layout:
    """The transitions of a graph as the searches of [WKB16] read them, a list a state.

    States of few transitions come first, 32 a segment: the first transitions of all 32, then the second ones,
    with padding up to the longest list of the segment. The others follow, one list after the other.

    Attributes
    ----------
    n_segmented : int
        States in segments.
    order : ndarray of words
        The state at each position.
    offsets : ndarray, shape (n_states + 1,), words
        Where lists begin; a segment ends where the next one, or the rest, begins.
    trans : ndarray, words
        Targets are positions.
    back_offsets, back_trans : ndarray or None
        The transposed graph in the same way, where it is used.
    """

    n_segmented: int
    order: Array
    offsets: Array
    trans: Array
    back_offsets: Array | None
    back_trans: Array | None


def laid_out(device: Device, graph: Graph, options: ComponentOptions, what: str, beside: int = 0) -> Layout:
    """Return the lists that searches need, once there is room for them, the searches and ``beside`` bytes.

    Raises
    ------
    MemoryError
        If all that does not fit on the device, before it is begun; ``what`` says for what.
    VariantError
        If padding makes the lists too long for the words of the graph.
    """
    needed = layout_bytes(graph, options.segment_interval, options.transpose) + search_bytes(graph) + beside
    needed += transposed_bytes(graph) if options.transpose else 0
    check_room(device, needed, f"{what}, besides the graph,")
    if options.transpose:
        graph = graph.with_transpose(device)
    return build_layout(device, graph, options.segment_interval, options.transpose)


def build_layout(device: Device, graph: Graph, interval: int, transpose: bool) -> Layout:
    """Return copies of a graph's lists, interleaved, and of its transposed graph's if ``transpose``.

    States with at most ``interval`` transitions, in either graph where the transposed one is used, go to
    segments. Time: that of sorting by one bit, and O(transitions). Synchronises: yes, for sizes.
    """
    xp, n = device.xp, graph.n_states
    pairs = [(graph.offsets, graph.trans)]
    if transpose:
        pairs.append((graph.back_offsets, graph.back_trans))
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
    transitions = xp.arange(graph.n_transitions, dtype=offsets.dtype)
    source = xp.searchsorted(offsets[1:], transitions, side="right")
    place = position[source]
    within = xp.arange(graph.n_transitions) - offsets[source].astype(np.int64)
    to = starts[place] + within * xp.where(place < n_segmented, _LANES, 1)
    mask = word(graph.mask)
    words[to] = (trans & ~mask) | position[trans & mask].astype(word)
    return starts.astype(word), words


# ------------------------------------------------------------------ searches


@dataclass(frozen=True, eq=False)
class Regions:
    """The start of a decomposition, by state.

    Attributes
    ----------
    names : ndarray, shape (n_states,), words
        Below n_states; equal for states that may share a component.
    active : ndarray, shape (n_states,), bool
        States that take part.
    candidates : ndarray, shape (n_states,), bool, or None
        States that may become pivots (set J); None for all. Components are then perhaps not all found.
    """

    names: Array
    active: Array
    candidates: Array | None = None


@dataclass(frozen=True, eq=False)
class Searches:
    """Results of searches.

    Attributes
    ----------
    component : ndarray, shape (n_states,), words
        By position: the pivot's position, the greatest word for states without a component.
    region : ndarray, shape (n_states,), words
        By position: the region that the state was left in; its component's name where it has one.
    order : ndarray of words
        The state at each position.
    rounds : dict of str to int
    """

    component: Array
    region: Array
    order: Array
    rounds: dict[str, int]


def search_regions(
    device: Device, graph: Graph, options: ComponentOptions, layout: Layout, regions: Regions | None = None
) -> Searches:
    """Find components by searches from one pivot in every region ([WKB16], algorithms 1, 2 and 4 to 6).

    Each iteration trims, selects pivots, searches both ways and divides every region in up to four: the
    component, what was reached in one direction alone, and the rest. Without regions all states are one.
    ``layout`` is unchanged in the end. Time: O(n_states) a step and O(transitions) an iteration.
    Synchronises: yes, once for every few steps.
    """
    run = _Run(device, graph, layout, options, regions)
    while graph.n_states:
        if options.variant != "fb":
            run.trim()
        if not run.select():
            break
        run.search()
    return run.found()


class _Run:
    """One decomposition under way."""

    def __init__(
        self, device: Device, graph: Graph, layout: Layout, options: ComponentOptions, regions: Regions | None
    ) -> None:
        xp, word, n, bits = device.xp, graph.word, graph.n_states, graph.bits
        self.device, self.graph, self.layout, self.options = device, graph, layout, options
        self.rounds: Counter[str] = Counter()
        self.done, self.low = word(1 << (bits - 1)), word((1 << (bits - 3)) - 1)
        # Bookkeeping bits are set in a copy: a layout serves several decompositions.
        self.offsets = layout.offsets.copy()
        if regions is None:
            self.results = xp.zeros(n, word)
            self.active = None
            self.offsets[:n] |= self.done
            return
        order = layout.order
        self.active = regions.active[order]
        self.results = xp.where(self.active, regions.names[order].astype(word), self.done)
        candidates = self.active if regions.candidates is None else regions.candidates[order]
        self.offsets[:n] |= xp.where(candidates, self.done, word(0))

    def _launch(self, name: str, arguments: tuple[Any, ...]) -> None:
        n = self.graph.n_states
        launch(self.device, self.graph.bits, "fbt.cu", name, n, (n, *arguments))

    def _lists(self) -> tuple[Any, ...]:
        back = (self.layout.back_offsets, self.layout.back_trans)
        words = (self.layout.n_segmented, self.graph.mask, self.offsets, self.layout.trans)
        return (*words, *back, self.results)

    def trim(self) -> None:
        """Make every state without predecessor or without successor in its region a component."""
        forward = (self.layout.n_segmented, self.graph.mask, self.offsets, self.layout.trans, self.results)

        def once(changed: Array, step: Any) -> None:
            if self.layout.back_trans is None:
                self._launch("mark_successors", (*forward, changed, step))
            self._launch("trim_states", (*self._lists(), changed, step))

        self.rounds["trim_rounds"] += repeat_rounds(self.device, once)

    def select(self) -> int:
        """Give every region a pivot, if it has a candidate, and return how many there are."""
        xp, device, bits, trans = self.device.xp, self.device, self.graph.bits, self.layout.trans
        n_pivots, n_places = xp.zeros(1, self.graph.word), len(trans)
        if n_places == 0:
            return self._all_alone()
        passes = -(-(3 * self.graph.n_states) // n_places)
        follows = self.active is not None
        for number in range(passes):
            places = (n_places, number)
            words = (trans, self.offsets, self.results)
            aggregate = np.int32(self.options.aggregate)
            self._launch("select_pivots", (*places, aggregate, *words, n_pivots))
            if follows:
                self._launch("follow_pivots", (*places, *words))
            launch(device, bits, "fbt.cu", "restore_places", n_places, (n_places, trans, self.results))
        self._launch("open_search", (self.offsets, self.results))
        count = int(n_pivots[0])
        self.rounds["pivots"] += count
        self.rounds["iterations"] += count > 0
        return count

    def _all_alone(self) -> int:
        """Make every state a component: there are no transitions, and no places to compete for."""
        xp, n, word = self.device.xp, self.graph.n_states, self.graph.word
        alone = xp.arange(n, dtype=word) | self.done
        self.results = xp.where(self.results & self.done, self.results, alone)
        return 0

    def search(self) -> None:
        """Search both ways from all pivots, and divide the regions."""
        xp, options, steps = self.device.xp, self.options, LOOK_EVERY
        found = xp.zeros(2 * (steps + 1), np.int32)
        bounded_used = xp.zeros(1, np.uint32)
        found[:2] = 1
        directions = (_AHEAD | _BACK,) if options.combined else (_AHEAD, _BACK)
        lists = self._lists()
        settings = (np.int32(options.variant == "bfbt"), np.int32(options.iterations), found)
        while True:
            for step in range(steps):
                for direction in directions:
                    arguments = (*lists, np.int32(direction), *settings, np.int32(step), bounded_used)
                    self._launch("step_search", arguments)
            self.rounds["search_steps"] += steps
            last = found[2 * steps :].tolist()
            if last == [0, 0]:
                break
            found[:2] = xp.asarray(last, dtype=np.int32)
            found[2:] = 0
        self._launch("close_search", (bounded_used, self.offsets, self.results))

    def found(self) -> Searches:
        """Return what has been found."""
        xp, none = self.device.xp, self.graph.word(none_word(self.graph.bits))
        has_component = (self.results & self.done) != 0
        if self.active is not None:
            has_component &= self.active
        region = self.results & self.low
        component = xp.where(has_component, region, none)
        return Searches(component, region, self.layout.order, dict(self.rounds))


def layout_bytes(graph: Graph, interval: int, transpose: bool) -> int:
    """Return the bytes of the lists of `build_layout`, with the greatest padding, and of making them."""
    n, m, word, lists = graph.n_states, graph.n_transitions, graph.word_bytes, 2 if transpose else 1
    made = lists * (n + 1 + m + interval * (n + 31)) * word + n * word
    # Degrees, order, positions and starts by state; place, rank and word by transition.
    return made + (8 * lists + 64) * n + (48 + 4 * word) * m


def search_bytes(graph: Graph) -> int:
    """Return the bytes of searches over a layout: offsets, results, regions, and what is found."""
    return (8 * graph.word_bytes + 24) * (graph.n_states + 1)
