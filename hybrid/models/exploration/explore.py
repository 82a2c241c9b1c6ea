"""Codes of states, the transitions that a text gives some states, and what a search has found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.simulation.functions import NO_INTEGER, Columns, Ints, Variables
from hybrid.checking.simulation.rules import Alternative, Rules, SimulatedEvent, refuse_state, refuse_update
from mtbdd.base.errors import option
from mtbdd.language.errors import BuildError, Fault
from mtbdd.language.limits import current, raised
from mtbdd.language.reals import Rounded
from mtbdd.language.syntax import Command, Literal, ModelType

_WORD = 62
"""Bits of a word, an int64 that is not negative."""


class StateCodes:
    """Codes of states: the values of all variables, the first one leading.

    A code has a word for every 62 bits. `places`: for every variable its word, and how many bits of it are
    below. `widths`: bits of every variable.
    """

    def __init__(self, variables: Variables) -> None:
        self._low = variables.low
        self.widths = [
            (high - low).bit_length() for low, high in zip(variables.low, variables.high, strict=True)
        ]
        # Every variable lies in one word; words are filled from the first variable on.
        ends: list[tuple[int, int]] = []
        words: list[int] = [0]
        for width in self.widths:
            if words[-1] + width > _WORD:
                words.append(0)
            words[-1] += width
            ends.append((len(words) - 1, words[-1]))
        self.places = [(word, words[word] - end) for word, end in ends]
        self.words = len(words)

    def unpacked(self, words: Ints) -> Ints:
        """Return the matrix of states whose codes are given as words, shape (words, count)."""
        found = np.empty((len(self.places), words.shape[1]), dtype=np.int64)
        for row, (word, shift) in enumerate(self.places):
            found[row] = ((words[word] >> shift) & ((1 << self.widths[row]) - 1)) + self._low[row]
        return found


MOST_UNITS = 32.0
"""Relative error of a weight that depends on the state, in units of 2^-53 (`mtbdd.language.enclosing`)."""

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class EventTransitions:
    """Transitions that some states have in common."""

    event: int  # number of the event
    choice: int  # number of the choice among those of the event, for decision processes; 0 in chains
    sources: Ints  # int64, shape (count,); numbers of columns
    targets: Ints  # int64, shape (variables, count)
    weights: Vector  # float64, shape (count,); positive


class Successors:
    """The transitions of a model's states.

    Raises BuildError: events can be taken in more ways than the limits allow. `units`: bound on the relative
    error of every weight, in units of 2^-53.
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

        Raises BuildError: the text gives a state no rate, or an update leads out of a variable's range. Time:
        some operations on arrays for every event, and for every way to take one that happens anywhere.
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
        total += _update_units(alternative.update.weight)
        if is_mdp:
            # Divided by the sum of the command's weights.
            updates = alternative.command.updates
            total += max(_update_units(u.weight) for u in updates) + len(updates)
    return (total + len(way) - 1) * (1 + 2.0**-40)


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


@dataclass(frozen=True)
class Explored:
    """Reachable states in the order of the text, and their transitions in no order."""

    states: Ints  # int64, shape (variables, n)
    initial: Ints  # int64; numbers of the initial states
    # sources and targets: int64, shape (entries,); numbers of states
    sources: Ints
    targets: Ints
    weights: NDArray[np.float64]  # float64, shape (entries,)
    # events and choices: int32, shape (entries,); the event of each entry, and in decision processes the
    # choice among those of the event
    events: NDArray[np.int32]
    choices: NDArray[np.int32]
    units: float  # bound on the relative error of every weight, in units of 2^-53
    variables: Variables
    actions: tuple[str | None, ...]  # of every event
    # of every event the commands of each module that takes part: the digits of a choice are places in them
    commands: tuple[Sequence[Sequence[Command]], ...]
