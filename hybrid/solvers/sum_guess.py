"""Guesses of upper bounds in the shape of the error of the iterates, for one matrix.

Let ``f(x) = A x + b`` with non-negative A and b.  The sum ``s = sum over j < k of (x_k - x_j)`` satisfies
``s - A s = x_k - k d`` with ``d = x_{k+1} - x_k``, so that u = x_k + c s is inductive as soon as ``d <= c
(x_k - k d)``: with the relative difference eta of the last two iterates, c slightly above ``eta / (1 - k
eta)`` does it.  One vector more, no second iteration, and the relative error is known to be about eta times
the number of steps that the chain takes from a state, which is what eta alone does not tell.
"""

from __future__ import annotations

from hybrid.matrix.space.base import Criterion
from hybrid.matrix.space.bellman import BellmanOperator, Outcome
from hybrid.matrix.space.bounded_solution import width_of
from hybrid.matrix.space.workspace import Array, Pair

_GUESSES = 4  # tries with a doubled c before more iterations are made
_LAST_GUESSES = 40  # the same where more iterations would change nothing
_INTERRUPTED_GUESSES = 8  # the same where somebody waits for the end


class SumGuess:
    """See :class:`hybrid.matrix.space.bellman.Guess`."""

    def __init__(self, system: BellmanOperator, criterion: Criterion) -> None:
        self._system, self._criterion = system, criterion
        self._total, self._guess = system.zeros(), system.space.xp.empty(system.size)

    @property
    def total(self) -> Array:
        """See `Guess.total`."""
        return self._total

    def difference(self, absolute: float, relative: float) -> float:
        """See `Guess.difference`: relative in any case."""
        return relative

    def restart(self) -> None:
        """See `Guess.restart`."""
        self._total[...] = 0.0

    @property
    def scratch(self) -> Array:
        """See `Guess.scratch`."""
        return self._guess

    def spare(self) -> Pair:
        """See `Guess.spare`."""
        return self._total, self._guess

    def verified(
        self, x: Array, y: Array, made: int, outcome: Outcome, positive: Array | None, last: bool = False
    ) -> float | None:
        """See `Guess.verified`."""
        space, total = self._system.space, self._total
        total *= -1.0
        space.add_scaled(float(made), x, total)
        space.xp.maximum(total, 0.0, out=total)  # holds s now
        wanted = self._verify(x, y, made, outcome.difference, positive, last)
        if wanted is not None:
            total *= -1.0
            space.add_scaled(float(made), x, total)
        return wanted

    def _verify(
        self, x: Array, y: Array, made: int, difference: float, positive: Array | None, last: bool
    ) -> float | None:
        system, s, guess = self._system, self._total, self._guess
        space, xp = system.space, system.space.xp
        epsilon = self._criterion.epsilon
        (reach,) = space.read(width_of(self._criterion, s, x, space))
        floor = 8.0 * system.slack
        wanted = max(0.5 * epsilon / reach - floor, 0.0) if reach > 0 else 0.0
        exhausted = difference == 0.0 or difference <= floor or last
        if made * difference > 0.5 and not exhausted:
            return min(wanted, 0.25 / made)
        c = (difference + floor) / (1.0 - min(made * difference, 0.5))
        if c * reach > epsilon and not exhausted:
            return max(wanted, floor)
        for _ in range(_INTERRUPTED_GUESSES if last else _LAST_GUESSES if exhausted else _GUESSES):
            xp.multiply(s, c, out=guess)
            guess += x
            if system.verifies(guess, x, y, positive):  # lemma: park
                return None
            c *= 2.0
            if c * reach > epsilon and not exhausted:
                break  # such a bound would be too far off
        return 0.25 * difference
