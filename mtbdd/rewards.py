"""Reward structures as vectors: what a state earns a step (DTMC) or a time unit (CTMC)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbdd.faults import BuildError, format_state
from mtbdd.language.errors import Fault
from mtbdd.language.evaluate import evaluate, expression_variables
from mtbdd.language.syntax import Expression, RewardItem
from mtbdd.manager import Node
from mtbdd.matrix import SymbolicMatrix
from mtbdd.model import SymbolicModel
from mtbdd.partition import Partition
from mtbdd.states import StateIndex
from mtbdd.vectors import expand, expand_sum

__all__ = ["expression_values", "reward_rates"]

_SYMBOLIC_BITS = 12  # expressions over more bits take too many values to be worth a set each

Vector = NDArray[np.float64]


def reward_rates(model: SymbolicModel, structure: int, within: StateIndex) -> Vector:
    """Return the expected reward that each state earns a step or a time unit.

    State rewards plus, for every transition reward, its value times the probability or
    rate of the transitions that carry it.

    Parameters
    ----------
    model : SymbolicModel
    structure : int
        Position among the model's reward structures.
    within : StateIndex
        Subset of the reachable states.

    Returns
    -------
    ndarray of float64, shape (within.size,)

    Raises
    ------
    BuildError
        A reward of one of these states is not a finite number.

    Notes
    -----
    Time: O(n) for every item with a wide expression; items with few values are added as sets.
    """
    faults: list[Fault] = []
    total = np.zeros(within.size)
    parts: list[Partition] = []
    for item in model.source.rewards[structure].items:
        states = model.translator.states(item.guard) & within.states
        if states == model.manager.false:
            continue
        exits = [model.event_exits(e) for e in model.events if e.action == item.action]
        if len(model.encoding.bits_of(expression_variables(item.value))) > _SYMBOLIC_BITS:
            total += _wide(model, item, states, exits, within, faults)
            continue
        value = model.translator.partition(item.value, states)
        for number, where in value:
            if not abs(number) < float("inf"):
                faults.append(_fault(item, number, model.encoding.pick(where)))
        if faults:
            continue
        parts.extend(e.times(value) for e in exits) if item.is_transition else parts.append(value)
    if faults:
        raise BuildError(faults)
    total += expand_sum(parts, within)
    return total


def _wide(
    model: SymbolicModel,
    item: RewardItem,
    states: Node,
    exits: list[Partition],
    within: StateIndex,
    faults: list[Fault],
) -> Vector:
    """Evaluate one item state by state, with numpy."""
    inside = model.indicator(states, within)
    values = np.where(inside, expression_values(model, item.value, within), 0.0)
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        state = model.describe(wrong[:1], within)[0]
        faults.append(_fault(item, float(values[wrong[0]]), state))
        return np.zeros(within.size)
    return values * expand_sum(exits, within) if item.is_transition else values


def expression_values(model: SymbolicModel, expression: Expression, within: StateIndex) -> Vector:
    """Return a numeric expression's value in every state of a set, shape (within.size,).

    Time: O(n) for every variable that occurs.
    """
    environment = {}
    for name in sorted(expression_variables(expression)):
        variable = model.encoding.by_name[name]
        names = model.encoding.row_names(variable)
        numbers = {float(k): model.manager.cube(names, k) for k in range(1, variable.size)}
        stored = expand(SymbolicMatrix.from_partition(Partition(model.manager, numbers)), within)
        environment[name] = (
            stored.astype(bool) if variable.is_bool else stored.astype(np.int64) + variable.low
        )
    values = np.asarray(evaluate(expression, environment), dtype=np.float64)
    return np.broadcast_to(values, (within.size,))


def _fault(item: RewardItem, number: float, state: dict[str, bool | int]) -> Fault:
    return Fault(
        item.position, f"the reward is {number} in state {format_state(state)}, expected a finite number"
    )
