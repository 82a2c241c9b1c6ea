"""The power method on the uniformised system.

Solves ``diagonal * x = M x + b`` by ``x <- x + (M x + b - diagonal x) / q`` with q a little above
the greatest diagonal entry: for a DTMC's steady state (b = 0) this is the repeated vector-matrix
product, and for linear systems the simplest fixed-point iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybrid.solvers.base import Criterion, Progress, Solution, Sweeper, Vector, iterate

__all__ = ["Power"]


@dataclass(frozen=True)
class Power:
    """The power method.

    Attributes
    ----------
    criterion : Criterion
    """

    criterion: Criterion = Criterion()
    name = "power"

    def solve(
        self,
        matrix: Sweeper,
        diagonal: Vector,
        b: Vector | None,
        start: Vector,
        progress: Progress | None = None,
    ) -> Solution:
        """Iterate from `start`; parameters as for `Jacobi.solve`."""
        scale = 1.02 * float(diagonal.max(initial=0.0)) or 1.0
        if getattr(matrix, "backend", None) == "gpu":
            from hybrid.gpu.sweeps import solve_power

            product = matrix.product  # type: ignore[attr-defined]
            return solve_power(product, self.criterion, scale, diagonal, b, start, progress)
        kept = 1.0 - diagonal / scale

        def step(x: Vector, out: Vector) -> tuple[float, float]:
            y = matrix.multiply(x, out)
            if b is not None:
                y += b
            y /= scale
            x *= -1.0
            # x now holds -x, so that the step and its difference need no third vector
            y -= kept * x
            x += y
            np.abs(x, out=x)
            absolute = float(x.max(initial=0.0))
            with np.errstate(divide="ignore", invalid="ignore"):
                np.divide(x, np.abs(y), out=x)
            relative = float(np.nan_to_num(x, copy=False, nan=0.0, posinf=np.inf).max(initial=0.0))
            return absolute, relative

        return iterate(matrix, self.criterion, step, diagonal, b, start, progress)
