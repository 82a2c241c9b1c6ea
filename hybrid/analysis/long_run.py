"""Long-run averages: the gain of every bottom component, weighted by the probability of ending in it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.constant_vectors import is_constant
from hybrid.analysis.held_matrices import expected_place, injected, made_again
from hybrid.analysis.operator_values import Asked
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.analysis.systems import solve_gain, solve_linear, solve_stationary
from hybrid.base.arrays import extremes, inner
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.rounding import step_slack
from hybrid.matrix.space.bounded_solution import NEGLIGIBLE, TINY, underflow_of
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import enclosed_rewards
from mtbdd.diagrams.manager import Node
from mtbdd.graph.prob01 import bottom_components
from mtbdd.offset.row_entries import row_entries
from mtbdd.offset.states import StateIndex, index_states

Vector = NDArray[np.float64]
Gains = tuple[float, float, float]  # value, lower, upper


def steady_probabilities(a: Asked) -> StateValues:
    """Return, for every state, the long-run probability of being in a set.

    Raises
    ------
    NotConvergedError
    """
    model, states, options, work = a.model, a.states(a.formula.states), a.options, a.work

    def gains(component: Node, index: StateIndex) -> Gains:
        inside = component & states
        if inside == model.manager.false:
            return 0.0, 0.0, 0.0
        if inside == component:
            return 1.0, 1.0, 1.0
        what = "steady-state probabilities"

        def membership(there: StateIndex) -> Vector:
            return model.indicator(inside, there).astype(np.float64)

        return _average(model, index, membership, options, work, what)

    return a.scope.of_values(_over_components(model, gains, options, work))


def steady_rewards(a: Asked) -> StateValues:
    """Return, for every state, the long-run average of a reward structure.

    Raises
    ------
    NotConvergedError
    """
    model, structure, options, work = a.model, a.formula.place, a.options, a.work

    def gains(component: Node, index: StateIndex) -> Gains:
        expected = index.at(expected_place(options, index.size))
        rewards, error = enclosed_rewards(model, structure, expected)
        # Only the greatest error counts: the vector is let go.
        own = 0.0 if error is None else max(0.0, extremes(error)[1])  # lemma: gain, entry-units
        del error
        if is_constant(model.communicator, rewards):
            found = (model.communicator.greatest(extremes(rewards)[1]),) * 3
        else:
            earned = made_again(
                rewards, expected.place, lambda there: enclosed_rewards(model, structure, there)[0]
            )
            del rewards
            found = _average(model, index, earned, options, work, "steady-state rewards")
        off = model.communicator.greatest(own)
        if off == 0.0:
            return found
        # An average is off by what rewards are off by at most.
        # lemma: gain, entry-units
        return found[0], math.nextafter(found[1] - off, -math.inf), math.nextafter(found[2] + off, math.inf)

    return a.scope.of_values(_over_components(model, gains, options, work))


def _average(
    model: SymbolicModel,
    index: StateIndex,
    rewards: Callable[[StateIndex], Vector],
    options: CheckOptions,
    work: Work,
    what: str,
) -> Gains:
    """Return one component's average, without bounds (NaN) if the method chosen gives none.

    The rewards are asked for where the vectors of the solution lie.
    """
    method = options.average_reward()
    if method is not None:
        return solve_gain(model, index, rewards, method, options, work, what)
    distribution, there = solve_stationary(model, index, options, work, what, beside=True)
    earned = inner(distribution, rewards(there))
    return float(model.communicator.total([earned])[0]), np.nan, np.nan


def _over_components(
    model: SymbolicModel,
    gains: Callable[[Node, StateIndex], Gains],
    options: CheckOptions,
    work: Work,
) -> StateValues:
    """Weigh every bottom component's gain by the probability of ending in it.

    The gain of the component reached in the end is the reward for entering it, so that one system
    serves all components.
    """
    components = bottom_components(model)
    found = [gains(c, index_states(model.manager, c)) for c in components]
    if len(set(found)) == 1 or len(found) == 1:
        return StateValues.constant(*found[0], model.index.size)
    inside = np.zeros((3, model.index.size))
    for component, numbers in zip(components, found, strict=True):
        inside[:, model.indicator(component)] = np.array(numbers)[:, None]
    bottom = model.manager.disjunction(components)
    maybe_states = model.reachable & ~bottom
    alike = model.communicator
    exact = alike.all((inside[1] == inside[2]).all())
    if maybe_states == model.manager.false:
        return StateValues.exact(inside[0]) if exact else StateValues(*inside)
    maybe, entered = index_states(model.manager, maybe_states), index_states(model.manager, bottom)
    member, unknown = model.indicator(bottom), model.indicator(maybe_states)
    flow = _Flow(model, maybe, entered, options)
    upper_bound = alike.greatest(float(np.abs(inside[0]).max(initial=0.0)))

    def solved(numbers: Vector, upward: bool) -> StateValues:
        # Gains and losses are parted before they meet in a state, where they would cancel.
        b = flow.of(_apart_from_zero(np.maximum(numbers[member], 0.0), upward), upward)
        losses = _apart_from_zero(np.maximum(-numbers[member], 0.0), not upward)
        lost = flow.of(losses, not upward) if alike.any(losses.any()) else None
        what = "probabilities of bottom components"
        return solve_linear(model, maybe, b, upper_bound, options, work, what, lost).on_host()

    if options.bounding_method() is None or (exact and flow.is_far(np.abs(inside[0][member]))):
        once = solved(inside[0], True)
        inside[:, unknown] = once.values, once.lower, once.upper
    else:
        # lemma: classes, underflow
        upper_bound = max(alike.greatest(float(np.abs(inside).max(initial=0.0))), TINY)
        low, high = solved(inside[1], False), solved(inside[2], True)
        with np.errstate(invalid="ignore"):
            middle = 0.5 * (low.lower + high.upper)
        # Between infinite bounds there is no middle, but an estimate.
        inside[:, unknown] = np.where(np.isfinite(middle), middle, low.values), low.lower, high.upper
    return StateValues(*inside)


class _Flow:
    """Rates from some states into others, weighted, and what underflow may cost them."""

    def __init__(self, model: SymbolicModel, rows: StateIndex, columns: StateIndex, options: CheckOptions):
        self._matrix = injected(model.submatrix(rows, columns), options)
        # lemma: classes, underflow
        slack = step_slack(self._matrix, row_entries(model.transitions))
        self._alike = model.communicator
        self._lost = underflow_of(np.maximum(model.exit_rates(rows), 1.0), slack, self._alike)

    def is_far(self, weights: Vector) -> bool:
        """Whether underflow counts as rounding in weights, not negative, and in the sums that they make."""
        # lemma: classes, underflow
        if self._alike.any(((weights > 0.0) & (weights < TINY)).any()):
            return False
        flow = self._matrix.multiply(weights)
        # lemma: classes, underflow
        small = flow <= NEGLIGIBLE * self._lost
        if not self._alike.any(small.any()):
            return True
        return not self._alike.any((self._ways(weights)[small] > 0.0).any())

    def of(self, weights: Vector, upward: bool) -> Vector:
        """Return the weighted rates, never too small if `upward`, and otherwise never too great.

        But for roundings: underflow alone is directed.
        """
        flow = self._matrix.multiply(weights)
        # lemma: classes, underflow
        small = flow <= NEGLIGIBLE * self._lost
        if not self._alike.any(small.any()):
            return flow
        # Ways into states with positive weights have no products that underflow.
        small &= self._ways(weights) > 0.0
        flow[small] += self._lost if upward else -self._lost  # lemma: classes
        return np.maximum(flow, 0.0, out=flow)

    def _ways(self, weights: Vector) -> Vector:
        return self._matrix.multiply((weights > 0.0).astype(np.float64))


def _apart_from_zero(numbers: Vector, upward: bool) -> Vector:
    """Return numbers, not negative, with those next to underflow made greater, or zero: rounded one way."""
    # lemma: classes, underflow
    return np.where((numbers > 0.0) & (numbers < TINY), TINY if upward else 0.0, numbers)
