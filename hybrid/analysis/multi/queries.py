"""Achievability and numerical questions: points and half-spaces until they decide.

Each round asks in which direction the mixtures found so far fall short, and solves that weighted sum
([FKP12]).  A direction in which nothing better is found ends the search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.multi.objectives import Objective
from hybrid.analysis.multi.polytopes import (
    Demands,
    HalfSpace,
    Proposal,
    Shares,
    best_value,
    cleaned,
    meets,
    mixed,
    repaired,
    widest_margin,
)
from hybrid.analysis.multi.schedulers import Point
from hybrid.analysis.multi.weighing import Weighing
from hybrid.base.directed_rounding import rounded_down, rounded_up

Vector = NDArray[np.float64]

MOST_WEIGHTS = 400
"""Weighted sums that are solved for one property."""


@dataclass(eq=False)
class ObjectiveSearch:
    """Points and half-spaces found so far.

    Attributes
    ----------
    weighing : Weighing
    objectives : sequence of Objective
    epsilon : float
        How much of the range of an objective counts as nothing.
    points : list of Point
    directions : list of tuple of float
        The weights that led to each point.
    half_spaces : list of HalfSpace
    """

    weighing: Weighing
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
        """Solve every objective by itself."""
        for i in range(len(self.objectives)):
            self.solve(np.eye(len(self.objectives))[i])

    def scale(self) -> Vector:
        """Return how far each objective ranges over the points, and 1 where it does not."""
        lower = np.array(self.values)
        spread = lower.max(axis=0) - lower.min(axis=0)
        size = np.abs(lower).max(axis=0)
        return np.where(spread > 1e-9 * size, spread, np.where(size > 0.0, size, 1.0))

    def solve(self, direction: Vector) -> bool:
        """Solve a weighted sum; return whether that tells more than was known.

        Nothing does after so many sums.
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
class Found:
    """What a search has found.

    Attributes
    ----------
    search : ObjectiveSearch or None
        None if under every scheduler some least reward is infinite.
    truth : bool or None
        Of an achievability question; None if it is undecided, or of another question.
    lower, upper : float or None
        Bounds on the value of a numerical question, turned so that more is better; None if no scheduler meets
        the bounds, or that is not known.
    shares : dict of int to Fraction
        How a scheduler mixes those of the points that meets the bounds.
    """

    search: ObjectiveSearch | None
    truth: bool | None = None
    lower: float | None = None
    upper: float | None = None
    shares: Shares = field(default_factory=dict)


def achievable(search: ObjectiveSearch, demands: Demands) -> Found:
    """Tell whether one scheduler meets all demands.

    Notes
    -----
    ``truth`` is None where the demands lie on the border as closely as bounds tell.
    """
    while True:
        if any(h.excess(demands) > 0 for h in search.half_spaces if _asks(h, demands)):  # lemma: outside
            return Found(search, truth=False)
        proposal = widest_margin(search.values, demands, search.scale())
        shares = _confirmed(search, proposal, demands)  # lemma: mixture
        if shares is not None:
            return Found(search, truth=True, shares=shares)
        if not search.solve(proposal.direction):
            # lemma: outside
            refused = any(h.excess(demands) > 0 for h in search.half_spaces if _asks(h, demands))
            return Found(search, truth=False if refused else None)


def _asks(half_space: HalfSpace, demands: Demands) -> bool:
    """Return whether a half-space is about demands alone."""
    # lemma: outside
    return all(d is not None or w == 0.0 for w, d in zip(half_space.weights, demands, strict=True))


def _confirmed(search: ObjectiveSearch, proposal: Proposal, demands: Demands) -> Shares | None:
    """Return a proposed mixture if it meets demands exactly."""
    shares = cleaned(proposal.shares)
    return shares if meets(mixed(search.values, shares), demands) else None  # lemma: mixture


def greatest_value(search: ObjectiveSearch, aim: int, demands: Demands) -> Found:
    """Return the greatest value of one objective under the demands on the others.

    Returns
    -------
    Found
        ``truth`` tells whether the demands can be met, None if that is not known.
    """
    met = achievable(search, demands) if any(d is not None for d in demands) else None
    if met is not None and not met.truth:
        return met
    while True:
        scale, values = search.scale(), search.values
        safe = cleaned(widest_margin(values, demands, scale).shares) if met is not None else {}
        if met is not None and not meets(mixed(values, safe), demands):  # lemma: mixture
            safe = met.shares
        proposal = best_value(values, demands, aim, scale)
        shares = safe if proposal is None else cleaned(proposal.shares)
        if met is not None and not meets(mixed(values, shares), demands):  # lemma: mixture
            shares = repaired(values, shares, safe, demands) or safe
        lower = rounded_down(mixed(values, shares)[aim])  # lemma: mixture
        upper = _least_upper(search, aim, demands)
        close = upper - lower <= search.epsilon * max(abs(lower), abs(upper))
        if close or proposal is None or not search.solve(proposal.direction):
            upper = _least_upper(search, aim, demands)
            return Found(search, True, lower, max(lower, upper), shares)


def _least_upper(search: ObjectiveSearch, aim: int, demands: Demands) -> float:
    """Return what the half-spaces leave at most of one objective under demands on the others."""
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
