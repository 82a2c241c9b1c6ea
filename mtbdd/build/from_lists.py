"""Diagrams from sorted lists of assignments: sets, functions and matrices that come written out.

A list of assignments in lexicographic order is a tree whose leaves are its members. From the last bit to the
first, members that agree in all bits above it are joined in pairs, and equal pairs become one node: what is
left of the list at a bit is the number of distinct prefixes there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.budget import check_budget
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.node_pairs import distinct_pairs, nodes_of_pairs

Words = tuple[NDArray[np.uint64], ...]

_WORD = 64


@dataclass(frozen=True)
class BitRows:
    """Assignments of bits, one a row, packed into words of 64 bits; the first bit is the highest of a word.

    Attributes
    ----------
    n_bits : int
    words : tuple of ndarray of uint64, shape (n,) each
    """

    n_bits: int
    words: Words

    @classmethod
    def packed(cls, columns: Sequence[NDArray[Any]], widths: Sequence[int], size: int) -> BitRows:
        """Return assignments given by numbers of some bits each.

        Parameters
        ----------
        columns : sequence of ndarray of integers or bool, shape (size,) each
            Not negative, and below two to the power of their width.
        widths : sequence of int
            Their bits, at most 63; the first number's are the first.
        size : int
        """
        n_bits = sum(widths)
        words = tuple(np.zeros(size, dtype=np.uint64) for _ in range(-(-n_bits // _WORD)))
        first = 0
        for column, width in zip(columns, widths, strict=True):
            numbers = column.astype(np.uint64)
            while width:
                word, place = divmod(first, _WORD)
                here = min(width, _WORD - place)
                high = numbers >> np.uint64(width - here)
                words[word][:] |= high << np.uint64(_WORD - place - here)
                width -= here
                first += here
                if width:
                    numbers = numbers & np.uint64((1 << width) - 1)
        return cls(n_bits, words)

    @property
    def size(self) -> int:
        """Number of assignments; of no bits there is one."""
        return len(self.words[0]) if self.words else 1

    def bit(self, number: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return one bit of some assignments."""
        word, place = divmod(number, _WORD)
        return (self.words[word][rows] >> np.uint64(_WORD - 1 - place) & np.uint64(1)).astype(np.bool_)

    def order(self) -> NDArray[np.int64] | None:
        """Return the places of the assignments in lexicographic order, None if they are in that order."""
        if self._ascend():
            return None
        if len(self.words) == 1:
            return np.argsort(self.words[0], kind="stable")
        return np.lexsort(self.words[::-1])

    def at(self, places: NDArray[np.int64]) -> BitRows:
        """Return some assignments."""
        return BitRows(self.n_bits, tuple(word[places] for word in self.words))

    def _ascend(self) -> bool:
        """Whether every assignment is at least the one before it."""
        equal = np.ones(max(self.size - 1, 0), dtype=np.bool_)
        for word in self.words:
            if bool((equal & (word[1:] < word[:-1])).any()):
                return False
            equal &= word[1:] == word[:-1]
        return True

    def first_difference(self) -> NDArray[np.int64]:
        """Return the first bit in which each differs from the one before it, shape (size,).

        -1 for the first assignment, `n_bits` for one that equals the one before it.
        """
        found = np.full(self.size, self.n_bits, dtype=np.int64)
        for number in reversed(range(len(self.words))):
            word = self.words[number]
            changed = np.zeros(self.size, dtype=np.uint64)
            changed[1:] = word[1:] ^ word[:-1]
            places = np.flatnonzero(changed)
            found[places] = number * _WORD + _leading_zeros(changed[places])
        if self.size:
            found[0] = -1
        return found


def _leading_zeros(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of leading zero bits of positive words of 64 bits."""
    upper = words >> np.uint64(32)
    high = upper != 0
    half = np.where(high, upper, words & np.uint64(0xFFFFFFFF))
    _, length = np.frexp(half.astype(np.float64))  # 32 bits are exact as a double
    return np.where(high, 32, 64) - length.astype(np.int64)


def diagram_of(
    manager: Manager,
    names: Sequence[str],
    rows: BitRows,
    leaves: NDArray[np.int64],
    nodes: Sequence[Node],
) -> Node:
    """Return the diagram that leads from every listed assignment to its leaf, and from all others to false.

    Parameters
    ----------
    manager : Manager
    names : sequence of str
        The bits' names, from top to bottom of the order.
    rows : BitRows
        Distinct assignments of these bits, ascending.
    leaves : ndarray of int64, shape (rows.size,)
        Numbers in `nodes`.
    nodes : sequence of Node
        Diagrams below all these bits; the first is false.

    Raises
    ------
    ValueError
        Two assignments are equal.

    Notes
    -----
    Time: O(distinct prefixes at every bit) in NumPy, and one package call for every distinct node.
    """
    if not rows.size:
        return manager.false
    differs = rows.first_difference()
    if rows.n_bits and bool((differs == rows.n_bits).any()):
        raise ValueError("expected distinct assignments, got one twice")
    found = list(nodes)
    members = np.arange(rows.size, dtype=np.int64)
    numbers = np.asarray(leaves, dtype=np.int64)
    for bit in reversed(range(rows.n_bits)):
        check_budget()
        begins = differs[members] < bit
        parent = np.cumsum(begins) - 1
        high = rows.bit(bit, members)
        children = np.zeros((2, int(parent[-1]) + 1), dtype=np.int64)
        children[high.astype(np.int64), parent] = numbers
        members = members[begins]
        width = len(found)
        keys, numbers = distinct_pairs(children[0] * width + children[1], width)
        found = nodes_of_pairs(manager, names[bit], found, keys // width, keys % width)
    return found[int(numbers[0])]
