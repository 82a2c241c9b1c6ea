"""Unbounded until, and one step: the graph decides 0 and 1, equations the rest ([Tealdi13] §2.3).

Over choices (Forejt et al., "Automated verification techniques for probabilistic systems", 2011, section
4): for the minimum, no scheduler can stay for ever in the states that are left.  For the maximum some may;
their end components are made one state each (Haddad and Monmege, TCS 2018; here by vectors: choices that
stay inside are disabled, and members share the best value).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.choice_systems import check_method, choice_flow, choice_operator, solve_choices
from hybrid.analysis.operator_values import Asked
from hybrid.analysis.precomputation import decided_states, end_components
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.analysis.scope import Scope
from hybrid.analysis.systems import flow_into, solve_linear
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.layer_choices import choice_slack, group_states, leaving_choices
from hybrid.matrix.operators.rounding import ratio_units, widened
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.choice_operator import ChoiceOperator, Quotient
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.graph.components import EndComponents
from mtbdd.graph.prob01 import prob0, prob1
from mtbdd.offset.offset import SCALED_UNITS, row_entries
from mtbdd.offset.states import StateIndex, index_states

if TYPE_CHECKING:
    from hybrid.analysis.scheduler import SchedulerMaker

Vector = NDArray[np.float64]


def until_probabilities(
    model: SymbolicModel,
    safe: Node,
    target: Node,
    maximise: bool,
    options: CheckOptions,
    work: Work,
    maker: SchedulerMaker | None = None,
    scope: Scope | None = None,
) -> StateValues:
    """Return the probability of ``safe U target``, of an MDP the least or the greatest.

    Parameters
    ----------
    safe, target : Node
        Sets of reachable states.
    maker : SchedulerMaker, optional
        Given the choices of an optimal scheduler.
    scope : Scope, optional
        The states whose values are returned; default every state.

    Returns
    -------
    StateValues
        On the host.  Exact 0 and 1 where the graph decides.

    Raises
    ------
    NotConvergedError
    UnsupportedError
        The method has no meaning for choices.
    """
    scope = scope or Scope.every(model)
    if not model.is_mdp:
        return _on_chain(model, safe, target, options, work, scope)
    system = until_system(model, safe, target, maximise)
    known = scope.indicator(system.one).astype(np.float64)
    if maker is not None:
        maker.until(safe, target, system.zero, system.one, maximise)
    if not scope.meets(system.unknown.states) and (maker is None or system.unknown.total == 0):
        return StateValues.exact(known)
    check_method(options)
    operator = until_operator(model, system, maximise, options)
    solved = solve_choices(operator, 1.0, options, work, "until probabilities", system.unknown)
    if maker is not None:
        maker.policy(system.unknown, operator, solved.within(0.0, 1.0), system.components)
    found = scope.among(solved, system.unknown).within(0.0, 1.0)
    return found.spread(scope.indicator(system.unknown.states), known)


def _on_chain(
    model: SymbolicModel, safe: Node, target: Node, options: CheckOptions, work: Work, scope: Scope
) -> StateValues:
    """Solve the linear system of the states that the graph does not decide."""
    zero = prob0(model, safe, target)
    one = prob1(model, safe, target, zero)
    known = scope.indicator(one).astype(np.float64)
    maybe_states = model.reachable & ~zero & ~one
    if not scope.meets(maybe_states):
        return StateValues.exact(known)
    maybe = index_states(model.manager, maybe_states)
    sure = index_states(model.manager, one)

    def entering(there: StateIndex) -> Vector:
        return flow_into(model, there, sure, options)

    solved = solve_linear(model, maybe, entering, 1.0, options, work, "until probabilities")
    found = scope.among(solved, maybe).within(0.0, 1.0)
    return found.spread(scope.indicator(maybe_states), known)


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
    groups: Quotient | None = None
    if system.components is not None:
        allowed = leaving_choices(model, allowed, system.components)
        groups = group_states(model, system.unknown, system.components)
    one = index_states(model.manager, system.one)
    return choice_operator(
        model,
        system.unknown,
        allowed,
        lambda layer, rows: choice_flow(model, layer, rows, one, options),
        maximise,
        groups,
        options,
    )


# ------------------------------------------------------------------ one step


def unbounded_probabilities(a: Asked) -> StateValues:
    """Return the probability of a path operator without a bound."""
    return a.as_until(
        lambda safe, target, maximise: until_probabilities(
            a.model, safe, target, maximise, a.options, a.work, a.maker, a.scope
        )
    )


def next_probabilities(a: Asked) -> StateValues:
    """Return the probability that the next state lies in a set, of an MDP the least or the greatest.

    Notes
    -----
    Two products a layer, those of an MDP on the host.  Exact 0 and 1 where the graph decides, else with the
    bounds of their rounding errors.
    """
    model, target, options, work = a.model, a.states(a.path.right), a.options, a.work
    if not model.is_mdp:
        return a.scope.of_values(_next_on_chain(model, target, options, work))
    # Whether some choice (greatest) or every one (least) enters the set at all, or surely.
    join = np.logical_or if a.maximise else np.logical_and
    values = np.full(model.index.size, 0.0 if a.maximise else 1.0)
    may, must = (np.full(model.index.size, not a.maximise) for _ in range(2))
    inside, outside = (index_states(model.manager, s) for s in (target, model.reachable & ~target))
    for layer, own in enumerate(model.layers):
        rows = index_states(model.manager, own.enabled)
        place = np.flatnonzero(model.indicator(own.enabled))
        flow = choice_flow(model, layer, rows, inside, options, work=work)
        staying = choice_flow(model, layer, rows, outside, options, work=work)
        may[place], must[place] = join(may[place], flow > 0.0), join(must[place], staying == 0.0)
        better = np.maximum if a.maximise else np.minimum
        values[place] = better(values[place], np.minimum(flow, 1.0))
    work.products += 2
    undecided = may & ~must
    own_values = values[undecided]
    # lemma: rounding
    found = StateValues(own_values, *widened(own_values, choice_slack(model))).within(0.0, 1.0)
    return a.scope.of_values(found.spread(undecided, must.astype(np.float64)))


def _next_on_chain(model: SymbolicModel, target: Node, options: CheckOptions, work: Work) -> StateValues:
    """Compare the rates into the set and out of it."""
    flow = flow_into(model, model.index, index_states(model.manager, target), options, work=work)
    rest = model.reachable & ~target
    staying = flow_into(model, model.index, index_states(model.manager, rest), options, work=work)
    values = flow / (flow + staying)
    # Both flows are added up from shared blocks.
    units = ratio_units(model.transitions) + SCALED_UNITS + 8  # lemma: rounding
    slack = (row_entries(model.transitions) + units) * UNIT  # lemma: rounding
    undecided = (flow > 0) & (staying > 0)  # lemma: graph
    inside = values[undecided]
    found = StateValues(inside, *widened(inside, slack)).within(0.0, 1.0)  # lemma: rounding
    return found.spread(undecided, np.where(flow > 0, 1.0, 0.0))
