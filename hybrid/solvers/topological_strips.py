"""Topological solution of a compressed matrix: its rows are written out strip by strip, each once.

A strip is a set of rows that refer to themselves and to rows of strips before it.  Its components are solved
one after another (:mod:`hybrid.solvers.topological`), with what flows into rows that are solved already on
the right-hand side, between bounds; then it is let go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.cpu.csr_components import find_components
from hybrid.matrix.space.base import Clock, Criterion, MatrixOperator, Progress, Status, Vector, true_residual
from hybrid.matrix.space.bounded_solution import BoundedSolution, BoundingMethod, underflow_of
from hybrid.matrix.space.host import workspace_of
from hybrid.solvers.strip_course import StripCourse
from hybrid.solvers.topological import Topological

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
