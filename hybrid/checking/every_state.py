"""A formula's values in all states, held or found again when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from hybrid.base.errors import UnsupportedError
from hybrid.base.state_values import StateTruth, StateValues
from mtbdd.base.memory import current_store
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import for_users

KEPT = 1 << 18
"""States up to which an answer holds the values of all of them unasked: 6 MB with their bounds."""


class EveryState:
    """What an answer's formula is worth in every reachable state.

    Parameters
    ----------
    model : SymbolicModel
    found : StateValues, StateTruth or None
        Over all states in index order, of a part of a model over its own; None if they were not kept, or not
        all needed.
    again : callable
        Finds them.
    """

    def __init__(
        self,
        model: SymbolicModel,
        found: StateValues | StateTruth | None,
        again: Callable[[], StateValues | StateTruth],
    ) -> None:
        self.model, self._found, self._again = model, found, again
        self._columns: tuple[NDArray[Any], ...] | None = None
        self._store = None if found is None else current_store()

    @property
    def found(self) -> StateValues | StateTruth:
        """The values in index order; found again, and then held, if they were not kept.

        Raises
        ------
        hybrid.HybridError
            The formula has no value in some state, or the disk that had the values lost some.

        Notes
        -----
        Where processes share the states, all ask at once.
        """
        if self._found is None:
            self._found, self._store = self._again(), current_store()
        if self._store is not None:
            self._store.check()
        return self._found

    def column(self, number: int) -> NDArray[Any]:
        """Return the values (0), the lower (1) or the upper bounds (2), by number of the state; read only.

        Raises
        ------
        UnsupportedError
            Several processes share the states.
        """
        if self.model.communicator.size > 1:
            raise UnsupportedError(
                "the values of all states are not brought together from parts: write them to a file "
                "(values='FILE.npz'), or ask with one process"
            )
        found = self.found
        if self._columns is None:
            self._columns = found.columns()
        view = for_users(self.model, self._columns[number]).view()
        view.flags.writeable = False
        return view
