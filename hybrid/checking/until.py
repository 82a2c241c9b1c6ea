"""Unbounded until: Prob0 and Prob1 on sets, a linear system for the rest (thesis 003, section 2.3)."""

from __future__ import annotations

import numpy as np

from hybrid.checking.options import CheckOptions
from hybrid.checking.quantities import StateValues, Work
from hybrid.checking.systems import flow_into, solve_linear
from mtbdd.graph import prob0, prob1
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel
from mtbdd.states import index_states

__all__ = ["until_probabilities"]


def until_probabilities(
    model: SymbolicModel, safe: Node, target: Node, options: CheckOptions, work: Work
) -> StateValues:
    """Return the probability of ``safe U target`` from every state.

    Parameters
    ----------
    safe, target : Node
        Sets of reachable states.

    Returns
    -------
    StateValues
        Exact 0 and 1 where the graph decides.

    Raises
    ------
    NotConvergedError
    """
    zero = prob0(model, safe, target)
    one = prob1(model, safe, target, zero)
    values = model.indicator(one).astype(np.float64)
    maybe_states = model.reachable & ~zero & ~one
    if maybe_states == model.manager.false:
        return StateValues(values)
    maybe = index_states(model.manager, maybe_states)
    b = flow_into(model, maybe, index_states(model.manager, one), options)
    unknown = model.indicator(maybe_states)
    values[unknown] = solve_linear(model, maybe, b, options, work, "until probabilities")
    return StateValues(values, ~unknown)
