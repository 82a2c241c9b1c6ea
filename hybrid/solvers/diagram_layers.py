"""Chains without circles, solved from their ends on, each state once; vectors are decision diagrams."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hybrid.solvers.diagram_system import DiagramSystem
from mtbdd.diagrams.node_store import DOWN, UP, Diagram


class DiagramLayers:
    """Bounds on the values of states that lead to known ones alone, and of those that lead to these.

    A layer has such states, and products go by the nodes of its layer. Where a counter runs along the chain,
    a layer has one value of it, the first for which there are states: meanwhile those of later ones gather.

    Parameters
    ----------
    system : DiagramSystem
        Of a chain.

    Attributes
    ----------
    lower, upper : int
        Stored bounds; what is not solved counts as known to be 0.
    left : int
        1 where it is not solved.
    products : int

    Notes
    -----
    Lemma: diagram-layers (docs/bounds.md).
    """

    def __init__(self, system: DiagramSystem) -> None:
        self._system, self._store = system, system.store
        self.lower = self.upper = system.known
        self.products = 0
        store = self._store
        store.begin_exact()
        self._pattern = system.pattern()  # sums of these are never too small to be seen
        self._one = store.constant(1.0)
        self._halves = self._bits_of_counter()
        self.left = self._leading_to(self._pattern, self._one)

    def solved(self) -> Iterator[int]:
        """Solve layer after layer; yield the lower bounds of all that is known after each."""
        store, system = self._store, self._system
        # lemma: diagram-layers
        first = store.without(self.left, self._leading_to(self._pattern, self.left))
        ready = self._split(first)
        while ready:
            number = min(ready)
            layer = ready.pop(number)
            self._solve(layer)
            system.refuse_large(self.lower)
            self.left = store.without(self.left, layer)
            yield self.lower
            near = store.product(self._leading_to(self._pattern, layer), self.left)
            rows = store.product(self._pattern, near)
            new = store.without(near, self._leading_to(rows, self.left))  # lemma: diagram-layers
            for number, part in self._split(new).items():
                ready[number] = store.sum(ready.get(number, 0), part)
            self._settle(ready)

    def _leading_to(self, pattern: int, states: int) -> int:
        """Return 1 in the rows that have an entry in some columns."""
        store = self._store
        return store.minimum(store.matrix_product(pattern, states, UP), self._one)

    def _solve(self, layer: int) -> None:
        """Add the values of a layer, which leads to known states alone."""
        store = self._store
        (choice,) = self._system.choices
        found = [self.lower, self.upper]
        for place, rounding in enumerate((DOWN, UP)):
            value = store.matrix_product(store.product(choice.matrix[place], layer), found[place], rounding)
            if choice.gain is not None:
                value = store.sum(value, store.product(choice.gain[place], layer), rounding)
            is_exact = (
                len({*choice.matrix}) == len({*(choice.gain or (0,))}) == 1 and self.lower == self.upper
            )
            found[place] = store.sum(found[place], value, rounding)
            self.products += 1
            if is_exact and not store.was_rounded:  # lemma: diagram-layers
                found[1] = found[0]
                break
        self.lower, self.upper = found

    def _bits_of_counter(self) -> list[tuple[int, int]]:
        """Return for each bit of the counter 1 where it is that of the first values, and that of the last."""
        store = self._store
        levels, is_down = self._system.counter()
        found = []
        for level in levels:
            ends = np.array([[store.bottom, 0, 0], [store.bottom, 1, 1], [level, 0, 1]], dtype=np.int32)
            high = store.insert(Diagram(store.bottom, ends, np.array([0.0, 1.0])))
            low = store.insert(Diagram(store.bottom, ends, np.array([1.0, 0.0])))
            found.append((high, low) if is_down else (low, high))
        return found

    def _split(self, states: int) -> dict[int, int]:
        """Return the states of each value of the counter, by its place."""
        parts = {0: states} if states else {}
        for halves in self._halves:
            both = (
                (2 * number + place, self._store.product(part, half))
                for number, part in parts.items()
                for place, half in enumerate(halves)
            )
            parts = {number: part for number, part in both if part}
        return parts

    def _settle(self, ready: dict[int, int]) -> None:
        """Let go of what nobody needs."""
        held = [self.lower, self.upper, self.left, self._pattern, self._one]
        held += [half for halves in self._halves for half in halves]
        kept = iter(self._system.settle(*held, *ready.values()))
        self.lower, self.upper, self.left, self._pattern, self._one = (next(kept) for _ in range(5))
        self._halves = [(next(kept), next(kept)) for _ in self._halves]
        ready.update(zip(list(ready), kept, strict=True))
