"""Expected rewards until a set is reached."""

from __future__ import annotations

import numpy as np

from hybrid.checking.options import CheckOptions
from hybrid.checking.quantities import StateValues, Work
from hybrid.checking.systems import solve_linear
from mtbdd.graph import prob0, prob1
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel
from mtbdd.rewards import reward_rates
from mtbdd.states import index_states

__all__ = ["reachability_rewards"]


def reachability_rewards(
    model: SymbolicModel, structure: int, target: Node, options: CheckOptions, work: Work
) -> StateValues:
    """Return the expected reward earned before a set is reached, from every state.

    Infinite where the set is not reached almost surely; zero inside it.

    Raises
    ------
    NotConvergedError
    """
    zero = prob0(model, model.reachable, target)
    sure = prob1(model, model.reachable, target, zero)
    values = np.where(model.indicator(sure), 0.0, np.inf)
    maybe_states = sure & ~target
    if maybe_states == model.manager.false:
        return StateValues(values)
    maybe = index_states(model.manager, maybe_states)
    rewards = reward_rates(model, structure, maybe)
    unknown = model.indicator(maybe_states)
    if not rewards.any():
        return StateValues(values)
    values[unknown] = solve_linear(model, maybe, rewards, options, work, "reachability rewards")
    return StateValues(values, ~unknown)
