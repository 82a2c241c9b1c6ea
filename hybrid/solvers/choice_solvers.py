"""Value iteration with and without bounds for ``x = opt over i of (A_i x + b_i)``, all numbers non-negative.

The equation has one solution x* among finite vectors: end components in which a scheduler could stay for
nothing have been taken out beforehand.  Iterates from 0 are lower bounds.  Any u with ``f(u) <= u`` is an
upper bound (Park induction), which optimistic value iteration guesses and verifies (Hartmanns and Kaminski,
CAV 2020).

The guess.  Let v > 0 and ``w >= v + A_i w`` for the choices i that matter: all of them for a maximum, those
of a best policy at x for a minimum.  With ``f(x) - x <= c v`` then ``f(x + c w) <= f(x) + c max_i A_i w <=
x + c w``, so that x + c w is an upper bound, and c w its distance from x.  For v = x it is relative to x.
Such a w comes from iterates ``w_{k+1} = v + opt A_i w_k`` from v: as soon as they grow by v / 2 at most,
2 w_k is one.

Rounding is directed as in `hybrid.solvers.enclosure`: a step has a relative error below the operator's slack,
and an absolute one by underflow, which lower bounds lose, upper ones gain, and guesses must leave room for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hybrid.solvers.base import Clock, Criterion, Progress, Solution, Status
from hybrid.solvers.choice_operator import ChoiceOperator
from hybrid.solvers.enclosure import FLOOR, NEGLIGIBLE, TINY, Enclosure, Outcome, settle_tiny, width_of
from hybrid.solvers.pace import Pace
from hybrid.solvers.workspace import Array, Pair

__all__ = ["Intervals", "OptimisticIteration", "ValueIteration"]

_GUESSES = 4  # tries with a doubled c before more iterations are made
_LAST_GUESSES = 40  # the same where more iterations would change nothing
_CHECK_EVERY = 8  # steps between measurements that cost passes of their own
_COARSE = 0.5
_LOOSE = 4.0  # times epsilon that bounds may be apart whose guess came from greater iterates
BOUND_VECTORS = 8
"""Of methods with bounds: two iterates of each, the guess with its iterates, a policy, a layer's product."""


@dataclass(frozen=True)
class ValueIteration:
    """Value iteration that stops when two iterates are close: an estimate without bounds.

    Attributes
    ----------
    criterion : Criterion
    """

    criterion: Criterion = Criterion()
    name = "value-iteration"
    vectors: ClassVar[int] = 3  # two iterates and a layer's product

    def solve(self, system: ChoiceOperator, progress: Progress | None = None) -> Solution:
        """Iterate from 0."""
        clock, space = Clock(progress), system.space
        space.reserve(self.vectors, system.size)
        pair: Pair = system.zeros(), system.zeros()
        outcome, pace = Outcome(), Pace(space.stride)
        while outcome.status is Status.MAX_ITERATIONS and outcome.iterations < self.criterion.max_iterations:
            count = pace.steps(self.criterion.max_iterations - outcome.iterations)
            _sweep(system, pair, outcome.iterations, count, 1.0)
            outcome.iterations += count
            absolute, relative = space.read(system.changes)
            outcome.difference = self.criterion.difference(absolute, relative)
            if not math.isfinite(absolute):
                outcome.status = Status.DIVERGED
            elif outcome.difference < self.criterion.epsilon:
                outcome.status = Status.CONVERGED
            pace.look(outcome.iterations, outcome.difference, self.criterion.epsilon)
            clock.tick(outcome.iterations, outcome.difference)
        k = outcome.iterations % 2
        seconds, looks = clock.seconds, space.looks
        residual = _residual(system, pair[k], pair[1 - k])
        return Solution(
            space.to_host(pair[k]), outcome.status, outcome.iterations, seconds, outcome.difference, residual,
            synchronisations=looks,
        )  # fmt: skip


@dataclass(frozen=True)
class OptimisticIteration:
    """Iteration from below until a verified upper bound is within epsilon.

    Attributes
    ----------
    criterion : Criterion
        `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    """

    criterion: Criterion = Criterion()
    name = "optimistic"
    vectors: ClassVar[int] = BOUND_VECTORS

    def solve(
        self, system: ChoiceOperator, ceiling: float | None, progress: Progress | None = None
    ) -> Enclosure:
        """Iterate; where double precision does not reach epsilon, the bounds come as close as it does.

        Parameters
        ----------
        system : ChoiceOperator
        ceiling : float, optional
            A bound on all values known beforehand.
        """
        clock = Clock(progress)
        outcome, lower, upper, spare = self.bracket(system, clock)
        if upper is not None and ceiling is not None:
            system.space.xp.minimum(upper, ceiling, out=upper)
        return _enclosure(system, outcome, clock, lower, upper, spare)

    def bracket(self, system: ChoiceOperator, clock: Clock) -> tuple[Outcome, Array, Array | None, Array]:
        """Return the outcome, the lower bound, the upper one if one was verified, and a spare vector."""
        space, outcome = system.space, Outcome()
        space.reserve(self.vectors, system.size)
        pair: Pair = system.zeros(), system.zeros()
        guide = _Guide(system, self.criterion)
        lower, upper = self._climb(system, pair, guide, outcome, clock)
        steps = outcome.iterations
        if guide.lost and guide.positive is not None:
            # The guess comes from iterates that are no less, and nowhere next to underflow.
            lower = lower.copy()
            pair[0][...] = 0.0
            _, upper = self._climb(system, pair, guide, outcome, clock, 4.0 * guide.floor * guide.positive)
            if upper is not None and not self._close(system, lower, upper, guide.spare):
                outcome.status, upper = Status.NO_BOUND, None
        if guide.positive is not None:
            lower -= steps * system.underflow
            space.xp.maximum(lower, 0.0, out=lower)
        return outcome, lower, upper, guide.spare

    def _climb(
        self,
        system: ChoiceOperator,
        pair: Pair,
        guide: _Guide,
        outcome: Outcome,
        clock: Clock,
        least: Array | None = None,
    ) -> tuple[Array, Array | None]:
        """Iterate from ``pair[0]``, which is zero, and verify; leave the outcome's status.

        Parameters
        ----------
        least : array, shape (size,), float64, optional
            Iterates are raised to it.

        Returns
        -------
        x, upper : array, shape (size,)
            The last iterate, and an upper bound; None if none was verified.
        """
        space, xp, criterion = system.space, system.space.xp, self.criterion
        target, pace, made = criterion.epsilon, Pace(space.stride), 0
        outcome.status = Status.MAX_ITERATIONS
        while outcome.iterations < criterion.max_iterations:
            count = pace.steps(criterion.max_iterations - outcome.iterations) if least is None else 1
            _sweep(system, pair, made, count, 1.0 - system.slack)
            made += count
            outcome.iterations += count
            x, y = pair[made % 2], pair[1 - made % 2]
            changes = system.changes
            if least is not None:
                xp.maximum(x, least, out=x)
                changes = space.distance(x, y)
            absolute, relative = space.read(changes)
            if not math.isfinite(absolute):
                outcome.status = Status.DIVERGED
                break
            outcome.difference = criterion.difference(absolute, relative)
            if outcome.difference <= target:
                if guide.is_lost(x) and (outcome.difference == 0.0 or not criterion.absolute):
                    outcome.status = Status.NO_BOUND
                    break
                wanted = guide.verified(x, y, outcome)
                if wanted is None:
                    outcome.status = Status.CONVERGED
                    return x, y
                if outcome.difference == 0.0:
                    outcome.status = Status.NO_BOUND
                    break
                target = min(wanted, 0.5 * target)
            pace.look(made, outcome.difference, target)
            clock.tick(outcome.iterations, outcome.difference)
        return pair[made % 2], None

    def _close(self, system: ChoiceOperator, lower: Array, upper: Array, gap: Array) -> bool:
        """Whether bounds are as close as they should be where digits can be told; `gap` is overwritten."""
        xp = system.space.xp
        xp.subtract(upper, lower, out=gap)
        gap *= upper >= TINY
        (width,) = system.space.read(width_of(self.criterion, gap, upper, xp))
        return width <= max(_LOOSE * self.criterion.epsilon, 64.0 * system.slack)


class _Guide:
    """Finds the vector w of the guess, and verifies guesses.

    Attributes
    ----------
    positive : array, shape (size,), float64, or None
        One where the solution is positive, zero where it is zero; None while all iterates are far from
        underflow.
    lost : bool
        Whether positive values were so near to underflow that no guess could be verified.
    floor : float
        What is near to it.
    """

    def __init__(self, system: ChoiceOperator, criterion: Criterion) -> None:
        self._system, self._criterion = system, criterion
        self.positive: Array | None = None
        self.lost, self.floor = False, FLOOR * system.underflow
        self.spare = system.space.xp.empty(system.size)
        self._scale: Array | None = None
        self._weights: Array | None = None
        self._policy: Array | None = None

    def is_lost(self, x: Array) -> bool:
        """Whether a positive value is so near to underflow that no guess can be verified."""
        system, space, xp = self._system, self._system.space, self._system.space.xp
        self.lost = False
        if system.size == 0 or space.read(space.extremes(x)[0])[0] > NEGLIGIBLE * system.underflow:
            return False
        if self.positive is None:
            self.positive = system.positive_states()
        least = xp.where(self.positive > 0.0, x, np.inf).min()
        self.lost = bool(space.read(least)[0] <= self.floor)
        return self.lost

    def verified(self, x: Array, y: Array, outcome: Outcome) -> float | None:
        """Leave a verified upper bound close to x in y and return None, or the difference to go on to."""
        system, space, xp = self._system, self._system.space, self._system.space.xp
        epsilon, difference = self._criterion.epsilon, outcome.difference
        size = 1.0
        if self._criterion.absolute:
            (size,) = space.read(x.max()) if system.size else (0.0,)
        floor = 8.0 * system.slack * size
        exhausted = difference == 0.0 or difference <= floor
        weights = self._guess_vector(x, outcome)
        if weights is None:
            return difference / 16.0
        (reach,) = space.read(width_of(self._criterion, weights, x, xp))
        if not math.isfinite(reach):
            # Some value was still zero when the weights were found.
            self._weights = None
            return difference / 16.0
        wanted = max(0.5 * epsilon / reach - floor, floor) if reach > 0 else epsilon
        c = 1.01 * (difference + floor) / max(1.0 - 8.0 * system.slack * reach, 0.5)
        if c * reach > epsilon and not exhausted:
            return wanted
        for _ in range(_LAST_GUESSES if exhausted else _GUESSES):
            xp.multiply(weights, c, out=self.spare)
            self.spare += x
            system.improve(self.spare, y, 1.0 / (1.0 - system.slack))
            outcome.iterations += 1
            if self.positive is not None:
                space.add_scaled(system.underflow, self.positive, y)
            (inductive,) = space.read((y <= self.spare).all())
            if inductive:
                # One more step from an inductive bound is a better bound.
                xp.maximum(y, x, out=y)
                return None
            c *= 2.0
        self._weights = None
        return 0.25 * difference

    def _guess_vector(self, x: Array, outcome: Outcome) -> Array | None:
        """Return w for this x, or None if its iterates do not settle: choices best so far lead nowhere."""
        system, space, xp = self._system, self._system.space, self._system.space.xp
        policy = None
        if not system.maximise:
            policy = system.choose(x)
            if self._policy is not None and not space.read((policy == self._policy).all())[0]:
                self._weights = None
            self._policy = policy
        if self._weights is not None:
            return self._weights
        v = xp.ones(system.size) if self._criterion.absolute else x.copy()
        pair: Pair = v.copy(), xp.empty(system.size)
        rest = self._criterion.max_iterations - outcome.iterations
        limit = rest if system.maximise else min(rest, 4 * outcome.iterations + 1000)
        made = 0
        while made < limit:
            for _ in range(_CHECK_EVERY):
                system.improve(pair[made % 2], pair[1 - made % 2], shape=v, policy=policy)
                made += 1
            w, before = pair[made % 2], pair[1 - made % 2]
            xp.subtract(w, before, out=before)
            (growth,) = space.read(width_of(self._criterion, before, v, xp))
            if growth <= 0.5:
                outcome.iterations += made
                w *= 2.0
                self._weights = w
                return w
            if not math.isfinite(growth):
                break
        outcome.iterations += made
        return None


@dataclass(frozen=True)
class Intervals:
    """Interval iteration: the same step from below and from above until the two meet.

    Haddad and Monmege, TCS 2018; Baier et al., CAV 2017.

    Attributes
    ----------
    criterion : Criterion
        `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    """

    criterion: Criterion = Criterion()
    name = "interval"
    vectors: ClassVar[int] = BOUND_VECTORS

    def solve(
        self, system: ChoiceOperator, ceiling: float | None, progress: Progress | None = None
    ) -> Enclosure:
        """Iterate both bounds; without a `ceiling` a coarse optimistic iteration provides the start above.

        Bounds that stand still short of epsilon are what double precision allows for, and are returned.
        """
        clock, space, xp = Clock(progress), system.space, system.space.xp
        outcome = Outcome()
        if ceiling is None:
            coarse = OptimisticIteration(replace(self.criterion, epsilon=_COARSE, absolute=False))
            outcome, low, high, spare = coarse.bracket(system, clock)
            if high is None:
                return _enclosure(system, outcome, clock, low, None, spare)
            lows, highs = (low, spare), (high, xp.empty(system.size))
            outcome = Outcome(iterations=outcome.iterations)
        else:
            space.reserve(self.vectors, system.size)
            high = system.zeros()
            high += ceiling
            lows, highs = (system.zeros(), system.zeros()), (high, system.zeros())
        pace, made, measured = Pace(space.stride), 0, 0
        while outcome.iterations < self.criterion.max_iterations:
            count = pace.steps(self.criterion.max_iterations - outcome.iterations)
            _sweep(system, lows, made, count, 1.0 - system.slack)
            below = system.changes
            _sweep(system, highs, made, count, 1.0 / (1.0 - system.slack))
            made += count
            outcome.iterations += count
            x, above = lows[made % 2], highs[made % 2]
            size, below_moves, _, above_moves = space.read(below, system.changes)
            if not math.isfinite(size):
                outcome.status = Status.DIVERGED
                break
            if ceiling is not None:
                xp.minimum(above, ceiling, out=above)
            still = below_moves == 0.0 and above_moves == 0.0
            if still or made - measured >= _CHECK_EVERY:
                measured = made
                absolute, relative = space.read(space.distance(x, above))
                outcome.difference = self.criterion.difference(absolute, relative)
                if still or outcome.difference <= self.criterion.epsilon:
                    outcome.status = Status.CONVERGED
                    break
                pace.look(made, outcome.difference, self.criterion.epsilon)
            clock.tick(outcome.iterations, outcome.difference)
        lower, upper = lows[made % 2], highs[made % 2]
        if system.size and not space.read(space.extremes(lower)[0])[0] > NEGLIGIBLE * system.underflow:
            lower -= outcome.iterations * system.underflow
            xp.maximum(lower, 0.0, out=lower)
            upper += outcome.iterations * system.underflow
            xp.copyto(upper, 0.0, where=system.positive_states() == 0.0)
        if ceiling is not None:
            xp.minimum(upper, ceiling, out=upper)
        return _enclosure(system, outcome, clock, lower, upper, lows[1 - made % 2])


def _sweep(system: ChoiceOperator, pair: Pair, done: int, count: int, factor: float) -> None:
    """Queue steps number ``done + 1 .. done + count``; the iterate after k steps lies in ``pair[k % 2]``."""
    system.repeat(pair, done, count, factor)


def _residual(system: ChoiceOperator, x: Array, scratch: Array) -> float:
    """Return ``max |f(x) - x|`` from a fresh step written to `scratch`."""
    if system.size == 0:
        return 0.0
    system.improve(x, scratch)
    return float(system.space.read(system.changes)[0])


def _enclosure(
    system: ChoiceOperator, outcome: Outcome, clock: Clock, lower: Array, upper: Array | None, spare: Array
) -> Enclosure:
    """Return what has been found, brought to the host; `spare` is overwritten."""
    seconds, space = clock.seconds, system.space
    low = np.array(space.to_host(lower))
    if upper is None:
        values, high = low, np.full_like(low, np.inf)
        residual = _residual(system, lower, spare)
    else:
        middle = 0.5 * (lower + upper)
        residual = _residual(system, middle, spare)
        high = np.array(space.to_host(upper))
        settle_tiny(low, high)
        values = 0.5 * (low + high)
    return Enclosure(
        values, outcome.status, outcome.iterations, seconds, outcome.difference, residual, low, high,
        synchronisations=space.looks,
    )  # fmt: skip
