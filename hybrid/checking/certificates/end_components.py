"""Vectors that show long-run averages of decision processes; they may be wrong, for the sweep judges them.

In the maximal end components they are a bias h and the averages of lemma E. A vector w satisfies
``w >= 1 + P_c w`` for all choices c that leave components. Bounds are moved by a small multiple of it, so
that these choices move l and u strictly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gpu_kernels import ChoiceRows
from hybrid.checking.certificates.archive import PartVectors
from hybrid.checking.certificates.conditions import Average
from hybrid.checking.certificates.transitions import Transitions
from hybrid.matrix.operators.explicit_choices import ExplicitChoices
from hybrid.matrix.space.base import Criterion
from hybrid.matrix.space.choice_operator import ChoiceOperator, ChoiceProblem
from hybrid.solvers.component_averages import AverageIteration
from hybrid.solvers.optimistic import Optimistic

Vector = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_CLOSER = 0.1  # share of epsilon that the averages of components get
_ROUGH = Criterion(0.5)
_STALE, _DAMPING = 64, 0.5  # steps by which what a bias shows no longer narrows, and their length
_DISTANCES = (0.0, *(2.0**k for k in range(-50, -17, 3)))  # shares of the greatest average, tried in turn
_NEAR = 2.0**-20  # relative distance of an average to one that is settled in for


def process_averages(condition: Average, lower: Vector, upper: Vector, criterion: Criterion) -> PartVectors:
    """Return bounds on averages of a decision process, near those given, and a bias that shows them.

    Time: that of the averages of all end components, and of some sweeps.
    """
    course = _Components(condition, lower, upper, criterion)
    lower, upper = course.levelled(lower, upper)
    steps = course.steps()
    found = []
    for bound, direction, faults in (
        (lower, -1.0, condition.lower_faults),
        (upper, 1.0, condition.upper_faults),
    ):
        scale = float(max(np.abs(lower).max(), np.abs(upper).max()))
        for distance in _DISTANCES:
            away = distance * scale
            moved = np.clip(bound + direction * away * steps, course.least - away, course.greatest + away)
            if not faults(moved)[0].any():
                break
        found.append(moved)
    return PartVectors(found[0], found[1], condition.bias)


class _Components:
    """The maximal end components of listed transitions, their averages, and a bias, set in the condition."""

    def __init__(self, condition: Average, lower: Vector, upper: Vector, criterion: Criterion) -> None:
        t = condition.sweep.transitions
        self._t, self._maximise = t, bool(condition.maximise)
        doubles, _ = t.states.table.doubles()
        scale = doubles[condition.scale]
        self._count = np.diff(t.begin).astype(np.intp)
        self._owner = np.repeat(np.arange(t.state.size), self._count)
        self._weight = doubles[t.weight] / scale[self._owner]
        self._rewards: Vector = doubles[condition.earned] / scale
        self._inside, self._label = _end_components(t, self._owner, np.ones(t.state.size, np.bool_))
        self._h: Vector = np.zeros(t.states.size)
        places = self._label[t.state[self._inside]]
        count = int(self._label.max(initial=-1)) + 1
        rewards = self._rewards[self._inside]
        least, most = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(least, places, rewards)
        np.maximum.at(most, places, rewards)
        best = most if self._maximise else least
        tight = self._inside & (self._rewards == best[self._label[t.state]])
        attained = np.zeros(count, np.bool_)
        attained[self._label[_end_components(t, self._owner, tight)[1] >= 0]] = True
        is_open = ~attained
        if is_open.any():
            self._iterate(is_open, least, most, criterion)
        # States that are left for a better component need no bias where no reward is beyond that.
        low, high = self._measured()
        first = np.zeros(count, np.int64)
        first[self._label[self._label >= 0]] = np.flatnonzero(self._label >= 0)
        left = upper[first] >= most if self._maximise else lower[first] <= least
        left &= lower[first] > high if self._maximise else upper[first] < low
        self._h[(self._label >= 0) & left[self._label]] = 0.0
        low, high = self._measured()
        self.low, self.high = np.where(attained, best, low), np.where(attained, best, high)
        self.least, self.greatest = float(self.low.min()), float(self.high.max())
        condition.bias = self._h

    def _iterate(self, is_open: Mask, least: Vector, most: Vector, criterion: Criterion) -> None:
        """Find the bias of some components, given as a mask."""
        states = np.flatnonzero((self._label >= 0) & is_open[self._label])
        place = np.full(self._label.size, -1, np.int64)
        place[states] = np.arange(states.size)
        choices = np.flatnonzero(self._inside & (place[self._t.state] >= 0))
        component = (np.cumsum(is_open) - 1)[self._label[states]]
        # Steps are made over what is not negative.
        raised = np.maximum(-least[is_open], 0.0)
        gains = self._rewards[choices] + raised[component[place[self._t.state[choices]]]]
        operator = self._operator(choices, place, states.size, gains, self._maximise)
        closer = replace(criterion, epsilon=_CLOSER * criterion.epsilon)
        method = AverageIteration(
            operator, component, least[is_open] + raised, most[is_open] + raised, closer, raised=raised
        )
        self._h[states] = method.solve().bias
        self._narrow(states, is_open, closer.epsilon)

    def _narrow(self, states: Ints, is_open: Mask, epsilon: float) -> None:
        """Make steps from the bias of some components until it shows both of their bounds, not one alone."""
        closest, best, stale = np.inf, self._h, 0
        while stale < _STALE:
            low, high = self._measured()
            width = float((high - low)[is_open].max())
            stale = 0 if width < 0.9 * closest else stale + 1
            if width < closest:
                closest, best = width, self._h.copy()
            if closest <= epsilon * float(np.abs(high[is_open]).max()):
                break
            rho, _ = self._increments()
            self._h[states] += _DAMPING * self._best(rho)[states]
        self._h = best

    def _operator(
        self, choices: Ints, place: Ints, size: int, gains: Vector, maximise: bool
    ) -> ChoiceOperator:
        """Return choices as an operator over rows; a state whose `place` is negative is worth 0."""
        t = self._t
        row = place[t.state[choices]]
        order = np.argsort(row, kind="stable")
        choices, row, gains = choices[order], row[order], gains[order]
        number = np.full(t.state.size, -1, np.int64)
        number[choices] = np.arange(choices.size)
        entries = np.flatnonzero((number[self._owner] >= 0) & (place[t.target] >= 0))
        entries = entries[np.argsort(number[self._owner[entries]], kind="stable")]
        offsets = np.searchsorted(number[self._owner[entries]], np.arange(choices.size + 1))
        starts = np.searchsorted(row, np.arange(size + 1))
        layers = (np.arange(choices.size) - starts[row]).astype(np.uint16)
        rows = ChoiceRows(
            starts.astype(np.int64), offsets.astype(np.int64), place[t.target[entries]],
            self._weight[entries], gains, layers,
        )  # fmt: skip
        slack = (int(self._count.max()) + 16) * 2.0**-52
        return ExplicitChoices(rows, ChoiceProblem(size, maximise, None, slack))

    def _increments(self) -> tuple[Vector, Vector]:
        """Return ``r + P h - h`` of every choice, and the terms of its sum by transition."""
        t, h = self._t, self._h
        terms = self._weight * (h[t.target] - h[t.state[self._owner]])
        return np.bincount(self._owner, terms, t.state.size) + self._rewards, terms

    def _measured(self) -> tuple[Vector, Vector]:
        """Return bounds on each component's average by lemma E, rounding errors charged twice."""
        rho, terms = self._increments()
        size = np.bincount(self._owner, np.abs(terms), rho.size) + np.abs(self._rewards)
        error = 3.0 * (self._count + 24) * 2.0**-52 * size
        return self._gathered(rho - error, np.minimum), self._gathered(rho + error, np.maximum)

    def _gathered(self, of_choices: Vector, over: Any) -> Vector:
        """Return for each component what is best in a state, the least or greatest over its states."""
        of_states, held = self._best(of_choices), self._label >= 0
        found: Vector = np.full(
            int(self._label.max(initial=-1)) + 1, np.inf if over is np.minimum else -np.inf
        )
        over.at(found, self._label[held], of_states[held])
        return found

    def _best(self, of_choices: Vector) -> Vector:
        """Return for each state what is best of its choices that stay in its component; NaN without one."""
        pick = np.fmax if self._maximise else np.fmin
        own = np.where(self._inside, of_choices, np.nan)
        found: Vector = pick.reduceat(own, self._t.first[:-1].astype(np.intp))
        return found

    def levelled(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        """Return bounds that are the same in each component, and no closer than an average that counts."""
        held = self._label >= 0
        found = []
        for bound, gather in ((lower, np.minimum), (upper, np.maximum)):
            own: Callable[..., Any] = gather.at
            best = np.full(self.low.size, np.inf if gather is np.minimum else -np.inf)
            own(best, self._label[held], bound[held])
            found.append(np.where(held, best[self._label], bound))
        lower, upper = found
        below, above = lower[held] - self.low[self._label[held]], self.high[self._label[held]] - upper[held]
        # States that are left for a better component have an average that is further off.
        near = _NEAR * float(max(np.abs(lower).max(), np.abs(upper).max()))
        down = max(0.0, float(below.max(initial=0.0, where=(below <= near) | (not self._maximise))))
        up = max(0.0, float(above.max(initial=0.0, where=(above <= near) | self._maximise)))
        return lower - down, upper + up

    def steps(self) -> Vector:
        """Return w, no less than 1: one more than what passes, at most, until components are not left."""
        t = self._t
        count, held = self.low.size, self._label >= 0
        place = np.where(held, self._label, count + np.cumsum(~held) - 1)
        choices = np.flatnonzero(~self._inside)
        rows, row = np.unique(place[t.state[choices]], return_inverse=True)
        ones: Vector = np.ones(t.states.size)
        if not rows.size:
            return ones
        number = np.full(int(place.max()) + 1, -1, np.int64)
        number[rows] = np.arange(rows.size)
        place = number[place]
        operator = self._operator(choices, place, rows.size, np.ones(choices.size), True)
        bound = Optimistic(_ROUGH).bounds(operator, None).upper
        known = np.isfinite(bound)
        return ones + np.where(place >= 0, np.where(known, bound, 0.0)[place], 0.0)


def _end_components(t: Transitions, owner: Ints, allowed: Mask) -> tuple[Mask, Ints]:
    """Return the allowed choices that stay in their maximal end component, and each state's; -1 for none."""
    source, size = t.state[owner], t.states.size
    inside = allowed.copy()
    while True:
        taken = inside[owner]
        pairs = source[taken], t.target[taken]
        graph = coo_array((np.ones(int(taken.sum())), pairs), (size, size)).tocsr()
        _, label = connected_components(graph, directed=True, connection="strong")
        leaves = np.zeros(inside.size, np.bool_)
        leaves[owner[label[source] != label[t.target]]] = True
        if not (inside & leaves).any():
            break
        inside &= ~leaves
    held = np.zeros(size, np.bool_)
    held[t.state[inside]] = True
    found = np.full(size, -1, np.int64)
    found[held] = np.unique(label[held], return_inverse=True)[1]
    return inside, found
