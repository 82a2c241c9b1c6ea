"""Several functions of the bits as plain arrays of shared nodes, for files: made, checked, read back.

Nodes stand level by level from the leaves up, the nodes of a level ascend with their children, and no two are
equal: a set of functions has one forest.  Whatever arrays pass the checks are diagrams, without circles,
repeated nodes or nodes that test nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtbdd.diagrams.value_diagrams import Ids, ValueDiagrams


@dataclass(frozen=True, eq=False)
class Forest:
    """Shared MTBDDs.

    Node k is a leaf for ``k < len(values)``; the others follow, from the lowest bit up.

    Attributes
    ----------
    values : ndarray of float64, shape (leaves,)
        Distinct finite values, ascending.
    levels : ndarray of int64, shape (n_bits,)
        How many nodes test each bit, from the highest bit down.
    low, high : ndarray of int64, shape (levels.sum(),)
        Numbers of the else and then children.
    roots : ndarray of int64
        One a function.
    """

    values: NDArray[np.float64]
    levels: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    roots: NDArray[np.int64]

    @classmethod
    def of(cls, work: ValueDiagrams, roots: Ids, bits: Ids) -> Forest:
        """Return some functions.

        Parameters
        ----------
        work : ValueDiagrams
        roots : ndarray of int64
        bits : ndarray of int64
            The levels that the forest's bits stand on, ascending; no others occur in the functions.

        Notes
        -----
        Time: O(n log n) in numpy.
        """
        groups = dict(work.below(roots))
        leaves = groups.pop(work.bottom)
        leaves = leaves[np.argsort(work.values_of(leaves))]
        size = 1 + max(int(ids.max()) for ids in (leaves, *groups.values()))
        place = np.zeros(size, dtype=np.int64)
        place[leaves] = np.arange(leaves.size)
        done, lows, highs = leaves.size, [leaves[:0]], [leaves[:0]]
        for level in sorted(groups, reverse=True):
            ids = groups[level]
            low, high = (place[child] for child in work.children(ids))
            order = np.lexsort((high, low))
            place[ids[order]] = done + np.arange(ids.size)
            lows.append(low[order])
            highs.append(high[order])
            done += ids.size
        levels = np.array([groups[bit].size if bit in groups else 0 for bit in bits.tolist()], dtype=np.int64)
        return cls(work.values_of(leaves), levels, np.concatenate(lows), np.concatenate(highs), place[roots])

    def check(self) -> None:
        """Refuse arrays that are no diagrams.

        Raises
        ------
        ValueError
            What was expected, and at which node.

        Notes
        -----
        Time: O(n) in numpy.
        """
        leaves, n = self.values.size, self.low.size
        if not np.isfinite(self.values).all() or (np.diff(self.values) <= 0).any():
            raise ValueError("expected finite values that ascend")
        if (
            ((self.levels < 0) | (self.levels > n)).any()
            or int(self.levels.sum()) != n
            or self.high.size != n
        ):
            raise ValueError("expected as many nodes as the levels have")
        sizes = self.levels[::-1]
        starts = leaves + np.cumsum(sizes) - sizes
        first = np.repeat(starts, sizes)  # of the level that a node belongs to
        for name, child in (("else", self.low), ("then", self.high)):
            _refuse((child < 0) | (child >= first), f"expected {name} children on lower levels")
        _refuse(self.low == self.high, "expected two different children")
        ascends = (np.diff(self.low) > 0) | ((np.diff(self.low) == 0) & (np.diff(self.high) > 0))
        _refuse(~np.concatenate([[True], ascends | (np.diff(first) > 0)])[:n], "expected nodes that ascend")
        if ((self.roots < 0) | (self.roots >= leaves + n)).any():
            raise ValueError("expected functions that begin at a node")

    def into(self, work: ValueDiagrams, bits: Ids) -> Ids:
        """Return the functions of a checked forest, one a root.

        Parameters
        ----------
        work : ValueDiagrams
        bits : ndarray of int64, shape (n_bits,)
            The levels that the bits shall stand on, ascending.

        Notes
        -----
        Time: O(n log n) in numpy.
        """
        ids = np.zeros(self.values.size + self.low.size, dtype=np.int64)
        ids[: self.values.size] = work.leaves(self.values)
        start = 0
        for level, size in zip(reversed(bits.tolist()), reversed(self.levels.tolist()), strict=True):
            own = slice(start, start + size)
            made = work.nodes(level, ids[self.low[own]], ids[self.high[own]])
            ids[self.values.size + start : self.values.size + start + size] = made
            start += size
        return ids[self.roots]


def _refuse(wrong: NDArray[np.bool_], message: str) -> None:
    """Raise for the first node that is wrong."""
    if wrong.any():
        raise ValueError(f"node {int(np.argmax(wrong))}: {message}")
