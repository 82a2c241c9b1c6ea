"""Errors of a chain's steps and the bounds that follow; see :mod:`hybrid.analysis.transient`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import NotConvergedError
from hybrid.base.state_values import StateValues
from hybrid.matrix.space.base import Criterion, Status
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.vector_space import Array, VectorSpace
from mtbdd.base.communicator import ALONE, Communicator
from mtbdd.base.records import Record

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
