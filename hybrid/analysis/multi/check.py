"""`multi(...)` on an MDP, from the formula to what is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.multi.memory import Endings, endings, objective_product
from hybrid.analysis.multi.objectives import Objective, objectives_of
from hybrid.analysis.multi.queries import (
    Found,
    HalfSpace,
    ObjectiveSearch,
    Proposal,
    achievable,
    cleaned,
    greatest_value,
    mixed,
    widest_margin,
)
from hybrid.analysis.multi.weighing import Weighing
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.base.check_options import ENCLOSING, advised
from hybrid.base.directed_rounding import rounded_up
from hybrid.base.errors import UnsupportedError
from hybrid.properties.tree import MultiObjective
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import Expression
from mtbdd.offset.states import index_states

# Pareto curves: points and half-spaces until the two are close everywhere.
#
# The half-spaces leave a polyhedron above the mixtures of points.  What lies farthest above the mixtures is
# one of its corners; the direction in which they fall short there is solved next.

Vector = NDArray[np.float64]
Corner = tuple[Fraction, ...]


@dataclass(frozen=True)
class Curve:
    """How well a curve is known.

    Attributes
    ----------
    corners : tuple of tuple of Fraction
        Of the half-spaces; nothing beyond them is achievable.
    distances : tuple of float
        By objective how far at most a mixture of points lies below any corner.
    asked, reached : float
        Distances in parts of each objective's range over the points: the one to stop at, and the greatest one
        that is left; greater than `asked` where no further sum tells more.
    certified : bool
        Whether the corners were found in rational numbers, as those of two objectives are.
    """

    corners: tuple[Corner, ...]
    distances: tuple[float, ...]
    asked: float
    reached: float
    certified: bool


def explore_curve(search: ObjectiveSearch, precision: float) -> Curve:
    """Solve weighted sums until corners and points are close, or no sum tells more.

    Parameters
    ----------
    search : ObjectiveSearch
        That has begun.
    precision : float
        The distance to stop at, in parts of each objective's range.

    Raises
    ------
    NotConvergedError

    Notes
    -----
    Time: a weighted sum a round; of a smooth curve of two objectives about 1 / sqrt(precision).  Linear
    programs of as many variables as there are points, about one a corner.
    """
    settled: set[Corner] = set()
    while True:
        scale = search.scale()
        corners = corners_of(search, scale)
        ranked = [(widest_margin(search.values, c, scale), c) for c in corners if c not in settled]
        ranked = [(p, c) for p, c in ranked if -p.value > precision]
        if not ranked:
            return _curve(search, scale, corners, precision)
        proposal, corner = min(ranked, key=lambda entry: entry[0].value)
        if not search.solve(proposal.direction):
            settled.add(corner)


def corners_of(search: ObjectiveSearch, scale: Vector) -> list[Corner]:
    """Return the corners of what half-spaces leave: for two objectives exactly, for more in doubles."""
    if len(search.objectives) == 2:
        return _corners_of_two(search.half_spaces)
    return _corners_of_many(search.half_spaces, search.values, scale)


def _corners_of_two(half_spaces: Sequence[HalfSpace]) -> list[Corner]:
    """Return the corners from the greatest first value to the greatest second one."""
    tightest: dict[Fraction, tuple[Fraction, Fraction, Fraction]] = {}
    for half_space in half_spaces:
        a, b = map(Fraction, half_space.weights)
        a, b, c = a / (a + b), b / (a + b), Fraction(half_space.most) / (a + b)
        if a not in tightest or c < tightest[a][2]:  # lemma: corners
            tightest[a] = (a, b, c)
    kept: list[tuple[Fraction, Fraction, Fraction]] = []
    for line in sorted(tightest.values(), reverse=True):
        while len(kept) > 1:
            x, y = _crossing(kept[-2], kept[-1])
            if line[0] * x + line[1] * y < line[2]:  # lemma: corners
                break
            kept.pop()
        kept.append(line)
    return [_crossing(first, second) for first, second in zip(kept, kept[1:], strict=False)]


def _crossing(
    first: tuple[Fraction, Fraction, Fraction], second: tuple[Fraction, Fraction, Fraction]
) -> tuple[Fraction, Fraction]:
    """Return where two lines ``a x + b y = c`` cross."""
    (a, b, c), (d, e, f) = first, second
    determinant = a * e - b * d
    return (c * e - b * f) / determinant, (a * f - c * d) / determinant


def _corners_of_many(
    half_spaces: Sequence[HalfSpace], values: Sequence[Sequence[float]], scale: Vector
) -> list[Corner]:
    """Return the corners in any dimension, in doubles, by Qhull."""
    from scipy.spatial import HalfspaceIntersection

    lower = np.array(values) / scale
    floor = lower.min(axis=0) - 3.0
    rows = [np.append(np.array(h.weights) * scale, -h.most) for h in half_spaces]
    rows = [row / np.abs(row[:-1]).sum() for row in rows]
    rows += [np.append(-np.eye(len(scale))[i], floor[i]) for i in range(len(scale))]
    inside = lower.min(axis=0) - 1.0
    found = HalfspaceIntersection(np.array(rows), inside, qhull_options="QJ").intersections
    found = found[np.isfinite(found).all(axis=1)]
    real = found[(found > floor + 0.5).all(axis=1)]
    unique = np.unique(np.round(real, 12), axis=0) * scale
    return [tuple(map(Fraction, corner)) for corner in unique.tolist()]


def _curve(search: ObjectiveSearch, scale: Vector, corners: Sequence[Corner], precision: float) -> Curve:
    """Return how far below the corners mixtures of points lie, in rational numbers."""
    values = search.values
    greatest = [Fraction(0)] * len(scale)
    for corner in corners:
        proposal: Proposal = widest_margin(values, corner, scale)
        near = mixed(values, cleaned(proposal.shares))
        greatest = [max(g, c - v) for g, c, v in zip(greatest, corner, near, strict=True)]  # lemma: corners
    distances = tuple(rounded_up(g) for g in greatest)  # lemma: corners
    parts = [g / Fraction(size) for g, size in zip(greatest, scale.tolist(), strict=True)]
    # lemma: corners
    return Curve(tuple(corners), distances, precision, rounded_up(max(parts)), len(scale) == 2)


@dataclass(frozen=True, eq=False)
class MultiFound:
    """What is found of several objectives.

    Attributes
    ----------
    objectives : list of Objective
    found : Found
    ends : Endings or None
        None if under every scheduler some least reward is infinite.
    curve : Curve or None
        Where several values are asked for.
    """

    objectives: list[Objective]
    found: Found
    ends: Endings | None = None
    curve: Curve | None = None


def multi_objective(
    model: SymbolicModel,
    formula: MultiObjective,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: Work,
) -> MultiFound:
    """Answer `multi(...)` in the initial state.

    Parameters
    ----------
    formula : MultiObjective
        Resolved.
    states : callable
        Returns the states that satisfy a state formula.

    Raises
    ------
    UnsupportedError
        The model is a chain or has several initial states; an objective or method that is not offered.
    PropertyError
        A greatest reward is infinite, or a reward negative.
    NotConvergedError
    """
    if not model.is_mdp:
        raise UnsupportedError(
            "multi(...) needs an MDP: a chain has nothing to choose; ask for each objective by itself"
        )
    if index_states(model.manager, model.initial).total != 1:
        raise UnsupportedError("multi(...) is about one initial state, and the model has several")
    if options.bounding_method() is None:
        raise UnsupportedError(
            f"multi: the method {options.method} gives no bounds, which the search needs: choose "
            f"{advised(name for name in ENCLOSING if name != 'auto')}, or leave the method out"
        )
    objectives = objectives_of(formula)
    demands: list[Fraction | None] = [objective.demand for objective in objectives]
    ends = endings(objective_product(model, objectives, states, options))
    aims = [i for i, demand in enumerate(demands) if demand is None]
    if ends is None:
        return MultiFound(objectives, Found(None, truth=False))
    search = ObjectiveSearch(Weighing(ends, options, work), objectives, options.criterion.epsilon)
    search.begin()
    if not aims:
        return MultiFound(objectives, achievable(search, demands), ends)
    if len(aims) == 1:
        return MultiFound(objectives, greatest_value(search, aims[0], demands), ends)
    return MultiFound(objectives, Found(search), ends, explore_curve(search, options.pareto_epsilon))
