"""Where a chain is, started in its initial states: after a time, and in the long run.

Distributions are followed forwards, with the transposed matrix.  They are estimates: what is known for
certain about a set of states is asked for with P or S, whose answers have bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.held_matrices import injected
from hybrid.analysis.row_sums import leaving_rates
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.analysis.systems import solve_stationary
from hybrid.base.errors import NotConvergedError, OptionError, UnsupportedError
from hybrid.matrix.space.host import workspace_of
from hybrid.solvers import Status
from hybrid.solvers.poisson import poisson_weights
from mtbdd.build.model import SymbolicModel
from mtbdd.graph.prob01 import bottom_components
from mtbdd.language.syntax import ModelType
from mtbdd.offset.states import StateIndex, index_states

Vector = NDArray[np.float64]

_ABOVE = 1.02  # q over the greatest exit rate, so that no chain is periodic
_CHECK_EVERY = 32  # steps between questions whether the distribution has settled


def times_of(given: float | Sequence[float] | NDArray[Any], name: str) -> Vector:
    """Return one time or several, shape () or (k,), finite and none negative.

    Raises
    ------
    OptionError
        It is something else; `name` is what the message calls it.
    """
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
    work: Work | None = None,
) -> Vector:
    """Return the probability of being in each state after a time, shape (n,), in index order.

    After several times a row each, shape (k, n).

    Parameters
    ----------
    model : SymbolicModel
        A chain; where it has several initial states it starts in each with the same probability.
    time : float or sequence of float, shape (k,)
        Of a DTMC numbers of steps, whole.
    options : CheckOptions
        Engine, backend, level and epsilon: the share of the distribution that may be left out.
    work : Work, optional
        Takes the account.

    Raises
    ------
    UnsupportedError
        The model is an MDP.
    OptionError
        A time is negative or no number, or not whole where it counts steps; or a method was chosen.

    Notes
    -----
    A CTMC by uniformisation.  Steps are left out once they change no element by more than what they may.
    Time: one product a step, the steps of the last time serving all, and O(sqrt(q t)) more vectors to add for
    each time, q being the uniformisation rate.
    """
    _refuse_choices(model, "the distribution after a time")
    continuous = model.type is ModelType.CTMC
    times = times_of(time, "time")
    if not continuous and (times != np.floor(times)).any():
        raise OptionError(f"time: expected numbers of steps, whole, not negative; got {time!r}")
    if options.method != "auto":
        raise OptionError(
            "method: a distribution after a time comes from steps or uniformisation, which have no methods "
            f"to choose from: leave {options.method} out"
        )
    work = work or Work()
    start = _initial(model)
    matrix = injected(model.submatrix(model.index, model.index, diagonal=not continuous).transpose(), options)
    space = workspace_of(matrix)
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


def steady_distribution(model: SymbolicModel, options: CheckOptions, work: Work | None = None) -> Vector:
    """Return the long-run probability of each state, shape (n,), in index order.

    Of a chain that is periodic, the share of time spent in each state.

    Parameters
    ----------
    model : SymbolicModel
        A chain; where it has several initial states it starts in each with the same probability.
    options : CheckOptions
    work : Work, optional
        Takes the account.

    Raises
    ------
    UnsupportedError
        The model is an MDP.
    NotConvergedError

    Notes
    -----
    The stationary distribution of every bottom component, weighed with the probability of ending in it.
    These come from one system for all components: how often each state outside of them is visited.
    """
    _refuse_choices(model, "the long-run distribution")
    work = work or Work()
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
    model: SymbolicModel, start: Vector, bottom: StateIndex, options: CheckOptions, work: Work
) -> Vector:
    """Return the probability of entering the bottom components by each of their states."""
    manager = model.manager
    inside = model.indicator(bottom.states)
    if bottom.size == model.n_states:
        return start
    outside = index_states(manager, model.reachable & ~bottom.states)
    matrix = injected(model.submatrix(outside, outside, diagonal=False).transpose(), options)
    diagonal = leaving_rates(model, outside, options).rates
    solver = options.solver(steady=False)
    found = solver.solve(matrix, diagonal, start[~inside], np.zeros(outside.size), work.following(outside))
    work.note(solver.name, matrix, found.iterations, found.seconds, 8 * solver.vectors * outside.size)
    work.accept("probabilities of bottom components", found)
    flow = injected(model.submatrix(outside, bottom).transpose(), options)
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
