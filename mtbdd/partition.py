"""Functions of the bits with few values, as one BDD a value.

A `Partition` is an MTBDD cut by its terminals: it maps values to the sets of
assignments that take them.  The sets are disjoint; where none holds the function is zero.
Rates, probabilities, rewards and integer expressions pass through this form because the
operations on it are set operations of the BDD package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.manager import Manager, Node

__all__ = ["Partition", "canonical", "from_table"]


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
    """

    __slots__ = ("_support", "manager", "pieces")

    def __init__(self, manager: Manager, pieces: Mapping[Any, Node] | None = None) -> None:
        self.manager = manager
        self._support: Node | None = None
        self.pieces: dict[Any, Node] = {v: s for v, s in (pieces or {}).items() if s != manager.false}

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
        return Partition(self.manager, {v: s for v, s in self if v != 0})

    def only(self, states: Node) -> Partition:
        """Return the function cut to a set; zero elsewhere.  Time: one conjunction a value."""
        return Partition(self.manager, {v: s & states for v, s in self})

    def map(self, function: Callable[[Any], Any]) -> Partition:
        """Return `function` of every value; values that meet are united."""
        return _collect(self.manager, ((function(v), s) for v, s in self))

    def combine(self, other: Partition, function: Callable[[Any, Any], Any]) -> Partition:
        """Return `function(self, other)` where both are defined.  Time: product of the numbers of values."""
        return _collect(
            self.manager,
            ((function(a, b), s & t) for a, s in self for b, t in other),
        )

    def times(self, other: Partition) -> Partition:
        """Return the pointwise product of two numeric functions."""
        for one, rest in ((self, other), (other, self)):
            if len(one) == 1 and next(iter(one.pieces)) == 1:
                return rest.only(next(iter(one.pieces.values())))
        return self.combine(other, lambda a, b: a * b)

    def plus(self, other: Partition) -> Partition:
        """Return the pointwise sum; the two are compared piece by piece only where both are non-zero."""
        if not self.pieces or not other.pieces:
            return (self if self.pieces else other).nonzero()
        mine, theirs = self.support, other.support
        both = mine & theirs
        pieces: dict[Any, list[Node]] = {}
        for one, rest in ((self, theirs), (other, mine)):
            outside = one if both == self.manager.false else one.only(~rest)
            for value, piece in outside:
                pieces.setdefault(value, []).append(piece)
        if both != self.manager.false:
            for value, piece in self.only(both).combine(other.only(both), lambda a, b: a + b):
                pieces.setdefault(value, []).append(piece)
        return Partition(self.manager, {v: self.manager.disjunction(s) for v, s in pieces.items() if v != 0})


def _collect(manager: Manager, pairs: Iterable[tuple[Any, Node]]) -> Partition:
    """Unite the sets of equal values."""
    pieces: dict[Any, list[Node]] = {}
    false = manager.false
    for value, piece in pairs:
        if piece != false:
            pieces.setdefault(value, []).append(piece)
    return Partition(manager, {v: manager.disjunction(s) for v, s in pieces.items()})


def from_table(
    manager: Manager, names: Sequence[str], table: NDArray[Any], mask: NDArray[np.bool_]
) -> Partition:
    """Return the partition of a function given by its table.

    Parameters
    ----------
    manager : Manager
        Owner of the sets.
    names : sequence of str
        Variables, from top to bottom of the order.
    table, mask : ndarray, shape (2 ** len(names),)
        Values in lexicographic order of the assignments, and where they count.

    Returns
    -------
    Partition
        Values as Python scalars.

    Notes
    -----
    Time: O(2^k) in numpy for k names, then one package call for every value below every
    distinct subtable.
    """
    values, ids = np.unique(table, return_inverse=True)
    current = np.where(mask, ids.reshape(-1), -1).astype(np.int64)
    layers: list[tuple[str, NDArray[np.int64], NDArray[np.int64]]] = []
    for name in reversed(names):
        pairs = current.reshape(-1, 2)
        base = int(current.max()) + 2
        keys, current = np.unique((pairs[:, 0] + 1) * base + pairs[:, 1] + 1, return_inverse=True)
        current = current.reshape(-1)
        layers.append((name, keys // base - 1, keys % base - 1))
    bdd, false = manager.bdd, manager.false
    below: list[dict[int, Node]] = [{i: manager.true} for i in range(values.size)]
    empty: dict[int, Node] = {}
    for name, low, high in layers:
        variable = bdd.var(name)
        nodes = []
        for a, b in zip(low.tolist(), high.tolist(), strict=True):
            lows = below[a] if a >= 0 else empty
            highs = below[b] if b >= 0 else empty
            if a == b:
                nodes.append(lows)
                continue
            nodes.append(
                {
                    v: bdd.ite(variable, highs.get(v, false), lows.get(v, false))
                    for v in lows.keys() | highs.keys()
                }
            )
        below = nodes
    root = below[int(current[0])] if int(current[0]) >= 0 else empty
    return Partition(manager, {values[v].item(): s for v, s in root.items()})
