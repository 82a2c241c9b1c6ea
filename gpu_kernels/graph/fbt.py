"""The published decomposition: forward-backward search with trimming, all regions at once ([WKB16] §5)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels.device import Device
from gpu_kernels.graph._launch import check_room, launch, none_word
from gpu_kernels.graph.format import Graph
from gpu_kernels.graph.memory import layout_bytes, search_bytes, transposed_bytes
from gpu_kernels.graph.options import SccOptions
from gpu_kernels.graph.segments import Layout, build_layout

Array = Any

_AHEAD, _BACK = 1, 2


@dataclass(frozen=True, eq=False)
class Regions:
    """Where a decomposition starts, by state.

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
    """What searches have found.

    Attributes
    ----------
    component : ndarray, shape (n_states,), words
        By position: the pivot's position, the greatest word for states without a component.
    region : ndarray, shape (n_states,), words
        By position: the region that the state was left in; its component's name where it has one.
    order : ndarray or None
        The state at each position.
    rounds : dict of str to int
    """

    component: Array
    region: Array
    order: Array | None
    rounds: dict[str, int]


def search_regions(
    device: Device,
    graph: Graph,
    options: SccOptions,
    regions: Regions | None = None,
    layout: Layout | None = None,
) -> Searches:
    """Find components by forward-backward searches from one pivot in every region.

    Parameters
    ----------
    device : Device
    graph : Graph
    options : SccOptions
        Those marked ``fbt``.
    regions : Regions, optional
        One region of all states if not given.
    layout : Layout, optional
        The lists of the graph for these options, if they are there already; unchanged in the end. Their
        maker has asked for the memory of the searches, too.

    Raises
    ------
    MemoryError
        If lists and searches do not fit on the device, before they are begun.

    Notes
    -----
    Each iteration trims, selects pivots, searches both ways and divides every region in up to four: the
    component, what was reached in one direction alone, and the rest. Time: O(n_states) a step and
    O(transitions) an iteration. Synchronises: yes, once for every few steps.

    References
    ----------
    [WKB16], algorithms 1, 2 and 4 to 6.
    """
    if layout is None:
        needed = layout_bytes(graph, options.segment_interval, options.transpose) + search_bytes(graph)
        needed += transposed_bytes(graph) if options.transpose else 0
        check_room(device, needed, "searching for components, besides the graph,")
        if options.transpose:
            graph = graph.with_transpose(device)
        layout = build_layout(device, graph, options.segment_interval, options.transpose)
    run = _Run(device, graph, layout, options, regions)
    while graph.n_states:
        if options.trim:
            run.trim()
        if not run.select():
            break
        run.search()
    return run.found()


class _Run:
    """One decomposition under way."""

    def __init__(
        self, device: Device, graph: Graph, layout: Layout, options: SccOptions, regions: Regions | None
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
        order = slice(None) if layout.order is None else layout.order
        self.active = regions.active[order]
        self.results = xp.where(self.active, regions.names[order].astype(word), self.done)
        candidates = self.active if regions.candidates is None else regions.candidates[order]
        self.offsets[:n] |= xp.where(candidates, self.done, word(0))

    def _launch(self, source: str, name: str, arguments: tuple[Any, ...]) -> None:
        n = self.graph.n_states
        launch(self.device, self.graph.bits, source, name, n, (n, *arguments))

    def _lists(self) -> tuple[Any, ...]:
        back = (self.layout.back_offsets, self.layout.back_trans)
        return (
            self.layout.n_segmented,
            self.graph.mask,
            self.offsets,
            self.layout.trans,
            *back,
            self.results,
        )

    def trim(self) -> None:
        """Make every state without predecessor or without successor in its region a component."""
        xp, steps = self.device.xp, self.options.look_every
        changed = xp.zeros(steps + 1, np.int32)
        forward = (self.layout.n_segmented, self.graph.mask, self.offsets, self.layout.trans, self.results)
        while True:
            changed[0] = 1
            for step in range(steps):
                if self.layout.back_trans is None:
                    self._launch("fbt_search.cu", "mark_successors", (*forward, changed, np.int32(step)))
                self._launch("fbt_search.cu", "trim_states", (*self._lists(), changed, np.int32(step)))
            self.rounds["trim_rounds"] += steps
            if not int(changed[steps]):
                return
            changed[:] = 0

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
            aggregate = np.int32(self.options.aggregate)
            self._launch(
                "fbt_pivots.cu",
                "select_pivots",
                (*places, aggregate, trans, self.offsets, self.results, n_pivots),
            )
            if follows:
                self._launch("fbt_pivots.cu", "follow_pivots", (*places, trans, self.offsets, self.results))
            launch(device, bits, "fbt_pivots.cu", "restore_places", n_places, (n_places, trans, self.results))
        self._launch("fbt_pivots.cu", "open_search", (self.offsets, self.results))
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
        xp, options, steps = self.device.xp, self.options, self.options.look_every
        found = xp.zeros(2 * (steps + 1), np.int32)
        bounded_used = xp.zeros(1, np.uint32)
        found[:2] = 1
        directions = (_AHEAD | _BACK,) if options.combined else (_AHEAD, _BACK)
        lists = self._lists()
        settings = (np.int32(options.bounded), np.int32(options.iterations), found)
        while True:
            for step in range(steps):
                for direction in directions:
                    arguments = (*lists, np.int32(direction), *settings, np.int32(step), bounded_used)
                    self._launch("fbt_search.cu", "step_search", arguments)
            self.rounds["search_steps"] += steps
            last = found[2 * steps :].tolist()
            if last == [0, 0]:
                break
            found[:2] = xp.asarray(last, dtype=np.int32)
            found[2:] = 0
        self._launch("fbt_search.cu", "close_search", (bounded_used, self.offsets, self.results))

    def found(self) -> Searches:
        """Return what has been found."""
        xp, none = self.device.xp, self.graph.word(none_word(self.graph.bits))
        has_component = (self.results & self.done) != 0
        if self.active is not None:
            has_component &= self.active
        region = self.results & self.low
        component = xp.where(has_component, region, none)
        return Searches(component, region, self.layout.order, dict(self.rounds))
