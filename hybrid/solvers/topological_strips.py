"""Topological solution of a compressed matrix: its rows are written out strip by strip, each once.

A strip is a set of rows that refer to themselves and to rows of strips before it.  Its components are solved
one after another (:mod:`hybrid.solvers.topological`), with what flows into rows that are solved already on
the right-hand side, between bounds; then it is let go.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid.cpu.csr import CsrMatrix
from hybrid.solvers.base import Clock, Criterion, MatrixOperator, Progress, Status, Vector, true_residual
from hybrid.solvers.bounded_solution import BoundedSolution, BoundingMethod, underflow_of, width_of
from hybrid.solvers.host import workspace_of
from hybrid.solvers.record import Numbers
from hybrid.solvers.topological import Topological, find_components

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
        lower, upper = np.zeros_like(b), np.zeros_like(b)
        ceiling = np.inf if upper_bound is None else upper_bound
        underflow = underflow_of(diagonal, slack)
        number, iterations, work, more_vectors = 0, 1, 0.0, 0  # single rows are one iteration
        kept = clock.resumed(space, _RECORD, b.size)
        if kept is not None:
            lower[...], upper[...] = kept.vectors["lower"], kept.vectors["upper"]
            number, iterations = (int(kept.numbers[name]) for name in ("strip", "iterations"))
            work = kept.numbers["work"]
            for later in range(number, parts):
                lower[strips.rows(later)] = upper[strips.rows(later)] = 0.0
        # Errors of strips add up along paths.
        share = replace(self.criterion, epsilon=self.criterion.epsilon / parts)
        status = Status.CONVERGED

        def state() -> tuple[Mapping[str, Vector], Numbers]:
            numbers = {"strip": number, "iterations": iterations, "work": work}
            return {"lower": lower, "upper": upper}, numbers

        with clock.gently():
            for number in range(number, parts):  # noqa: B020 - where the state tells it
                clock.offer(state)
                rows, strip = strips.rows(number), strips.written(number).csr
                inside = CsrMatrix(strip[:, rows])
                components = find_components(inside)
                if components.depth > _DEEPEST:
                    return self.otherwise.solve(matrix, diagonal, b, slack, upper_bound, progress)
                # Rows that are not solved yet, these among them, are still zero.
                with np.errstate(over="ignore", invalid="ignore"):
                    # Products may have vanished: what is reached is asked of the signs.
                    reached = ((strip != 0.0) @ (upper > 0.0)) > 0
                    lost = np.where(reached, underflow * diagonal[rows], 0.0)
                    above = b[rows] + strip @ upper + lost
                    below = np.maximum(b[rows] + strip @ lower - lost, 0.0)
                if not bool(np.isfinite(above).all()):
                    status = Status.DIVERGED
                    break
                found = Topological(share, components).solve_between(
                    inside, diagonal[rows], below, above, slack, upper_bound, clock.unrecorded
                )
                lower[rows], upper[rows] = found.lower, np.minimum(found.upper, ceiling)
                status = found.status
                iterations += found.iterations - int(components.single.size > 0)
                work += 2.0 * strip.nnz + float(found.products) * inside.csr.nnz
                more_vectors = max(more_vectors, found.more_vectors)
                if status is not Status.CONVERGED:
                    break
                if clock.tick(iterations, math.inf) and number + 1 < parts:
                    status = Status.INTERRUPTED
                    break
            else:
                number = parts
                clock.keep(state, is_finished=True)
        seconds = clock.seconds
        if status is Status.INTERRUPTED:
            # Nothing but zero is known below the values of the strips to come.
            for later in range(number + 1, parts):
                upper[strips.rows(later)] = ceiling
        elif status is not Status.CONVERGED:
            upper[:] = np.inf
        values = 0.5 * (lower + upper) if status is Status.CONVERGED else lower
        residual = true_residual(matrix, values, b, diagonal, np.empty_like(b))
        with np.errstate(invalid="ignore"):
            difference = width_of(self.criterion, upper - lower, lower)
        products = 1 + math.ceil(work / max(strips.entries, 1))
        return BoundedSolution(
            values, status, iterations, seconds, difference, residual, lower, upper, products=products,
            more_vectors=more_vectors,
        )  # fmt: skip
