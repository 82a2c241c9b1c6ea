"""Records of paths: what they have gone through, as arrays."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.simulation.draws import Doubles
from hybrid.checking.simulation.earnings import Earnings
from hybrid.checking.simulation.rules import Rules
from hybrid.checking.simulation.variables import Array, Ints
from hybrid.checking.simulation.walk import Walk
from mtbdd.language.syntax import ModelType


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

    Parameters
    ----------
    rules : Rules
    earnings : mapping of str to Earnings
    count, steps : int
        Paths, and steps to be noted of each.
    until : float, optional
        End of time.
    """

    def __init__(
        self,
        rules: Rules,
        earnings: Mapping[str, Earnings],
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

    def begin(self, walk: Walk) -> None:
        """Note the first states."""
        for record, row in zip(self._states, walk.states, strict=True):
            record[0] = row
        if self._times is not None:
            self._times[0] = 0.0

    def follow(self, before: Record, walk: Walk) -> None:
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

    def step(self, walk: Walk, k: int) -> None:
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
    def _earned(earnings: Earnings, states: Ints, events: Array, sojourns: Doubles | None) -> Doubles:
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
