"""What paths earn: rewards of states and of transitions, as functions of a state."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from hybrid.checking.simulation.draws import Doubles
from hybrid.checking.simulation.functions import Function, Number, Sum, Where, condition
from hybrid.checking.simulation.rules import Rules
from hybrid.checking.simulation.variables import Array, Columns, Ints
from mtbdd.language.errors import Fault
from mtbdd.language.faults import BuildError
from mtbdd.language.model_syntax import RewardItem, RewardStructure


class Earnings:
    """One reward structure.

    Parameters
    ----------
    rules : Rules
    structure : RewardStructure
        Of the same model.
    """

    def __init__(self, rules: Rules, structure: RewardStructure) -> None:
        self._rules, self._structure = rules, structure
        self._of_states = self._sum([item for item in structure.items if not item.is_transition])
        self._of_actions = {
            place: found
            for place, action in enumerate(rules.actions)
            if (
                found := self._sum(
                    [i for i in structure.items if i.is_transition and (i.action or "") == action]
                )
            )
            is not None
        }

    def _sum(self, items: list[RewardItem]) -> Function | None:
        """Return the sum of some items; None if there is none."""
        v = self._rules.variables
        parts = [Where(v, [condition(v, item.guard), Number(v, item.value)]) for item in items]
        return Sum(v, parts).compiled() if parts else None

    def of_states(self, states: Ints) -> Doubles:
        """Return what each state earns a step or a time unit, shape (paths,).

        Raises
        ------
        BuildError
            A reward is not a finite number.
        """
        if self._of_states is None:
            return np.zeros(states.shape[1])
        found = self._of_states(Columns(states))
        self._check(found, states)
        return found

    def of_events(self, states: Ints, events: Array) -> Doubles:
        """Return what each path earns with the event that it takes; nothing with the loop of a deadlock.

        Parameters
        ----------
        states : ndarray of int64, shape (variables, paths)
            Before the event.
        events : ndarray of int, shape (paths,)
        """
        earned = np.zeros(states.shape[1])
        if not self._of_actions:
            return earned
        actions = self._rules.action_of[events]
        actions = np.where(events == len(self._rules.events), -1, actions)
        for action, function in self._of_actions.items():
            where = np.flatnonzero(actions == action)
            if where.size:
                earned[where] = function(Columns(states, where))
        self._check(earned, states)
        return earned

    def _check(self, found: Array, states: Ints) -> None:
        if not np.isfinite(found).all():
            self._refuse(states[:, np.flatnonzero(~np.isfinite(found))[0]])

    def _refuse(self, state: Ints) -> NoReturn:
        """Raise for a state in which a reward is not a finite number."""
        v, columns = self._rules.variables, Columns(state.reshape(-1, 1))
        position = self._structure.position
        for item in self._structure.items:
            if not np.isfinite(Where(v, [condition(v, item.guard), Number(v, item.value)])(columns)[0]):
                position = item.position
                break
        message = f"expected a reward that is a finite number, got none in state {v.text(state)}"
        raise BuildError([Fault(position, message)])
