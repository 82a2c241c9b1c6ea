"""Systems over choices: built in the form that the engine asks for, solved between bounds, accounted for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.errors import UnsupportedError
from hybrid.checking.options import CheckOptions
from hybrid.checking.quantities import StateValues, Work
from hybrid.mdp.device_choices import DeviceChoices, choices_in_one_pass
from hybrid.mdp.device_rows import DeviceRows, device_rows
from hybrid.mdp.explicit import ExplicitChoices
from hybrid.mdp.hybrid_choices import hybrid_choices
from hybrid.mdp.offers import Gain, Groups, Offer, choice_slack, offers_of
from hybrid.mdp.operator import ChoiceOperator
from hybrid.mdp.refusal import refuse_device
from hybrid.mdp.solvers import Intervals, OptimisticIteration, ValueIteration
from hybrid.solvers.base import Clock
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
    groups: Groups | None,
    options: CheckOptions,
    stop: Vector | None = None,
) -> ChoiceOperator:
    """Return the operator of a system, its matrices built.

    Parameters
    ----------
    allowed : sequence of Node
        For every layer, the states whose choice in it is allowed.
    gain : callable
        See `hybrid.mdp.offers.offers_of`.
    stop : ndarray, shape (unknown.size,), float64, optional
        What stopping is worth: one choice more, an infinity where there is none.
    """
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
        _note(work, plain.name, system, solution.iterations, solution.seconds, vectors=2)
        work.accept(what, solution)
        none = np.broadcast_to(np.float64(np.nan), (system.size,))
        return StateValues(solution.values, none, none)
    sound: Intervals | OptimisticIteration = (
        Intervals(options.criterion)
        if options.method == "interval"
        else OptimisticIteration(options.criterion)
    )
    found = sound.solve(system, ceiling, work.progress)
    _note(work, sound.name, system, found.iterations, found.seconds, vectors=5)
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

    Notes
    -----
    All numbers are non-negative, so that every step adds at most the operator's slack as a relative error.
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
    _note(work, "steps", system, made, clock.seconds, vectors=2)
    x = space.to_host(pair[made % 2])
    error = min(1.01 * steps * system.slack, 1.0)
    return StateValues(x, x * (1.0 - error), x * (1.0 + error))


def _note(
    work: Work, method: str, system: ChoiceOperator, iterations: int, seconds: float, vectors: int
) -> None:
    """Add one run of iterations to the account; bytes are sums over the layers."""
    base = 8 * (vectors + 1) * system.size + system.operand_bytes
    work.synchronisations += system.space.looks
    work.note(
        method,
        system.backend,
        system.level,
        iterations,
        seconds,
        base,
        system.matrix_bytes,
        system.backend_reason,
        system.storage,
    )
