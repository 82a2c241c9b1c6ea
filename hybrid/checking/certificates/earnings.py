"""Rewards in exact numbers, as the sweep wants them: scaled like the rows."""

from __future__ import annotations

import numpy as np

from hybrid.checking.certificates.table import Places
from hybrid.checking.certificates.transitions import Transitions
from mtbdd.language.model_syntax import RewardStructure
from mtbdd.language.syntax import ModelType


def state_scale(transitions: Transitions) -> Places:
    """Return what a choice's equation is multiplied with: its total weight; 1 in a CTMC."""
    if transitions.kind is ModelType.CTMC:
        return transitions.states.table.full(transitions.state.size, 1)
    return transitions.total


def earnings(transitions: Transitions, structure: RewardStructure) -> Places:
    """Return what every choice earns, times its scale.

    In a CTMC the reward a unit of time; in a DTMC and an MDP the expected reward of a step, times the sum of
    the choice's weights.  A loop given to a deadlock carries no transition reward.

    Returns
    -------
    ndarray of int32, shape (choices,)
        Places in the table.
    """
    states, table = transitions.states, transitions.states.table
    scale = state_scale(transitions)
    result = table.full(scale.size, 0)
    for item in structure.items:
        rows = np.flatnonzero(states.truth(item.guard))
        if rows.size == 0:
            continue
        value = table.full(states.size, 0)
        value[rows] = states.places(item.value, rows)
        if not item.is_transition:
            earned = table.multiply(scale, value[transitions.state])
        elif not transitions.is_mdp:
            if item.action not in transitions.exits:
                continue
            earned = table.multiply(transitions.exits[item.action], value)
        else:
            action = -1 if item.action is None else transitions.actions.index(item.action)
            carries = transitions.action == action
            if action < 0:
                carries &= ~transitions.deadlocks[transitions.state]
            one = np.where(carries, np.int32(table.one), np.int32(table.zero))
            earned = table.multiply(table.multiply(scale, one), value[transitions.state])
        result = table.add(result, earned)
    return result
