"""Functions of the bits with few values, as one BDD a value.

A `Partition` is an MTBDD cut by its terminals: it maps values to the sets of
assignments that take them.  The sets are disjoint; where none holds the function is zero.
Rates, probabilities, rewards and integer expressions pass through this form because the
operations on it are set operations of the BDD package.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.budget import check_budget
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.nodes import distinct_pairs

LEAST = 2.0**-1074  # lemma: underflow
"""The least positive double, which stands for positive numbers that are smaller."""


def canonical(value: float) -> float:
    """Return the float that stands for `value` among terminals: -0.0 becomes 0.0, NaN is refused."""
    number = float(value)
    if number != number:
        raise ValueError("not a number (NaN) cannot be a matrix entry")
    return number + 0.0


class Partition:
    """A function with finitely many values: value -> set of assignments.

    Parameters
    ----------
    manager : Manager
        Owner of the sets.
    pieces : mapping from value to Node
        Disjoint; empty sets are dropped.
    units : float
        Bound on the relative error of every value, a double, against the number that it stands for, in units
        of 2^-53.  It holds for values that are no subnormal numbers; infinite where there is none.
    """

    __slots__ = ("_support", "manager", "pieces", "units")

    def __init__(
        self, manager: Manager, pieces: Mapping[Any, Node] | None = None, units: float = 0.0
    ) -> None:
        self.manager = manager
        self.units = units
        self._support: Node | None = None
        self.pieces: dict[Any, Node] = {v: s for v, s in (pieces or {}).items() if s != manager.false}

    @classmethod
    def united(cls, manager: Manager, pairs: Iterable[tuple[Any, Node]], units: float = 0.0) -> Partition:
        """Return the function of some values and sets, the sets of equal values united."""
        pieces: dict[Any, list[Node]] = {}
        for value, piece in pairs:
            if piece != manager.false:
                pieces.setdefault(value, []).append(piece)
        return cls(manager, {v: manager.disjunction(s) for v, s in pieces.items()}, units)

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self.pieces)

    def __iter__(self) -> Iterator[tuple[Any, Node]]:
        """Yield (value, set) pairs."""
        return iter(self.pieces.items())

    @property
    def support(self) -> Node:
        """The assignments where some value is taken."""
        if self._support is None:
            self._support = self.manager.disjunction(self.pieces.values())
        return self._support

    def nonzero(self) -> Partition:
        """Return the function without its zero piece."""
        return Partition(self.manager, {v: s for v, s in self if v != 0}, self.units)

    def only(self, states: Node) -> Partition:
        """Return the function cut to a set; zero elsewhere.  Time: one conjunction a value."""
        return Partition(self.manager, {v: s & states for v, s in self}, self.units)

    def met(self, states: Node) -> Partition:
        """Return the function without values that it takes nowhere in a set; elsewhere it may be anything.

        Its pieces stay as small as they come, which those cut to scattered states do not.  Time: one question
        a value whether two sets meet.
        """
        meet = self.manager.meet
        return Partition(self.manager, {v: s for v, s in self if meet(s, states)}, self.units)

    def map(self, function: Callable[[Any], Any], units: float = 0.0) -> Partition:
        """Return `function` of every value, as exact as `units` say; values that meet are united."""
        return Partition.united(self.manager, ((function(v), s) for v, s in self), units)

    def combine(self, other: Partition, function: Callable[[Any, Any], Any], units: float = 0.0) -> Partition:
        """Return `function(self, other)` where both are defined.  Time: product of the numbers of values."""
        return Partition.united(
            self.manager, ((function(a, b), s & t) for a, s in self for b, t in other), units
        )

    def times(self, other: Partition) -> Partition:
        """Return the pointwise product of two numeric functions; it is zero only where one of them is."""
        units = compound(self.units, other.units)  # lemma: entry-units
        for one, rest in ((self, other), (other, self)):
            if len(one) == 1 and next(iter(one.pieces)) == 1:
                found = rest.only(next(iter(one.pieces.values())))
                found.units = units
                return found
        # lemma: entry-units
        return self.combine(other, _product, compound(units, 1.0))

    def divided(self, other: Partition) -> Partition:
        """Return the pointwise quotient by a positive function; it is zero only where this one is."""
        units = compound(self.units, other.units)  # lemma: entry-units
        if any(math.frexp(by)[0] != 0.5 for by, _ in other):  # powers of two round nothing
            # lemma: entry-units
            units = compound(units, 1.0)
        return self.combine(other, lambda a, by: _nonzero(a / by, a), units)

    @classmethod
    def total(cls, manager: Manager, parts: Iterable[Partition]) -> Partition:
        """Return the sum of many functions, added as a balanced tree to keep operands small."""
        queue = list(parts)
        while len(queue) > 1:
            paired = [a.plus(b) for a, b in zip(queue[::2], queue[1::2], strict=False)]
            queue = paired + queue[2 * len(paired) :]
        return queue[0] if queue else cls(manager)

    def plus(self, other: Partition) -> Partition:
        """Return the pointwise sum; the two are compared piece by piece only where both are non-zero.

        Its units are finite if the values that are added have one sign, or are exact, and so are their sums.
        """
        if not self.pieces or not other.pieces:
            return (self if self.pieces else other).nonzero()
        check_budget()
        mine, theirs = self.support, other.support
        both = mine & theirs
        pieces: dict[Any, list[Node]] = {}
        units = max(self.units, other.units)  # lemma: entry-units
        for one, rest in ((self, theirs), (other, mine)):
            outside = one if both == self.manager.false else one.only(~rest)
            for value, piece in outside:
                pieces.setdefault(value, []).append(piece)
        if both != self.manager.false:
            meeting = self.only(both), other.only(both)
            if units or not _add_up(*meeting):  # lemma: entry-units
                # lemma: entry-units
                units = compound(units, 1.0) if _of_one_sign(*meeting) else math.inf
            for value, piece in meeting[0].combine(meeting[1], lambda a, b: a + b):
                pieces.setdefault(value, []).append(piece)
        united = {v: self.manager.disjunction(s) for v, s in pieces.items() if v != 0}
        return Partition(self.manager, united, units)


def compound(a: float, b: float) -> float:
    """Return the units of a number with the relative errors of two steps, one upon the other."""
    return a + b + a * b * 2.0**-52  # lemma: entry-units


def _product(a: float, b: float) -> float:
    """Return ``a * b``, not zero unless a factor is."""
    return _nonzero(a * b, a) if b > 0 else _nonzero(a * b, -a) if b < 0 else 0.0


def _nonzero(value: float, sign: float) -> float:
    """Return a value that is zero only where a number of its sign is; else the least double of that sign."""
    return value if value or not sign else math.copysign(LEAST, sign)


def _add_up(a: Partition, b: Partition) -> bool:
    """Whether no sum of two values is rounded, for each is the sum without the other; doubles alone tell."""

    def holds(x: Any, y: Any) -> bool:
        if not (isinstance(x, float | int) and isinstance(y, float | int)):
            return False
        return (x + y) - x == y and (x + y) - y == x  # lemma: entry-units

    return all(holds(x, y) for x, _ in a for y, _ in b)


def _of_one_sign(a: Partition, b: Partition) -> bool:
    """Whether all values are from 0, or all up to 0 (or no numbers)."""
    values = [v for part in (a, b) for v in part.pieces]
    return not (any(v < 0 for v in values) and any(v > 0 for v in values))


def from_table(
    manager: Manager, names: Sequence[str], table: NDArray[Any], mask: NDArray[np.bool_]
) -> Partition:
    """Return the partition of a function given by its table.

    `manager`: owner of the sets. `names`: variables, from top to bottom of the order. `table`, `mask`
    (ndarray, shape (2 ** len(names),)): values in lexicographic order of the assignments, and where they
    count. Returns Partition: values as Python scalars.

    Time: O(2^k) in numpy for k names, then one package call for every value below every distinct subtable.
    """
    values, ids = np.unique(table, return_inverse=True)
    current = np.where(mask, ids.reshape(-1) + 1, 0).astype(np.int64)
    false, ite = manager.false, manager.bdd.ite
    below: list[dict[int, Node]] = [{}, *({i: manager.true} for i in range(values.size))]
    for name in reversed(names):
        width, variable = len(below), manager.bdd.var(name)
        keys, current = distinct_pairs(current[::2] * width + current[1::2], width)
        children = zip((keys // width).tolist(), (keys % width).tolist(), strict=True)
        below = [
            lows
            if lows is highs
            else {
                v: ite(variable, highs.get(v, false), lows.get(v, false)) for v in lows.keys() | highs.keys()
            }
            for lows, highs in ((below[a], below[b]) for a, b in children)
        ]
    return Partition(manager, {values[v].item(): s for v, s in below[int(current[0])].items()})
