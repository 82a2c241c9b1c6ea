"""Optimal probabilities of unbounded until, of windows of steps, and of one step.

Unbounded (Forejt et al., "Automated verification techniques for probabilistic systems", 2011, section 4).
States where the answer is 0 or 1 are found on the graph.  In the others, for the minimum, no scheduler can
stay for ever.  For the maximum some may; their end components are made one state each (Haddad and Monmege,
TCS 2018; here by vectors: choices that stay inside are disabled, and members share the best value).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.bounded_until import Window, through
from hybrid.analysis.precomputation import decided_states, end_components, prob0a, prob0e
from hybrid.mdp.scheduler import SchedulerMaker
from hybrid.mdp.systems import after_steps, check_method, choice_operator, solve_choices
from hybrid.operators.offers import choice_slack, flow_into, group_states, leaving_choices
from hybrid.operators.rounding import widened
from hybrid.run.options import CheckOptions
from hybrid.run.state_values import StateValues
from hybrid.run.work import Work
from hybrid.solvers.choice_operator import ChoiceOperator, Groups
from mtbdd.graph.components import EndComponents
from mtbdd.graph.prob01 import backward
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel
from mtbdd.states import StateIndex, index_states, states_from

__all__ = [
    "UntilSystem",
    "next_probabilities",
    "until_operator",
    "until_probabilities",
    "until_system",
    "window_probabilities",
]

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class UntilSystem:
    """What is left of an unbounded until once the graph has decided what it can.

    Attributes
    ----------
    zero, one : Node
        States with probability 0 and 1.
    unknown : StateIndex
        The others.
    components : EndComponents or None
        Where a scheduler could stay among them; None for a minimum, where it cannot.
    """

    zero: Node
    one: Node
    unknown: StateIndex
    components: EndComponents | None


def until_system(model: SymbolicModel, safe: Node, target: Node, maximise: bool) -> UntilSystem:
    """Return what the graph decides of ``safe U target`` and what it leaves."""
    zero, one = decided_states(model, safe, target, maximise)
    unknown = model.reachable & ~zero & ~one
    components = None
    if maximise and unknown != model.manager.false:
        components = end_components(model, unknown)
    return UntilSystem(zero, one, index_states(model.manager, unknown), components)


def until_operator(
    model: SymbolicModel, system: UntilSystem, maximise: bool, options: CheckOptions
) -> ChoiceOperator:
    """Return the operator of an until system with unknown states."""
    allowed = [layer.enabled for layer in model.layers]
    groups: Groups | None = None
    if system.components is not None:
        allowed = leaving_choices(model, allowed, system.components)
        groups = group_states(model, system.unknown, system.components)
    one = index_states(model.manager, system.one)
    return choice_operator(
        model,
        system.unknown,
        allowed,
        lambda layer, rows: flow_into(model, layer, rows, one, options),
        maximise,
        groups,
        options,
    )


def until_probabilities(
    model: SymbolicModel,
    safe: Node,
    target: Node,
    maximise: bool,
    options: CheckOptions,
    work: Work,
    maker: SchedulerMaker | None = None,
) -> StateValues:
    """Return the least or greatest probability of ``safe U target`` from every state.

    Parameters
    ----------
    safe, target : Node
        Sets of reachable states.
    maker : SchedulerMaker, optional
        Given the choices of an optimal scheduler.

    Returns
    -------
    StateValues
        Exact 0 and 1 where the graph decides.

    Raises
    ------
    NotConvergedError
    UnsupportedError
        The method has no meaning for choices.
    """
    system = until_system(model, safe, target, maximise)
    known = model.indicator(system.one).astype(np.float64)
    if maker is not None:
        maker.until(safe, target, system.zero, system.one, maximise)
    if system.unknown.size == 0:
        return StateValues.exact(known)
    check_method(options)
    operator = until_operator(model, system, maximise, options)
    found = solve_choices(operator, 1.0, options, work, "until probabilities").within(0.0, 1.0)
    if maker is not None:
        maker.policy(system.unknown, operator, found, system.components)
    return found.spread(model.indicator(system.unknown.states), known)


# ------------------------------------------------------------------ steps


def next_probabilities(
    model: SymbolicModel, target: Node, maximise: bool, options: CheckOptions, work: Work
) -> StateValues:
    """Return the least or greatest probability that the next state lies in a set, from every state.

    Notes
    -----
    Two products a layer, on the host.  Exact 0 and 1 where the graph decides, else with the bounds of their
    rounding errors.
    """
    # Whether some choice (greatest) or every one (least) enters the set at all, or surely.
    join = np.logical_or if maximise else np.logical_and
    values = np.full(model.n_states, 0.0 if maximise else 1.0)
    may, must = (np.full(model.n_states, not maximise) for _ in range(2))
    inside, outside = (index_states(model.manager, s) for s in (target, model.reachable & ~target))
    for layer, own in enumerate(model.layers):
        rows = index_states(model.manager, own.enabled)
        place = np.flatnonzero(model.indicator(own.enabled))
        flow = flow_into(model, layer, rows, inside, options, work=work)
        staying = flow_into(model, layer, rows, outside, options, work=work)
        may[place], must[place] = join(may[place], flow > 0.0), join(must[place], staying == 0.0)
        better = np.maximum if maximise else np.minimum
        values[place] = better(values[place], np.minimum(flow, 1.0))
    undecided = may & ~must
    own_values = values[undecided]
    found = StateValues(own_values, *widened(own_values, choice_slack(model))).within(0.0, 1.0)
    return found.spread(undecided, must.astype(np.float64))


def window_probabilities(
    model: SymbolicModel,
    safe: Node,
    target: Node,
    window: Window,
    maximise: bool,
    options: CheckOptions,
    work: Work,
) -> StateValues:
    """Return the least or greatest probability of ``safe U target`` with the target reached in a window."""
    if window.upper is None:
        later = until_probabilities(model, safe, target, maximise, options, work)
    elif window.upper < window.lower:
        return StateValues.exact(np.zeros(model.n_states))
    else:
        later = _within(model, safe, target, int(window.upper - window.lower), maximise, options, work)
    if window.lower == 0:
        return later
    possible = later.upper > 0 if not bool(np.isnan(later.upper).any()) else later.values > 0
    positive = states_from(model.manager, model.index, np.asarray(possible))
    first_states = backward(model, positive, safe) & safe
    first = index_states(model.manager, first_states)
    nowhere = np.zeros(model.n_states)
    if first.size == 0:
        return StateValues.exact(nowhere)
    inside = model.indicator(first_states)
    allowed = [layer.enabled for layer in model.layers]
    steps = int(window.lower)
    rest = index_states(model.manager, model.reachable & ~first_states)

    def run(full: Vector) -> StateValues:
        # The last of the steps may enter states that are not safe; those before it may not.
        beyond = np.ascontiguousarray(full[~inside])
        entering = choice_operator(
            model,
            first,
            allowed,
            lambda layer, rows: flow_into(model, layer, rows, rest, options, beyond),
            maximise,
            None,
            options,
        )
        return after_steps(entering, np.ascontiguousarray(full[inside]), 1, work)

    found = through(run, later)
    if steps > 1:
        moving = choice_operator(
            model, first, allowed, lambda layer, rows: np.zeros(rows.size), maximise, None, options
        )
        found = through(lambda x: after_steps(moving, x, steps - 1, work), found)
    return _probabilities(found).spread(inside, nowhere)


def _within(
    model: SymbolicModel,
    safe: Node,
    target: Node,
    steps: int,
    maximise: bool,
    options: CheckOptions,
    work: Work,
) -> StateValues:
    """Return the probability of ``safe U target`` within some steps."""
    known = model.indicator(target).astype(np.float64)
    zero = prob0a(model, safe, target) if maximise else prob0e(model, safe, target)
    unknown_states = model.reachable & ~target & ~zero
    if steps == 0 or unknown_states == model.manager.false:
        return StateValues.exact(known)
    unknown, reached = (index_states(model.manager, s) for s in (unknown_states, target))
    operator = choice_operator(
        model,
        unknown,
        [layer.enabled for layer in model.layers],
        lambda layer, rows: flow_into(model, layer, rows, reached, options),
        maximise,
        None,
        options,
    )
    found = after_steps(operator, np.zeros(unknown.size), steps, work)
    return _probabilities(found).spread(model.indicator(unknown_states), known)


def _probabilities(found: StateValues) -> StateValues:
    """Return values cut to at most 1."""
    values, lower, upper = (np.minimum(part, 1.0) for part in (found.values, found.lower, found.upper))
    return StateValues(values, lower, upper, found.open_lower)
