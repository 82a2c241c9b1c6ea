"""Rewards gathered up to a number of steps or a time, and rewards at one moment ([Tealdi13] 2.3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.choice_rewards import choice_rewards, not_negative, reward_units
from hybrid.analysis.choice_systems import after_steps, choice_operator
from hybrid.analysis.constant_vectors import is_constant, is_zero
from hybrid.analysis.held_matrices import expected_place
from hybrid.analysis.operator_values import Asked
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.analysis.transient import TransientAnalysis
from hybrid.base.arrays import extremes
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.rounding import scaled_bounds
from mtbdd.base.communicator import Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import enclosed_rewards, relative_units
from mtbdd.language.syntax import ModelType
from mtbdd.offset.states import StateIndex

Vector = NDArray[np.float64]


def cumulative_rewards(a: Asked) -> StateValues:
    """Return the expected reward of the first steps, or up to a time.

    Transition rewards count for transitions made by then.

    Raises
    ------
    PropertyError
        A reward of an MDP is negative.
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
    operator = choice_operator(
        model,
        model.index,
        [layer.enabled for layer in model.layers],
        lambda layer, rows: choice_rewards(model, structure, layer, rows),
        maximise,
        None,
        options,
    )
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
    operator = choice_operator(
        model,
        model.index,
        [layer.enabled for layer in model.layers],
        lambda layer, rows: np.zeros(rows.size),
        maximise,
        None,
        options,
    )
    # lemma: entry-units
    return scaled_bounds(after_steps(operator, rewards, steps, work, model.index), units)


def _by_sign(
    communicator: Communicator, rewards: Vector, error: Vector | None, run: Callable[[Vector], StateValues]
) -> StateValues:
    """Apply a linear map to gains and losses apart: its bounds are for vectors without negative elements.

    Parameters
    ----------
    error : ndarray of float64, shape as rewards, or None
        Bounds on the absolute errors of the rewards; None if they are exact.
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
