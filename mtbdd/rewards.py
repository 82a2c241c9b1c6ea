"""Reward structures as vectors: what a state earns a step (DTMC), a time unit (CTMC) or a choice (MDP)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbdd.faults import BuildError, format_state
from mtbdd.language.errors import Fault
from mtbdd.language.evaluate import evaluate, expression_variables
from mtbdd.language.syntax import Expression, LabelReference, RewardItem
from mtbdd.language.walk import walk
from mtbdd.manager import Node
from mtbdd.matrix import SymbolicMatrix
from mtbdd.model import SymbolicModel
from mtbdd.partition import Partition
from mtbdd.states import StateIndex
from mtbdd.vectors import expand, expand_sum

__all__ = ["action_rewards", "expression_values", "reward_rates", "state_rewards"]

_SYMBOLIC_BITS = 12  # expressions over more bits take too many values to be worth a set each

Vector = NDArray[np.float64]


def reward_rates(
    model: SymbolicModel, structure: int, within: StateIndex, layer: int | None = None
) -> Vector:
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
    layer : int, optional
        In an MDP, the layer of choices whose transition rewards count: those of a state's choice
        in it, nothing where the layer has no choice.

    Returns
    -------
    ndarray of float64, shape (within.size,)

    Raises
    ------
    BuildError
        A reward of one of these states is not a finite number.
    ValueError
        No layer is given for an MDP.

    Notes
    -----
    Time: O(n) for every item with a wide expression; items with few values are added as sets.
    """
    return _rewards(model, structure, within, True, _carriers(model, layer))


def state_rewards(model: SymbolicModel, structure: int, within: StateIndex) -> Vector:
    """Return the state rewards alone, shape (within.size,).

    Raises
    ------
    BuildError
        A reward of one of these states is not a finite number.
    """
    return _rewards(model, structure, within, True, [])


def action_rewards(
    model: SymbolicModel, structure: int, within: StateIndex, layer: int | None = None
) -> Vector:
    """Return the transition rewards alone, expected over a step or a time unit, shape (within.size,).

    In an MDP the reward of the choice that a layer holds, zero where it holds none.

    Raises
    ------
    BuildError
        A reward of one of these states is not a finite number.
    ValueError
        No layer is given for an MDP.
    """
    return _rewards(model, structure, within, False, _carriers(model, layer))


def _carriers(model: SymbolicModel, layer: int | None) -> list[tuple[str | None, Partition]]:
    """Return what transition rewards are multiplied with: an action and how often it is taken, by state.

    A choice of an MDP is taken once, whatever its probabilities add up to after rounding.
    """
    parts = model.layer(layer).parts
    if not model.is_mdp:
        return [(e.action, model.event_exits(e)) for e in model.events]
    return [(p.action, Partition(model.manager, {1: p.states})) for p in parts if p.event is not None]


def _rewards(
    model: SymbolicModel,
    structure: int,
    within: StateIndex,
    with_states: bool,
    carriers: list[tuple[str | None, Partition]],
) -> Vector:
    """Add up the items of a reward structure, transition rewards over the given carriers."""
    faults: list[Fault] = []
    total = np.zeros(within.size)
    parts: list[Partition] = []
    for item in model.source.rewards[structure].items:
        exits = [often for action, often in carriers if action == item.action]
        if not (exits if item.is_transition else with_states):
            continue
        model.translator.require_value(item.guard, within.states)
        states = model.translator.states(item.guard) & within.states
        if item.is_transition:
            states = states & model.manager.disjunction(e.support for e in exits)
        if states == model.manager.false:
            continue
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
    for node in walk(expression):
        if isinstance(node, LabelReference):
            states = model.translator.labels[node.name]
            environment[f'"{node.name}"'] = model.indicator(states, within)
    values = np.asarray(evaluate(expression, environment), dtype=np.float64)
    return np.broadcast_to(values, (within.size,))


def _fault(item: RewardItem, number: float, state: dict[str, bool | int]) -> Fault:
    return Fault(
        item.position, f"the reward is {number} in state {format_state(state)}, expected a finite number"
    )
