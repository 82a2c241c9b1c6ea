"""Expected rewards until a set is reached, and in total."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.choice_rewards import (
    choice_rewards,
    greatest_totals,
    reward_operator,
    reward_system,
    reward_units,
    zero_reward_mecs,
)
from hybrid.analysis.choice_systems import check_method, choice_operator, solve_choices
from hybrid.analysis.constant_vectors import is_zero
from hybrid.analysis.held_matrices import expected_place, made_again
from hybrid.analysis.operator_values import Asked
from hybrid.analysis.precomputation import end_components
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.analysis.scope import Scope
from hybrid.analysis.systems import solve_linear
from hybrid.base.arrays import to_host
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.layer_choices import group_states, leaving_choices
from hybrid.matrix.operators.rounding import scaled_bounds
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import enclosed_rewards, relative_units, reward_rates
from mtbdd.diagrams.manager import Node
from mtbdd.graph.prob01 import backward, prob0, prob1
from mtbdd.offset.masks import is_any
from mtbdd.offset.states import index_states, states_from

if TYPE_CHECKING:
    from hybrid.analysis.scheduler import SchedulerMaker

Vector = NDArray[np.float64]


def reachability_rewards(
    model: SymbolicModel,
    structure: int,
    target: Node,
    maximise: bool,
    options: CheckOptions,
    work: Work,
    maker: SchedulerMaker | None = None,
    scope: Scope | None = None,
) -> StateValues:
    """Return the expected reward earned before a set is reached, of an MDP the least or the greatest.

    Zero inside the set.  Infinite where it is not reached almost surely: by some scheduler of an MDP
    (greatest), by every one (least).  Of a chain not a number where it is infinite and rewards below zero may
    be earned: then it need not add up to anything.

    Parameters
    ----------
    maker : SchedulerMaker, optional
        Given the choices of an optimal scheduler.
    scope : Scope, optional
        The states whose values are returned; default every state.

    Raises
    ------
    PropertyError
        A reward of an MDP is negative.
    NotConvergedError
    UnsupportedError
        The method has no meaning for choices.
    """
    scope = scope or Scope.every(model)
    if not model.is_mdp:
        return _on_chain(model, structure, target, options, work, scope)
    system = reward_system(model, structure, target, maximise)
    known = np.where(scope.indicator(system.finite), 0.0, np.inf)
    if maker is not None and maximise:
        maker.missing(target, system.finite)
    if not scope.meets(system.unknown.states) and (maker is None or system.unknown.total == 0):
        return StateValues.exact(known)
    check_method(options)
    operator = reward_operator(model, structure, system, maximise, options)
    found = solve_choices(operator, None, options, work, "reachability rewards", system.unknown)
    if maker is not None:
        maker.policy(system.unknown, operator, found, system.components)
    # lemma: entry-units
    found = scaled_bounds(scope.among(found, system.unknown), reward_units(model, structure))
    return found.spread(scope.indicator(system.unknown.states), known)


def _on_chain(
    model: SymbolicModel, structure: int, target: Node, options: CheckOptions, work: Work, scope: Scope
) -> StateValues:
    """Solve the linear system of the states that reach the set almost surely."""
    zero = prob0(model, model.reachable, target)
    sure = prob1(model, model.reachable, target, zero)
    known = np.where(scope.indicator(sure), 0.0, np.inf)
    if sure != model.reachable:
        every = model.index.at(expected_place(options, model.index.size))
        losing = reward_rates(model, structure, every) < 0
        if model.communicator.any(is_any(losing)):
            own = states_from(model.manager, model.index, to_host(losing)) & ~target
            loses = backward(model, own, model.reachable & ~target)
            known[scope.indicator(loses & ~sure)] = np.nan
    maybe_states = sure & ~target
    if not scope.meets(maybe_states):
        return StateValues.exact(known)
    maybe = index_states(model.manager, maybe_states)
    expected = maybe.at(expected_place(options, maybe.size))
    rewards, error = enclosed_rewards(model, structure, expected)
    if is_zero(model.communicator, rewards):
        return StateValues.exact(known)
    units = model.communicator.greatest(relative_units(rewards, error))
    earned = made_again(rewards, expected.place, lambda there: enclosed_rewards(model, structure, there)[0])
    del rewards, error
    solved = solve_linear(model, maybe, earned, None, options, work, "reachability rewards", units=units)
    return scope.among(solved, maybe).spread(scope.indicator(maybe_states), known)


def rewards_until(a: Asked) -> StateValues:
    """Return the expected reward before a set is reached, as `reachability_rewards` does."""
    target = a.states(a.formula.target.right)
    return reachability_rewards(
        a.model, a.formula.place, target, a.maximise, a.options, a.work, a.maker, a.scope
    )


def total_rewards(a: Asked) -> StateValues:
    """Return the expected reward earned in all time, of an MDP the least or the greatest.

    Notes
    -----
    Of a chain it is earned before the states from which nothing more can be earned, and infinite where these
    are not reached almost surely; not a number where rewards below zero make that senseless.

    The greatest is infinite where an end component with a reward can be reached; in all other end
    components nothing is earned, and a scheduler may leave them or stay: each is made one state with the
    choice to stop.  The least is finite where a scheduler surely reaches an end component whose choices are
    free, and is what it costs to get there.

    Raises
    ------
    PropertyError
        A reward of an MDP is negative.
    NotConvergedError
    UnsupportedError
        The method has no meaning for choices.
    """
    model, structure, options, work, scope = a.model, a.formula.place, a.options, a.work, a.scope
    if not model.is_mdp:
        return _total_on_chain(model, structure, options, work, scope)
    if not a.maximise:
        target = zero_reward_mecs(model, structure)
        return reachability_rewards(model, structure, target, False, options, work, scope=scope)
    infinite, unknown_states = greatest_totals(model, structure)
    known = np.where(scope.indicator(infinite), np.inf, 0.0)
    if not scope.meets(unknown_states):
        return StateValues.exact(known)
    unknown = index_states(model.manager, unknown_states)
    check_method(options)
    components = end_components(model, unknown_states)
    stop = np.where(model.indicator(components.states, unknown), 0.0, -np.inf)
    operator = choice_operator(
        model,
        unknown,
        leaving_choices(model, [layer.enabled for layer in model.layers], components),
        lambda layer, rows: choice_rewards(model, structure, layer, rows),
        True,
        group_states(model, unknown, components),
        options,
        stop=stop,
    )
    found = solve_choices(operator, None, options, work, "total rewards", unknown)
    found = scaled_bounds(scope.among(found, unknown), reward_units(model, structure))  # lemma: entry-units
    return found.spread(scope.indicator(unknown_states), known)


def _total_on_chain(
    model: SymbolicModel, structure: int, options: CheckOptions, work: Work, scope: Scope
) -> StateValues:
    """Stop where nothing more can be earned."""
    rewards = reward_rates(model, structure, model.index)
    earning = states_from(model.manager, model.index, rewards != 0)
    if earning == model.manager.false:
        return StateValues.exact(np.zeros(scope.index.size))
    over = model.reachable & ~backward(model, earning)
    return _on_chain(model, structure, over, options, work, scope)
