"""Topological solution: the strongly connected components of a system, one after another, between bounds.

A component of the graph of M refers to itself and to components that can be solved before it.  A row that
is a component of its own needs no iteration: it is the sum of solved values over its diagonal.  Larger
components are iterated alone, with what flows into solved rows on the right-hand side.
(P. Dai and J. Goldsmith, Topological value iteration, IJCAI 2007; F. Ciesinski et al., Reduction
techniques for model checking Markov decision processes, QEST 2008.)

Bounds.  With M and b non-negative the solution grows with the right-hand side, so lower bounds come from the
lower bounds of what is solved already, and upper ones from the upper; rounding is directed as in
`hybrid.matrix.space.bounded_solution`.  If the lower right-hand side is at least ``1 - delta`` times the
upper one, so is the solution, and one iteration serves both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.cpu.csr import Components, CsrMatrix, csr_of, find_components
from hybrid.matrix.space.base import (
    Clock,
    Criterion,
    MatrixOperator,
    Numbers,
    Progress,
    Status,
    Vector,
    true_residual,
)
from hybrid.matrix.space.bounded_solution import (
    TINY,
    UNIT,
    BoundedSolution,
    middle_of,
    underflow_of,
    width_of,
)
from hybrid.matrix.space.host import HostWorkspace, workspace_of
from hybrid.solvers.around import BoundingMethod
from hybrid.solvers.optimistic import Optimistic
from hybrid.solvers.strip_leap import StripCourse


@dataclass(frozen=True, eq=False)
class Topological:
    """Optimistic value iteration, component by component.

    Attributes
    ----------
    criterion : Criterion
        Here `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    components : Components
        Of the matrix that `solve` is given.
    """

    criterion: Criterion
    components: Components
    name = "topological"
    # Bounds, their middle, its residual, the right-hand side, the diagonal as it is and for either rounding.
    vectors: ClassVar[int] = 8

    @classmethod
    def where_it_pays(cls, matrix: CsrMatrix, criterion: Criterion) -> Topological | None:
        """Return the method for a matrix; None if its components promise no gain."""
        components = find_components(matrix)
        return cls(criterion, components) if components.pay else None

    def solve(
        self,
        matrix: MatrixOperator,
        diagonal: Vector,
        b: Vector,
        slack: float,
        upper_bound: float | None,
        progress: Progress | None = None,
    ) -> BoundedSolution:
        """Solve level by level; parameters as in `BoundingMethod`.  See `solve_between`."""
        return self.solve_between(matrix, diagonal, b, b, slack, upper_bound, progress)

    def solve_between(
        self,
        matrix: MatrixOperator,
        diagonal: Vector,
        least: Vector,
        most: Vector,
        slack: float,
        upper_bound: float | None,
        progress: Progress | None = None,
    ) -> BoundedSolution:
        """Solve level by level for a right-hand side known between bounds.

        Parameters
        ----------
        least, most : ndarray, shape (n,), float64
            Bounds on the right-hand side, not negative; the same one where it is known.
        matrix, diagonal, slack, upper_bound, progress
            As in `BoundingMethod`.

        Raises
        ------
        TypeError
            The matrix is not in compressed sparse rows.

        Notes
        -----
        Iterations are those of all larger components, and one for all single rows.  Those of
        the largest level need vectors of their own besides.  On very long chains of rows the rounding errors
        of all of them count, and bounds come out wider than epsilon.
        """
        from hybrid.matrix.cpu.choice_kernels import substitute_csr

        held = csr_of(matrix)
        if held is None:
            raise TypeError(
                f"matrix: expected compressed sparse rows (CsrMatrix), got {type(matrix).__name__}; "
                "use Optimistic or Interval for it"
            )
        space = HostWorkspace(matrix)
        space.reserve(self.vectors, most.size)
        found, csr = self.components, held.csr
        low, high = diagonal * (1.0 + slack), diagonal * (1.0 - slack)  # lemma: topological, directed-steps
        lower, upper = np.zeros_like(most), np.zeros_like(most)
        ceiling = np.inf if upper_bound is None else upper_bound
        underflow = underflow_of(diagonal, slack)
        operands = (
            csr.indptr, csr.indices, csr.data, least, most, low, high, underflow, TINY, ceiling, lower, upper,
        )  # fmt: skip
        substitute_csr(found.single[:0], *operands)  # compiled before the clock starts
        clock = Clock(progress, self.criterion.epsilon)
        level = entries = more_vectors = 0  # entries of parts, each as often as it was multiplied
        status, iterations = Status.CONVERGED, int(found.single.size > 0)
        kept = clock.resumed(space, self.name, most.size)
        if kept is not None:
            lower[...], upper[...] = kept.vectors["lower"], kept.vectors["upper"]
            level, iterations, entries = (int(kept.numbers[n]) for n in ("level", "iterations", "entries"))
        # A level may take two solutions, each with an error of its own.
        share = 0.45 / max(found.depth, 1)
        inner = Optimistic(replace(self.criterion, epsilon=share * self.criterion.epsilon))
        parts = clock.unrecorded

        def state() -> tuple[Mapping[str, Vector], Numbers]:
            numbers = {"level": level, "iterations": iterations, "entries": entries}
            return {"lower": lower, "upper": upper}, numbers

        for level in range(level, len(found.single_ptr) - 1):  # noqa: B020 - where the state tells it
            clock.offer(state)
            rows = found.single[found.single_ptr[level] : found.single_ptr[level + 1]]
            substitute_csr(rows, *operands)
            rows = found.joined[found.joined_ptr[level] : found.joined_ptr[level + 1]]
            if rows.size == 0:
                continue
            strip = csr[rows]
            part = CsrMatrix(strip[:, rows])
            # Rows not solved yet, these among them, are still zero.
            reached = (most[rows] > 0.0) | ((strip != 0.0) @ (upper > 0.0))
            if not reached.any():
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                lost = np.where(reached, underflow * diagonal[rows], 0.0)  # lemma: topological, underflow
                below = np.maximum(least[rows] + strip @ lower - lost, 0.0)  # lemma: topological, underflow
                above = most[rows] + strip @ upper + lost  # lemma: topological, underflow
            if not bool(np.isfinite(above).all()):
                status = Status.DIVERGED
                break
            delta = float((1.0 - np.divide(below, above, out=np.ones_like(above), where=above > 0)).max())
            solved = inner.solve(part, diagonal[rows], above, slack, upper_bound, parts)
            iterations += solved.iterations
            more_vectors = max(more_vectors, solved.more_vectors)
            entries += solved.products * part.csr.nnz
            status, upper[rows] = solved.status, np.minimum(solved.upper, ceiling)
            if status is Status.INTERRUPTED:
                lower[rows] = solved.lower * max(1.0 - (delta + 8.0 * UNIT), 0.0)  # lemma: topological
            elif delta <= 0.0:
                lower[rows] = solved.lower
            elif self._covers(delta, solved.upper, inner.criterion.epsilon):
                lower[rows] = solved.lower * (1.0 - (delta + 8.0 * UNIT))  # lemma: topological
            elif status is Status.CONVERGED:
                second = inner.solve(part, diagonal[rows], below, slack, upper_bound, parts)
                iterations += second.iterations
                entries += second.products * part.csr.nnz
                status, lower[rows] = second.status, second.lower
            if status is Status.INTERRUPTED:
                # Nothing but zero is known below the values of the levels above.
                upper[found.single[found.single_ptr[level + 1] :]] = ceiling
                upper[found.joined[found.joined_ptr[level + 1] :]] = ceiling
            if status is not Status.CONVERGED:
                break
        else:
            level = len(found.single_ptr) - 1
            clock.keep(state, is_finished=True)
        seconds = clock.seconds
        # A product that overflows makes lower bounds infinite; a upper_bound may keep the upper ones finite.
        if status is Status.CONVERGED and not bool((np.isfinite(lower) & np.isfinite(upper)).all()):
            status = Status.DIVERGED
        if status not in (Status.CONVERGED, Status.INTERRUPTED):
            upper[:] = np.inf
        if status is not Status.CONVERGED:
            values = lower
        else:
            values = middle_of(lower, upper)
        residual = true_residual(matrix, values, most, diagonal, np.empty_like(most))
        with np.errstate(invalid="ignore"):
            difference = width_of(self.criterion, upper - lower, lower)
        # Single rows and what flows into components together make one product; the residual another one.
        products = 2 + -(-entries // max(csr.nnz, 1))
        return BoundedSolution(
            values, status, iterations, seconds, difference, residual, lower, upper, products=products,
            more_vectors=more_vectors,
        )  # fmt: skip

    def _covers(self, delta: float, upper: Vector, inner: float) -> bool:
        """Whether taking a share `delta` off a solution costs no more than solving once more would."""
        if self.criterion.absolute:
            return delta * float(upper.max()) <= inner
        return delta <= self.criterion.epsilon


# Topological solution of a compressed matrix: its rows are written out strip by strip, each once.
#
# A strip is a set of rows that refer to themselves and to rows of strips before it.  Its components are
# solved one after another (:mod:`hybrid.solvers.topological`), with what flows into rows that are solved
# already on the right-hand side, between bounds; then it is let go.

_RECORD = "topological strips"

_DEEPEST = 200  # levels of larger components in a strip: each takes a share of epsilon


class Strips(Protocol):
    """Rows of a square matrix without diagonal in the order of their solution."""

    entries: int

    def __len__(self) -> int:
        """Return how many strips there are, at least one."""

    def rows(self, number: int) -> NDArray[np.int64]:
        """Return the rows of a strip, ascending."""

    def written(self, number: int) -> CsrMatrix:
        """Return what they hold, in their order, over all columns."""


@dataclass(frozen=True, eq=False)
class TopologicalStrips:
    """Optimistic value iteration, component by component, strip by strip.

    Attributes
    ----------
    criterion : Criterion
        Here `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    strips : Strips
        Of the matrix that `solve` is given.
    otherwise : BoundingMethod
        What solves all rows at once where too many components follow one another.
    """

    criterion: Criterion
    strips: Strips
    otherwise: BoundingMethod
    name = Topological.name
    vectors: ClassVar[int] = Topological.vectors

    def solve(
        self,
        matrix: MatrixOperator,
        diagonal: Vector,
        b: Vector,
        slack: float,
        upper_bound: float | None,
        progress: Progress | None = None,
    ) -> BoundedSolution:
        """Solve strip by strip; parameters as in `BoundingMethod`.

        Notes
        -----
        Iterations are those of all components, and one for all single rows.  Memory: the vectors, and one
        strip with its own.
        """
        space, strips, parts = workspace_of(matrix), self.strips, len(self.strips)
        space.reserve(self.vectors, b.size)
        clock = Clock(progress, self.criterion.epsilon)
        ceiling = np.inf if upper_bound is None else upper_bound
        underflow = underflow_of(diagonal, slack)
        more_vectors = 0
        course = StripCourse(b.size, parts, strips.rows)
        course.resume(clock, space, _RECORD)
        lower, upper = course.lower, course.upper
        # Errors of strips add up along paths.
        share = replace(self.criterion, epsilon=self.criterion.epsilon / parts)
        status = Status.CONVERGED
        with clock.gently():
            for number in range(course.number, parts):
                course.number = number
                clock.offer(course.state)
                rows, strip = strips.rows(number), strips.written(number).csr
                inside = CsrMatrix(strip[:, rows])
                components = find_components(inside)
                if components.depth > _DEEPEST:
                    found = self.otherwise.solve(matrix, diagonal, b, slack, upper_bound, progress)
                    return replace(found, solved_by=self.otherwise)
                # Rows that are not solved yet, these among them, are still zero.
                with np.errstate(over="ignore", invalid="ignore"):
                    # Products may have vanished: what is reached is asked of the signs.
                    reached = ((strip != 0.0) @ (upper > 0.0)) > 0
                    lost = np.where(reached, underflow * diagonal[rows], 0.0)  # lemma: topological, underflow
                    above = b[rows] + strip @ upper + lost  # lemma: topological, underflow
                    below = np.maximum(b[rows] + strip @ lower - lost, 0.0)  # lemma: topological, underflow
                if not bool(np.isfinite(above).all()):
                    status = Status.DIVERGED
                    break
                found = Topological(share, components).solve_between(
                    inside, diagonal[rows], below, above, slack, upper_bound, clock.unrecorded
                )
                lower[rows], upper[rows] = found.lower, np.minimum(found.upper, ceiling)
                status = found.status
                course.iterations += found.iterations - int(components.single.size > 0)
                course.work += 2.0 * strip.nnz + float(found.products) * inside.csr.nnz
                more_vectors = max(more_vectors, found.more_vectors)
                if status is not Status.CONVERGED:
                    break
                if clock.tick(course.iterations, math.inf) and number + 1 < parts:
                    status = Status.INTERRUPTED
                    break
            else:
                course.number = parts
                clock.keep(course.state, is_finished=True)
        seconds = clock.seconds
        values = course.end(status, ceiling)
        residual = true_residual(matrix, values, b, diagonal, np.empty_like(b))
        products = 1 + math.ceil(course.work / max(strips.entries, 1))
        return BoundedSolution(
            values, status, course.iterations, seconds, course.width(self.criterion), residual, lower, upper,
            products=products, more_vectors=more_vectors,
        )  # fmt: skip
