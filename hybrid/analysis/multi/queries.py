"""Achievability and numerical queries: points and half-spaces until they decide.

Each round finds a direction of weights in which the mixtures found so far fall short, and solves that
weighted sum ([FKP12]).  The search ends when a direction yields no better point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.multi.memory import Objective
from hybrid.analysis.multi.weighted_sum import Point, WeightedSumSolver
from hybrid.base.directed_rounding import rounded_down, rounded_up
from hybrid.base.errors import NotConvergedError
from hybrid.matrix.space.base import Status

# Inner and outer approximation of the achievable values: mixtures of points, and half-spaces.
#
# All objectives are maximised, minimised ones negated.  Values below a mixture of points are achievable,
# values beyond a half-space are not.  Linear programs in doubles propose mixtures and directions;
# rational arithmetic confirms the result.

Vector = NDArray[np.float64]
Demands = Sequence[Fraction | None]

_FARTHEST = 1e15  # numbers beyond 1e20 count as infinite in linear programs
_SLIGHT = 1e-9  # shares below it are an error of the linear program


@dataclass(frozen=True)
class HalfSpace:
    """A half-space: no scheduler attains a greater weighted sum of the objectives.

    Attributes
    ----------
    weights : tuple of float
        Not negative.
    """

    weights: tuple[float, ...]
    most: float

    def excess(self, values: Demands) -> Fraction:
        """Return the exact excess of values over the bound; objectives without a demand have weight 0."""
        total = sum(Fraction(w) * v for w, v in zip(self.weights, values, strict=True) if v is not None)
        return Fraction(total) - Fraction(self.most)  # lemma: outside


@dataclass(frozen=True)
class Proposal:
    """The optimum of a linear program over mixtures of points.

    It maximises `value`, by `shares` of the points in a mixture, shape (points,); `direction`, shape
    (objectives,), has the weights of the dual solution, in which a better point would have to lie.
    """

    value: float
    shares: Vector
    direction: Vector


def widest_margin(points: Sequence[Sequence[float]], demands: Demands, scale: Vector) -> Proposal:
    """Return the mixture of points that exceeds demands by the greatest multiple of a scale.

    Demands that every point meets do not count beside others: at their border no mixture exceeds them.
    """
    missed = [
        None if demand is None or all(point[i] >= demand for point in points) else demand
        for i, demand in enumerate(demands)
    ]
    if any(demand is not None for demand in missed):
        demands = missed
    found, direction = _proposed(points, demands, scale, np.append(np.zeros(len(points)), -1.0), 1.0)
    return Proposal(float(found.x[-1]), found.x[:-1], direction)


def best_value(
    points: Sequence[Sequence[float]], demands: Demands, aim: int, scale: Vector
) -> Proposal | None:
    """Return the mixture that meets demands with the greatest value of one objective; None if none does."""
    cost = np.append(-np.array(points, np.float64)[:, aim] / scale[aim], 0.0)
    found, direction = _proposed(points, demands, scale, cost, 0.0, must=False)
    if found is None:
        return None
    direction[aim] = 1.0 / scale[aim]
    return Proposal(float(-found.fun * scale[aim]), found.x[:-1], direction)


def _proposed(
    points: Sequence[Sequence[float]],
    demands: Demands,
    scale: Vector,
    cost: Vector,
    margin: float,
    must: bool = True,
) -> tuple[Any, Vector]:
    """Minimise a cost over shares that add up to 1 and a free margin by which demands are met.

    Returns the solution, None if there is none and `must` is false, and the dual weights of the
    objectives.
    """
    from scipy.optimize import linprog

    lower = np.array(points, np.float64)
    asked = [i for i, demand in enumerate(demands) if demand is not None]
    with np.errstate(over="ignore"):
        parts = np.array([float(demands[i] or 0) for i in asked]) / scale[asked]
    # Demands far beyond the scale are clipped to the range of linear programs.
    most = -np.clip(parts, -_FARTHEST, _FARTHEST)
    rows = np.hstack([-(lower[:, asked] / scale[asked]).T, np.full((len(asked), 1), margin)])
    equal = np.append(np.ones(len(lower)), 0.0)[None, :]
    bounds = [(0.0, None)] * len(lower) + [(None, None)]
    found = linprog(cost, rows, most, equal, [1.0], bounds, method="highs")
    direction = np.zeros(len(demands))
    if found.status == 2 and not must:
        return None, direction
    if found.status != 0:
        raise NotConvergedError("a linear program of objectives", Status.BREAKDOWN, int(found.nit), np.inf)
    direction[asked] = np.maximum(-found.ineqlin.marginals, 0.0) / scale[asked]
    return found, direction


# ------------------------------------------------------------------ in rational numbers


Shares = dict[int, Fraction]


def rational_shares(shares: Vector) -> Shares:
    """Return shares as rational numbers that add up to 1, without those below rounding."""
    kept = {i: Fraction(x) for i, x in enumerate(shares.tolist()) if x > _SLIGHT}
    total = sum(kept.values())
    return {i: x / total for i, x in kept.items()}  # lemma: mixture


def mixed(points: Sequence[Sequence[float]] | Sequence[Sequence[Fraction]], shares: Shares) -> list[Fraction]:
    """Return the values of a mixture in rational numbers."""
    return [
        sum((x * Fraction(points[j][i]) for j, x in shares.items()), Fraction(0))
        for i in range(len(points[0]))
    ]


def meets(values: Sequence[Fraction], demands: Demands) -> bool:
    """Return whether values meet demands."""
    return all(d is None or v >= d for v, d in zip(values, demands, strict=True))  # lemma: mixture


def repaired_mixture(
    points: Sequence[Sequence[float]], shares: Shares, other: Shares, demands: Demands
) -> Shares | None:
    """Return a mixture that meets demands, with the least share of another one that does; None without.

    The first one may miss them by rounding.
    """
    near, safe = mixed(points, shares), mixed(points, other)
    part = Fraction(0)
    for value, sure, demand in zip(near, safe, demands, strict=True):
        if demand is not None and value < demand:
            if sure < demand or sure == value:
                return None
            part = max(part, (demand - value) / (sure - value))  # lemma: mixture
    joined = {i: (1 - part) * x for i, x in shares.items()}
    for i, x in other.items():
        joined[i] = joined.get(i, Fraction(0)) + part * x
    joined = {i: x for i, x in joined.items() if x}
    return joined if meets(mixed(points, joined), demands) else None  # lemma: mixture


MOST_WEIGHTS = 400
"""Weighted sums that are solved for one property."""


@dataclass(eq=False)
class ObjectiveSearch:
    """Points and half-spaces found so far, with the weights that led to each point.

    Improvements below the share `epsilon` of an objective's range do not count.
    """

    weighing: WeightedSumSolver
    objectives: Sequence[Objective]
    epsilon: float
    points: list[Point] = field(default_factory=list)
    directions: list[tuple[float, ...]] = field(default_factory=list)
    half_spaces: list[HalfSpace] = field(default_factory=list)

    @property
    def values(self) -> list[tuple[float, ...]]:
        """The lower bounds of all points."""
        return [point.lower for point in self.points]

    def begin(self) -> None:
        """Optimise every objective separately."""
        for i in range(len(self.objectives)):
            self.solve(np.eye(len(self.objectives))[i])

    def scale(self) -> Vector:
        """Return the range of each objective over the points; 1 where it is empty."""
        lower = np.array(self.values)
        spread = lower.max(axis=0) - lower.min(axis=0)
        size = np.abs(lower).max(axis=0)
        return np.where(spread > 1e-9 * size, spread, np.where(size > 0.0, size, 1.0))

    def solve(self, direction: Vector) -> bool:
        """Solve a weighted sum; return whether that improves an approximation.

        False after the limit of sums.
        """
        if len(self.half_spaces) >= MOST_WEIGHTS or not direction.any():
            return False
        weights = tuple((direction / direction.max()).tolist())
        if any(np.allclose(weights, h.weights, rtol=1e-12, atol=0.0) for h in self.half_spaces):
            return False
        before = max((float(np.dot(p, weights)) for p in self.values), default=-math.inf)
        found = self.weighing.solve(weights)
        self.half_spaces.append(HalfSpace(weights, found.most))
        gained = float(np.dot(found.point.lower, weights)) - before
        if all(found.point.lower != p for p in self.values):
            self.points.append(found.point)
            self.directions.append(weights)
        return gained > self.epsilon * float(np.dot(self.scale(), weights))


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The result of a search; no search if under every scheduler some least reward is infinite.

    `truth` is that of an achievability question, None if it is undecided, or of another question; `lower` and
    `upper` bound the value of a numerical question, turned so that more is better, None if no scheduler meets
    the bounds, or that is not known. `shares` say how a scheduler mixes those of the points that meets the
    bounds.
    """

    search: ObjectiveSearch | None
    truth: bool | None = None
    lower: float | None = None
    upper: float | None = None
    shares: Shares = field(default_factory=dict)


def achievable(search: ObjectiveSearch, demands: Demands) -> SearchResult:
    """Return whether one scheduler meets all demands.

    The truth value is None where bounds cannot separate the demands from the border.
    """
    while True:
        # lemma: outside
        if any(h.excess(demands) > 0 for h in search.half_spaces if _on_demands(h, demands)):
            return SearchResult(search, truth=False)
        proposal = widest_margin(search.values, demands, search.scale())
        shares = _confirmed(search, proposal, demands)  # lemma: mixture
        if shares is not None:
            return SearchResult(search, truth=True, shares=shares)
        if not search.solve(proposal.direction):
            # lemma: outside
            refused = any(h.excess(demands) > 0 for h in search.half_spaces if _on_demands(h, demands))
            return SearchResult(search, truth=False if refused else None)


def _on_demands(half_space: HalfSpace, demands: Demands) -> bool:
    """Return whether a half-space has weights on demands alone."""
    # lemma: outside
    return all(d is not None or w == 0.0 for w, d in zip(half_space.weights, demands, strict=True))


def _confirmed(search: ObjectiveSearch, proposal: Proposal, demands: Demands) -> Shares | None:
    """Return a proposed mixture if it meets demands exactly."""
    shares = rational_shares(proposal.shares)
    return shares if meets(mixed(search.values, shares), demands) else None  # lemma: mixture


def greatest_value(search: ObjectiveSearch, aim: int, demands: Demands) -> SearchResult:
    """Return the greatest value of one objective under demands on the others.

    The truth value says whether these can be met, None if that is unknown.

    Lemma: mixture (docs/multi.md).
    """
    met = achievable(search, demands) if any(d is not None for d in demands) else None
    if met is not None and not met.truth:
        return met
    while True:
        scale, values = search.scale(), search.values
        safe = rational_shares(widest_margin(values, demands, scale).shares) if met is not None else {}
        if met is not None and not meets(mixed(values, safe), demands):  # lemma: mixture
            safe = met.shares
        proposal = best_value(values, demands, aim, scale)
        shares = safe if proposal is None else rational_shares(proposal.shares)
        if met is not None and not meets(mixed(values, shares), demands):  # lemma: mixture
            shares = repaired_mixture(values, shares, safe, demands) or safe
        lower = rounded_down(mixed(values, shares)[aim])  # lemma: mixture
        upper = _least_upper(search, aim, demands)
        close = upper - lower <= search.epsilon * max(abs(lower), abs(upper))
        if close or proposal is None or not search.solve(proposal.direction):
            upper = _least_upper(search, aim, demands)
            return SearchResult(search, True, lower, max(lower, upper), shares)


def _least_upper(search: ObjectiveSearch, aim: int, demands: Demands) -> float:
    """Return the upper bound of the half-spaces on one objective under demands on the others.

    Lemma: outside (docs/multi.md).
    """
    least = math.inf
    for half_space in search.half_spaces:
        own = Fraction(half_space.weights[aim])
        others = [None if i == aim else d for i, d in enumerate(demands)]
        blind = any(
            w and o is None
            for i, (w, o) in enumerate(zip(half_space.weights, others, strict=True))
            if i != aim
        )
        if own > 0 and not blind:  # lemma: outside
            least = min(least, rounded_up(-half_space.excess(others) / own))  # lemma: outside
    return least
