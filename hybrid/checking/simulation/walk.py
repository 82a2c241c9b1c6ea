"""Many paths of a model that advance together, one step at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.simulation.draws import Doubles, Draws
from hybrid.checking.simulation.event_draw import EventDraw
from hybrid.checking.simulation.faults import refuse_state, refuse_update
from hybrid.checking.simulation.functions import NO_INTEGER
from hybrid.checking.simulation.rules import Component, SimulatedEvent
from hybrid.checking.simulation.variables import Array, Columns, Ints
from mtbdd.language.syntax import ModelType


@dataclass(frozen=True)
class DrawnStep:
    """The next step of the paths of a walk: drawn, and not yet taken.

    Attributes
    ----------
    events : ndarray of int32, shape (n,)
        Number of the event that each path takes; the number of events for the loop of a deadlock.
    sojourns : ndarray of float64, shape (n,), or None
        Time that each path stays in its state; None without time.
    uniform : ndarray of float64, shape (rows, n)
        Random numbers for the choices within an event.
    """

    events: NDArray[np.int32]
    sojourns: Doubles | None
    uniform: Doubles

    def only(self, kept: Array) -> DrawnStep:
        """Return the drawn step of some paths."""
        sojourns = None if self.sojourns is None else self.sojourns[kept]
        return DrawnStep(self.events[kept], sojourns, self.uniform[:, kept])


class Walk:
    """The current states of some paths.

    Parameters
    ----------
    events : EventDraw
        Draws events by the model's rules.
    states : ndarray of int64, shape (variables, n)
        Initial state of every path.
    draws : Draws
        Random numbers for n paths.

    Attributes
    ----------
    paths : ndarray of int64, shape (m,)
        Numbers of the paths that still go on.
    """

    def __init__(self, events: EventDraw, states: Ints, draws: Draws) -> None:
        self.rules, self._events, self._draws = events.rules, events, draws
        self.states = np.ascontiguousarray(states)
        self.paths = np.arange(states.shape[1], dtype=np.int64)
        self._is_timed = self.rules.type is ModelType.CTMC

    def keep(self, kept: Array) -> None:
        """Let only some of the paths go on.

        Parameters
        ----------
        kept : ndarray of bool, shape (m,)
        """
        self.states, self.paths = np.ascontiguousarray(self.states[:, kept]), self.paths[kept]

    def draw(self) -> DrawnStep:
        """Draw the next step of every path, and leave the states as they are.

        Raises
        ------
        BuildError
            In the state of some path a guard or a weight has no value, a rate is negative or not finite, or
            the probabilities do not add up to 1.

        Notes
        -----
        Time: see `EventDraw.draw`.
        """
        uniform, sojourns = self._draws.step(self.paths)
        events, total = self._events.draw(self.states, uniform[0])
        if not np.isfinite(total).all():
            refuse_state(self.rules, self.states[:, np.flatnonzero(~np.isfinite(total))[0]])
        if sojourns is not None:
            sojourns = sojourns / np.where(total == 0, 1.0, total)
        return DrawnStep(events, sojourns, uniform)

    def move(self, drawn: DrawnStep) -> None:
        """Let every path take the event drawn for it.

        Raises
        ------
        BuildError
            An update leaves a variable's range.
        """
        events = drawn.events
        if len(self.rules.events) < 1 << 15:
            order = np.argsort(events.astype(np.int16), kind="stable")  # sorted by its digits
        else:
            order = np.argsort(events, kind="stable")
        ends = np.cumsum(np.bincount(events, minlength=len(self.rules.events) + 1))
        begin = 0
        for number, end in enumerate(ends[:-1].tolist()):
            if end > begin:
                self._take(self.rules.events[number], order[begin:end], drawn.uniform)
            begin = end

    def _take(self, event: SimulatedEvent, where: Array, uniform: Doubles) -> None:
        """Let some paths take one event."""
        columns = Columns(self.states, where)
        moves: list[tuple[int, Array, Array]] = []
        slot = 0
        for component in event.components:
            if len(component.alternatives) == 1:
                alternative = component.alternatives[0]
                for row, value in alternative.assignments:
                    moves.append((row, where, value(columns)))
                continue
            slot += 1
            chosen = _choose(component, columns, uniform[slot].take(where))
            for k, alternative in enumerate(component.alternatives):
                if not alternative.assignments:
                    continue
                own = where[chosen == k]
                if own.size:
                    part = Columns(self.states, own)
                    moves += [(row, own, value(part)) for row, value in alternative.assignments]
        for row, own, values in moves:
            wrong = values == NO_INTEGER
            if wrong.any():
                state = self.states[:, own[np.flatnonzero(wrong)[0]]]
                refuse_update(self.rules, event, row, state)
        for row, own, values in moves:
            self.states[row, own] = values


def _choose(component: Component, columns: Columns, uniform: Doubles) -> NDArray[np.int32]:
    """Return which alternative of a component each of some paths takes."""
    sums = np.empty((len(component.alternatives), columns.count))
    total = np.zeros(columns.count)
    for row, alternative in zip(sums, component.alternatives, strict=True):
        total = np.add(total, alternative.weight(columns), out=row)
    threshold = np.minimum(uniform * total, np.nextafter(total, -1.0))
    chosen = np.zeros(columns.count, dtype=np.int32)
    for row in sums:
        chosen += row <= threshold
    return chosen
