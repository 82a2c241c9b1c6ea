"""Monitors of sample paths: whether a path satisfies a formula, and its reward up to some moment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.simulation.functions import Array, Doubles, Ints
from hybrid.checking.simulation.rules import RewardStructureRules
from hybrid.checking.simulation.walk import DrawnStep

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
