"""A chain that runs for a number of steps or a length of time, backwards from values at the end.

``x_{k+1} = P x_k + b`` over a set of states; b is what leaving the set is worth.  A CTMC is
uniformised with a rate q above all exit rates, ``P = I + (M - diag(d)) / q``, and its state after
the time t is that after a Poisson number of steps with mean q t ([Tealdi13] §2.3.2).

Bounds.  All numbers are non-negative, so every step adds a relative rounding error, of at most `slack`;
for values bounded by c it also adds at most ``absolute * c``, which is the better bound after many steps.
Underflow adds at most `underflow` to an element.  P adds up to at most 1 a row, so that an error never
grows on its way.

A step may be left out: x then stands for its result, which is off by the change that the step would make.
Steps are left out when the changes are negligible, or less than the rounding errors of making them; each
left out adds the change that the last one made, and the errors of a step, as if it had been made (a sound
steady-state detection).

Zeros.  A value that is computed as zero is zero if nothing on the way can have underflown; otherwise the
graph tells, by steps of zeros and ones.
"""

from __future__ import annotations

import math
from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.dense_powers import FEWEST_STEPS, DensePowers, dense_powers, dense_powers_pay
from hybrid.analysis.held_matrices import injected
from hybrid.analysis.recorded_steps import RecordedSteps
from hybrid.analysis.systems import leaving_rates
from hybrid.analysis.transient_errors import Course, StepErrors, indicator_of
from hybrid.errors import NotConvergedError
from hybrid.operators.divided_matrix import DividedMatrix
from hybrid.operators.rounding import far_from_underflow, row_entries, step_slack, widened
from hybrid.run.options import CheckOptions
from hybrid.run.state_values import StateValues
from hybrid.run.work import Work
from hybrid.solvers.base import Clock, Status
from hybrid.solvers.bounded_solution import UNIT, positive_after, underflow_of
from hybrid.solvers.host import workspace_of
from hybrid.solvers.poisson import poisson_weights
from hybrid.solvers.workspace import Array, Pair
from mtbdd.language.syntax import ModelType
from mtbdd.model import SymbolicModel
from mtbdd.offset import SCALED_UNITS
from mtbdd.states import StateIndex

Vector = NDArray[np.float64]

_ABOVE = 1.02  # q over the greatest exit rate, so that P has a diagonal and no period
_CHECK_EVERY = 32  # steps between questions whether the rest may be left out
_TRUNCATED = 0.25  # share of epsilon that truncation may cost
_VECTORS = 5  # two iterates, the sum, and the operands of the steps


class TransientAnalysis:
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
        self._work, self._criterion, self._within = work, options.criterion, within
        self._matrix = injected(model.submatrix(within, within, diagonal=not self.continuous), options)
        self._space = workspace_of(self._matrix)
        terminals = np.abs(self._matrix.symbolic.terminals)
        alike = self._alike = model.communicator
        self._least_entry = alike.least(float(terminals.min(initial=1.0)))
        # Where leaving the set is worth something, a value of a CTMC is a probability.
        self._least_bound = 0.0 if b is None else 1.0
        self._b = b
        entries = row_entries(model.transitions)
        slack = absolute = step_slack(self._matrix, 4)
        if self.continuous:
            rates = leaving_rates(model, within, options)
            self.rate = _ABOVE * alike.greatest(float(rates.max(initial=0.0)))
            self._divisor = rates
            system = self._space.system(rates, b)
            self._steps = system.uniformised(self.rate or 1.0)
            # The rounding errors of exit rates, of 1 / q and of their products count most where little of a
            # state's own value is kept. Fused multiply-adds make fewer.
            exit_error = (entries + model.entry_units - SCALED_UNITS + 6) * UNIT
            slack += exit_error * _ABOVE / (_ABOVE - 1.0)
            absolute += exit_error
            # A time that is no double changes the weights by a unit a step in all, and each by two or so.
            slack += 3 * UNIT
            absolute += UNIT
        else:
            self.rate = 1.0
            totals = model.exit_rates(within)
            near = alike.all((np.abs(totals - 1.0) <= 8.0 * UNIT).all())
            self._divisor = np.ones(within.size) if near else totals
            self._steps = self._space.system(self._divisor, b).relaxation()
            slack += (entries + 8) * UNIT
            absolute = slack
        self._most = self.rate if self.continuous else alike.greatest(float(self._divisor.max(initial=1.0)))
        lost = underflow_of(np.array([self._most or 1.0]), slack)
        self._errors = StepErrors(slack, absolute, lost, alike)

    # ------------------------------------------------------------------ runs

    def after_steps(self, start: Vector, steps: int) -> StateValues:
        """Return the values a number of steps before those of `start`, not negative."""
        course, clock = Course(steps=steps), Clock(self._work.following(self._within), steps=steps)
        leaps = self._leaps(start, steps)
        if leaps is not None:
            x = leaps.after(start, steps)
            self._account(leaps.products, clock.seconds)
            positive = leaps.positive_after(start, steps)
            return self._errors.bounds(x, course, max(float(start.max()), float(x.max())), positive=positive)
        space, pair, looked = self._space, self._vectors(start), 0
        record = RecordedSteps(clock, space, pair, course)
        made = record.made
        is_rising, is_ended = not self._alike.any(start.any()), False
        with clock.gently() if is_rising else nullcontext():
            while made < steps and not (is_ended or record.is_finished):
                count = min(space.stride, steps - made)
                self._steps.sweep(pair, made, count)
                made += count
                if made == steps:
                    break
                change, _ = space.read(self._steps.changes)
                if change == 0.0 or made - looked >= _CHECK_EVERY:
                    looked = made
                    if self._may_stop(pair[made % 2], change, steps - made, course):
                        course.made = made if is_rising else None
                        break
                record.offer(made)
                is_ended = clock.tick(made, change)
        record.end(made, not is_ended)
        self._account(made, clock.seconds)
        x = space.to_host(pair[made % 2])
        greatest = self._alike.greatest(max(float(start.max(initial=0)), float(x.max(initial=0))))
        if is_ended:
            # Values rise, so that those of fewer steps are lower bounds.
            return self._errors.bounds(x, Course(steps=made), greatest, missing=math.inf)
        return self._errors.bounds(x, course, greatest, positive=self._positive_after(x, start, steps, made))

    def after_time(self, start: Vector, time: float) -> StateValues:
        """Return the values a length of time before those of `start`, not negative; for a CTMC."""
        poisson = poisson_weights(self.rate * time)
        tail = poisson.left_tail + poisson.right_tail
        result, course, greatest = self._weighted(start, poisson.left, poisson.weights)
        missing = (tail + course.rest) * greatest
        return self._errors.bounds(result, course, greatest, missing, poisson.slack + 2 * tail)

    def integral(self, rewards: Vector, time: float) -> StateValues:
        """Return what `rewards` per unit of time, not negative, add up to over a time; for a CTMC."""
        if self.rate == 0.0:
            with np.errstate(over="ignore"):
                values = rewards * time
            if not self._alike.all(np.isfinite(values).all()):
                raise NotConvergedError("values along a path", Status.DIVERGED, 0, math.inf)
            return StateValues(values, *widened(values, 4 * UNIT))
        poisson = poisson_weights(self.rate * time)
        leaps, above = self._leaps(rewards, poisson.left), poisson.above() / self.rate
        flat = 1.0 / self.rate if leaps is None else 0.0
        result, course, greatest = self._weighted(rewards, poisson.left, above, flat)
        if leaps is not None:
            result = result + leaps.added_up(rewards, poisson.left) / self.rate
            course.terms += 2
        tail = poisson.left_tail + poisson.right_tail
        # Every P(N > k) up to the right end lacks the right tail, and those beyond it are missing.
        tails = poisson.left_tail * poisson.left + poisson.right_tail * (poisson.right + 1) + poisson.excess
        missing = greatest * tails / self.rate
        missing += greatest * course.rest
        # Weights next to underflow are off by no more than this.
        course.left_out = course.left_out * time + (course.terms + 1) * 2.0**-1022 * greatest
        return self._errors.bounds(
            result, course, greatest * time, missing, poisson.slack + 2 * tail, scale=time
        )

    # ------------------------------------------------------------------ steps

    def _leaps(self, start: Vector, steps: int) -> DensePowers | None:
        """Return the steps as powers of a dense matrix where that pays: not if values settle before long."""
        size = self._matrix.shape[0]
        if isinstance(self._matrix, DividedMatrix) or not dense_powers_pay(size, steps):
            return None
        leaps = dense_powers(self._matrix, self._divisor, self.rate if self.continuous else None, self._b)
        x = leaps.after(start, FEWEST_STEPS // 2)
        change = float(np.abs(leaps.after(x, 1) - x).max())
        there = self._space.vector(x)
        return None if self._may_stop(there, change, steps - FEWEST_STEPS // 2, Course()) else leaps

    def _vectors(self, start: Vector) -> Pair:
        """Return the start and room for the value after a step, in the workspace."""
        self._space.reserve(_VECTORS, start.size)
        return self._space.vector(start), self._space.xp.empty(start.size)

    def _weighted(
        self, start: Vector, first: int, weights: Vector, flat: float = 0.0
    ) -> tuple[Vector, Course, float]:
        """Return the sum of ``weights[k] * x_{first + k}`` and of `flat` times all x before, with its course.

        The last number returned is the greatest value met.
        """
        last = first + weights.size - 1
        space, clock = self._space, Clock(self._work.following(self._within), steps=last)
        course = Course(steps=last, terms=last + 1 if flat else weights.size)
        pair, result = self._vectors(start), space.xp.zeros(start.size)
        greatest = max(self._alike.greatest(float(start.max(initial=0.0))), self._least_bound)
        rest = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
        negligible = _TRUNCATED * self._criterion.epsilon * (float(rest[0]) + flat * first)
        products, is_ended = 0, False
        record = RecordedSteps(clock, space, pair, course, result)
        made = record.made
        leaps = self._leaps(start, first) if flat == 0.0 else None
        if leaps is not None and made < first:
            pair[first % 2][...] = self._space.vector(leaps.after(start, first))
            made, products = first, leaps.products - first
        with clock.gently():
            while not (is_ended or record.is_finished):
                x = pair[made % 2]
                if made == first and flat:
                    result *= flat
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
                self._steps.sweep(pair, made, count, result if flat and made < first else None)
                made += count
                if made % _CHECK_EVERY == 0:
                    change, _ = space.read(self._steps.changes)
                    if self._may_stop(pair[made % 2], change, last - made, course):
                        if flat and made <= first:
                            space.add_scaled(float(first - made), pair[made % 2], result)
                            result *= flat
                        space.add_scaled(float(weights[max(made - first, 0) :].sum()), pair[made % 2], result)
                        course.made = None if self._alike.any(start.any()) else made
                        break
                    record.offer(made)
                    is_ended = clock.tick(made, change)
        record.end(made, not is_ended)
        if is_ended:
            if flat and made <= first:
                result *= flat
            course.rest = float(rest[max(made - first, 0)]) + flat * max(first - made, 0)
        self._account(made + products, clock.seconds)
        return space.to_host(result), course, greatest

    def _tolerance(self, result: Array) -> float:
        """Return the truncation error that a result may have everywhere."""
        if self._criterion.absolute:
            return _TRUNCATED * self._criterion.epsilon
        # What is still zero is not decided yet.
        is_empty = self._space.is_empty(result.size)
        least = 0.0 if is_empty else self._space.read(self._space.extremes(result)[0])[0]
        return _TRUNCATED * self._criterion.epsilon * least

    def _may_stop(self, x: Array, change: float, remaining: int, course: Course) -> bool:
        """Return whether the steps still to come may be left out, and note the error if so."""
        error = self._errors.of_steps_left_out(self._space, x, change, remaining, self._criterion)
        if error is not None:
            course.left_out = error
        return error is not None

    def _positive_after(self, x: Vector, start: Vector, steps: int, made: int) -> NDArray[np.bool_] | None:
        """Return where the exact values after some steps are positive; None if that is not known.

        Notes
        -----
        Computed zeros are exact unless something on the way can have underflown.  Then the steps are made
        with zeros and ones; if that takes many more than were `made` nothing is known.
        """
        positive: NDArray[np.bool_] = x > 0.0
        if steps == 0 or self._alike.all(positive.all()):
            return positive
        gained = np.zeros(0) if self._b is None else self._b / self._most
        seeds = np.concatenate((start, gained))
        if self._alike.all(far_from_underflow(seeds, self._least_entry / self._most, steps)):
            return positive
        space, b = self._space, None if self._b is None else self._space.vector(indicator_of(self._b))

        def step(inside: Array, out: Array) -> None:
            space.multiply(inside, out)
            self._work.products += 1
            if b is not None:
                out += b

        return positive_after(space, space.vector(indicator_of(start)), step, steps, made)

    def _account(self, steps: int, seconds: float) -> None:
        """Add the steps made to the account of the work."""
        matrix = self._matrix
        base = 8 * _VECTORS * matrix.shape[0]
        method = "uniformisation" if self.continuous else "steps"
        self._work.synchronisations += self._space.synchronisations
        self._work.note(method, matrix, steps, seconds, base)
        self._work.products += steps
