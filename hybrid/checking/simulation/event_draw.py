"""Which event each path takes next: in array operations, or compiled once a simulation lasts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.simulation.draws import Doubles
from hybrid.checking.simulation.functions import Tabulated
from hybrid.checking.simulation.rules import Rules
from hybrid.checking.simulation.variables import Columns, Ints

COMPILED_FROM = 300
"""Draws from which the compiled form is worth loading it (it may have to be compiled first)."""

Events = NDArray[np.int32]


class EventDraw:
    """Draws events by their rates; both forms give the same ones, bit by bit.

    Parameters
    ----------
    rules : Rules

    Attributes
    ----------
    rules : Rules
    """

    def __init__(self, rules: Rules) -> None:
        self.rules, self._count = rules, 0
        self._tables: _Tables | None = None

    def draw(self, states: Ints, uniform: Doubles) -> tuple[Events, Doubles]:
        """Return the event of each path, and the sum of the rates of all its events.

        Parameters
        ----------
        states : ndarray of int64, shape (variables, paths)
            In C order.
        uniform : ndarray of float64, shape (paths,)
            From [0, 1).

        Returns
        -------
        events : ndarray of int32, shape (paths,)
            The number of events where no event has a rate. Of no meaning where the sum is not finite.
        totals : ndarray of float64, shape (paths,)
            Not a number, or infinite, where the text gives no rate.

        Notes
        -----
        Time: O(paths × events); in array operations some microseconds for every event besides.
        """
        self._count += 1
        if self._count < COMPILED_FROM or not self.rules.events:
            return _drawn(self.rules, states, uniform)
        if self._tables is None:
            self._tables = _Tables(self.rules)
        return self._tables.draw(states, uniform)


def _drawn(rules: Rules, states: Ints, uniform: Doubles) -> tuple[Events, Doubles]:
    """Draw in array operations."""
    columns = Columns(states)
    sums = np.empty((len(rules.events), columns.count))
    total = np.zeros(columns.count)
    with np.errstate(over="ignore", invalid="ignore"):
        for row, event in zip(sums, rules.events, strict=True):
            total = np.add(total, event.rate(columns), out=row)
        # Below the last sum also where the product is rounded up.
        threshold = np.minimum(uniform * total, np.nextafter(total, -1.0))
    events = np.zeros(columns.count, dtype=np.int32)
    for row in sums:
        events += row <= threshold
    events[total == 0] = len(rules.events)
    return events, total


class _Tables:
    """The rates of events as one list of tables; those without table are worked out before."""

    def __init__(self, rules: Rules) -> None:
        self._others = [e.rate for e in rules.events if not isinstance(e.rate, Tabulated)]
        terms: list[tuple[int, int]] = []
        firsts, starts, tables, size, others = [0], [], [np.zeros(0)], 0, 0
        for event in rules.events:
            if isinstance(event.rate, Tabulated):
                starts.append(size - event.rate.offset)
                terms += event.rate.steps
                tables.append(event.rate.table.astype(np.float64))
                size += event.rate.table.size
            else:
                others += 1
                starts.append(-others)
            firsts.append(len(terms))
        self._firsts = np.array(firsts, dtype=np.int64)
        self._rows = np.array([row for row, _ in terms], dtype=np.int64)
        self._steps = np.array([step for _, step in terms], dtype=np.int64)
        self._starts = np.array(starts, dtype=np.int64)
        self._table = np.concatenate(tables)
        self._sums = np.empty(len(rules.events))

    def draw(self, states: Ints, uniform: Doubles) -> tuple[Events, Doubles]:
        """Draw compiled."""
        from hybrid.checking.simulation.event_kernel import draw_events

        columns = Columns(states)
        others = np.empty((len(self._others), columns.count))
        for row, rate in zip(others, self._others, strict=True):
            row[:] = rate(columns)
        events, totals = np.empty(columns.count, dtype=np.int32), np.empty(columns.count)
        draw_events(
            states,
            np.ascontiguousarray(uniform),
            self._firsts,
            self._rows,
            self._steps,
            self._starts,
            self._table,
            others,
            self._sums,
            events,
            totals,
        )
        return events, totals
