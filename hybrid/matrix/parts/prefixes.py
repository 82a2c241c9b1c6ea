"""Prefix groups: the states that share some of the first bits of their codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtbdd.offset.states import StateIndex

Int64Array = NDArray[np.int64]

MOST_PREFIXES = 256
"""Prefix groups beyond which no deeper cut is tried; the search takes time with their square."""

_WANTED = 16
"""Prefix groups a part from which a deeper cut is not needed."""


@dataclass(frozen=True, eq=False)
class PrefixGroups:
    """The states cut by some of their first bits.

    Attributes
    ----------
    bits : int
        How many bits of a state's code are its prefix; the states of a prefix are consecutive.
    start : ndarray, shape (prefixes,), int64
        First state of every prefix, in the order of states.
    tested : tuple of int
        Those of the first bits that tell groups apart.
    number : ndarray, shape (prefixes,), int64
        Group of every prefix.
    size : ndarray, shape (groups,), int64
        States of every group.
    """

    bits: int
    start: Int64Array
    tested: tuple[int, ...]
    number: Int64Array
    size: Int64Array

    def __len__(self) -> int:
        return len(self.size)

    def of(self, state: Int64Array) -> Int64Array:
        """Return the group of every state.  Time: O(len(state) log prefixes)."""
        return self.number[np.searchsorted(self.start, state, "right") - 1]

    def describe(self) -> str:
        """Return which bits tell groups apart, in words."""
        if self.tested == tuple(range(self.bits)):
            return f"the first {self.bits} bits of the states"
        return f"{len(self.tested)} of the first {self.bits} bits of the states"


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
    size = index.counts[bits][node]
    return PrefixGroups(bits, start, tuple(range(bits)), np.arange(len(size)), size)


def told_by(prefixes: PrefixGroups, values: NDArray[np.bool_], tested: Sequence[int]) -> PrefixGroups:
    """Make prefixes one group whose bits agree in some places.

    Parameters
    ----------
    prefixes : PrefixGroups
        Every prefix a group.
    values : ndarray, shape (prefixes, bits), bool
        Their bits.
    tested : sequence of int
        Bits of a prefix; groups are in the order of their values, the first bit counting most.
    """
    number = np.zeros(len(prefixes), np.int64)
    for bit in tested:
        # Numbered afresh after every bit, so that any number of bits will do.
        _, number = np.unique(2 * number + values[:, bit], return_inverse=True)
    size = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    np.add.at(size, number, prefixes.size)
    return PrefixGroups(prefixes.bits, prefixes.start, tuple(tested), number, size)


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
