"""Unbounded until: Prob0 and Prob1 on sets, a linear system for the rest ([Tealdi13] §2.3)."""

from __future__ import annotations

import numpy as np

from hybrid.analysis.systems import flow_into, solve_linear
from hybrid.operators.rounding import ratio_units, row_entries, widened
from hybrid.run.options import CheckOptions
from hybrid.run.state_values import StateValues
from hybrid.run.work import Work
from hybrid.solvers.enclosure import UNIT
from mtbdd.graph.prob01 import prob0, prob1
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel
from mtbdd.states import index_states

__all__ = ["next_probabilities", "until_probabilities"]


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
    known = model.indicator(one).astype(np.float64)
    maybe_states = model.reachable & ~zero & ~one
    if maybe_states == model.manager.false:
        return StateValues.exact(known)
    maybe = index_states(model.manager, maybe_states)
    b = flow_into(model, maybe, index_states(model.manager, one), options)
    found = solve_linear(model, maybe, b, 1.0, options, work, "until probabilities").within(0.0, 1.0)
    return found.spread(model.indicator(maybe_states), known)


def next_probabilities(model: SymbolicModel, target: Node, options: CheckOptions, work: Work) -> StateValues:
    """Return the probability that the next state lies in a set, from every state.

    Notes
    -----
    Two products.  Exact 0 and 1 where the graph decides, else with the bounds of its rounding errors.
    """
    flow = flow_into(model, model.index, index_states(model.manager, target), options, work=work)
    rest = model.reachable & ~target
    staying = flow_into(model, model.index, index_states(model.manager, rest), options, work=work)
    values = flow / (flow + staying)
    slack = (row_entries(model.transitions) + ratio_units(model.transitions) + 16) * UNIT
    undecided = (flow > 0) & (staying > 0)
    inside = values[undecided]
    found = StateValues(inside, *widened(inside, slack)).within(0.0, 1.0)
    return found.spread(undecided, np.where(flow > 0, 1.0, 0.0))
