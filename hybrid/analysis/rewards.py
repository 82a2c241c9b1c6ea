"""Expected rewards until a set is reached, and in total."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.systems import solve_linear
from hybrid.run.options import CheckOptions
from hybrid.run.state_values import StateValues
from hybrid.run.work import Work
from mtbdd.graph.prob01 import backward, prob0, prob1
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel
from mtbdd.rewards import enclosed_rewards, relative_units, reward_rates
from mtbdd.rewards import state_rewards as own_rewards
from mtbdd.states import index_states, states_from

__all__ = ["reachability_rewards", "state_rewards", "total_rewards"]

Vector = NDArray[np.float64]


def reachability_rewards(
    model: SymbolicModel, structure: int, target: Node, options: CheckOptions, work: Work
) -> StateValues:
    """Return the expected reward earned before a set is reached, from every state.

    Infinite where the set is not reached almost surely; zero inside it.  Not a number where it is infinite
    and rewards below zero may be earned: then it need not add up to anything.

    Raises
    ------
    NotConvergedError
    """
    zero = prob0(model, model.reachable, target)
    sure = prob1(model, model.reachable, target, zero)
    known = np.where(model.indicator(sure), 0.0, np.inf)
    if sure != model.reachable:
        losing = reward_rates(model, structure, model.index) < 0
        if losing.any():
            loses = backward(model, states_from(model.manager, model.index, losing) & ~target)
            known[model.indicator(loses & ~sure)] = np.nan
    maybe_states = sure & ~target
    if maybe_states == model.manager.false:
        return StateValues.exact(known)
    maybe = index_states(model.manager, maybe_states)
    rewards, error = enclosed_rewards(model, structure, maybe)
    if not rewards.any():
        return StateValues.exact(known)
    units = relative_units(rewards, error)
    found = solve_linear(model, maybe, rewards, None, options, work, "reachability rewards", units=units)
    return found.spread(model.indicator(maybe_states), known)


def total_rewards(model: SymbolicModel, structure: int, options: CheckOptions, work: Work) -> StateValues:
    """Return the expected reward earned in all time, from every state.

    It is earned before the states from which nothing more can be earned, and infinite where these
    are not reached almost surely; not a number where rewards below zero make that senseless.

    Raises
    ------
    NotConvergedError
    """
    rewards = reward_rates(model, structure, model.index)
    earning = states_from(model.manager, model.index, rewards != 0)
    if earning == model.manager.false:
        return StateValues.exact(np.zeros(model.n_states))
    over = model.reachable & ~backward(model, earning)
    return reachability_rewards(model, structure, over, options, work)


def state_rewards(model: SymbolicModel, structure: int) -> Vector:
    """Return the state rewards alone, shape (n_states,): what counts at one moment.

    They are off by at most `mtbdd.rewards.state_reward_error`.

    Raises
    ------
    BuildError
        A reward is not a finite number, or rewards of both signs cancel so far that it is not known whether
        anything is left.
    """
    return own_rewards(model, structure, model.index)
