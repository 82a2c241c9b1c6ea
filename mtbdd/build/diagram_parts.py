"""Models without a text: diagrams that come from arrays, files or a caller's own manager."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.budget import check_budget
from mtbdd.base.records import Record
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.nodes import distinct_pairs, nodes_of_pairs
from mtbdd.diagrams.partition import Partition
from mtbdd.diagrams.relation import Relation
from mtbdd.language.syntax import Command, ResolvedModel
from mtbdd.offset.expansion import expand
from mtbdd.offset.states import StateIndex

# Diagrams from sorted lists of assignments: sets, functions and matrices that come written out.
#
# A list of assignments in lexicographic order is a tree whose leaves are its members. From the last bit to
# the first, members that agree in all bits above it are joined in pairs, and equal pairs become one node:
# at each bit the list shrinks to the number of distinct prefixes there.

Words = tuple[NDArray[np.uint64], ...]

_WORD = 64


class BitRows(Record):
    """Assignments of bits, one a row, packed into words of 64 bits; the first bit is the highest of a word.

    `words`: tuple of ndarray of uint64, shape (n,) each.
    """

    n_bits: int
    words: Words

    @classmethod
    def packed(cls, columns: Sequence[NDArray[Any]], widths: Sequence[int], size: int) -> BitRows:
        """Return assignments given by numbers of some bits each.

        `columns` (sequence of ndarray of integers or bool, shape (size,) each): not negative, and below two
        to the power of their width. `widths`: their bits, at most 63; the first number's are the first.
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
        """Return whether every assignment is at least the one before it."""
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
    manager: Manager, names: Sequence[str], rows: BitRows, leaves: NDArray[np.int64], nodes: Sequence[Node]
) -> Node:
    """Return the diagram that leads from every listed assignment to its leaf, and from all others to false.

    `names`: the bits' names, from top to bottom of the order. `rows`: distinct assignments of these bits,
    ascending. `leaves` (ndarray of int64, shape (rows.size,)): numbers in `nodes`. `nodes`: diagrams below
    all these bits; the first is false. Raises ValueError: two assignments are equal.

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


Vector = NDArray[np.float64]


class DiagramReward(Record):
    """A reward structure as functions of the states.

    `states`: over row bits: earned in a state, a step or, in a CTMC, a unit of time. None: nowhere.
    `choices`: over row bits, one a layer: earned by its choice, expected over its branches; in a CTMC by the
    transitions of a unit of time. `is_sure`: whether a choice earns that on whichever branch, so that it may
    distinguish paths.
    """

    name: str | None
    states: SymbolicMatrix | None
    choices: tuple[SymbolicMatrix | None, ...]
    is_sure: bool = False

    def values(
        self, within: StateIndex, with_states: bool, layer: int | None
    ) -> tuple[Vector, Vector | None]:
        """Return what states earn, and a bound on the error, None if there is none.

        `with_states`: whether state rewards count. `layer`: whose choices' rewards count. Returns `values,
        error`: ndarray of float64, shape (within.size,). Time: O(n). The error of a sum is that of its terms
        and of one rounding.
        """
        terms = [self.states] if with_states else []
        terms += [self.choices[layer]] if layer is not None else []
        values: Vector | None = None
        error = np.zeros(within.size)
        for term in terms:
            if term is None:
                continue
            own = expand(term, within)
            if term.units:
                # lemma: entry-units
                error += np.abs(own) * (term.units * 2.0**-53)
            if values is None:
                values = own
            else:
                exact = (values == 0) | (own == 0)
                values = values + own
                # lemma: interval-sum
                error += np.where(exact, 0.0, np.abs(values) * 2.0**-53)
        if values is None:
            return np.zeros(within.size), None
        return values, error * (1 + 2.0**-40) if error.any() else None  # lemma: interval-sum


class TakenCommands(Record):
    """The commands of a text that choices come from, by state.

    `commands`: of every way to take a choice the commands, one a module. `layers` (tuple of ndarray of int32,
    shape (n_states,)): of every layer the place in `commands` of each state's choice, by number of the state;
    -1 where it has none, or that of a deadlock.
    """

    commands: tuple[tuple[Command, ...], ...]
    layers: tuple[NDArray[np.int32], ...]


class DiagramParts(Record):
    """The parts of a model without commands.

    `exits`: over row bits: what a row adds up to, or parts of it that add up; 1 in a DTMC. `relations`: the
    graph in parts, each with at most one choice of every state, of one layer. `numbering` (ndarray of int64,
    shape (n_states,), or None): the index of the k-th state of the source; None if the source numbers them as
    the diagram does. `text`: the text whose states were listed; None: there was none. `taken`: the commands
    of choices, where they are known.
    """

    exits: SymbolicMatrix | tuple[Partition, ...]
    rewards: tuple[DiagramReward, ...]
    relations: tuple[Relation, ...]
    numbering: NDArray[np.int64] | None = None
    text: ResolvedModel | None = None
    taken: TakenCommands | None = None

    @property
    def is_listed(self) -> bool:
        """Whether the states of a text were listed."""
        return self.text is not None
