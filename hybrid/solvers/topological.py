"""Topological solution: the strongly connected components of a system, one after another, between bounds.

The graph of a system has an edge from a row to every row that it refers to. Over choices it has one from a
state to every possible successor. A component refers to itself and to components that can be solved before
it. A row that is a component of its own needs no iteration. It is the sum of solved values over its diagonal,
and a state alone is the best of its choices. Larger components are solved by optimistic value iteration, with
what flows into solved rows on the right-hand side, or among the gains. (P. Dai and J. Goldsmith, Topological
value iteration, IJCAI 2007; F. Ciesinski et al., Reduction techniques for model checking Markov decision
processes, QEST 2008.)

Rows are written out block row by block row, each once. A block row is a set of rows that refer to themselves
and to rows of block rows before it. A matrix that is written out is one block row.

Bounds. With M and b non-negative the solution grows with the right-hand side. So lower bounds follow from the
lower bounds of solved rows, and upper ones from the upper. Rounding is directed as in
`hybrid.matrix.space.bounded_solution`. If the lower right-hand side is at least ``1 - delta`` times the upper
one, so is the solution, and one iteration serves both. Over choices the same is true of gains. With u the
solution for the upper ones, ``(1 - delta) u`` is no more than a step from it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.space.base import Clock, Criterion, Progress, Status, Vector
from hybrid.matrix.space.bellman import BellmanOperator
from hybrid.matrix.space.bounded_solution import UNIT, BoundedSolution
from hybrid.matrix.space.choice_operator import ChoiceOperator
from hybrid.solvers.block_rows import BeyondDoublesError, BlockRow, BlockRowProgress, BlockRows
from hybrid.solvers.bounding import BoundingMethod
from hybrid.solvers.optimistic import Optimistic
from mtbdd.base.records import Record

Int64Array = NDArray[np.int64]

_DEEPEST = 200  # levels of larger components in a block row: each takes a share of epsilon


class Topological(Record, BoundingMethod, eq=False):
    """Optimistic value iteration, component by component, block row by block row.

    Attributes
    ----------
    criterion : Criterion
        Here `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    block_rows : BlockRows
        Of the system that is solved: of a chain's matrix, or of choices.
    otherwise : BoundingMethod
        What solves all rows at once where components promise no gain, or too many follow one another.

    Notes
    -----
    Iterations are those of all larger components, and one for all rows that are alone.  Memory: the vectors,
    and one block row with its own.  On very long chains of rows the rounding errors of all of them count, and
    bounds come out wider than epsilon.
    """

    criterion: Criterion
    block_rows: BlockRows
    otherwise: BoundingMethod
    name: ClassVar[str] = "topological"
    # Bounds, their middle, its residual, the right-hand side, the diagonal as it is and for either rounding.
    vectors: ClassVar[int] = 8

    def enclosed(
        self, operator: BellmanOperator, upper_bound: float | None, progress: Progress | None = None
    ) -> BoundedSolution:
        """Solve block row by block row; see `BoundingMethod.enclosed`."""
        found = self._in_block_rows(operator, upper_bound, progress)
        if found is None:
            # Memory of block rows is freed before, except that of choices that are written out already.
            if isinstance(operator, ChoiceOperator) and len(self.block_rows) == 1:
                # Here: chains start quicker without.
                from hybrid.matrix.operators.explicit_choices import as_explicit_choices

                operator = as_explicit_choices(operator)
            found = self.otherwise.enclosed(operator, upper_bound, progress)
            found = replace(found, solved_by=(self.otherwise.name, self.otherwise.vectors))
        return found

    def _in_block_rows(
        self, operator: BellmanOperator, upper_bound: float | None, progress: Progress | None
    ) -> BoundedSolution | None:
        """Do as `enclosed` does; None where the other method is to take over."""
        space, block_rows, size, parts = operator.space, self.block_rows, operator.size, len(self.block_rows)
        more_vectors = -(-block_rows.nbytes // (8 * max(size, 1)))
        space.reserve(self.vectors + more_vectors, size)
        clock = Clock(progress, self.criterion.epsilon)
        ceiling = np.inf if upper_bound is None else upper_bound
        course = BlockRowProgress(size, block_rows)
        course.resume(clock)
        # Errors of block rows add up along paths.
        share = replace(self.criterion, epsilon=self.criterion.epsilon / parts)
        status = Status.CONVERGED
        with clock.cancellable():
            while course.number < parts and status is Status.CONVERGED:
                try:
                    rows = block_rows.rows(course.number)
                    written = block_rows.written(course.number)
                    block = BlockRow(written, None if parts == 1 else rows, operator, course)
                    found = block.components
                    if found.depth > _DEEPEST or (parts == 1 and not found.pay):
                        return None
                    # Not before: a state of the other method may be kept, which takes over above.
                    clock.offer(course.state)
                    levels = _Levels(block, share, self.criterion.epsilon, course, upper_bound)
                    status = levels.run(clock, parts == 1)
                except BeyondDoublesError:
                    status = Status.DIVERGED
                    break
                block.keep(course, rows)
                more_vectors = max(more_vectors, levels.more_vectors)
                course.done(block.work(course.entries))
                is_last = course.number == parts
                if status is Status.CONVERGED and clock.tick(course.iterations, math.inf) and not is_last:
                    status = Status.INTERRUPTED
            if status is Status.CONVERGED:
                clock.keep(course.state, is_finished=True)
        seconds = clock.seconds
        values = course.end(status, ceiling)
        residual = operator.residual(values, np.empty(size))
        products = 1 + math.ceil(course.work / max(block_rows.entries, 1))
        return BoundedSolution(
            values, status, course.iterations, seconds, course.width(self.criterion), residual, course.lower,
            course.upper, products=products, more_vectors=more_vectors,
        )  # fmt: skip


class _Levels:
    """The solution of a block row, level by level.

    Parameters
    ----------
    block : BlockRow
    criterion : Criterion
        Of the block row.
    epsilon : float
        Of all block rows.
    course : BlockRowProgress
    upper_bound : float, optional
    """

    def __init__(
        self,
        block: BlockRow,
        criterion: Criterion,
        epsilon: float,
        course: BlockRowProgress,
        upper_bound: float | None,
    ) -> None:
        self._block, self._course, self._upper_bound = block, course, upper_bound
        self._ceiling = np.inf if upper_bound is None else upper_bound
        # A level may take two solutions, each with an error of its own.
        share = 0.45 / max(block.components.depth, 1)
        self._inner = Optimistic(replace(criterion, epsilon=share * criterion.epsilon))
        self._most = epsilon if block.is_lenient else criterion.epsilon
        self.more_vectors = 0

    def run(self, clock: Clock, is_whole: bool) -> Status:
        """Solve all levels; where that is interrupted, rows not solved yet have no upper bound.

        `is_whole` says whether there is no other block row: then states are recorded level by level.
        """
        block, course, found = self._block, self._course, self._block.components
        for level in range(course.level, len(found.single_ptr) - 1):
            course.level = level
            if is_whole and level:
                clock.offer(course.state)
            alone = found.single[found.single_ptr[level] : found.single_ptr[level + 1]]
            block.substitute(alone, self._ceiling)
            joined = found.joined[found.joined_ptr[level] : found.joined_ptr[level + 1]]
            if not joined.size:
                continue
            status = self._solve(joined, clock.unrecorded)
            if status is Status.INTERRUPTED:
                block.let(level + 1, block.upper, self._ceiling)
            if status is not Status.CONVERGED:
                return status
        # A product that overflows makes lower bounds infinite, and a bound known may keep upper ones finite.
        own = np.concatenate((found.single, found.joined))
        is_finite = np.isfinite(block.lower[own]) & np.isfinite(block.upper[own])
        return Status.CONVERGED if bool(is_finite.all()) else Status.DIVERGED

    def _solve(self, chosen: Int64Array, progress: Progress | None) -> Status:
        """Solve larger components that do not lead to each other."""
        block = self._block
        part = block.component(chosen)
        if part is None:
            return Status.CONVERGED
        below, above = part.below, part.above
        delta = float((1.0 - np.divide(below, above, out=np.ones_like(above), where=above > 0.0)).max())

        def solved(right: Vector) -> BoundedSolution:
            answer = self._inner.enclosed(part.operator(right), self._upper_bound, progress)
            self._course.iterations += answer.iterations
            self._course.entries += float(answer.products) * part.entries
            self.more_vectors = max(self.more_vectors, answer.more_vectors)
            return answer

        first = solved(above)
        block.upper[chosen] = np.minimum(first.upper, self._ceiling)
        if delta <= 0.0:
            block.lower[chosen] = first.lower
        elif first.status is Status.INTERRUPTED or self._covers(delta, first.upper):
            # lemma: topological, topological-choices
            block.lower[chosen] = first.lower * max(1.0 - (delta + 8.0 * UNIT), 0.0)
        elif first.status is Status.CONVERGED:
            second = solved(below)
            block.lower[chosen] = second.lower
            return second.status
        return first.status

    def _covers(self, delta: float, upper: Vector) -> bool:
        """Whether taking a share `delta` off a solution costs no more than solving once more would."""
        if self._inner.criterion.absolute:
            return delta * float(upper.max()) <= self._inner.criterion.epsilon
        return delta <= self._most
