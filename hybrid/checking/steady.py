"""Long-run averages: stationary distributions of bottom components, weighted by reaching them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybrid.checking.options import CheckOptions
from hybrid.checking.quantities import StateValues, Work
from hybrid.checking.systems import solve_stationary
from hybrid.checking.until import until_probabilities
from mtbdd.graph import bottom_components
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel
from mtbdd.rewards import reward_rates
from mtbdd.states import StateIndex, index_states

__all__ = ["steady_probabilities", "steady_rewards"]


def steady_probabilities(
    model: SymbolicModel, states: Node, options: CheckOptions, work: Work
) -> StateValues:
    """Return, for every state, the long-run probability of being in a set.

    Raises
    ------
    NotConvergedError
    """

    def average(component: Node, index: StateIndex) -> tuple[float, bool]:
        inside = component & states
        if inside == model.manager.false:
            return 0.0, True
        if inside == component:
            return 1.0, True
        distribution = solve_stationary(model, index, options, work, "steady-state probabilities")
        return float(distribution[model.indicator(inside, index)].sum()), index.size == 1

    return _over_components(model, average, options, work)


def steady_rewards(model: SymbolicModel, structure: int, options: CheckOptions, work: Work) -> StateValues:
    """Return, for every state, the long-run average of a reward structure.

    Raises
    ------
    NotConvergedError
    """

    def average(component: Node, index: StateIndex) -> tuple[float, bool]:
        rewards = reward_rates(model, structure, index)
        if (rewards == rewards[0]).all():
            return float(rewards[0]), True
        distribution = solve_stationary(model, index, options, work, "steady-state rewards")
        return float(distribution @ rewards), False

    return _over_components(model, average, options, work)


def _over_components(
    model: SymbolicModel,
    average: Callable[[Node, StateIndex], tuple[float, bool]],
    options: CheckOptions,
    work: Work,
) -> StateValues:
    """Weigh every bottom component's average by the probability of ending in it."""
    components = bottom_components(model)
    results = [average(c, index_states(model.manager, c)) for c in components]
    numbers = [value for value, _ in results]
    exact = all(sure for _, sure in results)
    if len(set(numbers)) == 1:
        return StateValues(
            np.full(model.n_states, numbers[0]), None if exact else np.zeros(model.n_states, dtype=np.bool_)
        )
    values = np.zeros(model.n_states)
    decided = np.full(model.n_states, exact)
    for component, number in zip(components, numbers, strict=True):
        reached = until_probabilities(model, model.reachable, component, options, work)
        values += number * reached.values
        if reached.exact is not None:
            decided &= reached.exact
    return StateValues(values, decided)
