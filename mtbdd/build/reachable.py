"""Reachable states: on sets of states, or state by state where sets do not pay.

A symbolic search costs about a unit of work for every node of the sets that it starts from. A search state by
state costs one for every state. Where the first has done much work and found far fewer states than that, the
second takes over. Its work is bounded by a multiple of that of the first. Should it not end there, the first
goes on, and so in turn with growing bounds. No model costs more than a multiple of the better of both. All
bounds are counts, none a time, so that every run does the same.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mtbdd.build.reach import search_rounds
from mtbdd.diagrams.encoding import Encoding, union_of_codes
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.nodes import read_nodes
from mtbdd.diagrams.relation import Relation
from mtbdd.offset.states import index_states

# Search state by state, for models whose sets of states have hardly fewer nodes than states.
#
# Protocols with long runs and few choices spread their states thinly: the sets that a symbolic search
# passes through then have about as many nodes as states, and every round walks all of them.
# Here the events' relations are walked as diagrams from one state at a time; states are codes of
# 64-bit integers in a hash table, and the result is made a diagram once at the end.  Nothing but the states
# met is stored, 24 to 48 bytes each, and the search may be stopped at any number of them and continued.

_CODE_BITS = 62  # a code is one signed 64-bit number, and -1 marks a free place
_FIRST_ROOM = 1 << 16

Int64Array = NDArray[np.int64]


def can_list(encoding: Encoding) -> bool:
    """Return whether a model's states fit codes, and the compiler for the search is installed."""
    return 0 < encoding.n_bits <= _CODE_BITS and importlib.util.find_spec("numba") is not None


class StateSearch:
    """The states reachable from some states, listed one by one.

    `initial`: where to start, over row bits; few states. Raises ValueError: a state has more than 62 bits, or
    none. The order of states depends on the relations' order alone, so that every run does the same.
    """

    def __init__(self, encoding: Encoding, initial: Node, events: Sequence[Relation]) -> None:
        if not 0 < encoding.n_bits <= _CODE_BITS:
            raise ValueError(
                f"encoding: expected 1 to {_CODE_BITS} bits a state, got {encoding.n_bits}; "
                "search on sets of states instead"
            )
        manager = encoding.manager
        self.encoding = encoding
        nodes = _NodePool()
        # Only states with all variables in range are met, and only enabled events are walked further.
        events = [t for t in events if t.node != manager.false]
        guards = [t.sources for t in events]
        relations = [
            manager.simplify(t.node, encoding.valid & g) for t, g in zip(events, guards, strict=True)
        ]
        guards = [manager.simplify(g, encoding.valid) for g in guards]
        self._guards = np.array([nodes.add(encoding, u) for u in guards], dtype=np.int64)
        self._relations = np.array([nodes.add(encoding, u) for u in relations], dtype=np.int64)
        self._nodes = nodes.array(encoding.n_bits)
        self._bit_starts = np.cumsum([0, *(len(t.bits) for t in events)], dtype=np.int64)
        self._bits = np.array([bit for t in events for bit in sorted(t.bits)], dtype=np.int64)
        index = index_states(manager, initial)
        bits = index.bits_at(np.arange(index.size))
        weights = 1 << np.arange(encoding.n_bits - 1, -1, -1, dtype=np.int64)
        self._queue = np.empty(max(_FIRST_ROOM, 2 * index.size), dtype=np.int64)
        self._queue[: index.size] = bits @ weights
        self._ends = np.array([0, index.size], dtype=np.int64)
        self._slots = np.empty(0, dtype=np.int64)

    @property
    def met(self) -> int:
        """Number of states met so far."""
        return int(self._ends[1])

    @property
    def done(self) -> bool:
        """Whether all states met have been explored, and so are all there are."""
        return bool(self._ends[0] == self._ends[1])

    def advance(self, limit: int) -> bool:
        """Search until all states are met, or as many as the limit; return whether all are.

        May be called again with a higher limit.  Time: O(events * levels) a state.
        """
        from mtbdd.build.walk_kernels import explore, insert_all

        while not self.done and self.met < limit:
            room = min(self._queue.size if self._slots.size == 0 else 4 * self._queue.size, limit)
            queue = np.empty(max(room, self.met), dtype=np.int64)
            queue[: self.met] = self._queue[: self.met]
            self._queue = queue
            self._slots = np.full(1 << (2 * queue.size - 1).bit_length(), -1, dtype=np.int64)
            insert_all(queue[: self.met], self._slots)
            explore(
                self._nodes,
                self._guards,
                self._relations,
                self._bit_starts,
                self._bits,
                self.encoding.n_bits,
                self._queue,
                self._slots,
                self._ends,
            )
        return self.done

    def states(self) -> Node:
        """Return the states met, over row bits."""
        manager = self.encoding.manager
        return union_of_codes(manager, manager.rows, self._queue[: self.met])


class _NodePool:
    """The nodes of several diagrams in one numbering; constants keep their references."""

    def __init__(self) -> None:
        none = np.zeros(2, dtype=np.int64)  # rows 0 and 1: nothing and the constant
        self._parts = [(none, none, none)]
        self._size = 2

    def add(self, encoding: Encoding, u: Node) -> int:
        """Take a diagram in and return the reference of its root."""
        table = read_nodes(encoding.manager, u)
        shift = 2 * (self._size - 2)
        low, high = (
            np.where(refs > 3, refs + shift, refs)[2:]
            for refs in (table.low.astype(np.int64), table.high.astype(np.int64))
        )
        self._parts.append((table.level[2:], low, high))
        self._size += len(low)
        return table.root + shift if table.root > 3 else table.root

    def array(self, n_bits: int) -> NDArray[np.int32]:
        """Return one row a node: level, else and then reference, shift of its bit in a code of `n_bits`."""
        level, low, high = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        return np.stack([level, low, high, n_bits - 1 - level // 3], axis=1).astype(np.int32)


_TRIAL = 1 << 17  # work by which a search on sets is judged, once it has merged events
_THIN = 4  # states are thinly spread where that work is this many times the states it found
_SHARE = 8.0  # states that may be listed for every unit of work done so far
_GROWTH = 4  # from one turn to the next
_MOST_STATES = 1 << 24  # listed: half a GiB


def reachable_states(
    encoding: Encoding,
    initial: Node,
    relations: Sequence[Relation],
    progress: Callable[[str], None] | None = None,
) -> Node:
    """Return the states reachable from some states, those included.

    `initial`: over row bits. `progress`: called with a line of text after every round. Time: one relational
    product a relation and round (see `mtbdd.build.reach.fixpoint`), or one walk through the relations'
    diagrams a state (see `mtbdd.build.reachable`).
    """
    say = progress or (lambda text: None)
    found, trial = initial, _TRIAL
    before: tuple[int, int] | None = None  # work and states when events were merged
    listed: StateSearch | None = None
    for number, round_ in enumerate(
        search_rounds(encoding.manager, initial, relations, Relation.image, counters=encoding.counters),
        start=1,
    ):
        found = round_.found
        say(f"reachable states, round {number}")
        if not round_.grouped:
            continue
        if before is None:
            before = round_.work, _count(encoding, found)
        work = round_.work - before[0]
        if work < trial:
            continue
        trial = _GROWTH * work
        limit = min(int(_SHARE * round_.work), _MOST_STATES)
        if _THIN * (_count(encoding, found) - before[1]) > work or not can_list(encoding):
            continue
        if listed is None:
            if before[1] > limit:
                continue
            listed = StateSearch(encoding, initial, relations)
        say("reachable states, one by one")
        if listed.advance(limit):
            return listed.states()
    return found


def _count(encoding: Encoding, states: Node) -> int:
    """Return the number of states of a set."""
    return index_states(encoding.manager, states).size
