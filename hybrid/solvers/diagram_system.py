"""The equations of a model over vectors that are decision diagrams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hybrid.base.errors import UnsupportedError
from mtbdd.base.errors import option
from mtbdd.diagrams.node_store import UP, NodeStore

_NODE_BYTES = 16

_SMALL_VECTOR = 1 << 24
"""Bytes of a vector that is never too large for a diagram."""

UNREACHED = 1e308
"""Value of a choice that may not be taken, where the least counts."""


@dataclass(eq=False)
class DiagramChoice:
    """One choice of every state, of some: ``A x + b``.

    Attributes
    ----------
    matrix : tuple of int
        Stored functions: probabilities over rows and columns, at most the exact ones and at least them.
    gain : tuple of int or None
        b over rows, likewise; None for 0.
    barred : int or None
        `UNREACHED` in the states that do not have it and may not be without one, else 0.
    """

    matrix: tuple[int, int]
    gain: tuple[int, int] | None = None
    barred: int | None = None


@dataclass(eq=False)
class DiagramSystem:
    """The equations ``x = opt_i (A_i x + b_i) + known``.

    Attributes
    ----------
    store : NodeStore
        Of all functions; it holds no others that are still of use, but for those that `settle` is given.
    choices : sequence of DiagramChoice
        A chain has one.
    maximise : bool
        Which optimum is meant.
    known : int
        Values of states that are known, 0 elsewhere.
    n_states : int
        Of the model: what an array would have to hold.
    counter : callable
        Returns the levels of the row bits of a counter, most significant first, and whether values of chains
        are found from its greatest value on down; no levels where none runs.

    Notes
    -----
    The other attributes are those that statistics of an answer take from an operator.
    """

    store: NodeStore
    choices: Sequence[DiagramChoice]
    maximise: bool
    known: int
    n_states: int
    counter: Callable[[], tuple[Sequence[int], bool]] = lambda: ((), False)

    backend: ClassVar[str] = "cpu"
    backend_reason: ClassVar[str] = "vectors that are diagrams are on the cpu"
    level: ClassVar[None] = None
    storage: ClassVar[None] = None

    @property
    def nbytes(self) -> int:
        """Bytes of the matrices."""
        parts = {part for choice in self.choices for part in choice.matrix}
        return sum(_NODE_BYTES * self.store.size(part) for part in parts)

    def step(self, x: int, rounding: int) -> int:
        """Return a step from a vector, at most the exact one or at least it.

        Raises MemoryError, and UnsupportedError where the vector takes more than an array would.

        Lemma: diagram-rounding (docs/bounds.md).
        """
        store, place = self.store, int(rounding == UP)  # lemma: diagram-rounding
        best: int | None = None
        for choice in self.choices:
            found = store.matrix_product(choice.matrix[place], x, rounding)
            if choice.gain is not None:
                found = store.sum(found, choice.gain[place], rounding)
            if choice.barred is not None:
                found = store.sum(found, choice.barred, rounding)
            if best is None:
                best = found
            else:
                best = (store.maximum if self.maximise else store.minimum)(best, found)
        y = self.known if best is None else store.sum(best, self.known, rounding)
        self.refuse_large(y)
        return y

    def image(self, x: int, rounding: int) -> int:
        """Return ``A x`` of a chain, rounded down or up.

        Lemma: diagram-rounding (docs/bounds.md).
        """
        (choice,) = self.choices
        y = self.store.matrix_product(choice.matrix[int(rounding == UP)], x, rounding)
        self.refuse_large(y)
        return y

    def pattern(self) -> int:
        """Return 1 where a chain's matrix has a positive upper entry, and 0 elsewhere."""
        (choice,) = self.choices
        return self.store.mapped(choice.matrix[1], lambda values: (values > 0).astype(np.float64))

    def most_additions(self) -> int:
        """Return how many additions of positive numbers make an element of `image`, at most.

        Lemma: diagram-series (docs/bounds.md).
        """
        store = self.store
        entries = store.values(store.matrix_product(self.pattern(), store.constant(1.0), UP))
        return min(int(entries.max()) - 1, store.bottom // 3)  # lemma: diagram-series

    def settle(self, *vectors: int) -> tuple[int, ...]:
        """Return vectors, by other numbers where the store was full of functions that nobody needs."""
        if not self.store.is_crowded():
            return vectors
        held = [self.known]
        for choice in self.choices:
            held += [
                *choice.matrix,
                *(choice.gain or ()),
                *(() if choice.barred is None else (choice.barred,)),
            ]
        kept = iter(self.store.collect(*held, *vectors))
        self.known = next(kept)
        for choice in self.choices:
            choice.matrix = next(kept), next(kept)
            if choice.gain is not None:
                choice.gain = next(kept), next(kept)
            if choice.barred is not None:
                choice.barred = next(kept)
        return tuple(kept)

    def refuse_large(self, x: int) -> None:
        """Refuse to go on with a diagram that takes more than an array of all states would."""
        most = max(8 * self.n_states, _SMALL_VECTOR)
        if _NODE_BYTES * self.store.n_nodes <= most:
            return
        size = self.store.size(x)
        if _NODE_BYTES * size > most:
            raise UnsupportedError(
                f"values as a diagram have {size:,} nodes, and an array of {self.n_states:,} states "
                f"takes less memory: choose {option('engine', 'hybrid')}"
            )
