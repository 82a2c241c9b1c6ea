"""Interval iteration: the same step from below and from above until the two meet.

For a monotone f with a unique fixed point, iterates from 0 rise and iterates from an upper bound fall towards
it. Their distance bounds the error. (Haddad and Monmege, Interval iteration algorithm for MDPs and IMDPs, TCS
2018. Baier et al., Ensuring the reliability of your model checker, CAV 2017.) Rounding is directed as in
`hybrid.matrix.space.bounded_solution`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from hybrid.matrix.space.base import CheckInterval, Clock, Criterion, Numbers, Progress, Status
from hybrid.matrix.space.bellman import BellmanOperator, Outcome
from hybrid.matrix.space.bounded_solution import ENCLOSING_VECTORS, BoundedSolution, SearchEndedError
from hybrid.matrix.space.vector_space import Array
from hybrid.solvers.bounding import BoundingMethod, BoundVectors, record_bounds, recorded_bounds
from hybrid.solvers.optimistic import Optimistic
from mtbdd.base.records import Record

_CHECK_EVERY = 8  # iterations between measurements of the distance, which cost as much as a small product
_COARSE = 0.5


class Interval(Record, BoundingMethod):
    """Interval iteration; see :class:`hybrid.solvers.bounding.BoundingMethod`.

    Attributes
    ----------
    criterion : Criterion
        Here `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    """

    criterion: Criterion = Criterion()
    name: ClassVar[str] = "interval"
    vectors: ClassVar[int] = ENCLOSING_VECTORS + 2  # where a bound may be zero, the rows that are not

    def enclosed(
        self, operator: BellmanOperator, upper_bound: float | None, progress: Progress | None = None
    ) -> BoundedSolution:
        """Iterate both bounds; without an upper bound a coarse optimistic iteration provides the start above.

        Notes
        -----
        Eight vectors besides the operands, where the matrix has its space.  Bounds that stand still short
        of epsilon are what double precision allows for, and are returned.
        """
        clock = Clock(progress, self.criterion.epsilon)
        with clock.cancellable():
            return self._iterated(operator, upper_bound, clock)

    def _iterated(
        self, operator: BellmanOperator, upper_bound: float | None, clock: Clock
    ) -> BoundedSolution:
        space = operator.space
        kept = clock.resumed(space.xp, self.name, operator.size)
        if kept is not None and kept.is_finished:
            found = recorded_bounds(operator, kept)
            return operator.enclosure(found.outcome, clock, found.lower, found.upper, found.spare)
        if not math.isfinite(operator.negligible):
            outcome, spare = Outcome(Status.NO_BOUND), (operator.zeros(), operator.zeros())
            return operator.enclosure(outcome, clock, operator.zeros(), None, spare)
        if kept is not None and "lower" in kept.vectors:
            lows = kept.vectors["lower"], operator.zeros()
            highs, done = (kept.vectors["upper"], operator.zeros()), int(kept.numbers["iterations"])
        elif upper_bound is None:
            coarse = Optimistic(replace(self.criterion, epsilon=_COARSE, absolute=False), krylov="never")
            found = coarse.bracket(operator, clock, kept)
            if found.upper is None:
                return operator.enclosure(found.outcome, clock, found.lower, None, found.spare)
            lows, highs = (found.lower, found.spare[0]), (found.upper, found.spare[1])
            done = found.outcome.iterations
        else:
            above = operator.zeros()
            above += upper_bound
            lows, highs, done = (operator.zeros(), operator.zeros()), (above, operator.zeros()), 0
        outcome, pace = Outcome(iterations=done), CheckInterval(operator.stride)
        down, up = operator.down, operator.up
        made = measured = 0

        def state() -> tuple[Mapping[str, Array], Numbers]:
            return {"lower": lows[made % 2], "upper": highs[made % 2]}, {"iterations": outcome.iterations}

        while outcome.iterations < self.criterion.max_iterations:
            count = pace.steps(self.criterion.max_iterations - outcome.iterations)
            down.sweep(lows, made, count)
            up.sweep(highs, made, count)
            made += count
            outcome.iterations += count
            operator.products += 2 * count
            x, above = lows[made % 2], highs[made % 2]
            due = made - measured >= _CHECK_EVERY
            questions = (space.distance(x, above),) if due else ()
            size, below_moves, _, above_moves, *distance = space.read(down.changes, up.changes, *questions)
            if not math.isfinite(size):
                outcome.status = Status.DIVERGED
                break
            still = below_moves == 0.0 and above_moves == 0.0
            if still or due:
                measured = made
                absolute, relative = distance or space.read(space.distance(x, above))
                outcome.difference = self.criterion.difference(absolute, relative)
                if still or outcome.difference <= self.criterion.epsilon:
                    outcome.status = Status.CONVERGED
                    break
                pace.observe(made, outcome.difference, self.criterion.epsilon)
            clock.offer(state)
            if clock.tick(outcome.iterations, outcome.difference):
                outcome.status = Status.INTERRUPTED
                break
        if outcome.status in (Status.INTERRUPTED, Status.MAX_ITERATIONS):
            clock.keep(state)
        k = made % 2
        self._widen(operator, lows[k], highs[k], highs[1 - k], outcome, upper_bound, clock)
        found = BoundVectors(outcome, lows[k], highs[k], (lows[1 - k], highs[1 - k]))
        record_bounds(clock, found)
        return operator.enclosure(found.outcome, clock, found.lower, found.upper, found.spare)

    def _widen(
        self,
        operator: BellmanOperator,
        lower: Array,
        upper: Array,
        spare: Array,
        outcome: Outcome,
        upper_bound: float | None,
        clock: Clock,
    ) -> None:
        """Widen the bounds by the error of underflow, and cut them to known bounds.

        Lemma: interval-iteration (docs/bounds.md).
        """
        xp = operator.space.xp
        if operator.is_near_underflow(lower):
            operator.lowered(lower, outcome.iterations)
            # lemma: interval-iteration, underflow
            upper += outcome.iterations * operator.underflow
            try:
                spare[...] = operator.positive(lambda: clock.tick(outcome.iterations, outcome.difference))
                xp.copyto(upper, 0.0, where=spare == 0.0)  # not a product: infinity times zero is no number
            except SearchEndedError:  # zeros are then not known as such
                outcome.status = Status.INTERRUPTED
        if upper_bound is not None:
            xp.minimum(upper, upper_bound, out=upper)
