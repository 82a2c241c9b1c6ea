"""The operators P and R on MDPs: which optimum is meant, and which algorithm finds it.

`P>=p` speaks of all schedulers, so that the least probability counts, and `P<=p` of the greatest one.
"""

from __future__ import annotations

from collections.abc import Callable

from hybrid.errors import UnsupportedError
from hybrid.mdp.paths import optimal_probabilities
from hybrid.mdp.rewards import cumulative_rewards, instantaneous_rewards, reachability_rewards, total_rewards
from hybrid.mdp.scheduler import SchedulerMaker
from hybrid.properties.tree import Cumulative, Instantaneous, LongRun, Path, Probability, Reward, SteadyState
from hybrid.run.options import CheckOptions
from hybrid.run.state_values import StateValues
from hybrid.run.work import Work
from mtbdd.language.syntax import Expression, Literal
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel

__all__ = ["maximises", "optimal_values"]


def maximises(formula: Probability | Reward) -> bool:
    """Return whether an operator asks for the greatest value.

    Raises
    ------
    UnsupportedError
        It asks for a value without saying which one.
    """
    if formula.optimum is not None:
        return formula.optimum == "max"
    if formula.comparison is None:
        letter = "P" if isinstance(formula, Probability) else "R"
        raise UnsupportedError(
            f"{letter}=? has no single value on an MDP, which has one for every scheduler: "
            f"write {letter}min=? or {letter}max=?"
        )
    return formula.comparison in ("<", "<=")


def optimal_values(
    model: SymbolicModel,
    formula: Probability | Reward | SteadyState,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: Work,
    maker: SchedulerMaker | None = None,
) -> StateValues:
    """Return the least or greatest value of an operator from every state of an MDP.

    Parameters
    ----------
    formula : Probability, Reward or SteadyState
        Resolved.
    states : callable
        Returns the states that satisfy a state formula.
    maker : SchedulerMaker, optional
        Given the choices of an optimal scheduler.

    Raises
    ------
    UnsupportedError
        There is no algorithm for it.
    ValueError
        A reward is negative.
    NotConvergedError
    """
    if isinstance(formula, SteadyState):
        raise UnsupportedError(
            "S is not checked on an MDP by this version: its long-run probabilities depend on the scheduler"
        )
    maximise = maximises(formula)
    if isinstance(formula, Probability):
        return optimal_probabilities(model, formula.path, maximise, states, options, work, maker)
    if formula.index is None:
        raise UnsupportedError("the model has no reward structure for this property")
    structure, target = formula.index, formula.target
    if isinstance(target, LongRun):
        raise UnsupportedError(
            "R [ S ] is not checked on an MDP by this version: long-run averages depend on the scheduler"
        )
    if maker is not None and not isinstance(target, Path):
        raise UnsupportedError("a scheduler is given for rewards until a set is reached (F); ask without one")
    if isinstance(target, Cumulative):
        if target.time is None:
            return total_rewards(model, structure, maximise, options, work)
        return cumulative_rewards(model, structure, _steps(target.time), maximise, options, work)
    if isinstance(target, Instantaneous):
        return instantaneous_rewards(model, structure, _steps(target.time), maximise, options, work)
    if isinstance(target, Path) and target.operator == "F" and target.bound is None:
        return reachability_rewards(model, structure, states(target.right), maximise, options, work, maker)
    raise UnsupportedError(
        "rewards on an MDP are gathered until a set is reached (F without a bound), in some steps (C<=k), at "
        "a step (I=k) or in total (C); other paths are not checked by this version"
    )


def _steps(expression: Expression) -> int:
    """Return a resolved number of steps."""
    if not isinstance(expression, Literal):
        raise UnsupportedError("the number of steps is not a constant")
    return int(expression.value)
