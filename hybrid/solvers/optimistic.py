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

from hybrid.solvers.base import Clock, Criterion, Progress, Status, Sweeper, Vector
from hybrid.solvers.enclosure import DirectedSystem, Enclosure, Outcome, width_of
from hybrid.solvers.pace import Pace
from hybrid.solvers.workspace import Array, Pair

__all__ = ["Bracket", "Optimistic"]

_GUESSES = 4  # tries with a doubled c before more iterations are made
_LAST_GUESSES = 40  # the same where more iterations would change nothing


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
        Four vectors besides the operands, where the matrix has its workspace.  Status `NO_BOUND` if the
        iterates stand still and no guess passes, which takes chains of some 10^13 steps.
        """
        clock = Clock(progress)
        system = DirectedSystem(matrix, diagonal, b, slack)
        found = self.bracket(system, clock)
        if found.upper is not None and ceiling is not None:
            system.space.xp.minimum(found.upper, ceiling, out=found.upper)
        return system.enclosure(found.outcome, clock, found.lower, found.upper, found.spare)

    def bracket(self, system: DirectedSystem, clock: Clock) -> Bracket:
        """Iterate in the workspace; vectors stay there."""
        space = system.space
        pair: Pair = (system.zeros(), system.zeros())
        total, guess = system.zeros(), space.xp.empty(system.size)
        target, outcome, pace = self.criterion.epsilon, Outcome(), Pace(space.stride)
        while outcome.iterations < self.criterion.max_iterations:
            count = pace.steps(self.criterion.max_iterations - outcome.iterations)
            system.down.sweep(pair, outcome.iterations, count, total)
            outcome.iterations += count
            k = outcome.iterations
            absolute, outcome.difference = space.read(system.down.changes)
            if not math.isfinite(absolute):
                outcome.status = Status.DIVERGED
                break
            pace.look(k, outcome.difference, target)
            if outcome.difference <= target:
                x, y = pair[k % 2], pair[1 - k % 2]
                total *= -1.0
                space.add_scaled(float(k), x, total)
                space.xp.maximum(total, 0.0, out=total)  # holds s now
                wanted = self._verify(system, x, y, total, guess, outcome)
                if wanted is None:
                    outcome.status = Status.CONVERGED
                    return Bracket(outcome, x, y, (total, guess))
                if outcome.difference == 0.0:
                    outcome.status = Status.NO_BOUND
                    break
                total *= -1.0
                space.add_scaled(float(k), x, total)
                target = min(wanted, 0.5 * target)
            clock.tick(k, outcome.difference)
        k = outcome.iterations
        return Bracket(outcome, pair[k % 2], None, (total, guess))

    def _verify(
        self, system: DirectedSystem, x: Array, y: Array, s: Array, guess: Array, outcome: Outcome
    ) -> float | None:
        """Leave a verified upper bound near enough in `y` and return None, or the difference to go on to."""
        space, xp = system.space, system.space.xp
        epsilon, difference, iteration = self.criterion.epsilon, outcome.difference, outcome.iterations
        (reach,) = space.read(width_of(self.criterion, s, x, xp))
        floor = 8.0 * system.slack
        wanted = max(0.5 * epsilon / reach - floor, 0.0) if reach > 0 else 0.0
        exhausted = difference == 0.0 or difference <= floor
        if iteration * difference > 0.5 and not exhausted:
            return min(wanted, 0.25 / iteration)
        c = (difference + floor) / (1.0 - min(iteration * difference, 0.5))
        if c * reach > epsilon and not exhausted:
            return max(wanted, floor)
        for _ in range(_LAST_GUESSES if exhausted else _GUESSES):
            xp.multiply(s, c, out=guess)
            guess += x
            system.up.sweep((guess, y), 0, 1)
            (inductive,) = space.read((y <= guess).all())
            if inductive:
                # One more step from an inductive bound is a better bound.
                xp.maximum(y, x, out=y)
                return None
            c *= 2.0
            if c * reach > epsilon and not exhausted:
                break  # such a bound would be too far off
        return 0.25 * difference
