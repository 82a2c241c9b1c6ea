"""`multi(...)` on an MDP, from the formula to what is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from hybrid.analysis.multi.endings import Endings, endings
from hybrid.analysis.multi.memory import objective_product
from hybrid.analysis.multi.objectives import Objective, objectives_of
from hybrid.analysis.multi.pareto import Curve, explore_curve
from hybrid.analysis.multi.queries import Found, ObjectiveSearch, achievable, greatest_value
from hybrid.analysis.multi.weighing import Weighing
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.base.errors import UnsupportedError
from hybrid.base.methods import ENCLOSING, advised
from hybrid.properties.tree import MultiObjective
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import Expression
from mtbdd.offset.states import index_states


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
