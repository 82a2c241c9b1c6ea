"""Optimistic value iteration: iterate from below, guess an upper bound, verify it in one step.

Let f be monotone with a unique fixed point x*. The iterates x_0 = 0, x_{k+1} = f(x_k) grow towards x*. Any u
with ``f(u) <= u`` bounds x* from above, because the iterates from u fall towards x* (Park induction).
Hartmanns and Kaminski (Optimistic value iteration, CAV 2020) guess ``u = (1 + epsilon) x_k`` and iterate
until the guess passes. It need not do so on chains with a period. Here the guess has the shape of the error
itself: :mod:`hybrid.solvers.optimistic` for one matrix, :mod:`hybrid.solvers.policy_bounds` over choices.

Rounding is directed: the iteration rounds down, so that every iterate is a lower bound, and the
verification up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from hybrid.matrix.space.base import CheckInterval, Clock, Criterion, Numbers, Progress, RecordedState, Status
from hybrid.matrix.space.bellman import (
    STAGE,
    BellmanOperator,
    BoundAccelerator,
    DirectedSystem,
    LowerIterationState,
    Outcome,
)
from hybrid.matrix.space.bounded_solution import (
    ENCLOSING_VECTORS,
    TINY,
    BoundedSolution,
    SearchEndedError,
    width_of,
)
from hybrid.matrix.space.vector_space import Array, Pair, Steps
from hybrid.solvers.bounding import (
    BoundingMethod,
    BoundVectors,
    Guess,
    record_bounds,
    recorded_bounds,
    stands_below,
)
from hybrid.solvers.forecast import IDR_PRODUCT, SUMMED_STEPS, traffic_ratio
from mtbdd.base.records import Record

if TYPE_CHECKING:
    from hybrid.matrix.gpu.repeated_steps import DeviceBlockRows

# Guesses of upper bounds in the shape of the error of the iterates, for one matrix.
#
# Let ``f(x) = A x + b`` with non-negative A and b.  The sum ``s = sum over j < k of (x_k - x_j)`` satisfies
# ``s - A s = x_k - k d`` with ``d = x_{k+1} - x_k``, so that u = x_k + c s is inductive as soon as ``d <= c
# (x_k - k d)``: with the relative difference eta of the last two iterates, c slightly above ``eta / (1 - k
# eta)`` does it.  One vector more, no second iteration, and the relative error is known to be about eta times
# the number of steps that the chain takes from a state, which is what eta alone does not tell.


class SumGuess(Guess):
    """See `Guess`."""

    total: Array

    def __init__(self, system: BellmanOperator, criterion: Criterion) -> None:
        super().__init__(system, criterion)
        self.total = system.zeros()

    def difference(self, absolute: float, relative: float) -> float:
        """See `Guess.difference`: relative in any case."""
        return relative

    def restart(self) -> None:
        """See `Guess.restart`."""
        self.total[...] = 0.0

    def spare(self) -> Pair:
        """See `Guess.spare`."""
        return self.total, self.scratch

    def verified(
        self, x: Array, y: Array, made: int, outcome: Outcome, positive: Array | None, last: bool = False
    ) -> float | None:
        """See `Guess.verified`."""
        space, total = self._system.space, self.total
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
        system, s, space = self._system, self.total, self._system.space
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
        # lemma: park
        is_verified, _ = self._doubled(x, y, s, c, positive, last, exhausted, reach)
        return None if is_verified else 0.25 * difference


# Iterates from below until a guess above them is verified: the climb of optimistic value iteration.

_LOOKS = 16  # in as many steps as have been made, while an accelerator may take over


class LowerIteration:
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
    accelerator : BoundAccelerator, optional
        What may take over from the first run.
    kept : RecordedState, optional
        Where an earlier process was in its first run.
    rising : Steps, optional
        What the first run takes in the place of its steps, until a guess is due.

    Attributes
    ----------
    is_recorded : bool
        Whether states are offered to the record.
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
        accelerator: BoundAccelerator | None = None,
        kept: RecordedState | None = None,
        rising: Steps | None = None,
    ) -> None:
        self.accelerator, self.rising, self.is_recorded = accelerator, rising, True
        self.criterion, self._operator, self._pair = criterion, operator, pair
        self._guess, self._outcome, self._clock = guess, outcome, clock
        self.positive: Array | None = None
        self.lost = False
        self._made, self._target, self._kept = 0, criterion.epsilon, kept

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
        outcome, guess = self._outcome, self._guess
        pair, self._target = self._pair, self.criterion.epsilon
        pace, outcome.status = CheckInterval(self._operator.stride), Status.MAX_ITERATIONS
        kept, self._kept = self._kept, None
        made = self._made = 0 if kept is None else self._take(kept)
        if self.accelerator is not None:
            self.accelerator.begin(made)
        try:
            if kept is not None and STAGE in kept.numbers and self._leaps(made, kept):
                return pair[made % 2], pair[1 - made % 2]
            while outcome.iterations < self.criterion.max_iterations:
                target = self._target
                left = self.criterion.max_iterations - outcome.iterations
                count = pace.steps(min(left, self._unseen(made)))
                if self._operator.stride == 1:
                    count = min(left, self._operator.space.steps_ahead(self._operator.size))
                is_finite, is_told = self._advance(self.rising or down, count), self.rising is None
                may_follow = outcome.iterations < self.criterion.max_iterations
                if outcome.difference <= target and not is_told and may_follow:
                    # A guess needs to know what a step of all states at once changes.
                    is_finite, is_told = self._advance(down, 1), True
                made = self._made
                if not is_finite:
                    outcome.status = Status.DIVERGED
                    break
                if is_told and outcome.difference <= target:
                    x, y = pair[made % 2], pair[1 - made % 2]
                    if self._is_lost(x) and (outcome.difference == 0.0 or not self.criterion.absolute):
                        outcome.status = Status.NO_BOUND
                        break
                    wanted = guess.verified(x, y, made, outcome, self.positive)  # lemma: park
                    if wanted is None:
                        outcome.status = Status.CONVERGED
                        return x, y
                    if outcome.difference == 0.0:
                        outcome.status = Status.NO_BOUND
                        break
                    self._target = target = min(wanted, 0.5 * target)
                elif self._leaps(made):
                    return pair[made % 2], pair[1 - made % 2]
                pace.observe(made, outcome.difference, target)
                if self.is_recorded:
                    self._clock.offer(self.state)
                if self._clock.tick(outcome.iterations, outcome.difference):
                    self._keep()
                    outcome.status = Status.INTERRUPTED
                    return self._ended(down)
        except SearchEndedError:
            self._keep()
            outcome.status = Status.INTERRUPTED
            return pair[self._made % 2], None
        if outcome.status is Status.MAX_ITERATIONS and made > 0:
            self._keep()
            return self._ended(down)
        return pair[made % 2], None

    def _advance(self, steps: Steps, count: int) -> bool:
        """Make some steps, and note their last difference; return whether values are finite numbers."""
        outcome, guess = self._outcome, self._guess
        made, iterations = self._made, outcome.iterations
        if self._operator.stride > 1:
            steps.sweep(self._pair, made, count, guess.total)
        else:
            count = steps.sweep_until(self._pair, made, count, self._is_over, guess.total)
        self._made, outcome.iterations = made + count, iterations + count
        self._operator.products += count
        absolute, relative = self._operator.space.read(steps.changes)
        if not math.isfinite(absolute):
            return False
        outcome.difference = guess.difference(absolute, relative)
        return True

    def _is_over(self, absolute: float, relative: float) -> bool:
        """Take note of a step that others may follow; return whether they may not."""
        outcome = self._outcome
        self._made += 1
        outcome.iterations += 1
        if not math.isfinite(absolute):
            return True
        outcome.difference = self._guess.difference(absolute, relative)
        if outcome.difference <= self._target or self._is_asked():
            return True
        return self._clock.tick(outcome.iterations, outcome.difference)

    def _is_asked(self) -> bool:
        """Whether the accelerator is asked whether it takes over."""
        known = self.accelerator
        return known is not None and known.is_asked(self._made, self._outcome.difference)

    def _ended(self, down: Steps) -> tuple[Array, Array | None]:
        """Return the last iterate where the iteration is ended, and the bound that a few guesses find."""
        if self.rising is not None and not self.lost:
            # For the guesses' sake, which no limit counts either.
            is_finite = self._advance(down, 1)
            self._outcome.iterations -= 1
            if not is_finite:
                # The iterate before is a bound, and not what has overflowed.
                return self._pair[1 - self._made % 2], None
        x, y = self._pair[self._made % 2], self._pair[1 - self._made % 2]
        return x, y if self._ends_above(x, y, self._made) else None

    def _unseen(self, made: int) -> int:
        """Return the steps that may follow one another without a look: a pace needs looks to be seen."""
        if self.accelerator is None:
            return self.criterion.max_iterations
        return max(self._operator.stride, made // (2 * _LOOKS) * 2)

    def state(self) -> tuple[Mapping[str, Array], Numbers]:
        """Return where the first run is; see `hybrid.matrix.space.base.State`."""
        made, outcome, total = self._made, self._outcome, self._guess.total
        vectors = {"x": self._pair[made % 2]} | ({} if total is None else {"total": total})
        numbers = {"made": made, "iterations": outcome.iterations, "difference": outcome.difference}
        rising = {} if self.rising is None else self.rising.told()
        return vectors, {**numbers, "target": self._target, **rising}

    def _keep(self) -> None:
        """Keep where the first run is, which ends before it has arrived."""
        if self.is_recorded:
            self._clock.keep(self.state)

    def _take(self, kept: RecordedState) -> int:
        """Go to where an earlier process was; return the steps that it had made."""
        made, outcome, total = int(kept.numbers["made"]), self._outcome, self._guess.total
        self._pair[made % 2][...] = kept.vectors["x"]
        if total is not None:
            total[...] = kept.vectors["total"]
        outcome.iterations, outcome.difference = int(kept.numbers["iterations"]), kept.numbers["difference"]
        self._target = kept.numbers["target"]
        if self.rising is not None:
            self.rising.take(kept.numbers)
        return made

    def _leaps(self, made: int, kept: RecordedState | None = None) -> bool:
        """Whether both bounds are found at once: the lower in the place of the iterate, the upper beside."""
        accelerator, outcome, total = self.accelerator, self._outcome, self._guess.total
        if accelerator is None or (kept is None and not self._is_asked()):
            return False
        x, y, spare = self._pair[made % 2], self._pair[1 - made % 2], self._guess.scratch
        iterate = LowerIterationState(x, y, total, spare, made, self.positive, self.state, self._target)
        most = accelerator.budget(iterate, outcome.difference) if kept is None else kept.numbers["most"]
        if most <= 0.0 or not (accelerator.from_anywhere or self._is_clear(x)):
            return False
        limit = self.criterion.max_iterations - outcome.iterations
        iterate = replace(iterate, positive=self.positive)
        outcome.iterations += accelerator.solve(iterate, most, limit, self._clock, kept)
        outcome.more_vectors = max(outcome.more_vectors, accelerator.more_vectors)
        if not math.isfinite(accelerator.width):
            return False
        outcome.status, outcome.difference = Status.CONVERGED, accelerator.width
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
        least = operator.space.least(xp.where(xp.greater(self.positive, 0.0), x, np.inf))
        return bool(operator.space.read(least)[0] > operator.floor)

    def _ends_above(self, x: Array, y: Array, made: int) -> bool:
        """Whether a few guesses leave an upper bound in y, for an iteration that is ended here.

        Next to underflow, where the graph would have to be searched first, none is made.
        """
        if self.lost or not math.isfinite(self._outcome.difference) or self._operator.is_near_underflow(x):
            return False
        # lemma: park
        return self._guess.verified(x, y, made, self._outcome, self.positive, last=True) is None

    def _is_lost(self, x: Array) -> bool:
        """Whether a positive value is so near to underflow that no guess can be verified."""
        self.lost = not self._is_clear(x)  # lemma: underflow
        return self.lost


def _raise_to_constant(operator: BellmanOperator, pair: Pair) -> None:
    """Leave a constant lower bound in the first vector, where a step verifies one; else zeros.

    A walk among states in which every step costs something goes round as long as that seems cheaper than to
    leave: from zeros values rise by no more than what a round costs.

    Lemma: around-a-guess (docs/bounds.md).
    """
    least, (x, scratch) = operator.constant_below(), pair
    if least > 0.0:
        x[...] = least
        # lemma: around-a-guess
        if not stands_below(operator, x, 0.0, scratch):
            x[...] = 0.0


_LOOSE = 4.0  # times epsilon that bounds may be apart whose guess came from a greater solution

_MORE_VECTORS = 5  # where values are lost to underflow: a bound, a right-hand side, a diagonal, two operands


def guess_for(operator: BellmanOperator, criterion: Criterion) -> Guess:
    """Return the guess of upper bounds for an operator: of one matrix, or over choices."""
    if isinstance(operator, DirectedSystem):
        return SumGuess(operator, criterion)
    from hybrid.matrix.space.choice_operator import ChoiceOperator
    from hybrid.solvers.policy_bounds import WeightGuess

    if isinstance(operator, ChoiceOperator):
        return WeightGuess(operator, criterion)
    return SumGuess(operator, criterion)


def accelerator_for(operator: BellmanOperator, criterion: Criterion, always: bool) -> BoundAccelerator | None:
    """Return the method that takes over where many steps are left; None where there is none.

    Parameters
    ----------
    operator : BellmanOperator
    criterion : Criterion
    always : bool
        Whether it takes over as soon as it can.
    """
    if isinstance(operator, DirectedSystem):
        from hybrid.solvers.krylov_bounds import KrylovBounds

        cost = traffic_ratio(operator.matrix, operator.space.communicator, IDR_PRODUCT, SUMMED_STEPS)
        return KrylovBounds(operator, criterion, always, cost)
    from hybrid.matrix.space.choice_operator import ChoiceOperator
    from hybrid.solvers.policy_bounds import PolicyBounds

    if isinstance(operator, ChoiceOperator) and operator.has_policies:
        return PolicyBounds(operator, criterion, always)
    return None


class Optimistic(Record, BoundingMethod):
    """Optimistic value iteration; see :class:`hybrid.solvers.bounding.BoundingMethod`.

    Attributes
    ----------
    criterion : Criterion
        Here `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    krylov : {"auto", "always", "never"}
        When IDR(s) takes over, on a chain: where it is expected to be faster, at once, or not at all.
    block_rows : callable, optional
        Returns the rows in block rows, or None; called where many steps are made.
    direct_first : bool
        Whether few equations are solved by factors as soon as there is an iterate.
    """

    criterion: Criterion = Criterion()
    krylov: Literal["auto", "always", "never"] = "auto"
    block_rows: Callable[[], DeviceBlockRows | None] | None = None
    direct_first: bool = False
    name: ClassVar[str] = "optimistic"
    vectors: ClassVar[int] = ENCLOSING_VECTORS

    def enclosed(
        self, operator: BellmanOperator, upper_bound: float | None, progress: Progress | None = None
    ) -> BoundedSolution:
        """Iterate until a verified upper bound is within epsilon of the iterate.

        Where double precision does not allow for that, the bounds come out as close as it does.

        Notes
        -----
        Six vectors besides the operands, where the matrix has its space, three more where some value is
        near the smallest doubles, and thirteen more while IDR(s) is at work.  Status `NO_BOUND` if the
        iterates stand still and no guess passes, which takes chains of some 10^13 steps, or if values are
        lost to underflow.
        """
        clock = Clock(progress, self.criterion.epsilon)
        kept = clock.resumed(operator.space.xp, self.name, operator.size)
        with clock.cancellable():
            if kept is not None and kept.is_finished:
                found = recorded_bounds(operator, kept)
            else:
                found = self.bracket(operator, clock, kept)
                if found.upper is not None and upper_bound is not None:
                    operator.space.xp.minimum(found.upper, upper_bound, out=found.upper)
                record_bounds(clock, found)
            return operator.enclosure(found.outcome, clock, found.lower, found.upper, found.spare)

    def bracket(
        self, operator: BellmanOperator, clock: Clock, kept: RecordedState | None = None
    ) -> BoundVectors:
        """Iterate in the vector space; vectors stay there.

        Parameters
        ----------
        kept : RecordedState, optional
            What an earlier run has left of the iteration.
        """
        space, outcome = operator.space, Outcome()
        pair: Pair = (operator.zeros(), operator.zeros())
        guess = guess_for(operator, self.criterion)
        if not math.isfinite(operator.negligible):
            outcome.status = Status.NO_BOUND
            return BoundVectors(outcome, pair[0], None, guess.spare())
        accelerator = (
            None
            if self.krylov == "never"
            else accelerator_for(operator, self.criterion, self.krylov == "always")
        )
        if self.block_rows is not None:
            from hybrid.solvers.block_row_bounds import BlockRowBounds

            accelerator = BlockRowBounds(operator, self.criterion, self.block_rows, accelerator)
        if self.krylov == "auto" and operator.entries is not None:
            from hybrid.solvers.direct_bounds import DirectBounds

            accelerator = DirectBounds(operator, self.criterion, accelerator, self.direct_first)
        if kept is None and self.krylov != "never":
            _raise_to_constant(operator, pair)
        climb = LowerIteration(
            self.criterion, operator, pair, guess, outcome, clock, accelerator, kept, operator.rising
        )
        lower, upper = climb.run(operator.down)
        steps, lost = outcome.iterations, climb.lost
        if lost and climb.positive is not None:
            # The guess comes from a solution that is no less, and nowhere next to underflow.
            space.reserve(_MORE_VECTORS, operator.size)
            lower = space.vector(lower)
            for vector in pair:
                vector[...] = 0.0
            guess.restart()
            climb.accelerator, climb.rising, climb.is_recorded = None, None, False
            _, upper = climb.run(operator.raised(climb.positive))
        spare = guess.spare()
        if lost and upper is not None and not self._close(operator, lower, upper, spare[0]):
            outcome.status, upper = Status.NO_BOUND, None
        if climb.positive is not None or outcome.status is not Status.CONVERGED:
            # Whether values are far from underflow is known of those alone that have got a guess.
            operator.lowered(lower, steps)
        return BoundVectors(outcome, lower, upper, spare)

    def _close(self, operator: BellmanOperator, lower: Array, upper: Array, gap: Array) -> bool:
        """Whether bounds are within epsilon where digits are known; `gap` is overwritten.

        Lemma: next-to-underflow (docs/bounds.md).
        """
        xp = operator.space.xp
        xp.subtract(upper, lower, out=gap)
        # lemma: next-to-underflow
        gap *= upper >= TINY
        (width,) = operator.space.read(width_of(self.criterion, gap, upper, operator.space))
        # lemma: next-to-underflow
        return width <= max(_LOOSE * self.criterion.epsilon, 64.0 * operator.slack)
