"""Many paths of a model that advance together, one step at a time, and the monitors that follow them."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.simulation.functions import (
    NO_INTEGER,
    Array,
    Columns,
    Doubles,
    Function,
    Ints,
    Tabulated,
)
from hybrid.checking.simulation.rules import (
    RewardStructureRules,
    Rules,
    SimulatedEvent,
    refuse_state,
    refuse_update,
)
from mtbdd.language.syntax import ModelType

# Random numbers that depend on the seed and on the number of the path alone.
#
# Paths are numbered from 0 and stand in groups of a fixed width. Each group has a generator of its own, which
# draws for the whole group at every step, whichever of its paths still go on: what a path draws depends
# neither on how many paths there are, nor on how they are cut into batches, nor on which of them have ended.

WIDTH = 1024
"""Paths of a group."""


class Draws:
    """The random numbers of some consecutive paths, step by step: `rows` of a path at a step.

    With `is_timed` a path takes a sojourn time, too. The seed is not negative. Time: O(groups × WIDTH × rows)
    a step.
    """

    def __init__(self, seed: int, first: int, count: int, rows: int, is_timed: bool) -> None:
        self._rows, self._is_timed = rows, is_timed
        begin, end = first // WIDTH, -(-(first + count) // WIDTH)
        self._generators = [
            np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(group,))))
            for group in range(begin, end)
        ]
        self._shift = first - begin * WIDTH

    def start(self, count: int) -> Doubles:
        """Return a number from [0, 1) for the first state of each path; once, before all steps."""
        drawn = np.concatenate([generator.random(WIDTH) for generator in self._generators])
        return drawn[self._shift : self._shift + count]

    def step(self, alive: Array) -> tuple[Doubles, Doubles | None]:
        """Return the numbers of a step: `uniform`, shape (rows, n), from [0, 1), and `sojourns`.

        `alive`, int64, shape (n,), are the paths that go on, counted from the first one, ascending; at least
        one. `sojourns`, shape (n,), are exponentially distributed with mean 1; None without time.
        """
        slots = alive + self._shift
        groups = slots // WIDTH
        present = np.flatnonzero(np.bincount(groups, minlength=len(self._generators)))
        generators = [self._generators[group] for group in present.tolist()]
        where = np.searchsorted(present, groups) * WIDTH + slots % WIDTH
        is_whole = where.size == present.size * WIDTH
        sojourns = None
        if self._is_timed:
            drawn = np.concatenate([generator.standard_exponential(WIDTH) for generator in generators])
            sojourns = drawn if is_whole else drawn.take(where)
        uniform = np.empty((self._rows, present.size * WIDTH))
        for k, generator in enumerate(generators):
            uniform[:, k * WIDTH : (k + 1) * WIDTH] = generator.random((self._rows, WIDTH))
        return (uniform if is_whole else uniform.take(where, axis=1)), sojourns


# Which event each path takes next: in array operations, or compiled once a simulation lasts.

COMPILED_FROM = 300
"""Draws from which the compiled form is worth loading it (it may have to be compiled first)."""

Events = NDArray[np.int32]


class EventDraw:
    """Draws events by their rates; both forms give the same ones, bit by bit."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self._count = rules, 0
        self._tables: _Tables | None = None

    def draw(self, states: Ints, uniform: Doubles) -> tuple[Events, Doubles]:
        """Return the event of each path, int32, and the sum of the rates of all its events, shapes (paths,).

        `states`, int64, shape (variables, paths), is in C order, and `uniform`, shape (paths,), from [0, 1).
        The event is the number of events where no event has a rate, and of no meaning where the sum is not
        finite: not a number, or infinite, where the text gives no rate. Time: O(paths × events); in array
        operations some microseconds for every event besides.
        """
        self._count += 1
        if self._count < COMPILED_FROM or not self.rules.events:
            events, total = _by_share([event.rate for event in self.rules.events], Columns(states), uniform)
            events[total == 0] = len(self.rules.events)
            return events, total
        if self._tables is None:
            self._tables = _Tables(self.rules)
        return self._tables.draw(states, uniform)


def _by_share(weights: Sequence[Function], columns: Columns, uniform: Doubles) -> tuple[Events, Doubles]:
    """Return which of some functions each path takes, by its share of the sum of all, and the sums."""
    sums = np.empty((len(weights), columns.count))
    total = np.zeros(columns.count)
    with np.errstate(over="ignore", invalid="ignore"):
        for row, weight in zip(sums, weights, strict=True):
            total = np.add(total, weight(columns), out=row)
        # Below the last sum also where the product is rounded up.
        threshold = np.minimum(uniform * total, np.nextafter(total, -1.0))
    chosen = np.zeros(columns.count, dtype=np.int32)
    for row in sums:
        chosen += row <= threshold
    return chosen, total


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


@dataclass(frozen=True)
class DrawnStep:
    """The next step of the n paths of a walk: drawn, and not yet taken.

    `events`, int32, shape (n,), has the number of the event that each path takes, the number of events for
    the loop of a deadlock; `sojourns` the time that each stays in its state, None without time; `uniform`,
    shape (rows, n), random numbers for the choices within an event.
    """

    events: NDArray[np.int32]
    sojourns: Doubles | None
    uniform: Doubles

    def only(self, kept: Array) -> DrawnStep:
        """Return the drawn step of some paths."""
        sojourns = None if self.sojourns is None else self.sojourns[kept]
        return DrawnStep(self.events[kept], sojourns, self.uniform[:, kept])


class PathBatch:
    """The current states of some paths, from the initial ones, int64, shape (variables, n).

    `events` draws by the model's rules, `draws` has random numbers for n paths; `paths`, int64, are the
    numbers of those that still go on.
    """

    def __init__(self, events: EventDraw, states: Ints, draws: Draws) -> None:
        self.rules, self._events, self._draws = events.rules, events, draws
        self.states = np.ascontiguousarray(states)
        self.paths = np.arange(states.shape[1], dtype=np.int64)
        self._is_timed = self.rules.type is ModelType.CTMC

    def keep(self, kept: Array) -> None:
        """Let only some of the paths go on, marked in shape (m,)."""
        self.states, self.paths = np.ascontiguousarray(self.states[:, kept]), self.paths[kept]

    def draw(self) -> DrawnStep:
        """Draw the next step of every path, and leave the states as they are.

        Raises BuildError where in the state of some path a guard or a weight has no value, a rate is negative
        or not finite, or the probabilities do not add up to 1. Time: see `EventDraw.draw`.
        """
        uniform, sojourns = self._draws.step(self.paths)
        events, total = self._events.draw(self.states, uniform[0])
        if not np.isfinite(total).all():
            refuse_state(self.rules, self.states[:, np.flatnonzero(~np.isfinite(total))[0]])
        if sojourns is not None:
            sojourns = sojourns / np.where(total == 0, 1.0, total)
        return DrawnStep(events, sojourns, uniform)

    def move(self, drawn: DrawnStep) -> None:
        """Let every path take the event drawn for it; BuildError where a value leaves its range."""
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
            weights = [alternative.weight for alternative in component.alternatives]
            chosen, _ = _by_share(weights, columns, uniform[slot].take(where))
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


# Records of paths: what they have gone through, as arrays.


@dataclass(frozen=True)
class SamplePaths:
    """Paths of a model; row `i` of every array is path `i`, column `k` its state after `k` steps.

    Attributes
    ----------
    states : dict of str to ndarray, shape (paths, steps + 1)
        Bool or the smallest integer type, by variable. Behind a path's end its last state stands.
    lengths : ndarray of int64, shape (paths,)
        Steps that each path takes: `steps`, or fewer where it ends at `until`.
    times : ndarray of float64, shape (paths, steps + 1), or None
        When each state is entered (CTMC); infinite behind a path's end.
    actions : ndarray of int32, shape (paths, steps)
        Place in `action_names` of what leads from column `k` to `k + 1`; -1 for the loop of a state without
        transitions, -2 behind a path's end.
    action_names : tuple of str
        The first one, empty, is that of unlabelled commands.
    rewards : dict of str to ndarray of float64, shape (paths, steps + 1)
        What is earned on the way to each state, by reward structure (one without name: its number from 1).
    """

    states: dict[str, Array]
    lengths: NDArray[np.int64]
    times: Doubles | None
    actions: NDArray[np.int32]
    action_names: tuple[str, ...]
    rewards: dict[str, Doubles] = field(default_factory=dict)


class Record:
    """Arrays that are filled step by step: a row a step while paths advance, so that writing is fast.

    `count` paths have up to `steps` steps, to the end of time `until`.
    """

    def __init__(
        self,
        rules: Rules,
        earnings: Mapping[str, RewardStructureRules],
        count: int,
        steps: int,
        until: float | None,
    ) -> None:
        self._rules, self._earnings, self._until = rules, earnings, until
        shape = (steps + 1, count)
        self._states = [np.empty(shape, dtype=kind) for kind in rules.variables.types]
        self._times = np.full(shape, math.inf) if rules.type is ModelType.CTMC else None
        self._actions = np.full((steps, count), -2, dtype=np.int32)
        self._rewards = {name: np.zeros(shape) for name in earnings}
        self._lengths = np.full(count, steps, dtype=np.int64)
        self._now = np.zeros(count)

    def part(self, first: int, count: int) -> Record:
        """Return the record of some of the paths, which is written into this one."""
        own, chosen = copy.copy(self), slice(first, first + count)
        own._states = [states[:, chosen] for states in self._states]
        own._times = None if self._times is None else self._times[:, chosen]
        own._actions = self._actions[:, chosen]
        own._rewards = {name: earned[:, chosen] for name, earned in self._rewards.items()}
        own._lengths, own._now = self._lengths[chosen], self._now[chosen]
        return own

    def begin(self, walk: PathBatch) -> None:
        """Note the first states."""
        for record, row in zip(self._states, walk.states, strict=True):
            record[0] = row
        if self._times is not None:
            self._times[0] = 0.0

    def follow(self, before: Record, walk: PathBatch) -> None:
        """Note the last states of the record of earlier steps, from which its paths go on."""
        own, theirs = [*self._states, *self._rewards.values()], [*before._states, *before._rewards.values()]
        for record, earlier in zip(own, theirs, strict=True):
            record[0] = earlier[-1]
        if self._times is not None and before._times is not None:
            self._times[0] = before._times[-1]
        self._now = before._now
        has_ended = np.ones(self._lengths.size, dtype=np.bool_)
        has_ended[walk.paths] = False
        self._lengths[has_ended] = 0

    def step(self, walk: PathBatch, k: int) -> None:
        """Let the paths take step k, and note where it leads."""
        rules = self._rules
        drawn = walk.draw()
        leaving = self._now[walk.paths]
        if drawn.sojourns is not None:
            leaving = leaving + drawn.sojourns
            if self._until is not None:
                goes_on = leaving <= self._until
                if not goes_on.all():
                    self._lengths[walk.paths[~goes_on]] = k
                    walk.keep(goes_on)
                    drawn, leaving = drawn.only(goes_on), leaving[goes_on]
        paths: Array | slice = walk.paths
        if walk.paths.size == self._now.size:
            paths = slice(None)
        for name, record in self._rewards.items():
            earned = self._earned(self._earnings[name], walk.states, drawn.events, drawn.sojourns)
            record[k + 1] = record[k]
            record[k + 1, paths] += earned
        actions = rules.action_of[drawn.events]
        stuck = drawn.events == len(rules.events)
        self._actions[k, paths] = np.where(stuck, np.int32(-1), actions)
        walk.move(drawn)
        if self._times is not None:
            self._now[paths] = leaving
            self._times[k + 1, paths] = leaving
        for record, row in zip(self._states, walk.states, strict=True):
            if not isinstance(paths, slice):
                record[k + 1] = record[k]
            record[k + 1, paths] = row

    @staticmethod
    def _earned(
        earnings: RewardStructureRules, states: Ints, events: Array, sojourns: Doubles | None
    ) -> Doubles:
        """Return what paths earn in their states and with their events."""
        earned = earnings.of_states(states)
        earned = earned if sojourns is None else earned * sojourns
        return earned + earnings.of_events(states, events)

    def rest(self, k: int) -> None:
        """Repeat the last states: all paths have ended before step k."""
        for record in (*self._states, *self._rewards.values()):
            record[k + 1 :] = record[k]

    def paths(self) -> SamplePaths:
        """Return the record, a row a path."""
        names = self._rules.variables.names
        return SamplePaths(
            {name: record.T for name, record in zip(names, self._states, strict=True)},
            self._lengths,
            None if self._times is None else self._times.T,
            self._actions.T,
            self._rules.actions,
            {name: record.T for name, record in self._rewards.items()},
        )


# Monitors of sample paths: whether a path satisfies a formula, and its reward up to some moment.

Bools = NDArray[np.bool_]

OPEN, HOLDS, FAILS = 0, 1, 2
"""Verdicts; of rewards: not yet known, known, infinite."""


@dataclass(frozen=True)
class Moment:
    """The paths of a walk before a step, n of them; `step` counts those made so far.

    `states` has shape (variables, n). Each path `entered` its state at a time, in discrete time a step, and
    `left` it at another, infinite if it never does; `absorbed` marks paths that are known never to leave it.
    `drawn` has the event that each takes then; `is_deadlock` marks states without transitions but the loop
    that they are given.
    """

    states: Ints
    step: int
    entered: Doubles
    left: Doubles
    absorbed: Bools
    drawn: DrawnStep
    is_deadlock: Bools


Formula = Callable[[Moment], Bools]


class Monitor(ABC):
    """Decides for every path of one walk whether it satisfies a path formula, from step to step.

    `may_rest` says whether a path that takes only self-loops from now on may be treated as one that stays in
    its state for ever (`Moment.absorbed`).
    """

    may_rest = True

    @abstractmethod
    def verdicts_at(self, moment: Moment, paths: Array) -> NDArray[np.int8]:
        """Return the verdict on each path that still goes on, given by its number within the walk."""


class StepMonitor(Monitor):
    """A state formula after so many steps: 0 for the formula alone, 1 for `X a`."""

    def __init__(self, formula: Formula, step: int) -> None:
        self._formula, self._step = formula, step

    def verdicts_at(self, moment: Moment, paths: Array) -> NDArray[np.int8]:
        """Return the verdicts."""
        if moment.step < self._step:
            return np.zeros(paths.size, dtype=np.int8)
        return np.where(self._formula(moment), HOLDS, FAILS).astype(np.int8)


class UntilMonitor(Monitor):
    """`a U b` with b in a window of steps or time, ends included, the upper one perhaps infinite.

    With `is_strict` time 0 is left out although the lower end is 0 (continuous time). With `is_timed` time is
    continuous: a path may satisfy b at any time that it spends in a state, if it satisfies a up to then.
    """

    def __init__(
        self, left: Formula, right: Formula, lower: float, upper: float, is_strict: bool, is_timed: bool
    ) -> None:
        self._left, self._right = left, right
        self._lower, self._upper, self._is_strict, self._is_timed = lower, upper, is_strict, is_timed

    def verdicts_at(self, moment: Moment, paths: Array) -> NDArray[np.int8]:
        """Return the verdicts."""
        low, high, entered, left = self._lower, self._upper, moment.entered, moment.left
        safe, goal = self._left(moment), self._right(moment)
        arrives = (entered >= low) & (entered <= high)
        if self._is_strict:
            arrives &= entered > 0
        if not self._is_timed:
            # A state that is never left is there at every later step, too.
            waits = moment.absorbed & (entered < low) & (low <= high)
            over = entered >= high
        else:
            over = left > high
            if low == high:
                waits = (entered < low) & (low < left)
            else:
                waits = np.maximum(entered, low) < np.minimum(left, high)
        holds = goal & (arrives | (safe & waits))
        fails = ~holds & (~safe | over | moment.absorbed)
        return (HOLDS * holds + FAILS * fails).astype(np.int8)


class AccumulatedReward(Monitor):
    """Rewards that `count` paths earn, in `values`: up to a horizon, or before they reach a set of states.

    The horizon is infinite without end; a path that cannot come to the target any more earns infinitely much.
    """

    def __init__(
        self,
        earnings: RewardStructureRules,
        count: int,
        horizon: float,
        target: Formula | None,
        is_timed: bool,
    ) -> None:
        self._earnings, self._horizon, self._target = earnings, horizon, target
        self._is_timed = is_timed
        self.values = np.zeros(count)
        # Up to a moment loops earn, too; without one, such a path earns infinitely much or does not count.
        self.may_rest = target is not None

    def verdicts_at(self, moment: Moment, paths: Array) -> NDArray[np.int8]:
        """Return the verdicts, and add up what is earned before the next step."""
        there = moment.entered >= self._horizon
        if self._target is not None:
            there = there | self._target(moment)
        earned = self._earnings.of_states(moment.states)
        if self._is_timed:
            spent = np.minimum(moment.left, self._horizon) - moment.entered
            earned = earned * np.where(np.isfinite(spent), spent, 0.0)
        moves = moment.left <= self._horizon
        events = self._earnings.of_events(moment.states, moment.drawn.events)
        self.values[paths] += np.where(there, 0.0, earned + np.where(moves, events, 0.0))
        if self._is_timed:
            there = there | ~moves
        verdict: NDArray[np.int8] = np.where(there, HOLDS, OPEN).astype(np.int8)
        if self._target is not None:
            verdict[~there & moment.absorbed] = FAILS
        return verdict


class InstantaneousReward(Monitor):
    """Rewards of the states at a time, or after some steps; `values` has shape (count,)."""

    def __init__(self, earnings: RewardStructureRules, count: int, time: float) -> None:
        self._earnings, self._time = earnings, time
        self.values = np.zeros(count)

    def verdicts_at(self, moment: Moment, paths: Array) -> NDArray[np.int8]:
        """Return the verdicts."""
        there = (moment.entered <= self._time) & (self._time < moment.left)
        if there.any():
            self.values[paths[there]] = self._earnings.of_states(moment.states[:, there])
        return there.astype(np.int8) * np.int8(HOLDS)
