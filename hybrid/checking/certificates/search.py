"""Graph searches on explicit transitions: who can be made to reach a set, and who always does.

Only positive weights are transitions.  All searches go backwards, one distance at a time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.certificates.transitions import Transitions

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]


class Search:
    """The transitions turned round.

    Parameters
    ----------
    transitions : Transitions

    Notes
    -----
    Memory: 8 bytes a transition.  Every search takes O(transitions), and some NumPy calls for every distance.
    """

    def __init__(self, transitions: Transitions) -> None:
        self._t = transitions
        size = transitions.states.size
        order = np.argsort(transitions.target, kind="stable")
        owner = np.repeat(
            np.arange(transitions.state.size, dtype=np.int32), np.diff(transitions.begin).astype(np.intp)
        )
        self._choice = owner[order]
        self._begin = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(transitions.target, minlength=size), out=self._begin[1:])

    def _entering(self, states: Ints) -> Ints:
        """Return the choices with a transition into one of some states, with repetitions."""
        begin, count = self._begin[states], self._begin[states + 1] - self._begin[states]
        ends = np.cumsum(count)
        if ends.size == 0 or ends[-1] == 0:
            return np.zeros(0, np.int64)
        places = np.arange(ends[-1]) + np.repeat(begin - (ends - count), count)
        found: Ints = self._choice[places].astype(np.int64)
        return found

    def some(self, goal: Mask, allowed: Mask | None = None, through: Mask | None = None) -> Mask:
        """Return where allowed choices can be made so that a goal is reached with positive probability.

        Parameters
        ----------
        goal : ndarray of bool, shape (states,)
        allowed : ndarray of bool, shape (choices,), optional
        through : ndarray of bool, shape (states,), optional
            The states that may be passed on the way.
        """
        reached = goal.copy()
        frontier = np.flatnonzero(goal)
        while frontier.size:
            choices = self._entering(frontier)
            if allowed is not None:
                choices = choices[allowed[choices]]
            states = self._t.state[choices]
            fresh = ~reached[states]
            if through is not None:
                fresh &= through[states]
            frontier = np.unique(states[fresh]).astype(np.int64)
            reached[frontier] = True
        return reached

    def every(self, goal: Mask) -> Mask:
        """Return where a goal is reached with positive probability whatever choices are made.

        States outside are those where some scheduler surely avoids the goal.
        """
        reached = goal.copy()
        open_ = np.diff(self._t.first)
        hit = np.zeros(self._t.state.size, np.bool_)
        frontier = np.flatnonzero(goal)
        while frontier.size:
            choices = self._entering(frontier)
            choices = np.unique(choices[~hit[choices]])
            hit[choices] = True
            states, counts = np.unique(self._t.state[choices], return_counts=True)
            open_[states] -= counts
            fresh = states[(open_[states] == 0) & ~reached[states]]
            reached[fresh] = True
            frontier = fresh.astype(np.int64)
        return reached

    def forward(self, states: Ints) -> Mask:
        """Return the states reachable from some, themselves included."""
        t = self._t
        ends = t.begin[t.first]
        reached = np.zeros(self._begin.size - 1, np.bool_)
        frontier = np.unique(states)
        while frontier.size:
            reached[frontier] = True
            count = ends[frontier + 1] - ends[frontier]
            last = np.cumsum(count)
            places = np.arange(last[-1]) + np.repeat(ends[frontier] - (last - count), count)
            found = np.unique(t.target[places]).astype(np.int64)
            frontier = found[~reached[found]]
        return reached

    def inside(self, states: Mask) -> Mask:
        """Return the choices all of whose transitions enter a set, shape (choices,)."""
        heads = self._t.begin[:-1].astype(np.intp)
        return np.asarray(np.logical_and.reduceat(states[self._t.target], heads))

    def surely(self, goal: Mask) -> Mask:
        """Return where choices can be made so that a goal is reached with probability 1."""
        kept = np.ones(goal.size, np.bool_)
        while True:
            found = self.some(goal, self.inside(kept))
            if bool((found == kept).all()):
                return kept
            kept = found

    def sources_avoiding(self, bad: Mask, goal: Mask) -> Mask:
        """Return the states from which some choices lead to `bad` with positive probability before a goal."""
        return self.some(bad & ~goal, None, ~goal)
