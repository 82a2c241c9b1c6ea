"""Sets of states with an order: the offset-labelled BDD (ODD) of a set over row bits.

Every path of the diagram visits every level. A node's count is the number of states below it, its offset the
number below its else edge ([Tealdi13] §4.3.2). The index of a state is the sum of the offsets of the nodes
left by their then edge.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.errors import NumberingError, option
from mtbdd.base.memoised import Recent
from mtbdd.base.memory import require_memory
from mtbdd.base.records import Record
from mtbdd.base.sorting import sorted_values
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.nodes import FALSE, distinct_pairs, nodes_of_pairs, read_nodes
from mtbdd.offset.offset import MAX_COUNT

# Places of vectors over states: the host, or the memory of a backend.

# Whether masks are true everywhere or somewhere, by reductions that no library has to compile for it.
#
# CuPy compiles a kernel with thousands of lines, two seconds of them, for the first ``mask.all()`` and
# another for ``mask.any()``; those for the least and the greatest byte come with it.

Array = Any
"""An array of NumPy or CuPy."""

_PART = 1 << 28
"""Elements processed together: bounds the temporary memory, and libraries count elements by 32 bits."""


def is_all(mask: Array) -> bool:
    """Return whether all elements of a mask are true, shape (n,), bool."""
    return not len(mask) or bool(mask.view(np.uint8).min())


def is_any(mask: Array) -> bool:
    """Return whether some element of a mask is true, shape (n,), bool."""
    return bool(len(mask)) and bool(mask.view(np.uint8).max())


def all_finite(xp: Any, vector: Array) -> bool:
    """Return whether all elements of a vector of a module are finite, shape (n,), float64; part by part."""
    parts = (vector[begin : begin + _PART] for begin in range(0, len(vector), _PART))
    return all(is_all(xp.isfinite(part)) for part in parts)


Int64Array = NDArray[np.int64]

_SHARED_BYTES = 1 << 29
"""Bytes of a result from which several cores copy it."""


class VectorPlace:
    """A place of vectors: the memory of the host, or in a subclass that of a device.

    `xp`: NumPy, or another one with its functions. `block_length`: mean length of blocks from which on they
    are written out; None: from as long ones as there are.
    """

    xp: Any = np
    block_length: int | None = None

    def written(
        self, flat: NDArray[Any], cuts: NDArray[np.int64], sequence: NDArray[np.int64]
    ) -> NDArray[Any]:
        """Return blocks one after the other as a vector.

        `flat` (ndarray, shape (cuts[-1],)): all distinct blocks, one after the other. `cuts` (ndarray of
        int64, shape (blocks + 1,)): where they begin. `sequence`: which blocks the vector has.
        """
        return gather(flat, cuts, sequence)[0]

    def array(self, values: Any) -> NDArray[Any]:
        """Return a vector here, the same one if it is here already."""
        here: NDArray[Any] = values.get() if hasattr(values, "get") else values
        return here

    def compressed(self, vector: NDArray[Any]) -> Any:
        """Return a vector of this place, float64, as operands of solutions are best held here."""
        return vector

    def require(self, needed: int, what: str, advice: str) -> None:
        """Refuse a vector that there is no room for; see `mtbdd.base.memory.require_memory`."""
        require_memory(needed, what, f"{advice}, or {option('spill', 'DIR')}, which has vectors on a disk")


HOST = VectorPlace()
"""The memory that NumPy has."""


def gather(
    flat: NDArray[Any], cuts: NDArray[np.int64], sequence: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Concatenate the blocks of `flat` named by `sequence`; return their ends as well."""
    lengths = np.diff(cuts)[sequence]
    ends = np.cumsum(lengths)
    if sequence.size and lengths.mean() > 64:
        result = np.empty(int(ends[-1]), dtype=flat.dtype)
        if result.nbytes >= _SHARED_BYTES and importlib.util.find_spec("numba") is not None:
            from mtbdd.offset.block_kernels import copy_blocks

            copy_blocks(flat, cuts[sequence], ends, result)
            return result, ends
        starts = cuts[sequence].tolist()
        position = 0
        for start, length in zip(starts, lengths.tolist(), strict=True):
            result[position : position + length] = flat[start : start + length]
            position += length
        return result, ends
    index = np.arange(int(ends[-1]) if sequence.size else 0, dtype=np.int64)
    index += np.repeat(cuts[sequence] - (ends - lengths), lengths)
    return flat[index], ends


# Sets of states with an order: the offset-labelled BDD (ODD) of a set over row bits.
#
# Every path of the diagram visits every level. A node's count is the number of states below it, its offset
# the number below its else edge ([Tealdi13] §4.3.2). The index of a state is the sum of the offsets of the
# nodes left by their then edge.

_MOST_MARKS = 1 << 17  # members whose membership in sets is kept
_MOST_LISTED = 1 << 12  # states of a set that are listed one by one
_NODE_BITS = 16  # that take as many bytes as a node


class StateIndex(Record):
    """The levels of a set's ODD.

    Attributes
    ----------
    states : Node
        The set, over row bits.
    low, high : tuple of ndarray of int32, shape (nodes of the level,) each
        One array a row bit: the else and then children's numbers at the next level, -1 for none.
    counts : tuple of ndarray of int64, shape (nodes of the level,) each
        One array a level, ``n_bits + 1`` in all: the number of states below each node. Where there are more
        than 2^62 the upper levels have integers of Python: states are counted then, and never numbered.
    shared_total : int or None
        Where processes share the states, the number of all members; the arrays have the own ones.
    place : VectorPlace
        Where vectors over the set are made.
    """

    states: Node
    low: tuple[NDArray[np.int32], ...]
    high: tuple[NDArray[np.int32], ...]
    counts: tuple[NDArray[np.int64], ...]
    shared_total: int | None = None
    place: VectorPlace = HOST

    def at(self, place: VectorPlace) -> StateIndex:
        """Return the same states, with vectors in another place."""
        return replace(self, place=place)

    @property
    def total(self) -> int:
        """Number of states, those of other processes among them."""
        return self.size if self.shared_total is None else self.shared_total

    @property
    def size(self) -> int:
        """Number of states that are numbered: of the own ones, where processes share the states."""
        return int(self.counts[0][0]) if self.counts[0].size else 0

    def require_numbers(self, advice: str | None = None) -> None:
        """Raise NumberingError where there are more than 2^62 states; `advice` says what else to do."""
        if self.size > MAX_COUNT:
            advice = advice or f"choose {option('engine', 'symbolic')}"
            raise NumberingError(
                "the model has more than 2^62 states, which 64-bit indices cannot number: expected fewer; "
                f"give variables smaller ranges, or {advice}"
            )

    @property
    def n_bits(self) -> int:
        """Number of row bits."""
        return len(self.low)

    def number(self, bits: list[bool]) -> int:
        """Return the index of one member, given its row bits from top to bottom.

        Raises
        ------
        KeyError
            The state is not in the set.
        """
        node, index = (0 if self.size else -1), 0
        for level, bit in enumerate(bits):
            if node < 0:
                break
            low, high = int(self.low[level][node]), int(self.high[level][node])
            if bit and low >= 0:
                index += int(self.counts[level + 1][low])
            node = high if bit else low
        if node < 0:
            raise KeyError("the state is not in the set")
        return index

    def places(self, others: StateIndex) -> NDArray[np.int64]:
        """Return the indices of a subset's members, ascending, shape (others.size,).

        Notes
        -----
        Both diagrams are walked together.  Time: O(others.size) in numpy for every bit.
        """
        node: NDArray[np.int64] = np.zeros(min(others.size, 1), np.int64)
        other, place = node.copy(), node.copy()
        for bit in range(self.n_bits):
            node, other, place = self._below(others, bit, node, other, place)
        return place

    def runs(self, others: StateIndex) -> NDArray[np.int64]:
        """Return the indices of a subset's members as ranges, ascending and apart, shape (runs, 2).

        Notes
        -----
        Both diagrams are walked together, down to where all members below a node are in the subset.  Time:
        O(prefixes with some but not all members) in numpy for every bit.
        """
        node: NDArray[np.int64] = np.zeros(min(others.size, 1), np.int64)
        other, place = node.copy(), node.copy()
        begins, ends = [], []
        for bit in range(self.n_bits + 1):
            count = others.counts[bit][other]
            whole = count == self.counts[bit][node]
            begins.append(place[whole])
            ends.append(place[whole] + count[whole])
            node, other, place = (array[~whole] for array in (node, other, place))
            if bit == self.n_bits or not node.size:
                break
            node, other, place = self._below(others, bit, node, other, place)
        return merge_ranges(np.stack((np.concatenate(begins), np.concatenate(ends)), axis=1))

    def prefixes(self, bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first index and the number of the members with each prefix, shape (prefixes,) each.

        Notes
        -----
        Time: O(prefixes) in numpy for every bit.
        """
        node: NDArray[np.int64] = np.zeros(min(self.size, 1), np.int64)
        first = node.copy()
        for bit in range(bits):
            low, high = self.low[bit][node], self.high[bit][node]
            below = np.where(low >= 0, self.counts[bit + 1][low], 0)
            child = np.stack((low, high), axis=1).ravel()
            first = np.stack((first, first + below), axis=1).ravel()[child >= 0]
            node = child[child >= 0].astype(np.int64)
        return first, self.counts[bits][node]

    def _below(
        self,
        others: StateIndex,
        bit: int,
        node: NDArray[np.int64],
        other: NDArray[np.int64],
        place: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return what lies one bit below nodes of both diagrams: children, and the first index of each."""
        low, high = self.low[bit][node], self.high[bit][node]
        below = np.where(low >= 0, self.counts[bit + 1][low], 0)
        child = np.stack((others.low[bit][other], others.high[bit][other]), axis=1).ravel()
        kept = child >= 0
        nodes = np.stack((low, high), axis=1).ravel()[kept].astype(np.int64)
        return nodes, child[kept].astype(np.int64), np.stack((place, place + below), axis=1).ravel()[kept]

    def bits_at(self, indices: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the row bits of states by index, shape (len(indices), n_bits).  Time: O(len * n_bits)."""
        left = np.array(indices, dtype=np.int64)
        node = np.zeros(left.size, dtype=np.int64)
        bits = np.zeros((left.size, self.n_bits), dtype=np.bool_)
        for level in range(self.n_bits):
            low = self.low[level][node]
            below = np.where(low >= 0, self.counts[level + 1][low], 0)
            bit = left >= below
            left -= np.where(bit, below, 0)
            node = np.where(bit, self.high[level][node], low)
            bits[:, level] = bit
        return bits

    @cached_property
    def masks(self) -> Recent[NDArray[np.bool_]]:
        """Which members lie in the sets of the last requests, each shape (size,), not to be written to."""
        return Recent(_MOST_MARKS if self.place is HOST else 0)

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The numbers that the row bits of all members spell, ascending; there are 62 bits at most."""
        weights = np.int64(1) << np.arange(self.n_bits, dtype=np.int64)[::-1]
        found: NDArray[np.int64] = weights @ self.member_bits.astype(np.int64)
        return found

    @cached_property
    def prefix_children(self) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]:
        """The places of every prefix's continuations by 0 and by 1 among the prefixes one bit longer.

        One pair a bit; where there is no continuation the place is the number of these prefixes.
        """
        node: NDArray[np.int64] = np.zeros(min(self.size, 1), np.int64)
        found = []
        for low, high in zip(self.low, self.high, strict=True):
            child = np.stack((low[node], high[node]), axis=1)
            kept = child >= 0
            node = child[kept].astype(np.int64)
            place = np.where(kept, np.cumsum(kept).reshape(kept.shape) - 1, node.size)
            found.append((place[:, 0], place[:, 1]))
        return tuple(found)

    @cached_property
    def member_bits(self) -> NDArray[np.bool_]:
        """The row bits of all members, shape (n_bits, size)."""
        return np.ascontiguousarray(self.bits_at(np.arange(self.size)).T)


def merge_ranges(ranges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the union of half-open ranges, ascending and apart, shape (k, 2)."""
    begin, end = ranges[np.argsort(ranges[:, 0], kind="stable")].T
    reached = np.maximum.accumulate(end)
    is_first = np.append(True, begin[1:] > reached[:-1])[: len(begin)]
    return np.stack((begin[is_first], np.maximum.reduceat(end, np.flatnonzero(is_first))), axis=1)


def index_states(manager: Manager, states: Node) -> StateIndex:
    """Return the ODD of a set of states.

    Parameters
    ----------
    manager : Manager
    states : Node
        A set, over row bits.

    Returns
    -------
    StateIndex
        It numbers the own members, where the manager has a share of the states.

    Notes
    -----
    Time: O(nodes of the levelled diagram) in numpy, plus reading the BDD once.
    """
    if manager.share is not None:
        own = index_states(manager.whole, states & manager.share.own)
        return replace(own, states=states, shared_total=index_states(manager.whole, states).size)
    known: StateIndex | None = manager.indices.get(states)
    if known is not None:
        return known
    table = read_nodes(manager, states)
    n = manager.n_bits
    low: list[NDArray[np.int32]] = []
    high: list[NDArray[np.int32]] = []
    refs = np.array([table.root] if table.root != FALSE else [], dtype=np.int64)
    for bit in range(n):
        children = table.cofactors(refs, Manager.row_level(bit))
        both = np.concatenate(children)
        live = both != FALSE
        refs, numbers = np.unique(both[live], return_inverse=True)
        links = np.full(both.size, -1, dtype=np.int32)
        links[live] = numbers.reshape(-1)
        half = both.size // 2
        low.append(links[:half])
        high.append(links[half:])
    counts: list[NDArray[np.int64]] = [np.ones(refs.size, dtype=np.int64)]
    for bit in reversed(range(n)):
        above = np.zeros(low[bit].size, dtype=counts[-1].dtype)
        for links in (low[bit], high[bit]):
            present = links >= 0
            above[present] += counts[-1][links[present]]
        if above.size and int(above.max()) > MAX_COUNT:  # two of these still fit, so no sum wraps unseen
            above = above.astype(np.object_)
        counts.append(above)
    found = StateIndex(states, tuple(low), tuple(high), tuple(reversed(counts)))
    members = min(found.size, _MOST_LISTED) * n // _NODE_BITS
    manager.indices.keep(states, found, sum(links.size for links in low) + members)
    return found


def states_from(manager: Manager, index: StateIndex, mask: NDArray[np.bool_]) -> Node:
    """Return the members of a set that a vector marks, as a set: the inverse of an indicator.

    `index`: the set. `mask` (ndarray of bool, shape (index.size,)): which members to keep, in index order.
    Where processes share the states, every process marks its own, and all get the set of all. Raises
    ValueError: the mask has another shape.

    Prefixes of the members' bits are followed downwards while the vector marks some but not all members below
    them; then subsets are numbered bottom-up, level by level, equal ones alike. Of few members all prefixes
    are numbered. Time: O(size), and O(such prefixes) in numpy for every level, then one package call for
    every distinct subset.
    """
    if mask.shape != (index.size,):
        raise ValueError(f"mask: expected shape ({index.size},), got {mask.shape}")
    if manager.share is not None:
        from mtbdd.diagrams.matrix import united

        inside = replace(index, states=index.states & manager.share.own, shared_total=None)
        return united(manager, states_from(manager.whole, inside, mask))
    if not mask.any():
        return manager.false
    if mask.all():
        return index.states
    if mask.size <= _MOST_LISTED:
        found = _from_few(manager, index, mask)
        index.masks.keep(found, mask.copy(), mask.size)
        return found
    marked = np.zeros(index.size + 1, dtype=np.int64)
    np.cumsum(mask, out=marked[1:])
    node, first = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    # A child is given by its state: 0 nothing below is marked, 1 some, 2 all.
    shapes: list[tuple[NDArray[np.uint8], NDArray[np.int32]]] = []
    for bit, (low, high) in enumerate(zip(index.low, index.high, strict=True)):
        counts = np.append(index.counts[bit + 1], 0)  # place -1: no child, no states
        children = np.stack([low[node], high[node]], axis=1)
        sizes = counts[children]
        starts = np.stack([first, first + sizes[:, 0]], axis=1)
        inside = marked[starts + sizes] - marked[starts]
        state = ((inside > 0).astype(np.uint8) + ((inside > 0) & (inside == sizes))).reshape(-1)
        children = children.reshape(-1)
        shapes.append((state, children[state == 2]))
        some = state == 1
        node, first = children[some], starts.reshape(-1)[some]
    whole = _whole_nodes(manager, index, [complete for _, complete in shapes])
    # Upwards: number 0 is the empty subset, then come the complete ones, then the others.
    numbers, nodes = np.zeros(0, dtype=np.int64), [manager.false]
    for bit in reversed(range(index.n_bits)):
        state, complete = shapes.pop()
        needed, own = whole[bit]
        codes = np.zeros(state.size, dtype=np.int64)
        codes[state == 2] = np.searchsorted(needed, complete) + 1
        codes[state == 1] = numbers + needed.size
        below = [manager.false, *own, *nodes[1:]]
        keys, numbers = distinct_pairs(codes[::2] * len(below) + codes[1::2], len(below))
        nodes = nodes_of_pairs(manager, manager.rows[bit], below, keys // len(below), keys % len(below))
    return nodes[int(numbers[0])]


def _from_few(manager: Manager, index: StateIndex, mask: NDArray[np.bool_]) -> Node:
    """Return the marked members of a set that can be listed: prefixes bottom-up, equal subsets alike."""
    numbers, nodes = mask.astype(np.int64), [manager.false, manager.true]
    for bit in reversed(range(index.n_bits)):
        low, high = index.prefix_children[bit]
        below, numbers = len(nodes), np.append(numbers, 0)
        keys, numbers = distinct_pairs(below * numbers[low] + numbers[high], below)
        nodes = nodes_of_pairs(manager, manager.rows[bit], nodes, keys // below, keys % below)
    return nodes[int(numbers[0])]


def _whole_nodes(
    manager: Manager, index: StateIndex, wanted: Sequence[NDArray[np.int32]]
) -> list[tuple[NDArray[np.int32], list[Node]]]:
    """Return wanted nodes of the ODD below every bit, and those that they lead to, as diagrams.

    One pair a bit: the numbers, ascending, and the diagrams.
    """
    needed: list[NDArray[np.int32]] = []
    for bit, chosen in enumerate(wanted):
        if needed:
            above = needed[-1]
            chosen = np.concatenate([chosen, index.low[bit][above], index.high[bit][above]])
        needed.append(sorted_values(chosen[chosen >= 0]))
    found: list[tuple[NDArray[np.int32], list[Node]]] = []
    below = [manager.false, *[manager.true] * needed[-1].size]
    for bit in reversed(range(len(needed))):
        if bit + 1 < len(needed):
            chosen, under = needed[bit], np.append(needed[bit + 1], -1)
            low, high = index.low[bit + 1][chosen], index.high[bit + 1][chosen]
            places = [np.where(c >= 0, np.searchsorted(under[:-1], c) + 1, 0) for c in (low, high)]
            below = [manager.false, *nodes_of_pairs(manager, manager.rows[bit + 1], below, *places)]
        found.append((needed[bit], below[1:]))
    return found[::-1]


# Numbers of states as users see them: in the order of the text, not that of the diagram.
#
# State k is the k-th reachable state in lexicographic order of its values, variables in the text's order
# (globals, then the modules'). A diagram in another variable order numbers its states differently; a
# permutation leads from one to the other.

_HELD = 1 << 17  # states whose bits are held together
_WORD = 62  # bits of a key


def numbering(encoding: Encoding, index: StateIndex) -> NDArray[np.int64] | None:
    """Return the diagram's number of every state, states in the order of the text.

    `index`: the states, n of them. Returns ndarray of int64, shape (n,), or None: element k is the index in
    `index` of state k. None if the two orders are the same, as they are unless a variable order other than
    the text's was chosen. Raises MemoryError: there is no room for the permutation.

    Time: O(n log n); memory: 16 bytes a state, and 8 for every 62 bits of a state beyond the first, while it
    is made. Nothing without a permutation.
    """
    return None if keeps_order(encoding) or index.size < 2 else sorted_places(encoding, index)


def keeps_order(encoding: Encoding) -> bool:
    """Return whether the bits of a diagram lie in the order of the text."""
    order = _bits(encoding)
    return order == sorted(order)


def sorted_places(
    encoding: Encoding, index: StateIndex, indices: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return the places of states in a list, in the order of the text.

    `indices` (ndarray of int64, shape (k,), optional): the list, by index; default all states. Returns
    ndarray of int64, shape (k,). Raises MemoryError: there is no room for it.
    """
    size = index.size if indices is None else indices.size
    require_memory(
        8 * size * (len(_words(encoding)) + 1),
        f"the numbering of {size} states in the order of the text",
        "choose the variable order of the text (order='model'), which needs none",
    )
    keys = text_keys(encoding, index, indices)
    places = np.argsort(keys[0]) if len(keys) == 1 else np.lexsort(keys[::-1])
    return places.astype(np.int64, copy=False)


def text_keys(
    encoding: Encoding, index: StateIndex, indices: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return what states are sorted by in the order of the text, first word first, shape (words, k).

    `indices` (ndarray of int64, shape (k,), optional): some states, by index; default all states.
    """
    size, words = index.size if indices is None else indices.size, _words(encoding)
    keys = np.zeros((len(words), size), dtype=np.int64)
    for begin in range(0, size, _HELD):
        end = min(begin + _HELD, size)
        bits = index.bits_at(np.arange(begin, end) if indices is None else indices[begin:end])
        for key, word in zip(keys, words, strict=True):
            part = key[begin:end]
            for bit in word:
                part *= 2
                part += bits[:, bit]
    return keys


def _words(encoding: Encoding) -> list[list[int]]:
    """Return the bits of all variables in the order of the text, by the word of a key that has them."""
    order = _bits(encoding)
    return [order[begin : begin + _WORD] for begin in range(0, len(order), _WORD)]


def _bits(encoding: Encoding) -> list[int]:
    """Return the bits of all variables, in the order of the text."""
    return [bit for variable in encoding.shown for bit in variable.bits]


def inverse(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the inverse of a permutation, shape (n,)."""
    numbers = np.empty_like(places)
    numbers[places] = np.arange(places.size)
    return numbers
