"""BiCGStab, preconditioned with the diagonal (van der Vorst, SIAM J. Sci. Stat. Comput. 13, 1992).

Solves ``diagonal * x = M x + b`` as ``(I - M / diagonal) x = b / diagonal``.  Two products an iteration, no
promise that the residual falls; a breakdown is met by starting again from the iterate, a few times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybrid.solvers.base import Clock, Criterion, Progress, Solution, Status, Sweeper, Vector, true_residual

__all__ = ["BiCGStab"]

_RESTARTS = 20


@dataclass(frozen=True)
class BiCGStab:
    """The stabilised biconjugate gradient method.

    Attributes
    ----------
    criterion : Criterion
        Stops when the residual of the scaled system falls below epsilon, relative to that of zero unless
        `absolute`.
    """

    criterion: Criterion = Criterion()
    name = "bicgstab"

    def solve(
        self,
        matrix: Sweeper,
        diagonal: Vector,
        b: Vector | None,
        start: Vector,
        progress: Progress | None = None,
    ) -> Solution:
        """Iterate from `start`; parameters as for `Jacobi.solve`, with a right-hand side.

        Raises
        ------
        ValueError
            There is no right-hand side: a singular system, for which the method is not made.
        """
        if b is None:
            raise ValueError("bicgstab solves systems with a right-hand side; choose jor for steady states")
        right = b / diagonal
        clock = Clock(progress)
        x, status, iteration = start.copy(), Status.MAX_ITERATIONS, 0
        scale = 1.0 if self.criterion.absolute else float(np.linalg.norm(right)) or 1.0
        difference = float("inf")
        for _ in range(_RESTARTS + 1):
            r = right - self._apply(matrix, diagonal, x)
            shadow, p, best = r.copy(), r.copy(), float(np.linalg.norm(r))
            rho = float(shadow @ r)
            difference = best / scale
            while difference >= self.criterion.epsilon and iteration < self.criterion.max_iterations:
                iteration += 1
                v = self._apply(matrix, diagonal, p)
                denominator = float(shadow @ v)
                if denominator == 0.0 or not np.isfinite(denominator):
                    break
                alpha = rho / denominator
                s = r - alpha * v
                t = self._apply(matrix, diagonal, s)
                length = float(t @ t)
                omega = float(t @ s) / length if length > 0 else 0.0
                x += alpha * p + omega * s
                r = s - omega * t
                difference = float(np.linalg.norm(r)) / scale
                before, rho = rho, float(shadow @ r)
                if omega == 0.0 or rho == 0.0 or not np.isfinite(difference):
                    break
                p = r + (rho / before) * (alpha / omega) * (p - omega * v)
                clock.tick(iteration, difference)
            # The recurrence drifts away from the residual it stands for: only a fresh one counts.
            difference = float(np.linalg.norm(right - self._apply(matrix, diagonal, x))) / scale
            if not np.isfinite(difference):
                status = Status.DIVERGED
                break
            if difference < 2.0 * self.criterion.epsilon:
                status = Status.CONVERGED
                break
            if iteration >= self.criterion.max_iterations:
                break
            status = Status.BREAKDOWN
        seconds = clock.seconds
        residual = true_residual(matrix, x, b, diagonal, np.empty_like(x))
        return Solution(x, status, iteration, seconds, difference, residual)

    @staticmethod
    def _apply(matrix: Sweeper, diagonal: Vector, x: Vector) -> Vector:
        """Return ``(I - M / diagonal) x``."""
        product = matrix.multiply(x)
        product /= diagonal
        return x - product
