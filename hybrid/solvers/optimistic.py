"""Optimistic value iteration: iterate from below, guess an upper bound, verify it in one step.

Let ``f(x) = (M x + b) / diagonal = A x + b'`` with non-negative A, b' and a unique fixed point x*.
The iterates x_0 = 0, x_{k+1} = f(x_k) grow towards x*, and any u with ``f(u) <= u`` bounds x* from
above, because the iterates from u fall towards x*.  Hartmanns and Kaminski (Optimistic value
iteration, CAV 2020) guess ``u = (1 + epsilon) x_k`` and iterate until the guess passes, which it
need not do on chains with a period.  Here the guess has the shape of the error itself.  The sum
``s = sum over j < k of (x_k - x_j)`` satisfies ``s - A s = x_k - k d`` with ``d = x_{k+1} - x_k``,
so that u = x_k + c s is inductive as soon as ``d <= c (x_k - k d)``: with the relative difference eta
of the last two iterates, c slightly above ``eta / (1 - k eta)`` does it.  One vector more, no second
iteration, and the relative error is known to be about eta times the number of steps that the chain
takes from a state, which is what eta alone does not tell.

Rounding is directed: the iteration uses ``diagonal * (1 + slack)``, so that every iterate is a lower bound,
and the verification ``diagonal * (1 - slack)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hybrid.solvers.base import Clock, Criterion, Progress, Status, Sweeper, Vector
from hybrid.solvers.enclosure import ENCLOSING_VECTORS, TINY, DirectedSystem, Enclosure, Outcome, width_of
from hybrid.solvers.pace import Pace
from hybrid.solvers.workspace import Array, Pair, Steps

__all__ = ["Bracket", "Optimistic"]

_GUESSES = 4  # tries with a doubled c before more iterations are made
_LAST_GUESSES = 40  # the same where more iterations would change nothing
_LOOSE = 4.0  # times epsilon that bounds may be apart whose guess came from a greater solution

_MORE_VECTORS = 5  # where values are lost to underflow: a bound, a right-hand side, a diagonal, two operands


@dataclass(frozen=True, eq=False)
class Bracket:
    """Bounds in the workspace.

    Attributes
    ----------
    outcome : Outcome
    lower : array, shape (n,)
    upper : array, shape (n,), or None
        None if no bound was verified.
    spare : tuple of two arrays, shape (n,)
        Free for other uses.
    """

    outcome: Outcome
    lower: Array
    upper: Array | None
    spare: Pair


@dataclass(frozen=True)
class Optimistic:
    """Optimistic value iteration; parameters of `solve` as in `EnclosingMethod`.

    Attributes
    ----------
    criterion : Criterion
        Here `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    """

    criterion: Criterion = Criterion()
    name = "optimistic"
    vectors: ClassVar[int] = ENCLOSING_VECTORS

    def solve(
        self,
        matrix: Sweeper,
        diagonal: Vector,
        b: Vector,
        slack: float,
        ceiling: float | None,
        progress: Progress | None = None,
    ) -> Enclosure:
        """Iterate until a verified upper bound is within epsilon of the iterate.

        Where double precision does not allow for that, the bounds come out as close as it does.

        Notes
        -----
        Six vectors besides the operands, where the matrix has its workspace, and three more where some
        value is near the smallest doubles.  Status `NO_BOUND` if the iterates stand still and no guess
        passes, which takes chains of some 10^13 steps, or if values are lost to underflow.
        """
        clock = Clock(progress)
        system = DirectedSystem(matrix, diagonal, b, slack, self.vectors)
        found = self.bracket(system, clock)
        if found.upper is not None and ceiling is not None:
            system.space.xp.minimum(found.upper, ceiling, out=found.upper)
        return system.enclosure(found.outcome, clock, found.lower, found.upper, found.spare)

    def bracket(self, system: DirectedSystem, clock: Clock) -> Bracket:
        """Iterate in the workspace; vectors stay there."""
        space, xp, outcome = system.space, system.space.xp, Outcome()
        pair: Pair = (system.zeros(), system.zeros())
        total, guess = system.zeros(), xp.empty(system.size)
        if not math.isfinite(system.negligible):
            outcome.status = Status.NO_BOUND
            return Bracket(outcome, pair[0], None, (total, guess))
        climb = _Climb(self.criterion, system, pair, total, guess, outcome, clock)
        lower, upper = climb.run(system.down)
        steps = outcome.iterations
        if climb.lost:
            # The guess comes from a solution that is no less, and nowhere next to underflow.
            space.reserve(_MORE_VECTORS, system.size)
            lower = space.vector(lower)
            for vector in (*pair, total):
                vector[...] = 0.0
            _, upper = climb.run(system.raised(climb.positive))
            if upper is not None and not self._close(system, lower, upper, guess):
                outcome.status, upper = Status.NO_BOUND, None
        if climb.positive is not None:
            system.lowered(lower, steps)
        return Bracket(outcome, lower, upper, (total, guess))

    def _close(self, system: DirectedSystem, lower: Array, upper: Array, gap: Array) -> bool:
        """Whether bounds are as close as they should be where digits can be told; `gap` is overwritten."""
        xp = system.space.xp
        xp.subtract(upper, lower, out=gap)
        gap *= upper >= TINY
        (width,) = system.space.read(width_of(self.criterion, gap, upper, xp))
        return width <= max(_LOOSE * self.criterion.epsilon, 64.0 * system.slack)


class _Climb:
    """Iterates from 0 until a guess above them is verified.

    Parameters
    ----------
    criterion : Criterion
    system : DirectedSystem
    pair : pair of arrays, shape (n,)
        Zero; the iterates.
    total, guess : array, shape (n,)
        The first zero; both are overwritten.
    outcome : Outcome
        Of all runs.
    clock : Clock

    Attributes
    ----------
    positive : array, shape (n,), float64, or None
        One where the solution is positive, zero where it is zero; None while all iterates are far from
        underflow.
    lost : bool
        Whether the last run ended, with status `NO_BOUND`, because positive values are lost to underflow.
    """

    def __init__(
        self,
        criterion: Criterion,
        system: DirectedSystem,
        pair: Pair,
        total: Array,
        guess: Array,
        outcome: Outcome,
        clock: Clock,
    ) -> None:
        self.criterion, self._system, self._pair = criterion, system, pair
        self._total, self._guess, self._outcome, self._clock = total, guess, outcome, clock
        self.positive: Array | None = None
        self.lost = False

    def run(self, down: Steps) -> tuple[Array, Array | None]:
        """Iterate, and leave the outcome's status.

        Parameters
        ----------
        down : Steps
            Of the system, or of one with a greater right-hand side.

        Returns
        -------
        x, upper : array, shape (n,)
            The last iterate, and an upper bound of the system's solution; None if none was verified.
        """
        space, outcome = self._system.space, self._outcome
        pair, total, target, begun = self._pair, self._total, self.criterion.epsilon, outcome.iterations
        pace, made, outcome.status = Pace(space.stride), 0, Status.MAX_ITERATIONS
        while outcome.iterations < self.criterion.max_iterations:
            count = pace.steps(self.criterion.max_iterations - outcome.iterations)
            down.sweep(pair, made, count, total)
            made += count
            outcome.iterations = begun + made
            absolute, outcome.difference = space.read(down.changes)
            if not math.isfinite(absolute):
                outcome.status = Status.DIVERGED
                break
            pace.look(made, outcome.difference, target)
            if outcome.difference <= target:
                x, y = pair[made % 2], pair[1 - made % 2]
                self.lost = self._is_lost(x)
                if self.lost and (outcome.difference == 0.0 or not self.criterion.absolute):
                    outcome.status = Status.NO_BOUND
                    return x, None
                total *= -1.0
                space.add_scaled(float(made), x, total)
                space.xp.maximum(total, 0.0, out=total)  # holds s now
                wanted = self._verify(x, y, made)
                if wanted is None:
                    outcome.status = Status.CONVERGED
                    return x, y
                if outcome.difference == 0.0:
                    outcome.status = Status.NO_BOUND
                    break
                total *= -1.0
                space.add_scaled(float(made), x, total)
                target = min(wanted, 0.5 * target)
            self._clock.tick(outcome.iterations, outcome.difference)
        return pair[made % 2], None

    def _is_lost(self, x: Array) -> bool:
        """Whether a positive value is so near to underflow that no guess can be verified."""
        system, xp = self._system, self._system.space.xp
        if system.is_far or system.space.read(system.space.extremes(x)[0])[0] > system.negligible:
            return False
        if self.positive is None:
            self.positive = system.positive_rows()
        least = xp.where(self.positive > 0.0, x, np.inf).min()
        return bool(system.space.read(least)[0] <= system.floor)

    def _verify(self, x: Array, y: Array, made: int) -> float | None:
        """Leave a verified upper bound near enough in `y` and return None, or the difference to go on to."""
        system, s, guess = self._system, self._total, self._guess
        space, xp = system.space, system.space.xp
        epsilon, difference = self.criterion.epsilon, self._outcome.difference
        (reach,) = space.read(width_of(self.criterion, s, x, xp))
        floor = 8.0 * system.slack
        wanted = max(0.5 * epsilon / reach - floor, 0.0) if reach > 0 else 0.0
        exhausted = difference == 0.0 or difference <= floor
        if made * difference > 0.5 and not exhausted:
            return min(wanted, 0.25 / made)
        c = (difference + floor) / (1.0 - min(made * difference, 0.5))
        if c * reach > epsilon and not exhausted:
            return max(wanted, floor)
        for _ in range(_LAST_GUESSES if exhausted else _GUESSES):
            xp.multiply(s, c, out=guess)
            guess += x
            system.up.sweep((guess, y), 0, 1)
            if self.positive is not None:
                space.add_scaled(system.underflow, self.positive, y)
            (inductive,) = space.read((y <= guess).all())
            if inductive:
                # One more step from an inductive bound is a better bound.
                xp.maximum(y, x, out=y)
                return None
            c *= 2.0
            if c * reach > epsilon and not exhausted:
                break  # such a bound would be too far off
        return 0.25 * difference
