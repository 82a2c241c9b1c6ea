"""Interval iteration: the same step from below and from above until the two meet.

For ``f(x) = (M x + b) / diagonal`` with a unique fixed point, iterates from 0 rise and iterates from
an upper bound fall towards it; their distance bounds the error (Haddad and Monmege, Interval
iteration algorithm for MDPs and IMDPs, TCS 2018; Baier et al., Ensuring the reliability of your
model checker, CAV 2017).  Rounding is directed as in `hybrid.solvers.enclosure`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hybrid.solvers.base import Clock, Criterion, Progress, Status, Sweeper, Vector, true_residual
from hybrid.solvers.enclosure import Enclosure, settle_tiny, width_of
from hybrid.solvers.optimistic import Optimistic

__all__ = ["Interval"]

_CHECK_EVERY = 8  # iterations between measurements of the distance, which cost as much as a small product
_COARSE = 0.5


@dataclass(frozen=True)
class Interval:
    """Interval iteration; parameters of `solve` as in `EnclosingMethod`.

    Attributes
    ----------
    criterion : Criterion
        Here `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    """

    criterion: Criterion = Criterion()
    name = "interval"

    def solve(
        self,
        matrix: Sweeper,
        diagonal: Vector,
        b: Vector,
        slack: float,
        ceiling: float | None,
        progress: Progress | None = None,
    ) -> Enclosure:
        """Iterate both bounds; without a `ceiling` a coarse optimistic iteration provides the start above.

        Notes
        -----
        Four vectors besides the operands.  Bounds that stand still short of epsilon are what double
        precision allows for, and are returned.
        """
        clock = Clock(progress)
        low, high = diagonal * (1.0 + slack), diagonal * (1.0 - slack)
        x, above, done = np.zeros_like(b), np.full_like(b, ceiling or 0.0), 0
        if ceiling is None:
            start = Optimistic(replace(self.criterion, epsilon=_COARSE, absolute=False)).solve(
                matrix, diagonal, b, slack, None, progress
            )
            if start.status is not Status.CONVERGED:
                return start
            x, above, done = start.lower, start.upper, start.iterations
        y, spare = np.empty_like(x), np.empty_like(x)
        status, difference, iteration = Status.MAX_ITERATIONS, float("inf"), 0
        while done + iteration < self.criterion.max_iterations:
            iteration += 1
            _, below_moves = matrix.jacobi_step(x, y, b, low, 1.0)
            _, above_moves = matrix.jacobi_step(above, spare, b, high, 1.0)
            x, y, above, spare = y, x, spare, above
            still = below_moves == 0.0 and above_moves == 0.0
            if still or iteration % _CHECK_EVERY == 0:
                np.subtract(above, x, out=y)
                difference = width_of(self.criterion, y, x)
                if still or difference <= self.criterion.epsilon:
                    status = Status.CONVERGED
                    break
            clock.tick(iteration, difference)
        seconds = clock.seconds
        settle_tiny(x, above)
        values = 0.5 * (x + above)
        residual = true_residual(matrix, values, b, diagonal, y)
        return Enclosure(values, status, done + iteration, seconds, difference, residual, x, above)
