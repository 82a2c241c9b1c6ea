"""The states in which a formula's value is asked for.

A formula need not have a value elsewhere: a filter over the states where a quotient is defined
answers although it is undefined in others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.errors import PropertyError
from hybrid.run.state_values import StateTruth, StateValues
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel
from mtbdd.states import StateIndex, index_states

_FEW = 64
"""One state in so many, or fewer, are numbered one by one."""


@dataclass(frozen=True)
class Scope:
    """A non-empty set of reachable states, in index order; of the own ones, where processes share them.

    Attributes
    ----------
    index : StateIndex
        Numbers the states of the set.
    positions : ndarray of int64, shape (index.size,), or None
        Their numbers among all reachable states; None for all of these.
    """

    index: StateIndex
    positions: NDArray[np.int64] | None

    @classmethod
    def every(cls, model: SymbolicModel) -> Scope:
        """Return the scope of all reachable states."""
        return cls(model.index, None)

    @classmethod
    def of(cls, model: SymbolicModel, states: Node) -> Scope:
        """Return the scope of some reachable states.

        Raises
        ------
        PropertyError
            The set is empty.

        Notes
        -----
        Time and memory: O(n) for n reachable states, unless these are all, or few.
        """
        if states == model.reachable:
            return cls.every(model)
        if states == model.manager.false:
            raise PropertyError("no reachable state satisfies the filter's condition")
        index = index_states(model.manager, states)
        if index.size < model.index.size // _FEW:
            return cls(index, model.index.places(index))
        return cls(index, np.flatnonzero(model.indicator(states)))

    def of_values(self, found: StateValues) -> StateValues:
        """Return, of values in all states, those in the scope."""
        return found if self.positions is None else found.at(self.positions)

    def of_truth(self, found: StateTruth) -> StateTruth:
        """Return, of a truth in all states, that in the scope."""
        return found if self.positions is None else found.at(self.positions)

    def everywhere(self, inside: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
        """Return a mask over the scope as one over all `size` states, false outside."""
        if self.positions is None:
            return inside
        mask = np.zeros(size, dtype=np.bool_)
        mask[self.positions] = inside
        return mask
