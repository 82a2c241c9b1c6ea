"""Compiled operations on MTBDDs that share their nodes: products, sums, maxima, in directed rounding.

A `NodeStore` holds functions and results of operations: the next step of an iteration finds those of the last
one. A `Diagram` is one function as plain arrays that nothing else shares. A store loads Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.budget import check_budget
from mtbdd.base.memory import require_memory
from mtbdd.diagrams.value_diagrams import MOST_NODES, ValueDiagrams

if TYPE_CHECKING:
    from mtbdd.diagrams.node_kernels import Store

Nodes = NDArray[np.int32]
Values = NDArray[np.float64]
Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]
T = TypeVar("T")

NEAREST, DOWN, UP = 0, -1, 1
"""Rounding of sums and products: every one to nearest, to at most the exact result, or to at least it."""

_STEPS = 1 << 22
"""Steps between two checks of the budget: some tenths of a second."""

_FEW_STEPS = 1 << 17
"""Steps between two looks at the number of results, where that is limited."""

_FIRST = 1 << 12
"""Nodes that a store has room for at first."""

_MOST_KEYS = 1 << 26
"""Places for results; where they are full these are forgotten."""

_KEPT = 4
"""Times the results of the largest operation, up to which old ones are kept: most help no later one."""

_NODE_BYTES = 32
_KEY_BYTES = 12


@dataclass(frozen=True, eq=False)
class Diagram:
    """One reduced MTBDD.

    `bottom`: level of the leaves; every bit's level is smaller. `nodes` (ndarray of int32, shape (n, 3)):
    level, else child and then child, children before their parents and the root last. The leaves stand first;
    leaf i has the level `bottom` and i in the place of both children. `values` (ndarray of float64, shape
    (leaves,)): of the leaves, all different; -0.0 does not occur.
    """

    bottom: int
    nodes: Nodes
    values: Values

    @classmethod
    def constant(cls, bottom: int, value: float) -> Diagram:
        """Return a function with one value."""
        return cls(bottom, np.array([[bottom, 0, 0]], dtype=np.int32), np.full(1, value))

    @classmethod
    def of(cls, work: ValueDiagrams, root: int) -> Diagram:
        """Return a function of shared arrays.  Time: O(n log n) in numpy, n nodes of `work`."""
        groups = list(work.below(root))
        place = np.zeros(1 + max(int(ids.max()) for _, ids in groups), dtype=np.int32)
        parts, start = [], 0
        for level, ids in groups:
            place[ids] = np.arange(start, start + ids.size)
            low, high = (place[child] for child in work.children(ids))
            parts.append(np.stack([np.full(ids.size, level, dtype=np.int32), low, high], axis=1))
            start += ids.size
        bottom, leaves = groups[0]
        assert bottom == work.bottom
        return cls(work.bottom, np.concatenate(parts), work.values_of(leaves))

    @property
    def n_nodes(self) -> int:
        """Number of nodes, the leaves among them."""
        return int(self.nodes.shape[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return int(self.nodes.nbytes + self.values.nbytes)


class NodeStore:
    """Functions that share their nodes.

    A stored function is the number of its node, until `collect`; equal functions have equal numbers, and 0 is
    the function 0. Leaves have words of 64 bits: doubles, or residues and other numbers of the caller.

    Parameters
    ----------
    bottom : int
        Level of the leaves. Row bit i is level 3 i, column bit i level 3 i + 1.
    most : int
        Nodes beyond which operations raise `MemoryError`.
    advice : str
        What to do then.

    Attributes
    ----------
    most_results : int or None
        Results of operations after which a further one raises `MemoryError`; None for any number.

    Notes
    -----
    Memory: 30 bytes a node, and 24 to 48 a known result.
    """

    def __init__(
        self,
        bottom: int,
        most: int = 4 * MOST_NODES,
        advice: str = "ask with the hybrid engine, whose vectors are arrays",
    ) -> None:
        from mtbdd.diagrams import node_kernels as kernels

        self.bottom, self.most, self._advice = bottom, most, advice
        self._kernels = kernels
        self._live, self._most_made, self._made = 1, 0, 0
        self.most_results: int | None = None
        self._store: Store = kernels.Store(
            np.zeros((_FIRST, 3), dtype=np.int32),
            np.zeros(_FIRST, dtype=np.uint64),
            np.full(4 * _FIRST, -1, dtype=np.int32),
            np.full(4 * _FIRST, -1, dtype=np.int64),
            np.zeros(4 * _FIRST, dtype=np.int32),
            np.zeros((4 * bottom + 16, 6), dtype=np.int64),
            np.zeros((0, 4), dtype=np.uint64),
            np.zeros(7, dtype=np.int64),
        )
        self._store.nodes[0, 0] = bottom
        self._store.record[kernels.NODES] = 1  # the leaf 0
        self._meeting: tuple[Numbers, Numbers, Nodes] | None = None

    # ------------------------------------------------------------------ functions

    @property
    def n_nodes(self) -> int:
        """Number of nodes stored, those of no use among them."""
        return int(self._store.record[self._kernels.NODES])

    def constant(self, value: float) -> int:
        """Return a function with one value."""
        return self.insert(Diagram.constant(self.bottom, value))

    def insert(self, diagram: Diagram, words: Words | None = None) -> int:
        """Store a function, with other words in the place of its values where these are given.

        Time: O(n).
        """
        if words is None:
            words = (diagram.values + 0.0).view(np.uint64)
        self._reserve(diagram.n_nodes)
        ids = np.zeros(diagram.n_nodes, dtype=np.int64)
        self._kernels.insert(self._store, self.bottom, diagram.nodes, words, ids)
        return int(ids[-1])

    def extract(self, function: int) -> Diagram:
        """Return a stored function, whose words are doubles.  Time: O(nodes stored)."""
        marks, count = self._marked(function)
        place = np.zeros(marks.size, dtype=np.int32)
        nodes, words = np.zeros((count, 3), dtype=np.int32), np.zeros(count, dtype=np.uint64)
        leaves = self._kernels.copy(self._store, self.bottom, marks, place, nodes, words)
        return Diagram(self.bottom, nodes, words[:leaves].view(np.float64))

    def size(self, function: int) -> int:
        """Return the number of nodes of a function, its leaves among them.  Time: O(nodes stored)."""
        return self._marked(function)[1]

    def leaves(self, function: int) -> tuple[Numbers, Words]:
        """Return the leaves of a function, and their words.  Time: O(nodes stored)."""
        found = self._leaves_of(self._marked(function)[0])
        return found, self._store.words[found]

    def values(self, function: int) -> Values:
        """Return the different values of a function.  Time: O(nodes stored)."""
        return self.leaves(function)[1].view(np.float64)

    def relabelled(self, function: int, change: Callable[[Words], Words]) -> int:
        """Return a function with other words.  Time: O(nodes stored)."""
        marks, count = self._marked(function)
        leaves = self._leaves_of(marks)
        by_node = np.zeros(marks.size, dtype=np.uint64)
        by_node[leaves] = change(self._store.words[leaves])
        self._reserve(count)
        image = np.zeros(marks.size, dtype=np.int64)
        self._kernels.relabel(self._store, self.bottom, marks, by_node, image)
        return int(image[function])

    def mapped(self, function: int, change: Callable[[Values], Values]) -> int:
        """Return a function of the values of one.

        Raises OverflowError where they leave the finite doubles. Time: O(nodes stored).
        """

        def changed(words: Words) -> Words:
            values = change(words.view(np.float64)) + 0.0
            if not np.isfinite(values).all():
                raise OverflowError("a value is beyond 1.79e308, the largest double: expected finite values")
            return values.view(np.uint64)

        return self.relabelled(function, changed)

    def shares(self, function: int) -> Values:
        """Return which share of all assignments leads to each node of a function, by number; else 0."""
        marks, _ = self._marked(function)
        share = np.zeros(marks.size)
        self._kernels.share_out(self._store, self.bottom, function, marks, share)
        return share

    def children(self, functions: Numbers, level: int) -> tuple[Numbers, Numbers]:
        """Return what functions, which test no higher bit, are where the bit of a level is 0 and 1."""
        own = self._store.nodes[functions]
        tests = own[:, 0] == level
        low, high = (np.where(tests, own[:, side], functions).astype(np.int64) for side in (1, 2))
        return low, high

    def words_of(self, leaves: Numbers) -> Words:
        """Return the words of leaves."""
        return self._store.words[leaves]

    # ------------------------------------------------------------------ operations

    def sum(self, a: int, b: int, rounding: int = NEAREST) -> int:
        """Return the sum of two functions.  Time: as for all operations O(pairs that meet)."""
        return self.apply(self._kernels.ADD + (rounding & 3), a, b)

    def product(self, a: int, b: int, rounding: int = NEAREST) -> int:
        """Return the product of two functions, value by value."""
        return self.apply(self._kernels.TIMES + (rounding & 3), a, b)

    def matrix_product(self, matrix: int, other: int, rounding: int = NEAREST) -> int:
        """Return the product of a matrix over rows and columns with a vector over rows, or with a matrix.

        Raises MemoryError: more nodes than the store may have. Raises OverflowError: a value is beyond the
        largest double.

        The result takes the sum of ``matrix(r, k) * other(k, c)`` over all k. Of each column bit of the first
        factor two halves are added, the lowest bit first; a bit that both skip doubles. Time: O(1) a pair of
        nodes that meets, and a sum of two functions a pair at a column bit.
        """
        return self.apply(self._kernels.MATRIX + (rounding & 3), matrix, other, self._above(matrix, other))

    def maximum(self, a: int, b: int) -> int:
        """Return the greater of two functions, value by value."""
        return self.apply(self._kernels.GREATER, a, b)

    def minimum(self, a: int, b: int) -> int:
        """Return the lesser of two functions, value by value."""
        return self.apply(self._kernels.LESS, a, b)

    def without(self, a: int, b: int) -> int:
        """Return a function, and 0 where another one has the same value."""
        return self.apply(self._kernels.EXCEPT, a, b)

    def modular_product(self, matrix: int, vector: int) -> int:
        """Return the product of a matrix and a vector of residues."""
        operation = self._kernels.MATRIX + self._kernels.MODULAR
        return self.apply(operation, matrix, vector, self._above(matrix, vector))

    def apply(self, operation: int, a: int, b: int, power: int = 0) -> int:
        """Return an operation of `mtbdd.diagrams.node_kernels` on two functions, times a power of two."""
        check_budget()
        kernels, record = self._kernels, self._store.record
        before = int(record[kernels.KNOWN])
        if before > max(16 * _FIRST, _KEPT * self._most_made):
            self._begin_results()
            before = 0
        kernels.begin(self._store, operation, a, b, power)
        steps = _STEPS if self.most_results is None else _FEW_STEPS
        while status := kernels.run(self._store, self.bottom, steps):
            check_budget()
            self._refuse_more(int(record[kernels.KNOWN]) - before)
            if status == kernels.OVERFLOW:
                raise OverflowError("a value is beyond 1.79e308, the largest double: expected finite values")
            if status == kernels.FULL:
                self._reserve(1)
                self._reserve_results()
                self._reserve_notes()
        made = max(int(record[kernels.KNOWN]) - before, 0)
        self._most_made, self._made = max(self._most_made, made), self._made + made
        self._refuse_more(0)
        return int(record[kernels.RESULT])

    def _refuse_more(self, more: int) -> None:
        """Refuse to go on where there are too many results, with those that an operation has made so far."""
        if self.most_results is not None and self._made + more > self.most_results:
            raise MemoryError(
                f"operations on diagrams made more than {self.most_results:,} results: {self._advice}"
            )

    def noted(self, operation: Callable[[], T]) -> tuple[T, Words]:
        """Return what operations make, and what was done with leaves on the way.

        The latter has a row of four: operation, operands, result. What was known before is not in it.
        """
        place = self._kernels.LOGGED
        self._store = self._store._replace(log=np.zeros((_FIRST, 4), dtype=np.uint64))
        found = operation()
        log = self._store.log[: self._store.record[place]]
        self._store = self._store._replace(log=np.zeros((0, 4), dtype=np.uint64))
        self._store.record[place] = 0
        return found, log

    def begin_exact(self) -> None:
        """Forget whether results were rounded, and all results: what is known is not rounded once more."""
        self._begin_results()
        self._store.record[[self._kernels.ROUNDED, self._kernels.TINY]] = 0

    @property
    def was_rounded(self) -> bool:
        """Whether a result was rounded since `begin_exact`."""
        return bool(self._store.record[self._kernels.ROUNDED])

    @property
    def was_tiny(self) -> bool:
        """Whether a product was below 2^-960 since then, so that its relative error is not known."""
        return bool(self._store.record[self._kernels.TINY])

    def leaf_pairs(self, a: int, b: int) -> tuple[Values, Values]:
        """Return the values that two functions have together somewhere; see `word_pairs`."""
        left, right = self.word_pairs(a, b)
        return left.view(np.float64), right.view(np.float64)

    def word_pairs(self, a: int, b: int) -> tuple[Words, Words]:
        """Return the words that two functions have together somewhere: distinct pairs, an array each.

        Time: O(pairs of nodes that meet), compiled.
        """
        kernels, record = self._kernels, np.array([1, 0, 0])
        if self._meeting is None:
            self._meeting = (
                np.zeros(_FIRST, dtype=np.int64),
                np.zeros(_FIRST, dtype=np.int64),
                np.zeros((_FIRST, 2), dtype=np.int32),
            )
        keys, stack, pairs = self._meeting
        keys.fill(-1)
        stack[0] = a << 29 | b
        while status := kernels.meet(self._store, self.bottom, _STEPS, keys, stack, pairs, record):
            check_budget()
            if status != kernels.FULL:
                continue
            if 2 * record[1] + 8 > keys.size:
                old, nothing = keys, np.zeros(keys.size, dtype=np.int32)
                keys = np.full(4 * old.size, -1, dtype=np.int64)
                kernels.index_keys(old, nothing, keys, np.zeros(keys.size, dtype=np.int32))
            if record[0] + 8 > stack.size:
                stack = _grown(stack, 2 * stack.size)
            if record[2] + 8 > pairs.shape[0]:
                pairs = _grown(pairs, 2 * pairs.shape[0])
        self._meeting = keys, stack, pairs
        left, right = pairs[: record[2]].T
        return self._store.words[left], self._store.words[right]

    # ------------------------------------------------------------------ room

    def collect(self, *functions: int) -> tuple[int, ...]:
        """Forget all functions but some, and all results; return the new numbers of those.

        Time: O(nodes stored).
        """
        kernels, store = self._kernels, self._store
        marks = np.zeros(max(functions, default=0) + 1, dtype=np.bool_)
        marks[0] = True
        for function in functions:
            kernels.mark(store, self.bottom, function, marks)
        place = np.zeros(marks.size, dtype=np.int32)
        kernels.keep(store, self.bottom, marks, place)
        store.unique.fill(-1)
        kernels.index_nodes(store, self.bottom)
        self._live = self.n_nodes
        self._begin_results()
        return tuple(int(place[function]) for function in functions)

    def is_crowded(self) -> bool:
        """Whether most nodes are of no use: `collect` costs little beside them."""
        return self.n_nodes > max(_FIRST, 4 * self._live)

    def _begin_results(self) -> None:
        """Forget all results, between two operations; have room for as many as the largest one has made."""
        places = max(4 * _FIRST, 1 << (4 * self._most_made).bit_length())
        if places < self._store.keys.size:  # small tables are quick
            keys, results = np.zeros(places, dtype=np.int64), np.zeros(places, dtype=np.int32)
            self._store = self._store._replace(keys=keys, results=results)
        self._most_made = 0
        self._forget()

    def _forget(self) -> None:
        self._store.keys.fill(-1)
        self._store.record[self._kernels.KNOWN] = 0

    def _leaves_of(self, marks: NDArray[np.bool_]) -> Numbers:
        """Return the marked leaves."""
        marked = np.flatnonzero(marks)
        found: Numbers = marked[self._store.nodes[marked, 0] == self.bottom]
        return found

    def _above(self, matrix: int, other: int) -> int:
        """Return how many column bits above both functions there are."""
        nodes = self._store.nodes
        of_other = int(nodes[other, 0])
        return (min(int(nodes[matrix, 0]), of_other + (of_other < self.bottom)) + 1) // 3

    def _marked(self, function: int) -> tuple[NDArray[np.bool_], int]:
        marks = np.zeros(function + 1, dtype=np.bool_)
        return marks, int(self._kernels.mark(self._store, self.bottom, function, marks))

    def _reserve_results(self) -> None:
        """Have room for results where there is little: for twice as many, or none of the old ones."""
        keys = self._store.keys
        if 2 * self._store.record[self._kernels.KNOWN] + 8 < keys.size:
            return
        if keys.size >= _MOST_KEYS:
            self._forget()
            return
        require_memory(_KEY_BYTES * 2 * keys.size, "results of operations on diagrams", self._advice)
        more = np.full(2 * keys.size, -1, dtype=np.int64)
        results = np.zeros(more.size, dtype=np.int32)
        self._kernels.index_keys(keys, self._store.results, more, results)
        self._store = self._store._replace(keys=more, results=results)

    def _reserve_notes(self) -> None:
        """Have room for twice as many notes where they are nearly full."""
        log = self._store.log
        if len(log) and self._store.record[self._kernels.LOGGED] + self.bottom + 2 >= len(log):
            require_memory(4 * log.nbytes, "notes of operations on diagrams", self._advice)
            self._store = self._store._replace(log=_grown(log, 2 * len(log) + self.bottom))

    def _reserve(self, more: int) -> None:
        """Have room for more nodes."""
        store = self._store
        needed = self.n_nodes + more + 8
        if needed > self.most:
            raise MemoryError(
                f"a symbolic operation needs more than {self.most} nodes: expected fewer; {self._advice}"
            )
        if needed > store.nodes.shape[0]:
            room = max(needed, 2 * store.nodes.shape[0])
            require_memory(_NODE_BYTES * room, "nodes of diagrams", self._advice)
            store = store._replace(nodes=_grown(store.nodes, room), words=_grown(store.words, room))
        if 2 * needed > store.unique.size:
            room = 1 << int(4 * needed - 1).bit_length()
            store = store._replace(unique=np.full(room, -1, dtype=np.int32))
            self._kernels.index_nodes(store, self.bottom)
        self._store = store


def _grown(array: NDArray[Any], room: int) -> NDArray[Any]:
    """Return an array with more room; what is new is 0."""
    found: NDArray[Any] = np.zeros((room, *array.shape[1:]), dtype=array.dtype)
    found[: array.shape[0]] = array
    return found
