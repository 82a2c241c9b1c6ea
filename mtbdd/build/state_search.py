"""Search state by state, for models whose sets of states have hardly fewer nodes than states.

Protocols with long runs and few choices spread their states thinly: the sets that a symbolic search
passes through then have about as many nodes as states, and every round walks all of them.
Here the events' relations are walked as diagrams from one state at a time; states are codes of
64-bit integers in a hash table, and the result is made a diagram once at the end.  Nothing but the states
met is stored, 24 to 48 bytes each, and the search may be stopped at any number of them and continued.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mtbdd.diagrams.codes import union_of_codes
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.nodes import read_nodes
from mtbdd.diagrams.relation import Relation
from mtbdd.offset.states import index_states

_CODE_BITS = 62  # a code is one signed 64-bit number, and -1 marks a free place
_FIRST_ROOM = 1 << 16

Int64Array = NDArray[np.int64]


def can_list(encoding: Encoding) -> bool:
    """Return whether a model's states fit codes, and the compiler for the search is installed."""
    return 0 < encoding.n_bits <= _CODE_BITS and importlib.util.find_spec("numba") is not None


class StateSearch:
    """The states reachable from some states, listed one by one.

    Parameters
    ----------
    encoding : Encoding
    initial : Node
        Where to start, over row bits; few states.
    events : sequence of Relation

    Raises
    ------
    ValueError
        A state has more than 62 bits, or none.

    Notes
    -----
    The order of states depends on the relations' order alone, so that every run does the same.
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
