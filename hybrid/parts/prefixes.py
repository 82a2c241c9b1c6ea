"""Prefix groups: the states that share the first bits of their codes, consecutive in the order of states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtbdd.states import StateIndex

Int64Array = NDArray[np.int64]

MOST_PREFIXES = 256
"""Prefix groups beyond which no deeper cut is tried; the search takes time with their square."""

_WANTED = 16
"""Prefix groups a part from which a deeper cut is not needed."""


@dataclass(frozen=True, eq=False)
class PrefixGroups:
    """The states cut by their first bits.

    Attributes
    ----------
    bits : int
        How many bits of a state's code are its prefix.
    start, size : ndarray, shape (groups,), int64
        First state of every group and how many it has, in the order of states.
    """

    bits: int
    start: Int64Array
    size: Int64Array

    def __len__(self) -> int:
        return len(self.start)

    def of(self, state: Int64Array) -> Int64Array:
        """Return the group of every state.  Time: O(len(state) log groups)."""
        return np.searchsorted(self.start, state, "right") - 1


def prefix_groups(index: StateIndex, bits: int) -> PrefixGroups:
    """Cut the states by their first bits.

    Parameters
    ----------
    index : StateIndex
    bits : int
        0 .. index.n_bits

    Notes
    -----
    Time: O(groups) for every bit.
    """
    node = np.zeros(min(index.size, 1), np.int64)
    start = np.zeros(len(node), np.int64)
    for bit in range(bits):
        low, high = index.low[bit][node], index.high[bit][node]
        below = np.where(low >= 0, index.counts[bit + 1][low], 0)
        child = np.stack((low, high), axis=1).ravel()
        first = np.stack((start, start + below), axis=1).ravel()
        kept = child >= 0
        node, start = child[kept].astype(np.int64), first[kept]
    return PrefixGroups(bits, start, index.counts[bits][node])


def groups_for(index: StateIndex, parts: int) -> PrefixGroups:
    """Return the cut with the fewest bits that leaves enough groups to choose parts from.

    Enough are 16 groups a part; a cut into more than 256 groups is taken only where those before it have
    fewer groups than there are parts.

    Parameters
    ----------
    index : StateIndex
    parts : int
        At least 1.
    """
    chosen = prefix_groups(index, 0)
    for bits in range(1, index.n_bits + 1):
        deeper = prefix_groups(index, bits)
        if len(deeper) > MOST_PREFIXES and len(chosen) >= parts:
            break
        chosen = deeper
        if len(chosen) >= _WANTED * parts:
            break
    return chosen
