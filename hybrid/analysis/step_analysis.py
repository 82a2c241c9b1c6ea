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

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.transient_errors import ErrorTerms, StepErrors
from hybrid.base.arrays import elements, extremes, to_host
from hybrid.base.state_values import StateValues
from hybrid.matrix.space.base import Clock, Criterion, Numbers, State
from hybrid.matrix.space.bounded_solution import positive_after
from hybrid.matrix.space.vector_space import Array, Pair, Steps, VectorSpace
from mtbdd.offset.states import StateIndex

Vector = NDArray[np.float64]

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
        with clock.cancellable() if is_rising else nullcontext():
            while made < steps and not (is_ended or record.is_finished):
                count = min(self._stride, steps - made)
                self._steps.sweep(pair, made, count)
                made += count
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
