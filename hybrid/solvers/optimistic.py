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
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from hybrid.matrix.space.base import Clock, Criterion, MatrixOperator, Progress, Status, Vector
from hybrid.matrix.space.bellman import BellmanOperator, Guess, Leap, Outcome
from hybrid.matrix.space.bounded_solution import ENCLOSING_VECTORS, TINY, BoundedSolution, width_of
from hybrid.matrix.space.choosing import Choosing
from hybrid.matrix.space.record import Kept
from hybrid.matrix.space.workspace import Array, Pair
from hybrid.solvers.bracket import Bracket, keep_bounds, told_again
from hybrid.solvers.climb import Climb
from hybrid.solvers.directed_system import DirectedSystem
from hybrid.solvers.krylov_bounds import KrylovBounds
from hybrid.solvers.policy_bounds import PolicyBounds
from hybrid.solvers.strip_leap import StripLeap, StripSteps
from hybrid.solvers.sum_guess import SumGuess
from hybrid.solvers.weight_guess import WeightGuess

_LOOSE = 4.0  # times epsilon that bounds may be apart whose guess came from a greater solution

_MORE_VECTORS = 5  # where values are lost to underflow: a bound, a right-hand side, a diagonal, two operands


def guess_for(operator: BellmanOperator, criterion: Criterion) -> Guess:
    """Return what finds upper bounds close to iterates from below."""
    if isinstance(operator, Choosing):
        return WeightGuess(operator, criterion)
    return SumGuess(operator, criterion)


def leap_for(operator: BellmanOperator, criterion: Criterion, always: bool) -> Leap | None:
    """Return what takes over where many steps are left; None where there is nothing.

    Parameters
    ----------
    operator : BellmanOperator
    criterion : Criterion
    always : bool
        Whether it takes over as soon as it can.
    """
    if isinstance(operator, DirectedSystem):
        return KrylovBounds(operator, operator, criterion, always, operator.product_price)
    if isinstance(operator, Choosing) and operator.has_policies:
        return PolicyBounds(operator, criterion, always)
    return None


@dataclass(frozen=True)
class Optimistic:
    """Optimistic value iteration; parameters of `solve` as in `BoundingMethod`.

    Attributes
    ----------
    criterion : Criterion
        Here `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    krylov : {"auto", "always", "never"}
        When IDR(s) takes over, on a chain: where it is expected to be faster, at once, or not at all.
    strips : callable, optional
        Returns the rows in strips, or None; called where many steps are made.
    """

    criterion: Criterion = Criterion()
    krylov: Literal["auto", "always", "never"] = "auto"
    strips: Callable[[], StripSteps | None] | None = None
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
        kept = clock.resumed(operator.space, self.name, operator.size)
        with clock.gently():
            if kept is not None and kept.is_finished:
                found = told_again(operator, kept)
            else:
                found = self.bracket(operator, clock, kept)
                if found.upper is not None and upper_bound is not None:
                    operator.space.xp.minimum(found.upper, upper_bound, out=found.upper)
                keep_bounds(clock, found)
            return operator.enclosure(found.outcome, clock, found.lower, found.upper, found.spare)

    def bracket(self, operator: BellmanOperator, clock: Clock, kept: Kept | None = None) -> Bracket:
        """Iterate in the workspace; vectors stay there.

        Parameters
        ----------
        kept : Kept, optional
            What an earlier run has left of the iteration.
        """
        space, outcome = operator.space, Outcome()
        pair: Pair = (operator.zeros(), operator.zeros())
        guess = guess_for(operator, self.criterion)
        if not math.isfinite(operator.negligible):
            outcome.status = Status.NO_BOUND
            return Bracket(outcome, pair[0], None, guess.spare())
        leap = None if self.krylov == "never" else leap_for(operator, self.criterion, self.krylov == "always")
        if self.strips is not None:
            leap = StripLeap(operator, self.criterion, self.strips, leap)
        climb = Climb(self.criterion, operator, pair, guess, outcome, clock, leap, kept, operator.rising)
        lower, upper = climb.run(operator.down)
        steps, lost = outcome.iterations, climb.lost
        if lost and climb.positive is not None:
            # The guess comes from a solution that is no less, and nowhere next to underflow.
            space.reserve(_MORE_VECTORS, operator.size)
            lower = space.vector(lower)
            for vector in pair:
                vector[...] = 0.0
            guess.restart()
            climb.leap, climb.rising, climb.is_recorded = None, None, False
            _, upper = climb.run(operator.raised(climb.positive))
        spare = guess.spare()
        if lost and upper is not None and not self._close(operator, lower, upper, spare[0]):
            outcome.status, upper = Status.NO_BOUND, None
        if climb.positive is not None or outcome.status is not Status.CONVERGED:
            # Whether values are far from underflow is known of those alone that have got a guess.
            operator.lowered(lower, steps)
        return Bracket(outcome, lower, upper, spare)

    def _close(self, operator: BellmanOperator, lower: Array, upper: Array, gap: Array) -> bool:
        """Whether bounds are as close as they should be where digits can be told; `gap` is overwritten."""
        xp = operator.space.xp
        xp.subtract(upper, lower, out=gap)
        # lemma: next-to-underflow
        gap *= upper >= TINY
        (width,) = operator.space.read(width_of(self.criterion, gap, upper, operator.space))
        # lemma: next-to-underflow
        return width <= max(_LOOSE * self.criterion.epsilon, 64.0 * operator.slack)
