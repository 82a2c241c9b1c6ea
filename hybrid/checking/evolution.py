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

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.leaps import FEWEST_STEPS, Leaps, dense_leaps, leaps_pay
from hybrid.checking.options import CheckOptions
from hybrid.checking.quantities import StateValues, Work
from hybrid.checking.rounding import row_entries, step_slack
from hybrid.checking.systems import injected, leaving_rates, note_run
from hybrid.solvers.base import Clock
from hybrid.solvers.enclosure import UNIT
from hybrid.solvers.host import workspace_of
from hybrid.solvers.poisson import poisson_weights
from hybrid.solvers.workspace import Array, Pair
from mtbdd.language.syntax import ModelType
from mtbdd.model import SymbolicModel
from mtbdd.states import StateIndex

__all__ = ["Evolution"]

Vector = NDArray[np.float64]

_ABOVE = 1.02  # q over the greatest exit rate, so that P has a diagonal and no period
_CHECK_EVERY = 32  # steps between questions whether the rest may be left out
_NEGLIGIBLE = 0.01  # share of epsilon that may be left out of a settled course
_PART = 1 << 20  # elements looked at together: bounds the temporary memory
_TRUNCATED = 0.25  # share of epsilon that truncation may cost
_VECTORS = 5  # two iterates, the sum, and the operands of the steps


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
        self._space = workspace_of(self._matrix)
        # Where leaving the set is worth something, a value of a CTMC is a probability.
        self._least_bound = 0.0 if b is None else 1.0
        self._b = b
        entries = row_entries(model.transitions)
        self._slack = step_slack(self._matrix, 4)
        self._absolute = self._slack
        if self.continuous:
            rates = leaving_rates(model, within, options)
            self.rate = _ABOVE * float(rates.max(initial=0.0))
            self._divisor = rates
            system = self._space.system(rates, b)
            self._steps = system.uniformised(self.rate or 1.0)
            # The rounding errors of exit rates, of 1 / q and of their products count most where little of a
            # state's own value is kept. Fused multiply-adds make fewer.
            self._slack += (entries + 6) * UNIT * _ABOVE / (_ABOVE - 1.0)
            self._absolute += (entries + 6) * UNIT
        else:
            self.rate = 1.0
            totals = model.exit_rates(within)
            near = bool((np.abs(totals - 1.0) <= 8.0 * UNIT).all())
            self._divisor = np.ones(within.size) if near else totals
            self._steps = self._space.system(self._divisor, b).relaxation()
            self._slack += (entries + 8) * UNIT
            self._absolute = self._slack

    # ------------------------------------------------------------------ runs

    def after_steps(self, start: Vector, steps: int) -> StateValues:
        """Return the values a number of steps before those of `start`, not negative."""
        course, clock = _Course(), Clock(self._work.progress)
        leaps = self._leaps(start, steps)
        if leaps is not None:
            x = leaps.after(start, steps)
            course.steps = steps
            self._account(leaps.products, clock.seconds)
            return self._bounds(x, course, max(float(start.max()), float(x.max())), 0.0, 0.0)
        space, pair, made, looked = self._space, self._vectors(start), 0, 0
        while made < steps:
            count = min(space.stride, steps - made)
            self._steps.sweep(pair, made, count)
            made += count
            if made == steps:
                break
            change, _ = space.read(self._steps.changes)
            if change == 0.0 or made - looked >= _CHECK_EVERY:
                looked = made
                if self._may_stop(pair[made % 2], change, steps - made, course):
                    break
            clock.tick(made, change)
        self._account(made, clock.seconds)
        course.steps = made
        x = space.to_host(pair[made % 2])
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
        leaps, above = self._leaps(rewards, poisson.left), poisson.above() / self.rate
        first = 0 if leaps is None else poisson.left
        weights = np.concatenate((np.full(poisson.left - first, 1.0 / self.rate), above))
        result, course, greatest = self._weighted(rewards, first, weights)
        if leaps is not None:
            result += leaps.added_up(rewards, first) / self.rate
            course.terms += 2
        tail = poisson.left_tail + poisson.right_tail
        missing = greatest * (poisson.left_tail * poisson.left + poisson.excess) / self.rate
        missing += greatest * course.rest
        course.left_out *= time
        return self._bounds(result, course, greatest * time, missing, poisson.slack + 2 * tail)

    # ------------------------------------------------------------------ steps

    def _leaps(self, start: Vector, steps: int) -> Leaps | None:
        """Return the steps as powers of a dense matrix where that pays: not if values settle before long."""
        size = self._matrix.shape[0]
        if self._space.xp is not np or not leaps_pay(size, steps):
            return None
        leaps = dense_leaps(self._matrix, self._divisor, self.rate if self.continuous else None, self._b)
        x = leaps.after(start, FEWEST_STEPS // 2)
        change = float(np.abs(leaps.after(x, 1) - x).max())
        return None if self._may_stop(x, change, steps - FEWEST_STEPS // 2, _Course()) else leaps

    def _vectors(self, start: Vector) -> Pair:
        """Return the start and room for the value after a step, in the workspace."""
        self._space.reserve(_VECTORS, start.size)
        return self._space.vector(start), self._space.xp.empty(start.size)

    def _weighted(self, start: Vector, first: int, weights: Vector) -> tuple[Vector, _Course, float]:
        """Return the sum of ``weights[k] * x_{first + k}``, and the greatest value met."""
        space, course, clock = self._space, _Course(), Clock(self._work.progress)
        last = first + weights.size - 1
        pair, result = self._vectors(start), space.xp.zeros(start.size)
        greatest = max(float(start.max(initial=0.0)), self._least_bound)
        rest = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
        negligible = _TRUNCATED * self._criterion.epsilon * float(rest[0])
        made = products = 0
        leaps = self._leaps(start, first)
        if leaps is not None:
            pair[first % 2][:] = leaps.after(start, first)
            made, products = first, leaps.products - first
        while True:
            x = pair[made % 2]
            if made >= first:
                space.add_scaled(float(weights[made - first]), x, result)
                left = float(rest[made - first + 1])
                if left <= negligible and made < last:
                    if left * greatest <= self._tolerance(result):
                        course.rest = left
                        break
                    negligible *= 1e-3  # small results need more terms
            if made == last:
                break
            # One step at a time where every value is wanted, and otherwise up to the next question.
            due = _CHECK_EVERY - made % _CHECK_EVERY
            count = 1 if made >= first else min(due, first - made)
            self._steps.sweep(pair, made, count)
            made += count
            if made % _CHECK_EVERY == 0:
                change, _ = space.read(self._steps.changes)
                if self._may_stop(pair[made % 2], change, last - made, course):
                    space.add_scaled(float(weights[max(made - first, 0) :].sum()), pair[made % 2], result)
                    break
                clock.tick(made, change)
        self._account(made + products, clock.seconds)
        course.steps, course.terms = made, min(made + 1, weights.size)
        return space.to_host(result), course, greatest

    def _tolerance(self, result: Array) -> float:
        """Return the truncation error that a result may have everywhere."""
        if self._criterion.absolute:
            return _TRUNCATED * self._criterion.epsilon
        (least,) = self._space.read(_least_positive(self._space.xp, result))
        return _TRUNCATED * self._criterion.epsilon * least if math.isfinite(least) else 0.0

    def _may_stop(self, x: Array, change: float, remaining: int, course: _Course) -> bool:
        """Return whether the steps still to come may be left out, and note the error if so."""
        if remaining == 0:
            return False
        error = remaining * change
        if change > 0.0:
            # Less than the rounding errors of the steps left out is negligible, too.
            limit = max(_NEGLIGIBLE * self._criterion.epsilon, remaining * self._absolute)
            (most,) = self._space.read(x.max())
            if error > limit * most:
                return False
            if not self._criterion.absolute:
                (least,) = self._space.read(_least_positive(self._space.xp, x))
                if error > limit * (least if math.isfinite(least) else 0.0):
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
        self._work.synchronisations += self._space.looks
        note_run(self._work, method, matrix, steps, seconds, base)


def _least_positive(xp: Any, x: Array) -> Array:
    """Return the least positive element, shape (); infinite if there is none."""
    least = xp.full((), np.inf)
    for begin in range(0, x.size, _PART):
        part = x[begin : begin + _PART]
        least = xp.minimum(least, xp.where(part > 0, part, np.inf).min())
    return least
