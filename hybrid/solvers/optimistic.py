"""Optimistic value iteration: iterate from below, guess an upper bound, verify it in one step.

Let f be monotone with a unique fixed point x*.  The iterates x_0 = 0, x_{k+1} = f(x_k) grow towards x*, and
any u with ``f(u) <= u`` bounds x* from above, because the iterates from u fall towards x* (Park induction).
Hartmanns and Kaminski (Optimistic value iteration, CAV 2020) guess ``u = (1 + epsilon) x_k`` and iterate
until the guess passes, which it need not do on chains with a period.  Here the guess has the shape of the
error itself: :mod:`hybrid.solvers.sum_guess` for one matrix, :mod:`hybrid.solvers.weight_guess` over
choices.

Rounding is directed: the iteration rounds down, so that every iterate is a lower bound, and the
verification up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from hybrid.solvers.base import Clock, Criterion, MatrixOperator, Progress, Status, Vector
from hybrid.solvers.bellman import BellmanOperator, Guess, Leap, Outcome
from hybrid.solvers.bounded_solution import (
    ENCLOSING_VECTORS,
    TINY,
    BoundedSolution,
    SearchEndedError,
    width_of,
)
from hybrid.solvers.check_interval import CheckInterval
from hybrid.solvers.directed_system import DirectedSystem
from hybrid.solvers.workspace import Array, Pair, Steps

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
    """Optimistic value iteration; parameters of `solve` as in `BoundingMethod`.

    Attributes
    ----------
    criterion : Criterion
        Here `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    krylov : {"auto", "always", "never"}
        When IDR(s) takes over, on a chain: where it is expected to be faster, at once, or not at all.
    """

    criterion: Criterion = Criterion()
    krylov: Literal["auto", "always", "never"] = "auto"
    name = "optimistic"
    vectors: ClassVar[int] = ENCLOSING_VECTORS

    def solve(
        self,
        matrix: MatrixOperator,
        diagonal: Vector,
        b: Vector,
        slack: float,
        upper_bound: float | None,
        progress: Progress | None = None,
    ) -> BoundedSolution:
        """Iterate until a verified upper bound is within epsilon of the iterate.

        Where double precision does not allow for that, the bounds come out as close as it does.

        Notes
        -----
        Six vectors besides the operands, where the matrix has its workspace, three more where some value is
        near the smallest doubles, and thirteen more while IDR(s) is at work.  Status `NO_BOUND` if the
        iterates stand still and no guess passes, which takes chains of some 10^13 steps, or if values are
        lost to underflow.
        """
        clock = Clock(progress, self.criterion.epsilon)
        return self._bounds(DirectedSystem(matrix, diagonal, b, slack, self.vectors), upper_bound, clock)

    def bounds(
        self, operator: BellmanOperator, upper_bound: float | None, progress: Progress | None = None
    ) -> BoundedSolution:
        """Do the same for any monotone operator.

        Parameters
        ----------
        operator : BellmanOperator
        upper_bound : float, optional
            A bound on the solution known beforehand.
        """
        operator.reserve(self.vectors)
        return self._bounds(operator, upper_bound, Clock(progress, self.criterion.epsilon))

    def _bounds(self, operator: BellmanOperator, upper_bound: float | None, clock: Clock) -> BoundedSolution:
        with clock.gently():
            found = self.bracket(operator, clock)
            if found.upper is not None and upper_bound is not None:
                operator.space.xp.minimum(found.upper, upper_bound, out=found.upper)
            return operator.enclosure(found.outcome, clock, found.lower, found.upper, found.spare)

    def bracket(self, operator: BellmanOperator, clock: Clock) -> Bracket:
        """Iterate in the workspace; vectors stay there."""
        space, outcome = operator.space, Outcome()
        pair: Pair = (operator.zeros(), operator.zeros())
        guess = operator.guess(self.criterion)
        if not math.isfinite(operator.negligible):
            outcome.status = Status.NO_BOUND
            return Bracket(outcome, pair[0], None, guess.spare())
        leap = None if self.krylov == "never" else operator.leap(self.criterion, self.krylov == "always")
        climb = _Climb(self.criterion, operator, pair, guess, outcome, clock, leap)
        lower, upper = climb.run(operator.down)
        steps, lost = outcome.iterations, climb.lost
        if lost and climb.positive is not None:
            # The guess comes from a solution that is no less, and nowhere next to underflow.
            space.reserve(_MORE_VECTORS, operator.size)
            lower = space.vector(lower)
            for vector in pair:
                vector[...] = 0.0
            guess.restart()
            climb.leap = None
            _, upper = climb.run(operator.raised(climb.positive))
        spare = guess.spare()
        if lost and upper is not None and not self._close(operator, lower, upper, spare[0]):
            outcome.status, upper = Status.NO_BOUND, None
        if climb.positive is not None or outcome.status is Status.INTERRUPTED:
            operator.lowered(lower, steps)
        return Bracket(outcome, lower, upper, spare)

    def _close(self, operator: BellmanOperator, lower: Array, upper: Array, gap: Array) -> bool:
        """Whether bounds are as close as they should be where digits can be told; `gap` is overwritten."""
        xp = operator.space.xp
        xp.subtract(upper, lower, out=gap)
        gap *= upper >= TINY
        (width,) = operator.space.read(width_of(self.criterion, gap, upper, operator.space))
        return width <= max(_LOOSE * self.criterion.epsilon, 64.0 * operator.slack)


class _Climb:
    """Iterates from 0 until a guess above them is verified.

    Parameters
    ----------
    criterion : Criterion
    operator : BellmanOperator
    pair : pair of arrays, shape (n,)
        Zero; the iterates.
    guess : Guess
    outcome : Outcome
        Of all runs.
    clock : Clock
    leap : Leap, optional
        What may take over from the first run.

    Attributes
    ----------
    positive : array, shape (n,), float64, or None
        One where the solution is positive, zero where it is zero; None while all iterates are far from
        underflow.
    lost : bool
        Whether positive values of some run were so near to underflow that no guess could be verified.
    """

    def __init__(
        self,
        criterion: Criterion,
        operator: BellmanOperator,
        pair: Pair,
        guess: Guess,
        outcome: Outcome,
        clock: Clock,
        leap: Leap | None = None,
    ) -> None:
        self.leap = leap
        self.criterion, self._operator, self._pair = criterion, operator, pair
        self._guess, self._outcome, self._clock = guess, outcome, clock
        self.positive: Array | None = None
        self.lost = False
        self._made = 0

    def run(self, down: Steps) -> tuple[Array, Array | None]:
        """Iterate, and leave the outcome's status.

        Parameters
        ----------
        down : Steps
            Of the operator, or of one with a greater solution.

        Returns
        -------
        x, upper : array, shape (n,)
            The last iterate, and an upper bound of the operator's solution; None if none was verified.
        """
        try:
            return self._iterated(down)
        except SearchEndedError:
            self._outcome.status = Status.INTERRUPTED
            return self._pair[self._made % 2], None

    def _iterated(self, down: Steps) -> tuple[Array, Array | None]:
        """Do as `run` does."""
        space, outcome, guess = self._operator.space, self._outcome, self._guess
        pair, target = self._pair, self.criterion.epsilon
        pace, made, outcome.status = CheckInterval(space.stride), 0, Status.MAX_ITERATIONS
        self._made = 0
        while outcome.iterations < self.criterion.max_iterations:
            count = pace.steps(self.criterion.max_iterations - outcome.iterations)
            down.sweep(pair, made, count, guess.total)
            made += count
            self._made = made
            outcome.iterations += count
            self._operator.products += count
            absolute, relative = space.read(down.changes)
            if not math.isfinite(absolute):
                outcome.status = Status.DIVERGED
                break
            outcome.difference = guess.difference(absolute, relative)
            if outcome.difference <= target:
                x, y = pair[made % 2], pair[1 - made % 2]
                if self._is_lost(x) and (outcome.difference == 0.0 or not self.criterion.absolute):
                    outcome.status = Status.NO_BOUND
                    break
                wanted = guess.verified(x, y, made, outcome, self.positive)
                if wanted is None:
                    outcome.status = Status.CONVERGED
                    return x, y
                if outcome.difference == 0.0:
                    outcome.status = Status.NO_BOUND
                    break
                target = min(wanted, 0.5 * target)
            elif self._leaps(made):
                return pair[made % 2], pair[1 - made % 2]
            pace.look(made, outcome.difference, target)
            if self._clock.tick(outcome.iterations, outcome.difference):
                outcome.status = Status.INTERRUPTED
                x, y = pair[made % 2], pair[1 - made % 2]
                return x, y if self._ends_above(x, y, made) else None
        x, y = pair[made % 2], pair[1 - made % 2]
        is_spent = outcome.status is Status.MAX_ITERATIONS and made > 0
        return x, y if is_spent and self._ends_above(x, y, made) else None

    def _leaps(self, made: int) -> bool:
        """Whether both bounds are found at once: the lower in the place of the iterate, the upper beside."""
        leap, outcome, total = self.leap, self._outcome, self._guess.total
        if leap is None or total is None:
            return False
        most = leap.budget(made, outcome.difference)
        x, y = self._pair[made % 2], self._pair[1 - made % 2]
        if most <= 0.0 or not self._is_clear(x):
            return False
        limit = self.criterion.max_iterations - outcome.iterations
        spare = self._guess.spare()[1]
        outcome.iterations += leap.solve(x, y, total, spare, made, self.positive, most, limit, self._clock)
        outcome.more_vectors = max(outcome.more_vectors, leap.more_vectors)
        if not math.isfinite(leap.width):
            return False
        outcome.status, outcome.difference = Status.CONVERGED, leap.width
        return True

    def _is_clear(self, x: Array) -> bool:
        """Whether no positive value is next to underflow.

        Raises
        ------
        SearchEndedError
            The iteration is to be ended, in the midst of the search for positive values.
        """
        operator, xp = self._operator, self._operator.space.xp
        if not operator.is_near_underflow(x):
            return True
        if self.positive is None:
            outcome = self._outcome
            self.positive = operator.positive(
                lambda: self._clock.tick(outcome.iterations, outcome.difference)
            )
        least = operator.space.least(xp.where(self.positive > 0.0, x, np.inf))
        return bool(operator.space.read(least)[0] > operator.floor)

    def _ends_above(self, x: Array, y: Array, made: int) -> bool:
        """Whether a few guesses leave an upper bound in y, for an iteration that is ended here.

        Next to underflow, where the graph would have to be searched first, none is made.
        """
        if self.lost or not math.isfinite(self._outcome.difference) or self._operator.is_near_underflow(x):
            return False
        return self._guess.verified(x, y, made, self._outcome, self.positive, last=True) is None

    def _is_lost(self, x: Array) -> bool:
        """Whether a positive value is so near to underflow that no guess can be verified."""
        self.lost = not self._is_clear(x)
        return self.lost
