"""Jacobi's method and over-relaxed Jacobi (JOR), [Tealdi13] 2.4.1 and algorithm 1.

Solves ``diagonal * x = M x + b``.  One iteration is ``x <- (1 - w) x + w (M x + b) / diagonal``;
w = 1 is Jacobi.  For steady states (b = 0, M the transposed rates) Jacobi fails to converge when the
jump chain is periodic; any w < 1 then breaks the period.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hybrid.matrix.space.base import Criterion, MatrixOperator, Progress, Solution, Vector
from hybrid.matrix.space.host import workspace_of
from hybrid.solvers.iteration import ITERATE_VECTORS, iterate


@dataclass(frozen=True)
class Jacobi:
    """Jacobi (`omega` 1) or JOR.

    Attributes
    ----------
    criterion : Criterion
    omega : float
        Relaxation, in (0, 2).
    """

    criterion: Criterion = Criterion()
    omega: float = 1.0
    vectors: ClassVar[int] = ITERATE_VECTORS

    def __post_init__(self) -> None:
        """Refuse relaxations that cannot converge."""
        if not 0 < self.omega < 2:
            raise ValueError(f"omega must lie between 0 and 2, got {self.omega}")

    @property
    def name(self) -> str:
        """Name on the command line."""
        return "jacobi" if self.omega == 1 else "jor"

    def solve(
        self,
        matrix: MatrixOperator,
        diagonal: Vector,
        b: Vector | None,
        start: Vector,
        progress: Progress | None = None,
    ) -> Solution:
        """Iterate from `start` until two iterates are close.

        Parameters
        ----------
        matrix : MatrixOperator
            M, shape (n, n), without diagonal.
        diagonal, start : ndarray of float64, shape (n,)
            `diagonal` positive; `start` is not changed.
        b : ndarray of float64, shape (n,), optional
            Right-hand side; None is zero.
        progress : callable, optional
            Called with (iteration, difference) about twice a second.

        Notes
        -----
        Two vectors besides the operands, where the matrix has its workspace; nothing is allocated inside the
        loop.
        """
        space = workspace_of(matrix)
        space.reserve(space.more(self.vectors, diagonal), diagonal.size)
        system = space.system(diagonal, b)
        steps = system.relaxation(self.omega, criterion=self.criterion)
        return iterate(space, system, steps, self.criterion, start, progress, diagonal, self.name)
