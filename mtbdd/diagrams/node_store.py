"""Compiled operations on MTBDDs as arrays: products summed over bits, sums, maxima, directed rounding.

A `Diagram` is one function as plain arrays that nothing else shares. A `NodeStore` makes new ones and holds
what comes in between: the memory of a step goes with its store. The first operation loads Numba.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.budget import check_budget
from mtbdd.diagrams.value_diagrams import MOST_NODES, ValueDiagrams

Nodes = NDArray[np.int32]
Values = NDArray[np.float64]

NEAREST, DOWN, UP = 0, -1, 1
"""Rounding of sums and products: every one to nearest, to at most the exact result, or to at least it."""

_STEPS = 1 << 22
"""Steps between two looks at the budget: some tenths of a second."""

_FIRST = 1 << 12
"""Nodes that a store has room for at first."""


@dataclass(frozen=True, eq=False)
class Diagram:
    """One reduced MTBDD.

    Attributes
    ----------
    bottom : int
        Level of the leaves; every bit's level is smaller.
    nodes : ndarray of int32, shape (n, 3)
        Level, else child and then child, children before their parents and the root last. The leaves stand
        first; leaf i has the level `bottom` and i in the place of both children.
    values : ndarray of float64, shape (leaves,)
        Of the leaves, all different; -0.0 does not occur.
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
    def zero(self) -> int:
        """The leaf 0; -1 if the function is 0 nowhere."""
        found = np.flatnonzero(self.values == 0)
        return int(found[0]) if found.size else -1

    def into(self, work: ValueDiagrams) -> int:
        """Return the function in shared arrays.  Time: O(n log n) in numpy."""
        ids = np.zeros(self.n_nodes, dtype=np.int64)
        ids[: self.values.size] = work.leaves(self.values)
        order = np.argsort(-self.nodes[:, 0], kind="stable")[self.values.size :]
        levels = self.nodes[order, 0]
        ends = np.flatnonzero(np.diff(levels)) + 1
        for group in np.split(order, ends) if order.size else []:
            level, low, high = self.nodes[group].T
            ids[group] = work.nodes(int(level[0]), ids[low], ids[high])
        return int(ids[-1])

    def renamed(self, levels: Mapping[int, int]) -> Diagram:
        """Return the function of other bits, whose levels have the same order.

        Raises
        ------
        ValueError
            The order would change.

        Notes
        -----
        Time: O(n) in numpy.
        """
        table = np.arange(self.bottom + 1, dtype=np.int32)
        table[list(levels.keys())] = list(levels.values())
        own = np.unique(self.nodes[:, 0])
        if (np.diff(table[own]) <= 0).any():
            raise ValueError("the order of the bits is to stay as it is")
        nodes = self.nodes.copy()
        nodes[:, 0] = table[nodes[:, 0]]
        return Diagram(self.bottom, nodes, self.values)

    def mapped(self, function: Callable[[Values], Values]) -> Diagram:
        """Return a function of the function's values.  Time: O(n)."""
        values = function(self.values) + 0.0
        if not np.isfinite(values).all():
            raise OverflowError("a value is beyond 1.79e308, the largest double: expected finite values")
        if np.unique(values).size == values.size:
            return Diagram(self.bottom, self.nodes, values)
        store = NodeStore(self.bottom)
        return store.extract(store.insert(Diagram(self.bottom, self.nodes, values)))

    def leaf_pairs(self, other: Diagram) -> tuple[Values, Values]:
        """Return the values that two functions have together somewhere: distinct pairs, an array each.

        Time: O(pairs of nodes that meet), compiled.
        """
        from mtbdd.diagrams.product_kernels import DEPTH, FULL, KNOWN, VALUES, index_pairs, meet

        keys, stack = np.full(_FIRST, -1, dtype=np.int64), np.zeros(_FIRST, dtype=np.int64)
        pairs, state = np.zeros((_FIRST, 2), dtype=np.int32), np.zeros(6, dtype=np.int64)
        stack[0] = (self.n_nodes - 1) << 29 | (other.n_nodes - 1)
        state[DEPTH] = 1
        while status := meet(self.nodes, other.nodes, self.bottom, _STEPS, keys, stack, pairs, state):
            check_budget()
            if status != FULL:
                continue
            if 2 * state[KNOWN] + 8 > keys.size:
                keys, old = np.full(4 * keys.size, -1, dtype=np.int64), keys
                nothing = np.zeros(old.size, dtype=np.int32)
                index_pairs(old, nothing, keys, np.zeros(keys.size, dtype=np.int32))
            if state[DEPTH] + 8 > stack.size:
                stack = np.concatenate([stack, np.zeros_like(stack)])
            if state[VALUES] + 8 > pairs.shape[0]:
                pairs = np.concatenate([pairs, np.zeros_like(pairs)])
        left, right = pairs[: state[VALUES]].T
        return self.values[left], other.values[right]

    def equals(self, other: Diagram) -> bool:
        """Whether two functions have the same values everywhere.  Time: as `leaf_pairs`."""
        if self.n_nodes != other.n_nodes or self.values.size != other.values.size:
            return False
        left, right = self.leaf_pairs(other)
        return bool((left == right).all())


class NodeStore:
    """Functions that share their nodes while one step makes them.

    A stored function is the number of its node; equal functions have equal numbers, and 0 is the function 0.

    Parameters
    ----------
    bottom : int
        Level of the leaves.
    rounding : {NEAREST, DOWN, UP}
        Of all sums and products. Down and up, an exact result stays as it is.
    most : int
        Nodes beyond which operations raise `MemoryError`.

    Notes
    -----
    Memory: 30 bytes a node, and 24 to 96 a pair of nodes that has met.
    """

    def __init__(self, bottom: int, rounding: int = NEAREST, most: int = 4 * MOST_NODES) -> None:
        self.bottom, self.rounding, self.most = bottom, rounding, most
        self._nodes = np.zeros((_FIRST, 3), dtype=np.int32)
        self._values = np.zeros(_FIRST, dtype=np.float64)
        self._unique = np.full(4 * _FIRST, -1, dtype=np.int32)
        self._stack = np.zeros((4 * bottom + 16, 6), dtype=np.int64)
        self._state = np.zeros(6, dtype=np.int64)
        self._nodes[0, 0] = bottom
        self._state[1:3] = 1  # the leaf 0
        self._empty_pairs()
        self._nowhere = np.zeros(max(bottom, 1), dtype=np.bool_), np.zeros(bottom + 1, dtype=np.int64)
        self._constant = Diagram.constant(bottom, 0.0)

    @property
    def n_nodes(self) -> int:
        """Number of nodes stored."""
        return int(self._state[1])

    def insert(self, diagram: Diagram) -> int:
        """Store a function.  Time: O(n)."""
        from mtbdd.diagrams.product_kernels import insert

        self._reserve(diagram.n_nodes)
        ids = np.zeros(diagram.n_nodes, dtype=np.int64)
        insert(
            diagram.nodes, diagram.values, self.bottom, self._nodes, self._values, self._unique, self._state,
            ids,
        )  # fmt: skip
        return int(ids[-1])

    def extract(self, function: int) -> Diagram:
        """Return a stored function.  Time: O(nodes stored)."""
        from mtbdd.diagrams.product_kernels import compact

        place = np.full(function + 1, -1, dtype=np.int32)
        nodes, values = np.zeros((function + 1, 3), dtype=np.int32), np.zeros(function + 1)
        leaves, count = compact(self._nodes, self._values, function, self.bottom, place, nodes, values)
        return Diagram(self.bottom, nodes[:count].copy(), values[:leaves].copy())

    def product(self, f: Diagram, g: Diagram, summed: Iterable[int] = ()) -> int:
        """Return the product of two functions, summed over the bits of some levels.

        The result takes, for all other bits, the sum of ``f * g`` over all assignments of those. With a
        matrix over rows and columns and a vector over columns, summed over columns, it is their product
        over rows; other bits stay, wherever they are in the order: those of `g` below all rows and columns
        make it the product with several vectors at once.

        Parameters
        ----------
        f, g : Diagram
        summed : iterable of int
            Levels.

        Raises
        ------
        MemoryError
            More nodes than the store may have.
        OverflowError
            A value is beyond the largest double.

        Notes
        -----
        Of each summed bit two halves are added, the lowest bit first; a bit that both skip doubles. Time:
        O(1) a pair of nodes that meets, and a sum of two functions a pair at a summed level.
        """
        levels, before = self._nowhere
        chosen = list(summed)
        if chosen:
            levels, before = np.zeros_like(levels), np.zeros_like(before)
            levels[chosen] = True
            before[1:] = np.cumsum(levels)
        a, b = f.n_nodes - 1, g.n_nodes - 1
        skipped = before[min(int(f.nodes[a, 0]), int(g.nodes[b, 0]))]
        self._empty_pairs()  # nodes of other products have the same numbers
        return self._run(f, g, levels, before, (0, a, b, 0, 0, int(skipped)))

    def sum(self, a: int, b: int) -> int:
        """Return the sum of two stored functions.  Time: as for all operations O(pairs that meet)."""
        return self._apply(1, a, b)

    def maximum(self, a: int, b: int) -> int:
        """Return the greater of two stored functions, value by value."""
        return self._apply(3, a, b)

    def minimum(self, a: int, b: int) -> int:
        """Return the lesser of two stored functions, value by value."""
        return self._apply(4, a, b)

    # ------------------------------------------------------------------

    def _apply(self, operation: int, a: int, b: int) -> int:
        return self._run(self._constant, self._constant, *self._nowhere, (operation, a, b, 0, 0, 0))

    def _run(
        self,
        f: Diagram,
        g: Diagram,
        summed: NDArray[np.bool_],
        before: NDArray[np.int64],
        frame: tuple[int, ...],
    ) -> int:
        from mtbdd.diagrams.product_kernels import DEPTH, FULL, OVERFLOW, RESULT, run

        check_budget()
        state = self._state
        self._stack[0], state[DEPTH] = frame, 1
        while status := run(
            f.nodes, f.values, f.zero, g.nodes, g.values, g.zero, self.bottom, summed, before, self.rounding,
            _STEPS,
            self._nodes, self._values, self._unique, self._keys, self._results, self._stack, state,
        ):  # fmt: skip
            check_budget()
            if status == OVERFLOW:
                raise OverflowError("a value is beyond 1.79e308, the largest double: expected finite values")
            if status == FULL:
                self._reserve(1)
                self._reserve_pairs()
        return int(state[RESULT])

    def _empty_pairs(self) -> None:
        self._keys = np.full(4 * _FIRST, -1, dtype=np.int64)
        self._results = np.zeros(4 * _FIRST, dtype=np.int32)
        self._state[3] = 0

    def _reserve_pairs(self) -> None:
        """Have room for twice as many pairs where they are nearly full."""
        from mtbdd.diagrams.product_kernels import index_pairs

        if 2 * self._state[3] + 8 < self._keys.size:
            return
        if self._keys.size > 16 * self.most:
            raise MemoryError(
                f"a symbolic operation meets more than {8 * self.most} pairs of nodes: expected fewer"
            )
        keys = np.full(4 * self._keys.size, -1, dtype=np.int64)
        results = np.zeros(keys.size, dtype=np.int32)
        index_pairs(self._keys, self._results, keys, results)
        self._keys, self._results = keys, results

    def _reserve(self, more: int) -> None:
        """Have room for more nodes, of which all may be leaves."""
        from mtbdd.diagrams.product_kernels import index_nodes

        count, needed = int(self._state[1]), int(self._state[1]) + more + 8
        if needed > self.most:
            raise MemoryError(
                f"a symbolic operation needs more than {self.most} nodes: expected fewer; ask with the "
                "hybrid engine, whose vectors are arrays"
            )
        if needed > self._nodes.shape[0]:
            room = max(needed, 2 * self._nodes.shape[0])
            self._nodes = _grown(self._nodes, room)
        if (leaves := int(self._state[2]) + more + 8) > self._values.size:
            self._values = _grown(self._values, max(leaves, 2 * self._values.size))
        if 2 * needed > self._unique.size:
            room = 1 << int(4 * needed - 1).bit_length()
            self._unique = np.full(room, -1, dtype=np.int32)
            index_nodes(self._nodes, self._values, count, self.bottom, self._unique)


def _grown(array: NDArray[Any], room: int) -> NDArray[Any]:
    """Return an array with more room; what is new is 0."""
    found: NDArray[Any] = np.zeros((room, *array.shape[1:]), dtype=array.dtype)
    found[: array.shape[0]] = array
    return found
