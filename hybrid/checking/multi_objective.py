"""Answers about several objectives: a truth, a value or a curve, with the points behind them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hybrid.analysis.multi.check import (
    MultiObjectiveSolution,
    PointSchedulers,
    multi_objective,
    point_schedulers,
)
from hybrid.analysis.multi.memory import Objective
from hybrid.analysis.multi.queries import HalfSpace, SearchResult
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.base.directed_rounding import rounded_up
from hybrid.base.errors import NotExactError, PropertyError, UnknownError
from hybrid.checking.filters import Summary
from hybrid.properties.tree import MultiObjective
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import Expression

_INFEASIBLE = "multi: no scheduler meets the bounds, so that there is no value"


@dataclass(frozen=True, eq=False)
class MultiObjectiveResult:
    """The answer about several objectives, with the schedulers of its points if they were requested.

    Attributes
    ----------
    found : MultiObjectiveSolution
        Value or curve, with the points and half-spaces of the search; `record` has them as plain JSON values.
    schedulers : PointSchedulers or None
        A scheduler for every point.
    """

    found: MultiObjectiveSolution
    schedulers: PointSchedulers | None

    def __repr__(self) -> str:
        search, texts = self.found.found.search, [o.text for o in self.found.objectives]
        points = 0 if search is None else len(search.points)
        return f"<MultiObjectiveResult {', '.join(texts)}: {points} points>"

    @property
    def is_curve(self) -> bool:
        """Whether several values were requested."""
        return self.found.curve is not None

    def record(self) -> dict[str, Any]:
        """Return points and half-spaces as plain JSON values.

        `objectives`: their texts; `maximise`: whether more is better.  `points`: for each scheduler bounds on
        the value of every objective, the weights that led to it, and its share in the mixture that is the
        answer, None where there is none.  `half_spaces`: weights of the objectives whose sum no scheduler
        brings above `most`.  Of a curve `corners`, beyond which nothing can be achieved, `distances` of
        mixtures of points below them by objective, `distances_kind`, and, in parts of the objectives' ranges,
        the precision that was requested and the one reached, `pareto_epsilon` and `pareto_distance`.
        """
        found, objectives = self.found.found, self.found.objectives
        record: dict[str, Any] = {
            "objectives": [o.text for o in objectives],
            "maximise": [o.maximise for o in objectives],
            "points": [],
            "half_spaces": [],
        }
        search = found.search
        if search is not None:
            for i, (point, weights) in enumerate(zip(search.points, search.directions, strict=True)):
                bounds = [
                    o.shown(low, high)
                    for o, low, high in zip(objectives, point.lower, point.upper, strict=True)
                ]
                share = float(found.shares.get(i, 0)) if found.shares else None
                record["points"].append(
                    {
                        "lower": [b[0] for b in bounds],
                        "upper": [b[1] for b in bounds],
                        "weights": _turned(objectives, weights),
                        "share": share,
                    }
                )
            record["half_spaces"] = [_half_space(objectives, h) for h in search.half_spaces]
        curve = self.found.curve
        if curve is not None:
            record["corners"] = [
                [_turned_back(o, value) for o, value in zip(objectives, corner, strict=True)]
                for corner in curve.corners
            ]
            record["distances"] = list(curve.distances)
            record["pareto_epsilon"], record["pareto_distance"] = curve.asked, curve.reached
            record["distances_kind"] = "certified" if curve.certified else "estimate"
        return record


def multi_objective_result(
    model: SymbolicModel,
    formula: MultiObjective,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: SolveStatistics,
    schedulers: bool,
) -> tuple[Summary, MultiObjectiveResult]:
    """Answer `multi(...)`.

    Raises PropertyError where no scheduler meets the bounds beside a value that is requested, or a reward is
    infinite, UnknownError where the bounds lie on the border of what can be achieved, and what
    `hybrid.analysis.multi.check.multi_objective` raises.
    """
    found = multi_objective(model, formula, states, options, work)
    inner, objectives = found.found, found.objectives
    asked = [o for o in objectives if o.bound is None]
    if inner.search is None and asked:
        return _endless(model, formula, states, options, work, found)
    if inner.truth is None and not asked:
        inner = _decided_exactly(model, found, work) or inner
        found = replace(found, found=inner)
    if inner.truth is None and len(asked) < 2:
        raise UnknownError(
            "multi: the bounds lie on the border of what schedulers achieve, as closely as can be told: "
            "change one of them a little, or lower epsilon"
        )
    if inner.truth is False and asked:
        raise PropertyError(_INFEASIBLE)
    made = point_schedulers(model, found.ends, inner) if schedulers else None
    if not asked:
        summary = Summary(inner.truth, inner.truth, inner.truth)
    elif len(asked) == 1:
        assert inner.lower is not None and inner.upper is not None
        lower, upper = asked[0].shown(inner.lower, inner.upper)
        summary = Summary(0.5 * (lower + upper), lower, upper)
    else:
        summary = Summary(None, None, None)
    return summary, MultiObjectiveResult(found, made)


def _endless(
    model: SymbolicModel,
    formula: MultiObjective,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: SolveStatistics,
    found: MultiObjectiveSolution,
) -> tuple[Summary, MultiObjectiveResult]:
    """Answer a query where a minimised reward is infinite under every scheduler.

    A least reward by itself is infinite then, if the bounds can be met beside it; else, and where several
    values are requested, PropertyError is raised.
    """
    objectives = found.objectives
    (aim, *others) = (i for i, o in enumerate(objectives) if o.bound is None)
    if others:
        raise PropertyError(
            "multi: under every scheduler some reward that is to be small is infinite, so that there is no "
            "curve: ask for one value, and give the others bounds"
        )
    asked = objectives[aim]
    is_cost = asked.structure is not None and asked.steps is None and not asked.maximise
    rest = [i for i in range(len(objectives)) if i != aim]
    feasible = is_cost
    if is_cost and rest:
        bounds = replace(
            formula,
            objectives=tuple(formula.objectives[i] for i in rest),
            texts=tuple(formula.texts[i] for i in rest),
        )
        feasible = bool(multi_objective_result(model, bounds, states, options, work, False)[0].value)
    if not feasible:
        raise PropertyError(_INFEASIBLE)
    infinite = SearchResult(None, True, -math.inf, -math.inf)
    return Summary(math.inf, math.inf, math.inf), MultiObjectiveResult(replace(found, found=infinite), None)


def _decided_exactly(
    model: SymbolicModel, found: MultiObjectiveSolution, work: SolveStatistics
) -> SearchResult | None:
    """Return that bounds on the border are met, if schedulers evaluated in rational numbers meet them."""
    from hybrid.analysis.exact.objectives import exactly_achievable

    search, ends = found.found.search, found.ends
    if search is None or ends is None or ends.homes or model.communicator.size > 1:
        return None
    try:
        exact = exactly_achievable(model, ends, search, [o.demand for o in found.objectives])
    except NotExactError:
        return None
    if exact is not None:
        work.method = "exact"
    return exact


def _turned(objectives: list[Objective], weights: tuple[float, ...]) -> list[float]:
    """Return weights for the objectives themselves: less is better where the weight is negative."""
    return [w if o.maximise else 0.0 - w for o, w in zip(objectives, weights, strict=True)]


def _turned_back(objective: Objective, value: Fraction) -> float:
    """Return the value of an objective from that of its maximised form, to nearest."""
    if objective.maximise:
        return float(value)
    return float(1 - value) if objective.path is not None else float(-value)


def _half_space(objectives: list[Objective], half_space: HalfSpace) -> dict[str, Any]:
    """Return a half-space in terms of the objectives; its bound is rounded up."""
    most = Fraction(half_space.most)
    for objective, weight in zip(objectives, half_space.weights, strict=True):
        if objective.path is not None and not objective.maximise:
            most -= Fraction(weight)
    return {"weights": _turned(objectives, half_space.weights), "most": rounded_up(most)}  # lemma: half-space
