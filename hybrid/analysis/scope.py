"""The states in which a formula's value is asked for.

A formula need not have a value elsewhere: a filter over the states where a quotient is defined
answers although it is undefined in others.  Nor need there be a vector of all values on the host: where one
state is asked for, one number is read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import PropertyError
from hybrid.base.state_values import StateTruth, StateValues
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.offset.states import StateIndex, index_states

_FEW = 64
"""One state in so many, or fewer, are numbered one by one."""


@dataclass(frozen=True, eq=False)
class Scope:
    """A non-empty set of reachable states, in index order; of the own ones, where processes share them.

    Attributes
    ----------
    model : SymbolicModel
    index : StateIndex
        Numbers the states of the set.
    positions : ndarray of int64, shape (index.size,), or None
        Their numbers among all reachable states; None for all of these.
    """

    model: SymbolicModel
    index: StateIndex
    positions: NDArray[np.int64] | None

    @classmethod
    def every(cls, model: SymbolicModel) -> Scope:
        """Return the scope of all reachable states."""
        return cls(model, model.index, None)

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
        return cls(model, index, _positions(model, model.index, index))

    def of_values(self, found: StateValues) -> StateValues:
        """Return, of values in all states, those in the scope."""
        return found if self.positions is None else found.at(self.positions)

    def of_truth(self, found: StateTruth) -> StateTruth:
        """Return, of a truth in all states, that in the scope."""
        return found if self.positions is None else found.at(self.positions)

    def among(self, found: StateValues, states: StateIndex) -> StateValues:
        """Return, of values in a set of states, those in the scope, on the host.

        Notes
        -----
        Time and memory: as for `of`, with n states of the set.
        """
        places = self.places(states)
        return found.on_host() if places is None else found.at(places).on_host()

    def places(self, states: StateIndex) -> NDArray[np.int64] | None:
        """Return the numbers of the scope's states in a set, ascending; None for all states of the set."""
        if self.positions is None:
            return None
        if states is self.model.index:
            return self.positions
        inside = index_states(self.model.manager, states.states & self.index.states)
        return _positions(self.model, states, inside)

    def meets(self, states: Node) -> bool:
        """Whether some state of a set is in the scope, of this process or another one."""
        return bool(self.index.states & states != self.model.manager.false)

    def indicator(self, states: Node) -> NDArray[np.bool_]:
        """Return membership of a set in the states of the scope, shape (index.size,)."""
        return self.model.indicator(states, self.index)

    def everywhere(self, inside: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
        """Return a mask over the scope as one over all `size` states, false outside."""
        if self.positions is None:
            return inside
        mask = np.zeros(size, dtype=np.bool_)
        mask[self.positions] = inside
        return mask


def _positions(model: SymbolicModel, index: StateIndex, subset: StateIndex) -> NDArray[np.int64]:
    """Return the numbers of a subset's states, ascending, shape (subset.size,)."""
    if subset.size < index.size // _FEW:
        return index.places(subset)
    return np.flatnonzero(model.indicator(subset.states, index))
