"""Systems over choices: built in the form that the engine asks for, solved between bounds, accounted for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hybrid.errors import NotConvergedError, UnsupportedError
from hybrid.operators.offers import Gain, Offer, choice_slack, offers_of
from hybrid.operators.rounding import far_from_underflow
from hybrid.run.options import CheckOptions
from hybrid.run.state_values import StateValues
from hybrid.run.work import Work
from hybrid.solvers import Interval, Optimistic
from hybrid.solvers.base import Clock, Status
from hybrid.solvers.choice_operator import BOUND_VECTORS, ChoiceOperator, Quotient
from hybrid.solvers.enclosure import positive_after
from hybrid.solvers.value_iteration import ValueIteration
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel
from mtbdd.states import StateIndex

__all__ = ["after_steps", "check_method", "choice_operator", "solve_choices"]

Vector = NDArray[np.float64]

_CHECK_EVERY = 32  # steps between questions whether anything still changes
_PLAIN = ("jacobi", "power")
_ENCLOSING = ("auto", "optimistic", "interval")


def choice_operator(
    model: SymbolicModel,
    unknown: StateIndex,
    allowed: Sequence[Node],
    gain: Gain,
    maximise: bool,
    groups: Quotient | None,
    options: CheckOptions,
    stop: Vector | None = None,
) -> ChoiceOperator:
    """Return the operator of a system, its matrices built.

    Parameters
    ----------
    allowed : sequence of Node
        For every layer, the states whose choice in it is allowed.
    gain : callable
        See `hybrid.operators.offers.offers_of`.
    stop : ndarray, shape (unknown.size,), float64, optional
        What stopping is worth: one choice more, an infinity where there is none.
    """
    least = [float(model.layer_transitions(i).terminals.min(initial=1.0)) for i in range(len(model.layers))]

    def noted(layer: int, rows: StateIndex) -> Vector:
        own = gain(layer, rows)
        least.append(float(own.min(initial=1.0, where=own > 0.0)))
        return own

    found = _built(model, unknown, allowed, noted, maximise, groups, options, stop)
    found.least_entry = min(least)
    return found


def _built(
    model: SymbolicModel,
    unknown: StateIndex,
    allowed: Sequence[Node],
    gain: Gain,
    maximise: bool,
    groups: Quotient | None,
    options: CheckOptions,
    stop: Vector | None,
) -> ChoiceOperator:
    """Return the operator of a system in the form that the engine asks for."""
    # Imported here: chains start quicker without.
    from hybrid.operators.device_choice_rows import DeviceRows, device_rows
    from hybrid.operators.device_choices import DeviceChoices, choices_in_one_pass
    from hybrid.operators.explicit_choices import ExplicitChoices
    from hybrid.operators.hybrid_choices import hybrid_choices
    from hybrid.operators.refusal import refuse_device

    slack, size = choice_slack(model), unknown.size
    stopping = [] if stop is None else [Offer(len(model.layers), None, None, stop, None)]
    if options.engine == "explicit":
        offers = offers_of(model, unknown, allowed, gain, maximise) + stopping
        written: DeviceRows | ExplicitChoices
        if options.matrix_backend() == "gpu":
            written = device_rows(offers, size, maximise, groups, slack)
        else:
            written = ExplicitChoices(offers, size, maximise, groups, slack)
        written.backend_reason = options.host_reason() or written.backend_reason
        return written
    refusal = refuse_device(options, size)
    if refusal is None:
        offers = offers_of(model, unknown, allowed, gain, maximise, whole=True) + stopping
        found = choices_in_one_pass(offers, size, maximise, groups, slack, options)
        if isinstance(found, DeviceChoices):
            return found
        refusal = found
    offers = offers_of(model, unknown, allowed, gain, maximise) + stopping
    return hybrid_choices(offers, size, maximise, groups, slack, options, refusal)


def solve_choices(
    system: ChoiceOperator, ceiling: float | None, options: CheckOptions, work: Work, what: str
) -> StateValues:
    """Solve ``x = opt over i of (A_i x + b_i)``.

    Parameters
    ----------
    ceiling : float, optional
        A bound on all values known beforehand.

    Returns
    -------
    StateValues
        Over the unknown states; without bounds (NaN) if the method gives none.

    Raises
    ------
    UnsupportedError
        The method has no meaning for choices.
    NotConvergedError
    """
    check_method(options)
    if options.method in _PLAIN:
        plain = ValueIteration(options.criterion)
        solution = plain.solve(system, work.progress)
        _note(work, plain.name, plain.vectors, system, solution.iterations, solution.seconds)
        work.accept(what, solution)
        system.improve(system.space.vector(solution.values), system.zeros())
        work.estimate(system.space.read(system.changes)[1])
        none = np.broadcast_to(np.float64(np.nan), (system.size,))
        return StateValues(solution.values, none, none)
    sound: Interval | Optimistic = (
        Interval(options.criterion) if options.method == "interval" else Optimistic(options.criterion)
    )
    found = sound.bounds(system, ceiling, work.progress)
    _note(work, sound.name, BOUND_VECTORS, system, found.iterations, found.seconds)
    work.accept(what, found)
    return StateValues(found.values, found.lower, found.upper)


def check_method(options: CheckOptions) -> None:
    """Refuse methods for linear systems, by name.

    Raises
    ------
    UnsupportedError
    """
    if options.method not in (*_PLAIN, *_ENCLOSING):
        raise UnsupportedError(
            f"the method {options.method} solves linear systems, and an MDP has minima and maxima over "
            "choices: choose optimistic, interval (with bounds), or jacobi (value iteration, without)"
        )


def after_steps(system: ChoiceOperator, start: Vector, steps: int, work: Work) -> StateValues:
    """Return the values a number of steps before those of `start`, which are not negative.

    Raises
    ------
    NotConvergedError
        A value is no longer a finite double.

    Notes
    -----
    All numbers are non-negative, so that every step adds at most the operator's slack as a relative error,
    and what underflow adds.  Computed zeros are exact unless something on the way can have underflown; then
    the steps are made once more, with zeros and ones.
    """
    space, clock = system.space, Clock(work.progress)
    pair = space.vector(start), space.xp.empty(system.size)
    made = 0
    while made < steps:
        system.improve(pair[made % 2], pair[1 - made % 2])
        made += 1
        if made % _CHECK_EVERY == 0:
            change, _ = space.read(system.changes)
            if change == 0.0:
                break
            clock.tick(made, change)
    _note(work, "steps", ValueIteration.vectors, system, made, clock.seconds)
    x = np.array(space.to_host(pair[made % 2]))
    if not bool(np.isfinite(x).all()):
        raise NotConvergedError("values along a path", Status.DIVERGED, made, math.inf)
    positive: NDArray[np.bool_] | None = x > 0.0
    if not bool((x > 0.0).all()) and not far_from_underflow(
        np.append(start, system.least_entry), system.least_entry, steps
    ):
        inside = space.vector(np.asarray(start > 0.0, dtype=np.float64))
        positive = positive_after(space, inside, system.improve, steps, made)
    grown = 1.01 * steps * system.slack
    with np.errstate(over="ignore"):
        lost = (steps + 2) * system.underflow
        lower = np.maximum(x * max(1.0 - grown, 0.0) - lost, 0.0)
        upper = x * math.exp(min(grown, 700.0)) + lost
    if positive is None:
        return StateValues(x, lower, upper)
    lower[~positive], upper[~positive] = 0.0, 0.0
    small = positive & (lower == 0.0)
    return StateValues(x, lower, upper, small if bool(small.any()) else None)


def _note(
    work: Work, method: str, vectors: int, system: ChoiceOperator, iterations: int, seconds: float
) -> None:
    """Add one run of iterations to the account; bytes are sums over the layers."""
    base = 8 * vectors * system.size + system.operand_bytes
    work.synchronisations += system.space.looks
    work.note(method, system, iterations, seconds, base)
