"""Nodes of real functions in arrays: leaves with values, and nodes that test a bit, no two of them equal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mtbdd.diagrams.value_operations import Ids, Values

MOST_NODES = 1 << 24
"""Nodes of all functions together: half a gigabyte; a level and two nodes fit into 63 bits."""


class ValueNodes:
    """Reduced MTBDDs that share their nodes.

    A function is the number of its root.  Numbers 0 and 1 are the leaves 0.0 and 1.0; equal functions have
    equal numbers.

    Parameters
    ----------
    bottom : int
        Level of the leaves; every bit's level is smaller.
    most : int
        Nodes of all functions together, beyond which operations raise `MemoryError`; at most `MOST_NODES`.

    Notes
    -----
    Memory: 32 bytes a node, and as much for finding equal ones.
    """

    def __init__(self, bottom: int, most: int = MOST_NODES) -> None:
        self.bottom, self.most = bottom, most
        self._size = 0
        self._level = np.zeros(1024, dtype=np.int64)
        self._low = np.zeros(1024, dtype=np.int64)
        self._high = np.zeros(1024, dtype=np.int64)
        self._value = np.zeros(1024, dtype=np.float64)
        none = np.zeros(0, dtype=np.int64)
        self._known: dict[int, tuple[Ids, Ids]] = {}
        self._leaves: tuple[Values, Ids] = (np.zeros(0), none)
        self.leaves(np.array([0.0]))
        self.leaves(np.array([1.0]))

    def values_of(self, leaves: Ids) -> Values:
        """Return the values of leaves."""
        return self._value[leaves]

    def leaves(self, values: Values) -> Ids:
        """Return the leaves with some values.

        Raises
        ------
        ValueError
            A value is NaN.
        OverflowError
            A value is infinite.
        """
        if np.isnan(values).any():
            raise ValueError("not a number (NaN) cannot be a value of a symbolic function")
        if np.isinf(values).any():
            raise OverflowError("a value is beyond 1.79e308, the largest double: expected finite values")
        distinct, inverse = np.unique(values + 0.0, return_inverse=True)  # -0.0 becomes 0.0
        known, numbers = self._leaves
        at = np.searchsorted(known, distinct)
        new = np.ones(distinct.size, dtype=np.bool_)
        inside = at < known.size
        new[inside] = known[at[inside]] != distinct[inside]
        ids = self._allot(int(new.sum()))
        self._level[ids] = self.bottom
        self._low[ids] = self._high[ids] = ids
        self._value[ids] = distinct[new]
        self._leaves = np.insert(known, at[new], distinct[new]), np.insert(numbers, at[new], ids)
        found = self._leaves[1][np.searchsorted(self._leaves[0], distinct)]
        return found[inverse.reshape(-1)]

    def nodes(self, level: int, low: Ids, high: Ids) -> Ids:
        """Return the functions that test the bit of one level and go on with given functions.

        Time: O(k log k) for k of them, plus O(nodes of the level).
        """
        result = low.copy()
        tests = np.flatnonzero(low != high)
        if not tests.size:
            return result
        both: Ids = low[tests] << 31 | high[tests]
        keys, inverse = np.unique(both, return_inverse=True)
        known, numbers = self._known.get(level, (keys[:0], keys[:0]))
        at = np.searchsorted(known, keys)
        new = np.ones(keys.size, dtype=np.bool_)
        inside = at < known.size
        new[inside] = known[at[inside]] != keys[inside]
        ids = self._allot(int(new.sum()))
        self._level[ids] = level
        self._low[ids], self._high[ids] = keys[new] >> 31, keys[new] & ((1 << 31) - 1)
        known, numbers = np.insert(known, at[new], keys[new]), np.insert(numbers, at[new], ids)
        self._known[level] = known, numbers
        result[tests] = numbers[np.searchsorted(known, keys)][inverse.reshape(-1)]
        return result

    def _allot(self, count: int) -> Ids:
        """Return numbers for new nodes, with room for them."""
        start, self._size = self._size, self._size + count
        if self._size > self.most:
            raise MemoryError(
                f"a symbolic operation needs more than {self.most} nodes: expected fewer; work on parts of "
                "the function, or in another order of the variables"
            )
        if self._size > self._level.size:
            grown = max(self._size, 2 * self._level.size)
            for name in ("_level", "_low", "_high", "_value"):
                old = getattr(self, name)
                array = np.zeros(grown, dtype=old.dtype)
                array[:start] = old[:start]
                setattr(self, name, array)
        return np.arange(start, self._size, dtype=np.int64)

    def children(self, nodes: Ids) -> tuple[Ids, Ids]:
        """Return the else and then children of nodes; those of a leaf are itself."""
        return self._low[nodes], self._high[nodes]

    def below(self, root: int | Ids) -> Iterator[tuple[int, Ids]]:
        """Yield the nodes of a function, or of several, by level from the leaves up: the level, its nodes.

        Time: O(n log n) for n nodes of all functions.
        """
        level = self._level[: self._size]
        order = np.argsort(level, kind="stable")
        levels, starts = np.unique(level[order], return_index=True)
        groups = np.split(order, starts[1:])
        met = np.zeros(self._size, dtype=np.bool_)
        met[root] = True
        found = []
        for number, group in zip(levels.tolist(), groups, strict=True):
            mine = group[met[group]]
            met[self._low[mine]] = True
            met[self._high[mine]] = True
            found.append((number, mine))
        return ((number, mine) for number, mine in reversed(found) if mine.size)

    def values(self, root: int | Ids) -> Values:
        """Return the distinct values of a function, 0 included where it occurs."""
        return np.sort(next(self._value[ids] for level, ids in self.below(root) if level == self.bottom))
