"""A chain that runs for a number of steps or a length of time, backwards from values at the end.

``x_{k+1} = P x_k + b`` over a set of states; b is what leaving the set is worth. A CTMC is uniformised with a
rate q above all exit rates, ``P = I + (M - diag(d)) / q``. Its state after the time t is that after a
Poisson number of steps, of mean q t ([Tealdi13] §2.3.2).

Bounds. All numbers are non-negative, so every step adds a relative rounding error, of at most `slack`. For
values bounded by c it also adds at most ``absolute * c``, which is the better bound after many steps.
Underflow adds at most `underflow` to an element. P adds up to at most 1 a row, so that an error never grows
on its way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.step_analysis import (
    CHECK_EVERY,
    ErrorTerms,
    RecordedSteps,
    StepAnalysis,
    StepErrors,
    least_positive,
)
from hybrid.analysis.systems import build_operator, leaving_rates
from hybrid.base.arrays import extremes, to_host
from hybrid.base.errors import NotConvergedError
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.hybrid_matrix import DistributedMatrix, HybridMatrix
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.operators.rounding import far_from_underflow, step_slack, widened
from hybrid.matrix.space.base import Clock, Status
from hybrid.matrix.space.bounded_solution import UNIT, underflow_of
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.vector_space import Array, Pair
from hybrid.solvers.poisson import poisson_weights
from mtbdd.build.model import SymbolicModel
from mtbdd.language.syntax import ModelType
from mtbdd.offset.offset import SCALED_UNITS, row_entries
from mtbdd.offset.states import StateIndex

if TYPE_CHECKING:
    from hybrid.matrix.explicit.operators import ExplicitOperator

# Many steps of a tiny chain at once, by powers of its dense matrix.
#
# A million steps of a chain of three states cost nothing but the calls that make them.  With the matrix
# squared again and again a number of steps takes its logarithm of products.  These are made in extended
# precision, so that they add no more to the rounding errors than single steps do.

Vector = NDArray[np.float64]

MOST_STATES = 48
FEWEST_STEPS = 20_000

_PRECISE = 1e-18  # an extended format whose unit lies below this makes the products' errors vanish


def dense_powers_pay(states: int, steps: int) -> bool:
    """Return whether a chain is small enough, and the way long enough, for powers of a dense matrix.

    Never where extended precision is that of doubles.
    """
    precise = float(np.finfo(np.longdouble).eps) < _PRECISE
    return precise and 0 < states <= MOST_STATES and steps >= FEWEST_STEPS


class DensePowers:
    """Repetitions of ``x -> A x + c``, A of shape (n, n) and c of shape (n,), longdouble and not negative.

    They count the products made so far.
    """

    def __init__(self, a: NDArray[Any], c: NDArray[Any]) -> None:
        self.products = 0
        self._a, self._c = a, c

    def after(self, start: Vector, steps: int) -> Vector:
        """Return the vector after a number of steps, shape (n,)."""
        return self._power(self._a, self._c, start, steps)

    def positive_after(self, start: Vector, steps: int) -> NDArray[np.bool_]:
        """Return where the vector after a number of steps is positive, shape (n,), in spite of underflow.

        Time: O(n^3 log steps), with matrices of zeros and ones.
        """
        size = start.size
        power = np.zeros((size + 1, size + 1))
        power[:size, :size], power[:size, size], power[size, size] = self._a > 0, self._c > 0, 1.0
        x, left = np.append(start > 0, True).astype(np.float64), steps
        while left:
            if left & 1:
                x = (power @ x > 0.0).astype(np.float64)
            left >>= 1
            power = (power @ power > 0.0).astype(np.float64)
        reached: NDArray[np.bool_] = x[:size] > 0.0
        return reached

    def added_up(self, start: Vector, terms: int) -> Vector:
        """Return the sum of ``A^k start`` over the first terms k = 0, 1, ..., shape (n,); c is not in it."""
        first = start.astype(np.longdouble)
        return self._power(self._a, first, np.zeros(start.size), terms)

    def _power(self, a: NDArray[Any], c: NDArray[Any], start: Vector, steps: int) -> Vector:
        """Return what a number of steps ``x -> a x + c`` make of a vector. Time: O(n^3 log steps)."""
        size = start.size
        power = np.zeros((size + 1, size + 1), dtype=np.longdouble)
        power[:size, :size], power[:size, size], power[size, size] = a, c, 1.0
        x = np.append(start.astype(np.longdouble), np.longdouble(1.0))
        left = steps
        while left:
            if left & 1:
                x = power @ x
                self.products += 1
            left >>= 1
            if left:
                power = power @ power
                self.products += 1
        return x[:size].astype(np.float64)


def dense_powers(
    matrix: HybridMatrix | ExplicitOperator, divisor: Vector, rate: float | None, b: Vector | None
) -> DensePowers:
    """Return the steps ``(M x + b) / divisor``, or uniformised ``x + (M x + b - divisor * x) / rate``.

    M has few rows, and b is zero by default; a rate is at least the greatest element of `divisor`. Time: n
    products.
    """
    size = divisor.size
    a = np.empty((size, size), dtype=np.longdouble)
    # On the host, wherever the matrix is.
    plain = inject(matrix.symbolic, level=0, backend="reference")
    for column, unit in enumerate(np.eye(size)):
        a[:, column] = plain.multiply(unit)
    c = np.zeros(size, dtype=np.longdouble) if b is None else b.astype(np.longdouble)
    if rate is None:
        return DensePowers(a / divisor[:, None], c / divisor)
    loops = 1 - divisor / np.longdouble(rate)
    a /= np.longdouble(rate)
    a[np.diag_indices(size)] += loops
    return DensePowers(a, c / np.longdouble(rate))


_ABOVE = 1.02  # q over the greatest exit rate, so that P has a diagonal and no period
_VECTORS = 5  # two iterates, the sum, and the operands of the steps
_TRUNCATED = 0.25  # share of epsilon that truncation may cost


class TransientAnalysis(StepAnalysis):
    """Transient analysis of a chain, backwards by steps or time, within a set of states.

    Parameters
    ----------
    within : StateIndex
        The states; all others are worth `b` when they are entered, and then nothing more.
    b : ndarray of float64, shape (within.size,), or callable, optional
        Not negative; per step (DTMC) or unit of time (CTMC).  A callable is given the set and returns the
        vector in the set's place.
    work : SolveStatistics
        Takes the account.
    places : ndarray of int64, optional
        States of the set whose values are returned; default all of it.

    Attributes
    ----------
    there : StateIndex
        The set, with vectors where the matrix lies.
    """

    def __init__(
        self,
        model: SymbolicModel,
        within: StateIndex,
        b: Vector | Callable[[StateIndex], Vector] | None,
        options: CheckOptions,
        work: SolveStatistics,
        places: NDArray[np.int64] | None = None,
    ) -> None:
        self.continuous = model.type is ModelType.CTMC
        entered = model.submatrix(within, within, diagonal=not self.continuous)
        self._matrix = build_operator(entered, options, beside=True, steps=math.inf)
        self.there = within.at(self._matrix.place)
        super().__init__(space_of(self._matrix), within, options.criterion, work, places)
        terminals = np.abs(self._matrix.symbolic.terminals)
        alike = self._alike
        self._least_entry = alike.least(float(terminals.min(initial=1.0)))
        # With a value for leaving the set, a value of a CTMC is a probability.
        self._least_bound = 0.0 if b is None else 1.0
        self._b: Vector | None = b(self.there) if callable(b) else b
        if self._b is not None:
            self._b = self.there.place.array(self._b)
        entries = row_entries(model.transitions)
        slack = absolute = step_slack(self._matrix, 4)  # lemma: rounding, steps
        if self.continuous:
            rates, shared = leaving_rates(model, self.there, options)
            self.rate = _ABOVE * alike.greatest(max(extremes(rates)[1], 0.0))
            self._divisor = rates
            system = self._space.system(rates, self._b)
            self._steps = system.uniformised(self.rate or 1.0)
            # The rounding errors of exit rates, of 1 / q and of their products count most where little of a
            # state's own value is kept. Fused multiply-adds make fewer.
            # lemma: steps, uniformisation
            exit_error = (entries + model.entry_units - SCALED_UNITS + shared + 6) * UNIT
            slack += exit_error * _ABOVE / (_ABOVE - 1.0)  # lemma: steps, uniformisation
            # lemma: steps, uniformisation
            absolute += exit_error
            # A time that is no double changes the weights by a unit a step in all, and each by two or so.
            # lemma: uniformisation
            slack += 3 * UNIT
            # lemma: uniformisation
            absolute += UNIT
        else:
            self.rate = 1.0
            totals = model.exit_rates(self.there)
            least, most = extremes(totals)
            near = alike.all(least >= 1.0 - 8.0 * UNIT and most <= 1.0 + 8.0 * UNIT)
            self._divisor = self._space.ones(within.size) if near else totals
            greatest = alike.greatest(1.0 if near else max(most, 1.0))
            self._steps = self._space.system(self._divisor, self._b).relaxation()
            # lemma: steps
            slack += (entries + 8) * UNIT
            absolute = slack
        self._most = self.rate if self.continuous else greatest
        lost = underflow_of(np.array([self._most or 1.0]), slack)
        self._errors = StepErrors(slack, absolute, lost, alike)

    def _leaps(self, start: Array, steps: int) -> DensePowers | None:
        """Return the steps as powers of a dense matrix where that pays: not if values settle before long."""
        size = self._matrix.shape[0]
        if isinstance(self._matrix, DistributedMatrix) or not dense_powers_pay(size, steps):
            return None
        start = to_host(start)
        divisor, b = to_host(self._divisor), None if self._b is None else to_host(self._b)
        leaps = dense_powers(self._matrix, divisor, self.rate if self.continuous else None, b)
        x = leaps.after(start, FEWEST_STEPS // 2)
        change = float(np.abs(leaps.after(x, 1) - x).max())
        there = self._space.vector(x)
        return None if self._may_stop(there, change, steps - FEWEST_STEPS // 2, ErrorTerms()) else leaps

    def _vectors(self, start: Array) -> Pair:
        """Return the start and room for the value after a step, in the vector space."""
        self._space.reserve(self._space.more(_VECTORS, self._divisor), start.size)
        return super()._vectors(start)

    def _placed(self, x: Array) -> Array:
        """Return a vector of a device on the host, where the matrix is; one of the host as it is."""
        return x if isinstance(x, np.ndarray) else self.there.place.array(x)

    def _is_far(self, start: Array, steps: int) -> bool:
        seeds = [self._least_positive(start)]
        if self._b is not None:
            seeds.append(self._least_positive(self._b) / self._most)
        met = np.array([seed for seed in seeds if math.isfinite(seed)])
        return far_from_underflow(met, self._least_entry / self._most, steps)

    def _spread(self) -> Callable[[Array, Array], None]:
        space, b = self._space, None if self._b is None else self._space.vector(self._b > 0.0)

        def step(inside: Array, out: Array) -> None:
            space.multiply(inside, out)
            self._work.products += 1
            if b is not None:
                out += b

        return step

    def _least_positive(self, x: Array) -> float:
        """Return the least positive element; infinite if there is none."""
        if isinstance(x, np.ndarray) and x.size and x.strides == (0,):
            x = x[:1]
        return float(least_positive(np if isinstance(x, np.ndarray) else self._space.xp, x))

    def _account(self, steps: int, seconds: float) -> None:
        """Add the steps made to the account of the work."""
        matrix = self._matrix
        base = 8 * _VECTORS * matrix.shape[0]
        method = "uniformisation" if self.continuous else "steps"
        self._work.synchronisations += self._space.synchronisations
        self._work.note(method, matrix, steps, seconds, base)
        self._work.products += steps

    def after_steps(self, start: Array, steps: int) -> StateValues:
        """See `StepAnalysis.after_steps`; by powers of a dense matrix where that pays."""
        leaps = self._leaps(start, steps)
        if leaps is None:
            return super().after_steps(start, steps)
        clock, start = Clock(self._work.following(self._within), steps=steps), to_host(start)
        x = leaps.after(start, steps)
        self._account(leaps.products, clock.seconds)
        positive, greatest = leaps.positive_after(start, steps), max(float(start.max()), float(x.max()))
        found = self._errors.bounds(x, ErrorTerms(steps=steps), greatest, positive=positive)
        return found if self._places is None else found.at(self._places)

    def after_time(self, start: Array, time: float) -> StateValues:
        """Return the values a length of time before those of `start`, as in `after_steps`; for a CTMC."""
        poisson = poisson_weights(self.rate * time)
        tail = poisson.left_tail + poisson.right_tail
        result, course, greatest = self._weighted(start, poisson.left, poisson.weights)
        missing = (tail + course.rest) * greatest
        # lemma: uniformisation
        return self._errors.bounds(result, course, greatest, missing, poisson.slack + 2 * tail)

    def integral(self, rewards: Array, time: float) -> StateValues:
        """Return what `rewards` per unit of time, not negative, add up to over a time; for a CTMC."""
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
    ) -> tuple[Vector, ErrorTerms, float]:
        """Return the sum of ``weights[k] * x_{first + k}`` and of `flat` times all x before, with its course.

        Of the sum what is requested, on the host; last comes the greatest value met.
        """
        last = first + weights.size - 1
        space, clock = self._space, Clock(self._work.following(self._within), steps=last)
        course = ErrorTerms(steps=last, terms=last + 1 if flat else weights.size)
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
        with clock.cancellable():
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
                due = CHECK_EVERY - made % CHECK_EVERY
                count = 1 if made >= first else min(due, first - made)
                self._steps.sweep(pair, made, count, result if flat and made < first else None)
                made += count
                if made % CHECK_EVERY == 0:
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
        # Elements that are still zero are not decided yet.
        is_empty = self._space.is_empty(result.size)
        least = 0.0 if is_empty else self._space.read(self._space.extremes(result)[0])[0]
        return _TRUNCATED * self._criterion.epsilon * least
