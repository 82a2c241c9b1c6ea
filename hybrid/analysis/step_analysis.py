"""Values a number of steps before given ones, by one step after the other: of chains and of choices.

``x_{k+1} = f(x_k)``, f that of a chain (:mod:`hybrid.analysis.transient`) or the best over all choices. Rows
add up to at most 1, so that no step takes two vectors further apart, and an error never grows on its way.

A step may be left out: x then stands for its result, which is off by the change that the step would make.
Steps are left out when the changes are negligible, or less than the rounding errors of making them. Each left
out adds the change of the last one, and the errors of a step (a sound steady-state detection).

Zeros. A value that is computed as zero is zero if nothing on the way can have underflown. Otherwise the graph
decides, by steps of zeros and ones.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.base.arrays import elements, extremes, to_host
from hybrid.base.errors import NotConvergedError
from hybrid.base.state_values import StateValues
from hybrid.matrix.space.base import Clock, Criterion, Numbers, State, Status
from hybrid.matrix.space.bounded_solution import UNIT, positive_after
from hybrid.matrix.space.vector_space import Array, Pair, Steps, VectorSpace
from mtbdd.base.communicator import ALONE, Communicator
from mtbdd.base.records import Record
from mtbdd.offset.states import StateIndex

# Errors of a chain's steps and the bounds that follow; see :mod:`hybrid.analysis.transient`.

Vector = NDArray[np.float64]

_NEGLIGIBLE = 0.01  # share of epsilon that may be left out of a settled course
_PART = 1 << 20  # elements processed together: bounds the temporary memory


@dataclass
class ErrorTerms:
    """Terms of the error of a transient analysis so far.

    Attributes
    ----------
    steps : int
        Steps accounted for, those left out among them.
    terms : int
        Weighted values added up.
    left_out : float
        Bound on the absolute error of steps not made.
    rest : float
        Sum of the weights left out.
    made : int or None
        Steps made before the others were left out, where values only rise: what follows makes no lower bound
        worse.
    """

    steps: int = 0
    terms: int = 0
    left_out: float = 0.0
    rest: float = 0.0
    made: int | None = None


class StepErrors(Record):
    """Errors of a step ``x = P x + b`` over numbers that are not negative.

    Attributes
    ----------
    slack : float
        Relative error of an element.
    absolute : float
        Error of an element as a multiple of the greatest value on the way.
    underflow : float
        What underflow adds to an element.
    communicator : Communicator
        Who decides together where processes share the states.
    """

    slack: float
    absolute: float
    underflow: float
    communicator: Communicator = ALONE

    def of_steps_left_out(
        self, space: VectorSpace, x: Array, change: float, remaining: int, criterion: Criterion
    ) -> float | None:
        """Return the error of leaving out the steps that remain; None if it would count.

        The array x lies in the vector space; `change` is the greatest one of the last step.

        Lemma: steps-left-out (docs/bounds.md).
        """
        if remaining == 0:
            return None
        error = remaining * change  # lemma: steps-left-out
        # The least doubles need not become zero, but they change by less than what underflow costs anyway.
        # lemma: steps-left-out
        if change > self.underflow:
            # Less than the rounding errors of the steps, made or not, is negligible, too.
            limit = max(_NEGLIGIBLE * criterion.epsilon, remaining * self.absolute)  # lemma: steps-left-out
            (most,) = space.read(space.greatest(x))
            # lemma: steps-left-out
            if error > limit * most:
                return None
            if not criterion.absolute:
                (least,) = space.read(space.least(least_positive(space.xp, x)))
                if error > limit * (least if math.isfinite(least) else 0.0):  # lemma: steps-left-out
                    return None
        return error

    def bounds(
        self,
        x: Vector,
        course: ErrorTerms,
        greatest: float,
        missing: float = 0.0,
        relative: float = 0.0,
        positive: NDArray[np.bool_] | None = None,
        scale: float = 1.0,
    ) -> StateValues:
        """Return computed values with their bounds.

        All values on the way are at most `greatest`. Truncation errors that can only have made values too
        small are `missing` at most, those of the weights `relative`, and the weights add up to `scale`. Exact
        values are positive where `positive` says so, and zero elsewhere; without it nothing is known.

        Lemma: steps (docs/bounds.md).
        """
        if not self.communicator.all(np.isfinite(x).all()):
            raise NotConvergedError("values along a path", Status.DIVERGED, course.steps, math.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            # lemma: uniformisation, steps
            each = relative + ((course.terms + 2) * UNIT if course.terms else 0.0)
            # lemma: steps, underflow
            other = (course.steps + course.terms + 2) * self.underflow * max(scale, 1.0)
            # lemma: steps, steps-left-out
            error = self._rounding(x, course.steps, greatest) + (x * each + (course.left_out + other))
            # Bounds and sums of errors are rounded themselves.
            below = above = error * (1.0 + 2.0**-40) + x * (2.0 * UNIT)  # lemma: steps
            if course.made is not None:
                error = self._rounding(x, course.made, greatest) + (x * each + other)  # lemma: steps-left-out
                # lemma: steps-left-out
                below = error * (1.0 + 2.0**-40) + x * (2.0 * UNIT)
            lower = np.maximum(x - below, 0.0)
            upper = x + above
            # lemma: uniformisation
            upper += missing * (1.0 + 2.0**-40)
        # Of processes that share the states, all know the support of the values, or none does.
        if self.communicator.any(positive is None) or positive is None:
            return StateValues(x, lower, upper)
        lower[~positive], upper[~positive] = 0.0, 0.0
        if not self.communicator.any(positive.any()):
            return StateValues.exact(np.zeros(x.size))
        small = positive & (lower == 0.0)
        return StateValues(x, lower, upper, small if bool(small.any()) else None)

    def _rounding(self, x: Vector, steps: int, greatest: float) -> Vector:
        """Return the rounding errors of some steps, shape as x; a little more covers their products."""
        grown = math.expm1(min(1.01 * steps * self.slack, 700.0))  # lemma: steps
        error: Vector = np.minimum(x * grown, 1.01 * steps * self.absolute * greatest)  # lemma: steps
        return error


def least_positive(xp: Any, x: Array) -> Array:
    """Return the least positive element, shape (); infinite if there is none."""
    least = xp.full((), np.inf)
    for begin in range(0, x.size, _PART):
        part = x[begin : begin + _PART]
        least = xp.minimum(least, xp.where(part > 0, part, np.inf).min())
    return least


CHECK_EVERY = 32
"""Steps between questions whether the rest may be left out."""

# Steps of a window as a record has them: where they are, and what they came to.


class RecordedSteps:
    """Steps that go on where an earlier run was, whose `made` steps may have been all (`is_finished`).

    The iterate after k steps lies in number ``k % 2`` of the pair; that of the earlier run is put there, and
    what it came to into the course and the result.
    """

    def __init__(
        self, clock: Clock, space: VectorSpace, pair: Pair, course: ErrorTerms, result: Array | None = None
    ) -> None:
        self._clock, self._pair, self._course, self._result = clock, pair, course, result
        self.made, self.is_finished = 0, False
        kept = clock.resumed(space.xp, "steps", pair[0].size)
        if kept is None:
            return
        self.made, self.is_finished = int(kept.numbers["made"]), kept.is_finished
        pair[self.made % 2][...] = kept.vectors["x"]
        if result is not None:
            result[...] = kept.vectors["sum"]
        course.left_out, course.rest = kept.numbers["left_out"], kept.numbers["rest"]
        made = int(kept.numbers["course"])
        course.made = None if made < 0 else made

    def offer(self, made: int) -> None:
        """Offer the state after so many steps."""
        self._clock.offer(self._state(made))

    def end(self, made: int, is_finished: bool) -> None:
        """Keep the last state: what the steps came to, or where they were ended."""
        if not self.is_finished:
            self._clock.keep(self._state(made), is_finished)

    def _state(self, made: int) -> State:
        def state() -> tuple[Mapping[str, Array], Numbers]:
            course = self._course
            vectors = {"x": self._pair[made % 2]} | ({} if self._result is None else {"sum": self._result})
            numbers = {"made": made, "left_out": course.left_out, "rest": course.rest}
            return vectors, numbers | {"course": -1 if course.made is None else course.made}

        return state


class StepAnalysis(ABC):
    """Values a number of steps before given ones: of a chain, or of choices of which the best are taken.

    Parameters
    ----------
    space : VectorSpace
    within : StateIndex or None
        The states, for records.
    criterion : Criterion
        How much steps left out may cost.
    work : SolveStatistics
        Takes the account.
    places : ndarray of int64, optional
        States whose values are returned; default all.
    """

    _steps: Steps
    _errors: StepErrors

    def __init__(
        self,
        space: VectorSpace,
        within: StateIndex | None,
        criterion: Criterion,
        work: SolveStatistics,
        places: NDArray[np.int64] | None = None,
    ) -> None:
        self._space, self._within, self._criterion = space, within, criterion
        self._work, self._places, self._alike = work, places, space.communicator
        self._stride = space.stride  # steps between two looks at their changes

    def after_steps(self, start: Array, steps: int) -> StateValues:
        """Return the values a number of steps before those of `start`, not negative.

        A start, shape (within.size,), lies on the host, or where it was expected that the matrix lies.

        Lemma: steps, steps-left-out (docs/bounds.md).
        """
        course, clock = ErrorTerms(steps=steps), Clock(self._work.following(self._within), steps=steps)
        space, pair, looked = self._space, self._vectors(start), 0
        record = RecordedSteps(clock, space, pair, course)
        made = record.made
        most = max(extremes(start)[1], 0.0)
        is_rising, is_ended = not self._alike.any(most > 0.0), False

        def is_over(change: float, _: float) -> bool:
            nonlocal made
            made += 1
            record.offer(made)
            return change == 0.0 or clock.tick(made, change)

        with clock.cancellable() if is_rising else nullcontext():
            while made < steps and not (is_ended or record.is_finished):
                count, before = min(self._stride, steps - made), made
                if self._stride > 1:
                    self._steps.sweep(pair, made, count)
                else:
                    count = min(space.steps_ahead(start.size), looked + CHECK_EVERY - made, steps - made)
                    count = self._steps.sweep_until(pair, made, max(count, 1), is_over)
                made = before + count
                if made == steps:
                    break
                change, _ = space.read(self._steps.changes)
                if change == 0.0 or made - looked >= CHECK_EVERY:
                    looked = made
                    if self._may_stop(pair[made % 2], change, steps - made, course):
                        course.made = made if is_rising else None
                        break
                record.offer(made)
                is_ended = clock.tick(made, change)
        record.end(made, not is_ended)
        self._account(made, clock.seconds)
        x = pair[made % 2]
        told, greatest = self._told(x), self._alike.greatest(max(most, extremes(x)[1]))
        if is_ended:
            # Values rise, so that those of fewer steps are lower bounds.
            return self._errors.bounds(told, ErrorTerms(steps=made), greatest, missing=math.inf)
        known = self._positive_after(told, start, steps, made)
        return self._errors.bounds(told, course, greatest, positive=known)

    def _vectors(self, start: Array) -> Pair:
        """Return the start and room for the value after a step, in the vector space."""
        return self._space.vector(self._placed(start)), self._space.xp.empty(start.size)

    def _placed(self, x: Array) -> Array:
        """Return a vector where those of the steps are made from it."""
        return x

    @abstractmethod
    def _account(self, steps: int, seconds: float) -> None:
        """Add the steps made to the account of the work."""

    @abstractmethod
    def _is_far(self, start: Array, steps: int) -> bool:
        """Whether nothing on the way of so many steps underflows."""

    @abstractmethod
    def _spread(self) -> Callable[[Array, Array], None]:
        """Return what writes numbers that are positive where a step from zeros and ones leads to."""

    def _told(self, x: Array) -> Vector:
        """Return what is requested of a vector over the set, on the host."""
        told: Vector = to_host(x) if self._places is None else elements(x, self._places)
        return told

    def _may_stop(self, x: Array, change: float, remaining: int, course: ErrorTerms) -> bool:
        """Return whether the steps still to come may be left out, and note the error if so."""
        error = self._errors.of_steps_left_out(self._space, x, change, remaining, self._criterion)
        if error is not None:
            # lemma: steps-left-out
            course.left_out = error
        return error is not None

    def _positive_after(self, told: Vector, start: Array, steps: int, made: int) -> NDArray[np.bool_] | None:
        """Return where exact values after some steps are positive, shape as `told`; None if not known.

        Computed zeros are exact unless something on the way can have underflown. Then the steps are made with
        zeros and ones; if that takes many more than were `made` nothing is known.
        """
        positive: NDArray[np.bool_] = told > 0.0
        alike, space = self._alike, self._space
        if steps == 0 or alike.all(positive.all()) or alike.all(self._is_far(start, steps)):
            return positive
        inside = space.vector(self._placed(start) > 0.0)
        found = positive_after(space, inside, self._spread(), steps, made)
        return found if found is None or self._places is None else found[self._places]
