"""The power method on the uniformised system.

Solves ``diagonal * x = M x + b`` by ``x <- x + (M x + b - diagonal x) / q`` with q a little above
the greatest diagonal entry: for a DTMC's steady state (b = 0) this is the repeated vector-matrix
product, and for linear systems the simplest fixed-point iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hybrid.base.arrays import extremes
from hybrid.matrix.space.base import Criterion, MatrixOperator, Progress, Solution, Vector
from hybrid.matrix.space.host import workspace_of
from hybrid.solvers.iteration import ITERATE_VECTORS, iterate


@dataclass(frozen=True)
class Power:
    """The power method.

    Attributes
    ----------
    criterion : Criterion
    """

    criterion: Criterion = Criterion()
    name = "power"
    vectors: ClassVar[int] = ITERATE_VECTORS

    def solve(
        self,
        matrix: MatrixOperator,
        diagonal: Vector,
        b: Vector | None,
        start: Vector,
        progress: Progress | None = None,
    ) -> Solution:
        """Iterate from `start`; parameters as for `Jacobi.solve`."""
        space = workspace_of(matrix)
        rate = 1.02 * space.communicator.greatest(max(0.0, extremes(diagonal)[1])) or 1.0
        space.reserve(space.more(self.vectors, diagonal), diagonal.size)
        system = space.system(diagonal, b)
        steps = system.uniformised(rate, self.criterion)
        return iterate(space, system, steps, self.criterion, start, progress, diagonal, self.name)
