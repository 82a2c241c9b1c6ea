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

from dataclasses import dataclass

import numpy as np

from hybrid.solvers.base import Clock, Criterion, Progress, Status, Sweeper, Vector, true_residual
from hybrid.solvers.enclosure import Enclosure, settle_tiny, width_of

__all__ = ["Optimistic"]

_GUESSES = 4  # tries with a doubled c before more iterations are made


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
        Three vectors besides the operands.  Status `NO_BOUND` if the iterates stand still and no
        guess passes, which takes chains of some 10^13 steps.
        """
        x, y, total = np.zeros_like(b), np.zeros_like(b), np.zeros_like(b)
        low, high = diagonal * (1.0 + slack), diagonal * (1.0 - slack)
        clock = Clock(progress)
        target = self.criterion.epsilon
        status, difference, iteration = Status.MAX_ITERATIONS, float("inf"), 0
        upper: Vector | None = None
        while iteration < self.criterion.max_iterations:
            with np.errstate(over="ignore"):
                total += x
            iteration += 1
            absolute, difference = matrix.jacobi_step(x, y, b, low, 1.0)
            x, y = y, x
            if not np.isfinite(absolute):
                status = Status.DIVERGED
                break
            if difference <= target:
                total *= -1.0
                total += iteration * x
                np.maximum(total, 0.0, out=total)  # holds s now
                upper, wanted = self._verified(matrix, x, y, total, b, high, slack, difference, iteration)
                if upper is not None:
                    status = Status.CONVERGED
                    break
                if difference == 0.0:
                    status = Status.NO_BOUND
                    break
                total *= -1.0
                total += iteration * x
                target = min(wanted, 0.5 * target)
            clock.tick(iteration, difference)
        seconds = clock.seconds
        residual = true_residual(matrix, x, b, diagonal, total)
        if upper is None:
            return Enclosure(x, status, iteration, seconds, difference, residual, x, np.full_like(x, np.inf))
        if ceiling is not None:
            np.minimum(upper, ceiling, out=upper)
        settle_tiny(x, upper)
        values = 0.5 * (x + upper)
        return Enclosure(values, status, iteration, seconds, difference, residual, x, upper)

    def _verified(
        self,
        matrix: Sweeper,
        x: Vector,
        y: Vector,
        s: Vector,
        b: Vector,
        high: Vector,
        slack: float,
        difference: float,
        iteration: int,
    ) -> tuple[Vector | None, float]:
        """Return a verified upper bound near enough, or None and the difference to go on to."""
        epsilon = self.criterion.epsilon
        reach = width_of(self.criterion, s, x)
        floor = 8.0 * slack
        wanted = max(0.5 * epsilon / reach - floor, 0.0) if reach > 0 else 0.0
        exhausted = difference == 0.0 or difference <= floor
        if iteration * difference > 0.5 and not exhausted:
            return None, min(wanted, 0.25 / iteration)
        c = (difference + floor) / (1.0 - min(iteration * difference, 0.5))
        if c * reach > epsilon and not exhausted:
            return None, max(wanted, floor)
        for _ in range(_GUESSES if not exhausted else 40):
            guess = x + c * s
            _ = matrix.jacobi_step(guess, y, b, high, 1.0)
            if bool((y <= guess).all()):
                # One more step from an inductive bound is a better bound.
                return np.maximum(y, x), 0.0
            c *= 2.0
        return None, 0.25 * difference
