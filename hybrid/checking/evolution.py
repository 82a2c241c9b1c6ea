"""A chain that runs for a number of steps or a length of time, backwards from values at the end.

``x_{k+1} = P x_k + b`` over a set of states; b is what leaving the set is worth.  A CTMC is
uniformised with a rate q above all exit rates, ``P = I + (M - diag(d)) / q``, and its state after
the time t is that after a Poisson number of steps with mean q t (thesis 003, section 2.3.2).

Bounds.  All numbers are non-negative, so every step adds a relative rounding error, of at most `slack`;
for values bounded by c it also adds at most ``absolute * c``, which is the better bound after many steps.
P adds up to at most 1 a row, so ``max |x_{k+1} - x_k|`` never grows: when it times the steps still to
come is negligible they are left out, and counted as an error (a sound steady-state detection).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.options import CheckOptions
from hybrid.checking.quantities import StateValues, Work
from hybrid.checking.rounding import row_entries, step_slack
from hybrid.checking.systems import injected, leaving_rates
from hybrid.solvers.base import Clock
from hybrid.solvers.enclosure import UNIT
from hybrid.solvers.poisson import poisson_weights
from mtbdd.language.syntax import ModelType
from mtbdd.model import SymbolicModel
from mtbdd.states import StateIndex

__all__ = ["Evolution"]

Vector = NDArray[np.float64]

_ABOVE = 1.02  # q over the greatest exit rate, so that P has a diagonal and no period
_CHECK_EVERY = 32
_NEGLIGIBLE = 0.01  # share of epsilon that may be left out of a settled course
_TRUNCATED = 0.25  # share of epsilon that truncation may cost


@dataclass
class _Course:
    """What running has cost in accuracy so far.

    Attributes
    ----------
    steps : int
        Steps accounted for.
    terms : int
        Weighted values added up.
    left_out : float
        Bound on the absolute error of steps not made.
    rest : float
        Sum of the weights left out.
    """

    steps: int = 0
    terms: int = 0
    left_out: float = 0.0
    rest: float = 0.0


class Evolution:
    """Steps of a chain within a set of states.

    Parameters
    ----------
    model : SymbolicModel
    within : StateIndex
        The states; all others are worth `b` when they are entered, and then nothing more.
    b : ndarray of float64, shape (within.size,), optional
        Not negative; per step (DTMC) or unit of time (CTMC).
    options : CheckOptions
    work : Work
        Takes the account.
    """

    def __init__(
        self,
        model: SymbolicModel,
        within: StateIndex,
        b: Vector | None,
        options: CheckOptions,
        work: Work,
    ) -> None:
        self.continuous = model.type is ModelType.CTMC
        self._work, self._criterion = work, options.criterion
        self._matrix = injected(model.submatrix(within, within, diagonal=not self.continuous), options)
        entries = row_entries(model.transitions)
        self._slack = step_slack(self._matrix, 4)
        self._absolute = self._slack
        if self.continuous:
            rates = leaving_rates(model, within, options)
            self.rate = _ABOVE * float(rates.max(initial=0.0))
            scale = self.rate or 1.0
            self._kept = 1.0 - rates / scale
            self._b = None if b is None else b / scale
            # The rounding errors of exit rates count most where little of a state's own value is kept.
            self._slack += (entries + 4) * UNIT * _ABOVE / (_ABOVE - 1.0)
            self._absolute += (entries + 4) * UNIT
            self._spare = np.empty(within.size)
        else:
            self.rate = 1.0
            totals = model.exit_rates(within)
            near = bool((np.abs(totals - 1.0) <= 8.0 * UNIT).all())
            self._divisor = np.ones(within.size) if near else totals
            self._b = b
            self._slack += (entries + 8) * UNIT
            self._absolute = self._slack

    # ------------------------------------------------------------------ runs

    def after_steps(self, start: Vector, steps: int) -> StateValues:
        """Return the values a number of steps before those of `start`, not negative."""
        course = _Course()
        clock = Clock(self._work.progress)
        x, y, made = start.copy(), np.empty_like(start), 0
        while made < steps:
            change = self._step(x, y, True)
            x, y, made = y, x, made + 1
            measured = change == 0.0 or made % _CHECK_EVERY == 0
            if measured and self._may_stop(x, change, steps - made, course):
                break
            clock.tick(made, change)
        self._account(made, clock.seconds)
        course.steps = made
        return self._bounds(x, course, max(float(start.max(initial=0)), float(x.max(initial=0))), 0.0, 0.0)

    def after_time(self, start: Vector, time: float) -> StateValues:
        """Return the values a length of time before those of `start`, not negative; for a CTMC."""
        poisson = poisson_weights(self.rate * time)
        tail = poisson.left_tail + poisson.right_tail
        result, course, greatest = self._weighted(start, poisson.left, poisson.weights)
        missing = (tail + course.rest) * greatest
        return self._bounds(result, course, greatest, missing, poisson.slack + 2 * tail)

    def integral(self, rewards: Vector, time: float) -> StateValues:
        """Return what `rewards` per unit of time, not negative, add up to over a time; for a CTMC."""
        if self.rate == 0.0:
            return StateValues.exact(rewards * time)
        poisson = poisson_weights(self.rate * time)
        weights = np.concatenate((np.ones(poisson.left), poisson.above())) / self.rate
        result, course, greatest = self._weighted(rewards, 0, weights)
        tail = poisson.left_tail + poisson.right_tail
        missing = greatest * (poisson.left_tail * poisson.left + poisson.excess) / self.rate
        missing += greatest * course.rest
        course.left_out *= time
        return self._bounds(result, course, greatest * time, missing, poisson.slack + 2 * tail)

    # ------------------------------------------------------------------ steps

    def _weighted(self, start: Vector, first: int, weights: Vector) -> tuple[Vector, _Course, float]:
        """Return the sum of ``weights[k] * x_{first + k}``, and the greatest value met."""
        course = _Course()
        clock = Clock(self._work.progress)
        last = first + weights.size - 1
        x, y = start.copy(), np.empty_like(start)
        result = np.zeros_like(start)
        # Where leaving the set is worth something, x is a probability.
        greatest = max(float(start.max(initial=0.0)), 0.0 if self._b is None else 1.0)
        rest = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
        negligible = _TRUNCATED * self._criterion.epsilon * float(rest[0])
        made = 0
        while True:
            if made >= first:
                np.multiply(x, weights[made - first], out=y)
                result += y
                left = float(rest[made - first + 1])
                if left <= negligible and made < last:
                    if left * greatest <= self._tolerance(result):
                        course.rest = left
                        break
                    negligible *= 1e-3  # small results need more terms
            if made == last:
                break
            measured = made % _CHECK_EVERY == 0
            change = self._step(x, y, measured)
            x, y, made = y, x, made + 1
            if measured and self._may_stop(x, change, last - made, course):
                result += float(weights[max(made - first, 0) :].sum()) * x
                break
            clock.tick(made, change)
        self._account(made, clock.seconds)
        course.steps, course.terms = made, min(made + 1, weights.size)
        return result, course, greatest

    def _step(self, x: Vector, out: Vector, measured: bool) -> float:
        """Write ``P x + b`` to `out`; return the greatest change, infinite if it is not asked for."""
        if not self.continuous:
            return self._matrix.jacobi_step(x, out, self._b, self._divisor, 1.0)[0]
        self._matrix.multiply(x, out)
        out /= self.rate or 1.0
        if self._b is not None:
            out += self._b
        np.multiply(self._kept, x, out=self._spare)
        out += self._spare
        if not measured:
            return float("inf")
        np.subtract(out, x, out=self._spare)
        np.abs(self._spare, out=self._spare)
        return float(self._spare.max(initial=0.0))

    def _tolerance(self, result: Vector) -> float:
        """Return the truncation error that a result may have everywhere."""
        if self._criterion.absolute:
            return _TRUNCATED * self._criterion.epsilon
        positive = result[result > 0]
        least = float(positive.min()) if positive.size else 0.0
        return _TRUNCATED * self._criterion.epsilon * least

    def _may_stop(self, x: Vector, change: float, remaining: int, course: _Course) -> bool:
        """Return whether the steps still to come may be left out, and note the error if so."""
        if remaining == 0:
            return False
        error = remaining * change
        if change > 0.0:
            # Less than the rounding errors of the steps left out is negligible, too.
            limit = max(_NEGLIGIBLE * self._criterion.epsilon, remaining * self._absolute)
            if error > limit * float(x.max(initial=0.0)):
                return False
            if not self._criterion.absolute:
                positive = x[x > 0]
                if error > limit * (float(positive.min()) if positive.size else 0.0):
                    return False
        course.left_out = error
        return True

    # ------------------------------------------------------------------ bounds

    def _bounds(
        self, x: Vector, course: _Course, greatest: float, missing: float, relative: float
    ) -> StateValues:
        """Return computed values with their bounds.

        Parameters
        ----------
        greatest : float
            Bound on all values on the way.
        missing : float
            Absolute truncation error, which can only have made values too small.
        relative : float
            Relative error of the weights.
        """
        # A little more than the sum of the errors covers their products.
        steps = 1.01 * course.steps
        error = np.minimum(x * (steps * self._slack), steps * self._absolute * greatest)
        error += x * (relative + (course.terms + 2) * UNIT if course.terms else relative)
        error += course.left_out
        # Nothing is ever gained from zeros: they are exact unless steps were left out.
        lower = np.maximum(x - error, 0.0)
        upper = x + error
        upper += missing
        if missing == 0.0 and course.left_out == 0.0 and not bool(error.any()):
            return StateValues.exact(x)
        return StateValues(x, lower, upper)

    def _account(self, steps: int, seconds: float) -> None:
        """Add the steps made to the account of the work."""
        matrix = self._matrix
        base = 8 * (5 if self.continuous else 3) * matrix.shape[0]
        method = "uniformisation" if self.continuous else "steps"
        self._work.note(method, matrix.backend, matrix.level, steps, seconds, base, matrix.nbytes)
