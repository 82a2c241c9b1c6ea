"""Rewards gathered up to a number of steps or a time, and rewards at one moment ([Tealdi13] §2.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.choice_systems import after_steps, check_method, choice_operator, solve_choices
from hybrid.analysis.operator_values import Asked
from hybrid.analysis.rewards import not_negative, paid_choices, reward_units, rewards_of
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.analysis.systems import expected_place, is_constant, is_zero, solve_linear
from hybrid.analysis.transient import TransientAnalysis
from hybrid.base.arrays import extremes
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.rounding import Discount, scaled_bounds
from mtbdd.base.communicator import Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import enclosed_rewards, relative_units
from mtbdd.graph.prob01 import backward
from mtbdd.language.syntax import ModelType
from mtbdd.offset.states import StateIndex, index_states, states_from

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Expected rewards in all time, of which every step leaves a share.
#
# Their equation ``x = opt of (r + d P x)`` has one solution whatever the model's graph, for a step draws any
# two candidates nearer by the factor d (Puterman, Markov Decision Processes, section 6.2): any u that a step
# does not raise is an upper bound, and no state earns more than the greatest reward over 1 - d.


def discounted_rewards(a: Asked) -> StateValues:
    """Return the expected discounted reward, of an MDP the least or the greatest.

    The reward of the k-th step counts ``discount**k`` times, k from 0; optimal schedulers forget the past.
    Exact zeros where nothing can be earned.
    """
    model, structure, options, work = a.model, a.formula.place, a.options, a.work
    d = Discount.of(a.number(a.formula.discount))
    none = np.zeros(model.index.size)
    if not model.is_mdp:
        return a.scope.of_values(_on_chain(model, structure, d, options, work))
    earning = backward(model, model.manager.disjunction(paid_choices(model, structure)))
    unknown = index_states(model.manager, earning)
    if unknown.total == 0:
        return a.scope.of_values(StateValues.exact(none))
    check_method(options)
    most, earned = [0.0], rewards_of(model, structure)

    def gain(layer: int, rows: StateIndex) -> NDArray[np.float64]:
        own = earned(layer, rows)
        most.append(float(own.max(initial=0.0)))
        return own

    operator = choice_operator(model, unknown, gain, a.maximise, options, discount=d)
    greatest = model.communicator.greatest(max(most))
    found = solve_choices(operator, d.bound(greatest), options, work, "discounted rewards", unknown)
    if a.maker is not None:
        a.maker.policy(unknown, operator, found, None)
    found = scaled_bounds(found, reward_units(model, structure))  # lemma: entry-units
    return a.scope.of_values(found.spread(model.indicator(earning), none))


def _on_chain(
    model: SymbolicModel, structure: int, discount: Discount, options: CheckOptions, work: Work
) -> StateValues:
    """Solve the linear system of the states from which something can be earned."""
    rewards, error = enclosed_rewards(model, structure, model.index)
    none = np.zeros(model.index.size)
    earning = backward(model, states_from(model.manager, model.index, rewards != 0))
    maybe = index_states(model.manager, earning)
    if maybe.total == 0:
        return StateValues.exact(none)
    inside, alike = model.indicator(earning), model.communicator
    units = alike.greatest(relative_units(rewards, error))
    most = discount.bound(alike.greatest(float(np.abs(rewards).max(initial=0.0))), units)
    found = solve_linear(
        model, maybe, rewards[inside], most, options, work, "discounted rewards",
        units=units, discount=discount,
    )  # fmt: skip
    return found.on_host().spread(inside, none)


Vector = NDArray[np.float64]


def cumulative_rewards(a: Asked) -> StateValues:
    """Return the expected reward of the first steps, or up to a time.

    Transition rewards count for transitions made by then.
    """
    model, structure, time, options, work, scope = a.timed_reward()
    if model.is_mdp:
        found = _gathered_over_choices(model, structure, int(time), a.maximise, options, work)
        return scope.of_values(found)
    rewards, error = enclosed_rewards(model, structure, _every_state(model, options))

    def gathered(part: Vector) -> StateValues:
        if time == 0 or is_zero(model.communicator, part):
            return StateValues.exact(np.zeros(scope.index.size))
        if model.type is ModelType.CTMC:
            course = TransientAnalysis(model, model.index, None, options, work, scope.positions)
            return course.integral(part, float(time))
        earning = TransientAnalysis(model, model.index, part, options, work, scope.positions)
        return earning.after_steps(np.broadcast_to(np.float64(0.0), (part.size,)), int(time))

    return _by_sign(model.communicator, rewards, error, gathered)


def instantaneous_rewards(a: Asked) -> StateValues:
    """Return the expected state reward after some steps, or at a time.

    Transition rewards have no part in it.  Errors are those of `cumulative_rewards`.
    """
    model, structure, time, options, work, scope = a.timed_reward()
    if model.is_mdp:
        return scope.of_values(_later_over_choices(model, structure, int(time), a.maximise, options, work))
    rewards, error = enclosed_rewards(model, structure, _every_state(model, options), moves=False)

    def later(part: Vector) -> StateValues:
        if time == 0 or is_constant(model.communicator, part):
            return scope.among(StateValues.exact(part), model.index)
        evolution = TransientAnalysis(model, model.index, None, options, work, scope.positions)
        if evolution.continuous:
            return evolution.after_time(part, float(time))
        return evolution.after_steps(part, int(time))

    return _by_sign(model.communicator, rewards, error, later)


def _every_state(model: SymbolicModel, options: CheckOptions) -> StateIndex:
    """Return all states, with vectors where those of steps will probably be."""
    return model.index.at(expected_place(options, model.index.size))


def _gathered_over_choices(
    model: SymbolicModel, structure: int, steps: int, maximise: bool, options: CheckOptions, work: Work
) -> StateValues:
    """Go back step by step, the best choice taken in every state."""
    if steps == 0:
        return StateValues.exact(np.zeros(model.index.size))
    operator = choice_operator(model, model.index, rewards_of(model, structure), maximise, options)
    found = after_steps(operator, np.zeros(model.index.size), steps, work, model.index)
    return scaled_bounds(found, reward_units(model, structure))  # lemma: entry-units


def _later_over_choices(
    model: SymbolicModel, structure: int, steps: int, maximise: bool, options: CheckOptions, work: Work
) -> StateValues:
    """Go back step by step, the best choice taken in every state."""
    rewards, error = enclosed_rewards(model, structure, model.index, 0, moves=False)
    alike = model.communicator
    units = alike.greatest(relative_units(not_negative(rewards, alike), error))
    if steps == 0 or is_constant(alike, rewards):
        return scaled_bounds(StateValues.exact(rewards), units)  # lemma: entry-units
    operator = choice_operator(model, model.index, lambda layer, rows: np.zeros(rows.size), maximise, options)
    # lemma: entry-units
    return scaled_bounds(after_steps(operator, rewards, steps, work, model.index), units)


def _by_sign(
    communicator: Communicator, rewards: Vector, error: Vector | None, run: Callable[[Vector], StateValues]
) -> StateValues:
    """Apply a linear map to gains and losses apart: its bounds are for vectors without negative elements.

    `error` bounds the absolute errors of the rewards; None if they are exact.
    """
    units = communicator.greatest(relative_units(rewards, error))
    if not communicator.any(extremes(rewards)[0] < 0.0):
        return scaled_bounds(run(rewards), units)  # lemma: entry-units
    gains = scaled_bounds(run(np.maximum(rewards, 0.0)), units)  # lemma: entry-units
    losses = scaled_bounds(run(np.maximum(-rewards, 0.0)), units)  # lemma: entry-units
    # lemma: arithmetic
    return StateValues(
        gains.values - losses.values,
        np.nextafter(gains.lower - losses.upper, -np.inf),
        np.nextafter(gains.upper - losses.lower, np.inf),
    )
