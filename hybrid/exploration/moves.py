"""What happens in some states: every event, every way to take it, with its weight and its target."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hybrid.simulation.faults import refuse_state, refuse_update
from hybrid.simulation.functions import NO_INTEGER
from hybrid.simulation.rules import Alternative, Rules, SimulatedEvent
from hybrid.simulation.variables import Columns, Ints
from mtbdd.faults import BuildError
from mtbdd.language.errors import Fault
from mtbdd.language.limits import current, raised
from mtbdd.language.rounded import Rounded
from mtbdd.language.syntax import Literal, ModelType
from mtbdd.wording import option

MOST_UNITS = 32.0
"""Relative error of a weight that depends on the state, in units of 2^-53 (`mtbdd.language.enclosing`)."""

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class EventTransitions:
    """Transitions that some states have in common.

    Attributes
    ----------
    event : int
        Number of the event.
    choice : int
        Number of the choice among those of the event, for decision processes; 0 in chains.
    sources : ndarray of int64, shape (count,)
        Numbers of columns.
    targets : ndarray of int64, shape (variables, count)
    weights : ndarray of float64, shape (count,)
        Positive.
    """

    event: int
    choice: int
    sources: Ints
    targets: Ints
    weights: Vector


class Successors:
    """The transitions of a model's states.

    Parameters
    ----------
    rules : Rules

    Attributes
    ----------
    units : float
        Bound on the relative error of every weight, in units of 2^-53.

    Raises
    ------
    BuildError
        Events can be taken in more ways than the limits allow.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._is_mdp = rules.type is ModelType.MDP
        for event in rules.events:
            _check_ways(event)
        self._ways = [list(_ways(event, self._is_mdp)) for event in rules.events]
        self.units = max((_units(way, self._is_mdp) for ways in self._ways for _, way in ways), default=0.0)

    def of(self, states: Ints) -> Iterator[EventTransitions]:
        """Yield all transitions of some states, shape (variables, count), event by event.

        Raises
        ------
        BuildError
            The text gives a state no rate, or an update leads out of a variable's range.

        Notes
        -----
        Time: some operations on arrays for every event, and for every way to take one that happens anywhere.
        """
        whole = Columns(states)
        for number, event in enumerate(self._rules.events):
            rate = event.rate(whole)
            wrong = np.flatnonzero(~np.isfinite(rate))
            if wrong.size:
                refuse_state(self._rules, states[:, wrong[0]])
            where = np.flatnonzero(rate > 0)
            if not where.size:
                continue
            columns = Columns(states, where)
            for choice, way in self._ways[number]:
                weights = np.ones(where.size)
                for alternative in way:
                    weights = weights * alternative.weight(columns)
                happens = np.flatnonzero(weights > 0)
                if happens.size:
                    own = where if happens.size == where.size else where[happens]
                    targets = self._targets(event, way, states, own)
                    yield EventTransitions(number, choice, own, targets, weights[happens])

    def _targets(
        self, event: SimulatedEvent, way: tuple[Alternative, ...], states: Ints, where: Ints
    ) -> Ints:
        """Return where one way to take an event leads."""
        columns = Columns(states, where)
        targets = states[:, where]
        for alternative in way:
            for row, value in alternative.assignments:
                found = value(columns)
                wrong = np.flatnonzero(found == NO_INTEGER)
                if wrong.size:
                    refuse_update(self._rules, event, row, states[:, where[wrong[0]]])
                targets[row] = found
        return targets


def _check_ways(event: SimulatedEvent) -> None:
    """Refuse an event that can be taken in more ways than are listed."""
    count = math.prod(len(component.alternatives) for component in event.components)
    most = current().combinations
    if count > most:
        message = (
            f"expected at most {most} ways to take the action '{event.action}' where states are listed, got "
            f"{count}; choose {option('build', 'symbolic')}, or {raised('combinations', count)}"
        )
        raise BuildError([Fault(event.components[0].commands[0].position, message)])


def _ways(event: SimulatedEvent, is_mdp: bool) -> Iterator[tuple[int, tuple[Alternative, ...]]]:
    """Yield the combinations of updates, one of every component, and the number of the choice of each."""
    if not is_mdp:
        for way in product(*(component.alternatives for component in event.components)):
            yield 0, way
        return
    by_command = [
        [[a for a in component.alternatives if a.command is command] for command in component.commands]
        for component in event.components
    ]
    for choice, commands in enumerate(product(*by_command)):
        for way in product(*commands):
            yield choice, way


def _units(way: tuple[Alternative, ...], is_mdp: bool) -> float:
    """Return a bound on the relative error of a product of weights, in units."""
    total = 0.0
    for alternative in way:
        total += _weight_units(alternative)
        if is_mdp:
            # Divided by the sum of the command's weights.
            updates = alternative.command.updates
            total += max(_update_units(u.weight) for u in updates) + len(updates)
    return (total + len(way) - 1) * (1 + 2.0**-40)


def _weight_units(alternative: Alternative) -> float:
    return _update_units(alternative.update.weight)


def _update_units(weight: object) -> float:
    """Return a bound on the relative error of a weight in the text, in units."""
    if weight is None:
        return 0.0
    if isinstance(weight, Literal):
        exact = not isinstance(weight.value, Rounded) and (
            isinstance(weight.value, float) or abs(int(weight.value)) <= 1 << 53
        )
        return 0.0 if exact else 1.0
    return MOST_UNITS
