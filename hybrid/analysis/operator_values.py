"""The operators P, S and R: which algorithm finds their values, and which optimum is meant on an MDP.

`P>=p` speaks of all schedulers, so that the least probability counts, and `P<=p` of the greatest one.
Algorithms are imported when they are asked for: an answer needs one of them, and all take longer to load than
a small model to solve.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeGuard

from hybrid.analysis.scope import Scope
from hybrid.errors import UnsupportedError
from hybrid.properties.path_operators import has_path
from hybrid.properties.tree import (
    ConditionalPath,
    Cumulative,
    Instantaneous,
    LongRun,
    Path,
    Probability,
    Reward,
    SteadyState,
)
from hybrid.run.options import CheckOptions
from hybrid.run.state_values import StateValues
from hybrid.run.work import Work
from mtbdd.language.syntax import Expression, Literal
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel

if TYPE_CHECKING:
    from hybrid.analysis.scheduler import SchedulerMaker


_REACHING = (
    "a scheduler is given for rewards until a formula holds (F and others) and for discounted ones; "
    "ask without one"
)


def operator_values(
    model: SymbolicModel,
    formula: Probability | Reward | SteadyState,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: Work,
    maker: SchedulerMaker | None = None,
    scope: Scope | None = None,
) -> StateValues:
    """Return the values of P, S, R or T, of an MDP the least or the greatest.

    Parameters
    ----------
    formula : Probability, Reward or SteadyState
        Resolved.
    states : callable
        Returns the states that satisfy a state formula.
    maker : SchedulerMaker, optional
        Given the choices of an optimal scheduler of an MDP.
    scope : Scope, optional
        The states whose values are returned; default every state.

    Raises
    ------
    UnsupportedError
        There is no algorithm for it.
    PropertyError
        A reward of an MDP is negative.
    NotConvergedError
    """
    scope = scope or Scope.every(model)
    refuse_long_run(model, formula)
    if isinstance(formula, SteadyState):
        from hybrid.analysis.long_run import steady_probabilities

        return scope.of_values(steady_probabilities(model, states(formula.states), options, work))
    if isinstance(formula, Probability) and isinstance(formula.path, ConditionalPath):
        from hybrid.analysis.conditional_probabilities import conditional_probabilities

        return scope.of_values(conditional_probabilities(model, formula.path, states, options, work))
    maximise = not model.is_mdp or maximises(formula)
    if isinstance(formula, Probability):
        from hybrid.analysis.path_formulas import path_probabilities

        return path_probabilities(model, formula.path, maximise, states, options, work, maker, scope)
    if formula.index is None:
        raise UnsupportedError("the model has no reward structure for this property")
    structure, target = formula.index, formula.target
    if isinstance(target, LongRun):
        from hybrid.analysis.long_run import steady_rewards

        return scope.of_values(steady_rewards(model, structure, options, work))
    if isinstance(target, Cumulative) and formula.discount is not None:
        from hybrid.analysis.discounted_rewards import discounted_rewards

        discount = _number(formula.discount)
        found = discounted_rewards(model, structure, discount, maximise, options, work, maker)
        return scope.of_values(found)
    if maker is not None and isinstance(target, (Cumulative, Instantaneous)):
        raise UnsupportedError(_REACHING)
    from hybrid.analysis.bounded_rewards import cumulative_rewards, instantaneous_rewards
    from hybrid.analysis.rewards import reachability_rewards, total_rewards

    if isinstance(target, Cumulative):
        if target.time is None:
            return total_rewards(model, structure, maximise, options, work, scope)
        return cumulative_rewards(model, structure, _time(target.time), maximise, options, work, scope)
    if isinstance(target, Instantaneous):
        return instantaneous_rewards(model, structure, _time(target.time), maximise, options, work, scope)
    if is_reached_set(target):
        reached = states(target.right)
        return reachability_rewards(model, structure, reached, maximise, options, work, maker, scope)
    from hybrid.analysis.cosafe_rewards import cosafe_rewards

    found = cosafe_rewards(model, structure, target, maximise, states, options, work, maker)
    return scope.of_values(found)


def is_reached_set(target: Expression) -> TypeGuard[Path]:
    """Return whether a reward is asked for until a set is reached: ``F states``, without a bound."""
    return (
        isinstance(target, Path)
        and target.operator == "F"
        and target.bound is None
        and not has_path(target.right)
    )


def refuse_long_run(model: SymbolicModel, formula: Probability | Reward | SteadyState) -> None:
    """Refuse what is asked of a decision process in the long run.

    Raises
    ------
    UnsupportedError
    """
    if not model.is_mdp:
        return
    if isinstance(formula, SteadyState):
        raise UnsupportedError(
            "S is not checked on an MDP by this version, nor LRA, which is the same: long-run probabilities "
            "depend on the scheduler"
        )
    if isinstance(formula, Reward) and isinstance(formula.target, LongRun):
        raise UnsupportedError(
            "R [ S ] is not checked on an MDP by this version, nor R [ LRA ], which is the same: long-run "
            "averages depend on the scheduler"
        )


def maximises(formula: Probability | Reward) -> bool:
    """Return whether an operator of an MDP asks for the greatest value.

    One without a bound says which; it would not have been resolved otherwise.
    """
    if formula.optimum is not None:
        return formula.optimum == "max"
    return formula.comparison in ("<", "<=")


def _time(expression: Expression) -> float:
    """Return a resolved time."""
    value = _number(expression)
    return value if isinstance(value, int) else float(value)


def _number(expression: Expression) -> float:
    """Return a resolved number, which remembers the one that the text means."""
    if not isinstance(expression, Literal):
        raise UnsupportedError("the time or the discount is not a constant")
    return expression.value
