"""Systems over choices: built in the form that the engine asks for, solved between bounds, accounted for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.recorded_steps import RecordedSteps
from hybrid.analysis.transient_errors import Course
from hybrid.errors import NotConvergedError, UnsupportedError
from hybrid.operators.discount import Discount
from hybrid.operators.layer_choices import LayerChoices, RewardOf, choice_slack, layer_choices_of
from hybrid.operators.rounding import far_from_underflow
from hybrid.run.options import CheckOptions
from hybrid.run.state_values import StateValues
from hybrid.run.work import Work
from hybrid.solvers import Interval, Optimistic
from hybrid.solvers.base import Clock, Status
from hybrid.solvers.bounded_solution import UNIT, positive_after
from hybrid.solvers.choice_operator import BOUND_VECTORS, ChoiceOperator
from hybrid.solvers.choice_problem import ChoiceProblem, Quotient
from hybrid.solvers.topological_choices import TopologicalChoices
from hybrid.solvers.value_iteration import ValueIteration
from hybrid.solvers.workspace import Array
from mtbdd.manager import Node
from mtbdd.memory import free_memory_bytes
from mtbdd.model import SymbolicModel
from mtbdd.states import StateIndex

Vector = NDArray[np.float64]

_CHECK_EVERY = 32  # steps after which it is checked whether values still change
_LEAST_STATES = 1 << 14  # below, components and what finds them take longer to load than steps to make
_MOST_LOST = 2.0**-20  # greatest relative error of entries that are written out
_PLAIN = ("jacobi", "power")
_ENCLOSING = ("auto", "optimistic", "interval")


def choice_operator(
    model: SymbolicModel,
    unknown: StateIndex,
    allowed: Sequence[Node],
    gain: RewardOf,
    maximise: bool,
    groups: Quotient | None,
    options: CheckOptions,
    stop: Vector | None = None,
    discount: Discount | None = None,
) -> ChoiceOperator:
    """Return the operator of a system, its matrices built.

    Parameters
    ----------
    allowed : sequence of Node
        For every layer, the states whose choice in it is allowed.
    gain : callable
        See `hybrid.operators.layer_choices.layer_choices_of`.
    stop : ndarray, shape (unknown.size,), float64, optional
        What stopping is worth: one choice more, an infinity where there is none.
    discount : Discount, optional
        What the products with the matrices are multiplied with.
    """
    least = [float(model.layer_transitions(i).terminals.min(initial=1.0)) for i in range(len(model.layers))]
    lost = 0.0 if discount is None else _digits_lost(discount.factor * model.communicator.least(min(least)))

    def noted(layer: int, rows: StateIndex) -> Vector:
        own = gain(layer, rows)
        least.append(float(own.min(initial=1.0, where=own > 0.0)))
        return own

    found = _built(model, unknown, allowed, noted, maximise, groups, options, stop, discount, lost)
    found.loses_digits = lost > 0.0
    found.least_entry = model.communicator.least(min(least)) * (1.0 if discount is None else discount.factor)
    return found


def _built(
    model: SymbolicModel,
    unknown: StateIndex,
    allowed: Sequence[Node],
    gain: RewardOf,
    maximise: bool,
    groups: Quotient | None,
    options: CheckOptions,
    stop: Vector | None,
    discount: Discount | None,
    lost: float,
) -> ChoiceOperator:
    """Return the operator of a system in the form that the engine asks for.

    `lost` is the relative error of entries that are written out with the discount in them.
    """
    # Imported here: chains start quicker without.
    from hybrid.operators.device_choices import DeviceChoices, fused_choices
    from hybrid.operators.eligibility import why_ineligible
    from hybrid.operators.explicit_choices import DeviceRows, ExplicitChoices, device_rows, write_choices
    from hybrid.operators.hybrid_choices import hybrid_choices

    slack = choice_slack(model)
    if discount is not None:
        slack += (discount.units + 4.0) * UNIT
    if options.engine == "explicit":
        if lost > _MOST_LOST:
            raise UnsupportedError(
                "R: the discount times the least probability is too small a double to be written out; ask "
                "the hybrid engine, or give a greater discount"
            )
        slack += lost
    problem = ChoiceProblem(unknown.size, maximise, groups, slack, model.communicator)
    stopping = [] if stop is None else [LayerChoices(len(model.layers), None, None, stop, None)]

    def offers(whole: bool = False) -> list[LayerChoices]:
        found = layer_choices_of(model, unknown, allowed, gain, maximise, whole)
        return (found if discount is None else [_discounted(o, discount) for o in found]) + stopping

    if options.engine == "explicit":
        layer_choices = offers()
        written: DeviceRows | ExplicitChoices
        if options.matrix_backend().name == "gpu":
            written = device_rows(layer_choices, problem)
        else:
            written = ExplicitChoices(write_choices(layer_choices, unknown.size), problem)
        written.backend_reason = options.matrix_backend().reason
        return written
    refusal = why_ineligible(options, problem)
    if refusal is None and options.representation == "row-types":
        layer_choices = offers(whole=True)
        found = fused_choices(layer_choices, problem, options)
        if isinstance(found, DeviceChoices):
            return found
        refusal = found
    return hybrid_choices(offers(), problem, options, refusal)


def _digits_lost(least: float) -> float:
    """Return the relative error of doubles that are written down, the least one given: next to underflow."""
    if least >= 2.0**-1021:
        return 0.0
    return 2.0**-1074 / least if least > 0.0 else math.inf


def _discounted(offer: LayerChoices, discount: Discount) -> LayerChoices:
    """Return a layer's choices with the discount in their factors."""
    factor = np.ones(len(offer.gain)) if offer.factor is None else offer.factor
    return replace(offer, factor=discount.factor * factor)


def solve_choices(
    system: ChoiceOperator,
    upper_bound: float | None,
    options: CheckOptions,
    work: Work,
    what: str,
    states: StateIndex | None = None,
) -> StateValues:
    """Solve ``x = opt over i of (A_i x + b_i)``.

    Parameters
    ----------
    upper_bound : float, optional
        A bound on all values known beforehand.
    what : str
        The quantity in words, for messages.
    states : StateIndex, optional
        The unknown ones, for checkpoints.

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
        solution = plain.solve(system, work.following(states))
        note_steps(work, plain.name, plain.vectors, system, solution.iterations, solution.seconds)
        work.accept(what, solution)
        system.improve(system.space.vector(solution.values), system.zeros())
        work.estimate(system.space.read(system.changes)[1])
        work.products += 1
        none = np.broadcast_to(np.float64(np.nan), (system.size,))
        return StateValues(solution.values, none, none)
    sound: Interval | Optimistic = (
        Interval(options.criterion) if options.method == "interval" else Optimistic(options.criterion)
    )
    watch, name = work.following(states), TopologicalChoices.name
    by_components = _by_components(system, options, states)
    found = None if by_components is None else by_components.bounds(system, upper_bound, watch)
    if found is None:
        found, name = sound.bounds(system, upper_bound, watch), sound.name
    vectors = BOUND_VECTORS + found.more_vectors
    note_steps(work, name, vectors, system, found.iterations, found.seconds)
    work.accept(what, found)
    return StateValues(found.values, found.lower, found.upper)


def _by_components(
    system: ChoiceOperator, options: CheckOptions, states: StateIndex | None
) -> TopologicalChoices | None:
    """Return topological solution of choices on the host, where it may promise a gain."""
    if options.method != "auto" or states is None or system.backend != "cpu":
        return None
    if system.size < _LEAST_STATES or system.problem.communicator.size > 1:
        return None
    if system.loses_digits:  # strips are written out
        return None
    from hybrid.operators.choice_strips import ChoiceStrips, WholeStrip
    from hybrid.operators.explicit_choices import ExplicitChoices
    from hybrid.operators.hybrid_choices import HybridChoices

    strips: WholeStrip | ChoiceStrips | None = None
    if isinstance(system, ExplicitChoices):
        strips = WholeStrip(system.rows)
    elif isinstance(system, HybridChoices):
        strips = ChoiceStrips.where_they_pay(system, states)
    if strips is None or strips.nbytes > free_memory_bytes() // 4:
        return None
    return TopologicalChoices(options.criterion, strips)


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


def after_steps(
    system: ChoiceOperator, start: Vector, steps: int, work: Work, states: StateIndex | None = None
) -> StateValues:
    """Return ``f(f(... f(start)))``, f of the system applied `steps` times; `start` is not negative.

    Parameters
    ----------
    states : StateIndex, optional
        The unknown ones, for checkpoints.

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
    space, clock = system.space, Clock(work.following(states), steps=steps)
    alike = space.communicator
    pair = space.vector(start), space.xp.empty(system.size)
    record = RecordedSteps(clock, space, pair, Course())
    made, is_ended = record.made, False
    # From zeros values only rise, so that those of fewer steps are lower bounds.
    with nullcontext() if alike.any(start.any()) else clock.gently():
        while made < steps and not (is_ended or record.is_finished):
            count = min(_CHECK_EVERY - made % _CHECK_EVERY, steps - made)
            system.repeat(pair, made, count)
            made += count
            if made % _CHECK_EVERY == 0:
                change, _ = space.read(system.changes)
                if change == 0.0:
                    break
                record.offer(made)
                is_ended = clock.tick(made, change)
    record.end(made, not is_ended)
    note_steps(work, "steps", ValueIteration.vectors, system, made, clock.seconds)
    work.products += made
    x = np.array(space.to_host(pair[made % 2]))
    if not alike.all(np.isfinite(x).all()):
        raise NotConvergedError("values along a path", Status.DIVERGED, made, math.inf)
    positive: NDArray[np.bool_] | None = None if is_ended else x > 0.0
    if (
        not is_ended
        and not alike.all((x > 0.0).all())
        and not alike.all(far_from_underflow(np.append(start, system.least_entry), system.least_entry, steps))
    ):
        inside = space.vector(np.asarray(start > 0.0, dtype=np.float64))

        def step(inside: Array, out: Array) -> None:
            system.improve(inside, out)
            work.products += 1

        positive = positive_after(space, inside, step, steps, made)
    grown = 1.01 * steps * system.slack
    with np.errstate(over="ignore"):
        lost = (steps + 2) * system.underflow
        lower = np.maximum(x * max(1.0 - grown, 0.0) - lost, 0.0)
        upper = np.full_like(x, np.inf) if is_ended else x * math.exp(min(grown, 700.0)) + lost
    if positive is None:
        return StateValues(x, lower, upper)
    lower[~positive], upper[~positive] = 0.0, 0.0
    small = positive & (lower == 0.0)
    return StateValues(x, lower, upper, small if bool(small.any()) else None)


def note_steps(
    work: Work, method: str, vectors: int, system: ChoiceOperator, iterations: int, seconds: float
) -> None:
    """Add one run of iterations to the account; bytes are sums over the layers."""
    base = 8 * vectors * system.size + system.operand_bytes
    work.synchronisations += system.space.synchronisations
    work.note(method, system, iterations, seconds, base)
