"""A chain that runs for a number of steps or a length of time, backwards from values at the end.

``x_{k+1} = P x_k + b`` over a set of states; b is what leaving the set is worth.  A CTMC is
uniformised with a rate q above all exit rates, ``P = I + (M - diag(d)) / q``, and its state after
the time t is that after a Poisson number of steps with mean q t ([Tealdi13] 2.3.2).

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

from hybrid.analysis.chain_steps import ChainSteps
from hybrid.analysis.recorded_steps import RecordedSteps
from hybrid.analysis.transient_errors import Course
from hybrid.base.arrays import extremes, to_host
from hybrid.base.errors import NotConvergedError
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.rounding import widened
from hybrid.matrix.space.base import Clock, Status
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.workspace import Array
from hybrid.solvers.poisson import poisson_weights

Vector = NDArray[np.float64]

_CHECK_EVERY = 32  # steps between questions whether the rest may be left out
_TRUNCATED = 0.25  # share of epsilon that truncation may cost


class TransientAnalysis(ChainSteps):
    """What a chain's values are some steps or time before; parameters as for `ChainSteps`."""

    def after_steps(self, start: Array, steps: int) -> StateValues:
        """Return the values a number of steps before those of `start`, not negative.

        Parameters
        ----------
        start : vector, shape (within.size,), float64
            On the host, or where it was expected that the matrix lies.
        """
        course, clock = Course(steps=steps), Clock(self._work.following(self._within), steps=steps)
        leaps = self._leaps(start, steps)
        if leaps is not None:
            start = to_host(start)
            x = leaps.after(start, steps)
            self._account(leaps.products, clock.seconds)
            positive = leaps.positive_after(start, steps)
            found = self._errors.bounds(x, course, max(float(start.max()), float(x.max())), positive=positive)
            return self._asked_for(found)
        space, pair, looked = self._space, self._vectors(start), 0
        record = RecordedSteps(clock, space, pair, course)
        made = record.made
        most = max(extremes(start)[1], 0.0)
        is_rising, is_ended = not self._alike.any(most > 0.0), False
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
        x = pair[made % 2]
        told, greatest = self._told(x), self._alike.greatest(max(most, extremes(x)[1]))
        if is_ended:
            # Values rise, so that those of fewer steps are lower bounds.
            return self._errors.bounds(told, Course(steps=made), greatest, missing=math.inf)
        known = self._positive_after(told, start, steps, made)
        return self._errors.bounds(told, course, greatest, positive=known)

    def after_time(self, start: Array, time: float) -> StateValues:
        """Return the values a length of time before those of `start`, not negative; for a CTMC.

        Parameters
        ----------
        start : vector, shape (within.size,), float64
            As for `after_steps`.
        """
        poisson = poisson_weights(self.rate * time)
        tail = poisson.left_tail + poisson.right_tail
        result, course, greatest = self._weighted(start, poisson.left, poisson.weights)
        missing = (tail + course.rest) * greatest
        # lemma: uniformisation
        return self._errors.bounds(result, course, greatest, missing, poisson.slack + 2 * tail)

    def integral(self, rewards: Array, time: float) -> StateValues:
        """Return what `rewards` per unit of time, not negative, add up to over a time; for a CTMC.

        Parameters
        ----------
        rewards : vector, shape (within.size,), float64
            As for `after_steps`.
        """
        if self.rate == 0.0:
            with np.errstate(over="ignore"):
                values = self._told(rewards) * time
            if not self._alike.all(np.isfinite(values).all()):
                raise NotConvergedError("values along a path", Status.DIVERGED, 0, math.inf)
            # lemma: rounding
            return StateValues(values, *widened(values, 4 * UNIT))
        poisson = poisson_weights(self.rate * time)
        leaps, above = self._leaps(rewards, poisson.left), poisson.above() / self.rate
        flat = 1.0 / self.rate if leaps is None else 0.0
        result, course, greatest = self._weighted(rewards, poisson.left, above, flat)
        if leaps is not None:
            result = result + self._told(leaps.added_up(to_host(rewards), poisson.left)) / self.rate
            course.terms += 2
        tail = poisson.left_tail + poisson.right_tail
        # Every P(N > k) up to the right end lacks the right tail, and those beyond it are missing.
        tails = poisson.left_tail * poisson.left + poisson.right_tail * (poisson.right + 1) + poisson.excess
        missing = greatest * tails / self.rate
        missing += greatest * course.rest
        # Weights next to underflow are off by no more than this.
        # lemma: steps-left-out, underflow
        course.left_out = course.left_out * time + (course.terms + 1) * 2.0**-1022 * greatest
        # lemma: uniformisation
        return self._errors.bounds(
            result, course, greatest * time, missing, poisson.slack + 2 * tail, scale=time
        )

    def _weighted(
        self, start: Array, first: int, weights: Vector, flat: float = 0.0
    ) -> tuple[Vector, Course, float]:
        """Return the sum of ``weights[k] * x_{first + k}`` and of `flat` times all x before, with its course.

        Of the sum what is asked for, on the host.

        The last number returned is the greatest value met.
        """
        last = first + weights.size - 1
        space, clock = self._space, Clock(self._work.following(self._within), steps=last)
        course = Course(steps=last, terms=last + 1 if flat else weights.size)
        pair, result = self._vectors(start), space.xp.zeros(start.size)
        most = max(extremes(start)[1], 0.0)
        greatest = max(self._alike.greatest(most), self._least_bound)
        rest = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
        negligible = _TRUNCATED * self._criterion.epsilon * (float(rest[0]) + flat * first)
        products, is_ended = 0, False
        record = RecordedSteps(clock, space, pair, course, result)
        made = record.made
        leaps = self._leaps(start, first) if flat == 0.0 else None
        if leaps is not None and made < first:
            pair[first % 2][...] = self._space.vector(leaps.after(to_host(start), first))
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
                        course.made = None if self._alike.any(most > 0.0) else made
                        break
                    record.offer(made)
                    is_ended = clock.tick(made, change)
        record.end(made, not is_ended)
        if is_ended:
            if flat and made <= first:
                result *= flat
            course.rest = float(rest[max(made - first, 0)]) + flat * max(first - made, 0)
        self._account(made + products, clock.seconds)
        return self._told(result), course, greatest

    def _tolerance(self, result: Array) -> float:
        """Return the truncation error that a result may have everywhere."""
        if self._criterion.absolute:
            return _TRUNCATED * self._criterion.epsilon
        # What is still zero is not decided yet.
        is_empty = self._space.is_empty(result.size)
        least = 0.0 if is_empty else self._space.read(self._space.extremes(result)[0])[0]
        return _TRUNCATED * self._criterion.epsilon * least
