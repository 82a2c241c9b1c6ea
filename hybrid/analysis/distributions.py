"""Where a chain is, started in its initial states: after a time, and in the long run.

Distributions are followed forwards, with the transposed matrix.  They are estimates: what is known for
certain about a set of states is asked for with P or S, whose answers have bounds.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.held_matrices import injected
from hybrid.analysis.row_sums import leaving_rates
from hybrid.analysis.systems import solve_stationary
from hybrid.errors import NotConvergedError, OptionError, UnsupportedError
from hybrid.run.options import CheckOptions
from hybrid.run.work import Work
from hybrid.solvers import Status
from hybrid.solvers.host import workspace_of
from hybrid.solvers.poisson import poisson_weights
from mtbdd.graph.prob01 import bottom_components
from mtbdd.language.syntax import ModelType
from mtbdd.model import SymbolicModel
from mtbdd.states import StateIndex, index_states

Vector = NDArray[np.float64]

_ABOVE = 1.02  # q over the greatest exit rate, so that no chain is periodic
_CHECK_EVERY = 32  # steps between questions whether the distribution has settled


def transient_distribution(
    model: SymbolicModel, time: float, options: CheckOptions, work: Work | None = None
) -> Vector:
    """Return the probability of being in each state after a time, shape (n,), in index order.

    Parameters
    ----------
    model : SymbolicModel
        A chain; where it has several initial states it starts in each with the same probability.
    time : float
        Of a DTMC a number of steps, whole.
    options : CheckOptions
        Engine, backend, level and epsilon: the share of the distribution that may be left out.
    work : Work, optional
        Takes the account.

    Raises
    ------
    UnsupportedError
        The model is an MDP.
    OptionError
        The time is negative or no number, or not whole where it counts steps; or a method was chosen.

    Notes
    -----
    A CTMC by uniformisation.  Steps are left out once they change no element by more than what they may.
    Time: one product a step, and O(sqrt(q t)) more vectors to add, q being the uniformisation rate.
    """
    _refuse_choices(model, "the distribution after a time")
    continuous = model.type is ModelType.CTMC
    if not (math.isfinite(time) and time >= 0) or (not continuous and time != int(time)):
        wanted = "a number that is not negative" if continuous else "a number of steps, whole, not negative"
        raise OptionError(f"time: expected {wanted}, got {time}")
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
        if rate == 0.0 or time == 0.0:
            return start
        steps, divisor = space.system(rates, None).uniformised(rate), None
        poisson = poisson_weights(rate * time)
        first, weights = poisson.left, poisson.weights
    else:
        divisor = model.exit_rates(model.index)
        steps = space.system(divisor, None).relaxation()
        first, weights = int(time), np.ones(1)
    space.reserve(5, start.size)
    # Rows are divided by what they add up to: the iterate is the distribution divided by that, too.
    pair = space.vector(start if divisor is None else start / divisor), space.xp.empty(start.size)
    result, made, last = space.xp.zeros(start.size), 0, first + weights.size - 1
    while True:
        if made >= first:
            space.add_scaled(float(weights[made - first]), pair[made % 2], result)
        if made == last:
            break
        count = 1 if made >= first else min(_CHECK_EVERY - made % _CHECK_EVERY, first - made)
        steps.sweep(pair, made, count)
        made += count
        if made % _CHECK_EVERY == 0:
            change, _ = space.read(steps.changes)
            if change * (last - made) <= options.criterion.epsilon / start.size:
                space.add_scaled(float(weights[max(made - first, 0) :].sum()), pair[made % 2], result)
                break
    work.note("uniformisation" if continuous else "steps", matrix, made, 0.0, 40 * start.size)
    work.products += made
    found: Vector = np.array(space.to_host(result), dtype=np.float64)
    return found if divisor is None else found * divisor


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
