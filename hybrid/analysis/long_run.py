"""Long-run averages: the gain of every bottom component, weighted by the probability of ending in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.operator_values import OperatorQuery
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.systems import (
    build_operator,
    expected_place,
    is_constant,
    leaving_rates,
    recompute_on,
    solve_gain,
    solve_linear,
    solve_stationary,
)
from hybrid.base.arrays import extremes, inner
from hybrid.base.errors import NotConvergedError, OptionError, UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.rounding import step_slack
from hybrid.matrix.space.base import Status
from hybrid.matrix.space.bounded_solution import NEGLIGIBLE, TINY, middle_of, underflow_of
from hybrid.matrix.space.host import space_of
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import enclosed_rewards
from mtbdd.diagrams.manager import Node
from mtbdd.graph.prob01 import bottom_components
from mtbdd.language.syntax import ModelType
from mtbdd.offset.offset import row_entries
from mtbdd.offset.states import StateIndex, index_states

# Transient and steady-state distributions of a chain, started in its initial states.
#
# Distributions are followed forwards, with the transposed matrix.  They are estimates: what is known for
# certain about a set of states is answered by P or S, with bounds.

Vector = NDArray[np.float64]

_ABOVE = 1.02  # q over the greatest exit rate, so that no chain is periodic
_CHECK_EVERY = 32  # steps between questions whether the distribution has settled


def checked_times(given: float | Sequence[float] | NDArray[Any], name: str) -> Vector:
    """Return one time or several, shape () or (k,), finite and none negative; messages call them `name`."""
    try:
        found = np.asarray(given)
        times = found.astype(np.float64) if found.dtype.kind in "iufO" else np.array(np.nan)
    except (TypeError, ValueError):
        times = np.array(np.nan)
    if times.ndim > 1 or not (np.isfinite(times) & (times >= 0)).all():
        wanted = "a time or a sequence of times, finite, none negative"
        raise OptionError(f"{name}: expected {wanted}; got {given!r}")
    return times


def transient_distribution(
    model: SymbolicModel,
    time: float | Sequence[float] | NDArray[Any],
    options: CheckOptions,
    work: SolveStatistics | None = None,
) -> Vector:
    """Return the probability of being in each state after a time, shape (n,), in index order.

    After several times a row each, shape (k, n). The model is a chain; where it has several initial states it
    starts in each with the same probability. Times of a DTMC are whole numbers of steps; epsilon is the share
    of the distribution that may be left out.

    A CTMC by uniformisation. Steps are left out once they change no element by more than what they may. Time:
    one product a step, the steps of the last time serving all, and O(sqrt(q t)) more vectors to add for each
    time, q being the uniformisation rate.
    """
    from hybrid.solvers.poisson import poisson_weights

    _refuse_choices(model, "the distribution after a time")
    continuous = model.type is ModelType.CTMC
    times = checked_times(time, "time")
    if not continuous and (times != np.floor(times)).any():
        raise OptionError(f"time: expected numbers of steps, whole, not negative; got {time!r}")
    if options.method != "auto":
        raise OptionError(
            "method: a distribution after a time comes from steps or uniformisation, which have no methods "
            f"to choose from: leave {options.method} out"
        )
    work = work or SolveStatistics()
    start = _initial(model)
    matrix = build_operator(
        model.submatrix(model.index, model.index, diagonal=not continuous).transpose(), options
    )
    space = space_of(matrix)
    if continuous:
        rates = leaving_rates(model, model.index, options).rates
        rate = _ABOVE * float(rates.max(initial=0.0))
        if rate == 0.0 or not times.any():
            return np.broadcast_to(start, (*times.shape, start.size)).copy()
        steps, divisor = space.system(rates, None).uniformised(rate), None
        found = [poisson_weights(rate * float(t)) for t in times.flat]
        windows = [(poisson.left, poisson.weights) for poisson in found]
    else:
        divisor = model.exit_rates(model.index)
        steps = space.system(divisor, None).relaxation()
        windows = [(int(t), np.ones(1)) for t in times.flat]
    space.reserve(4 + len(windows), start.size)
    # Rows are divided by what they add up to: the iterate is the distribution divided by that, too.
    pair = space.vector(start if divisor is None else start / divisor), space.xp.empty(start.size)
    sums, made = [space.xp.zeros(start.size) for _ in windows], 0
    last = max((first + weights.size - 1 for first, weights in windows), default=0)
    while True:
        ahead = _CHECK_EVERY - made % _CHECK_EVERY
        for (first, weights), result in zip(windows, sums, strict=True):
            if first <= made < first + weights.size:
                space.add_scaled(float(weights[made - first]), pair[made % 2], result)
            if made < first + weights.size - 1:
                ahead = min(ahead, max(first - made, 1))
        if made == last:
            break
        steps.sweep(pair, made, ahead)
        made += ahead
        if made % _CHECK_EVERY == 0:
            change, _ = space.read(steps.changes)
            if change * (last - made) <= options.criterion.epsilon / start.size:
                for (first, weights), result in zip(windows, sums, strict=True):
                    left = float(weights[max(made - first, 0) :].sum())
                    space.add_scaled(left, pair[made % 2], result)
                break
    work.note(
        "uniformisation" if continuous else "steps", matrix, made, 0.0, 8 * (4 + len(sums)) * start.size
    )
    work.products += made
    rows: Vector = np.empty((len(sums), start.size))
    for row, result in zip(rows, sums, strict=True):
        row[:] = space.to_host(result)
    return (rows if divisor is None else rows * divisor).reshape(*times.shape, start.size)


def steady_distribution(
    model: SymbolicModel, options: CheckOptions, work: SolveStatistics | None = None
) -> Vector:
    """Return the long-run probability of each state of a chain, shape (n,), in index order.

    Of one that is periodic, the share of time spent in each state; where it has several initial states it
    starts in each with the same probability. The stationary distribution of every bottom component is weighed
    with the probability of ending in it, which comes from one system for all components: how often each state
    outside of them is visited.
    """
    _refuse_choices(model, "the long-run distribution")
    work = work or SolveStatistics()
    start = _initial(model)
    components = bottom_components(model)
    bottom = model.manager.disjunction(components)
    entered = _entered(model, start, index_states(model.manager, bottom), options, work)
    ends = np.zeros(start.size)
    ends[model.indicator(bottom)] = entered
    result = np.zeros(start.size)
    for component in components:
        inside = model.indicator(component)
        weight = float(ends[inside].sum())
        if weight > 0.0:
            what = "steady-state probabilities"
            found, _ = solve_stationary(model, index_states(model.manager, component), options, work, what)
            result[inside] = weight * found
    return result


def _entered(
    model: SymbolicModel, start: Vector, bottom: StateIndex, options: CheckOptions, work: SolveStatistics
) -> Vector:
    """Return the probability of entering the bottom components by each of their states."""
    manager = model.manager
    inside = model.indicator(bottom.states)
    if bottom.size == model.n_states:
        return start
    outside = index_states(manager, model.reachable & ~bottom.states)
    matrix = build_operator(model.submatrix(outside, outside, diagonal=False).transpose(), options)
    diagonal = leaving_rates(model, outside, options).rates
    solver = options.solver(steady=False)
    found = solver.solve(matrix, diagonal, start[~inside], np.zeros(outside.size), work.following(outside))
    work.note(solver.name, matrix, found.iterations, found.seconds, 8 * solver.vectors * outside.size)
    work.accept("probabilities of bottom components", found)
    flow = build_operator(model.submatrix(outside, bottom).transpose(), options)
    entered: Vector = start[inside] + flow.multiply(np.ascontiguousarray(found.values))
    total = float(entered.sum())
    if not math.isfinite(total) or total <= 0.0:
        what = "probabilities of bottom components"
        raise NotConvergedError(what, Status.DIVERGED, found.iterations, found.difference)
    return entered / total


def _initial(model: SymbolicModel) -> Vector:
    """Return the distribution over the initial states, shape (n,)."""
    inside = model.indicator(model.initial)
    return inside / float(np.count_nonzero(inside))


def _refuse_choices(model: SymbolicModel, what: str) -> None:
    if model.is_mdp:
        raise UnsupportedError(
            f"{what} of an MDP depends on the scheduler: ask for it of model.with_scheduler(...)"
        )


Gains = tuple[float, float, float]  # value, lower, upper


def steady_probabilities(a: OperatorQuery) -> StateValues:
    """Return, for every state, the long-run probability of a set, of an MDP the optimal one."""
    if a.model.is_mdp:
        from hybrid.analysis.long_run_choices import optimal_probabilities

        return optimal_probabilities(a)
    model, states = a.model, a.states(a.formula.states)
    share = partial(share_of_time, model, states, a.options, a.work)
    return a.scope.of_values(over_components(model, share, a.options, a.work))


def share_of_time(
    model: SymbolicModel, states: Node, options: CheckOptions, work: SolveStatistics, component: Node
) -> Gains:
    """Return the share of time that a chain spends in a set once it is in a bottom component."""
    inside = component & states
    if inside == model.manager.false:
        return 0.0, 0.0, 0.0
    if inside == component:
        return 1.0, 1.0, 1.0

    def membership(there: StateIndex) -> Vector:
        return model.indicator(inside, there).astype(np.float64)

    index = index_states(model.manager, component)
    return _average(model, index, membership, options, work, "steady-state probabilities")


def steady_rewards(a: OperatorQuery) -> StateValues:
    """Return, for every state, the long-run average of a reward, of an MDP the optimal one."""
    if a.model.is_mdp:
        from hybrid.analysis.long_run_choices import optimal_rewards

        return optimal_rewards(a)
    model, structure = a.model, a.formula.place
    average = partial(average_reward, model, structure, a.options, a.work)
    return a.scope.of_values(over_components(model, average, a.options, a.work))


def average_reward(
    model: SymbolicModel, structure: int, options: CheckOptions, work: SolveStatistics, component: Node
) -> Gains:
    """Return the average of a reward structure in a bottom component of a chain."""
    index = index_states(model.manager, component)
    expected = index.at(expected_place(options, index.size))
    rewards, error = enclosed_rewards(model, structure, expected)
    # Only the greatest error counts: the vector is freed.
    own = 0.0 if error is None else max(0.0, extremes(error)[1])  # lemma: gain, entry-units
    del error
    if is_constant(model.communicator, rewards):
        found = (model.communicator.greatest(extremes(rewards)[1]),) * 3
    else:
        earned = recompute_on(
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


def _average(
    model: SymbolicModel,
    index: StateIndex,
    rewards: Callable[[StateIndex], Vector],
    options: CheckOptions,
    work: SolveStatistics,
    what: str,
) -> Gains:
    """Return one component's average, without bounds (NaN) if the method chosen gives none.

    The rewards are requested where the vectors of the solution lie.
    """
    method = options.average_reward()
    if method is not None:
        return solve_gain(model, index, rewards, method, options, work, what)
    distribution, there = solve_stationary(model, index, options, work, what, beside=True)
    earned = inner(distribution, rewards(there))
    return float(model.communicator.total([earned])[0]), np.nan, np.nan


def over_components(
    model: SymbolicModel, gains: Callable[[Node], Gains], options: CheckOptions, work: SolveStatistics
) -> StateValues:
    """Weigh every bottom component's gain by the probability of ending in it.

    The gain of the component reached in the end is the reward for entering it, so that one system
    serves all components.
    """
    components = bottom_components(model)
    found = [gains(c) for c in components]
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
            middle = middle_of(low.lower, high.upper)
        # Between infinite bounds there is no middle, but an estimate.
        inside[:, unknown] = np.where(np.isfinite(middle), middle, low.values), low.lower, high.upper
    return StateValues(*inside)


class _Flow:
    """Rates from some states into others, weighted, and what underflow may cost them."""

    def __init__(self, model: SymbolicModel, rows: StateIndex, columns: StateIndex, options: CheckOptions):
        self._matrix = build_operator(model.submatrix(rows, columns), options)
        # lemma: classes, underflow
        slack = step_slack(self._matrix, row_entries(model.transitions))
        self._alike = model.communicator
        self._lost = underflow_of(np.maximum(model.exit_rates(rows), 1.0), slack, self._alike)

    def is_far(self, weights: Vector) -> bool:
        """Return whether underflow is within rounding, in non-negative weights and in their sums."""
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

        Lemma: classes (docs/bounds.md).
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
