"""BiCGStab, preconditioned with the diagonal.

Solves ``diagonal * x = M x + b`` as ``(I - M / diagonal) x = b / diagonal``. Two products an iteration, no
promise that the residual falls. It is IDR(s) with s = 1, whose vectors and numbers are where the matrix is
([CB12] §5.2), see :mod:`hybrid.matrix.space.idr`: on a device the host reads them now and then. This module
decides when to restart and how the iteration ends. Source: van der Vorst, Bi-CGSTAB, SIAM J. Sci. Stat.
Comput. 13, 1992; [CB12] §3.2.

It distinguishes three failures. A *breakdown*: some number to divide by is zero, or the residual has grown
beyond all digits. Going on would blow up x. *Stagnation*: the residual no longer falls, or the recurrence's
falls and the true one does not follow. *No convergence* within the iteration limit. After the first two it
restarts from the iterate, as long as that helps. A residual that has become orthogonal to the first one is no
failure: the recurrence restarts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hybrid.base.arrays import inner
from hybrid.matrix.space.base import (
    Clock,
    Criterion,
    LinearOperator,
    Numbers,
    Progress,
    Solution,
    Status,
    Vector,
)
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.idr import BICGSTAB_VECTORS
from hybrid.matrix.space.vector_space import OPERANDS, Array, Recurrence, VectorSpace
from mtbdd.base.records import Record

_RESTARTS = 20
_HELPED = 0.9  # of the residual may be left for a start to have helped
_IN_VAIN = 2  # starts that do not help, one after the other, after which the method gives up
_PLATEAU = 500  # iterations without a smaller residual that count as stagnation


class BiCGStab(Record):
    """The stabilised biconjugate gradient method.

    Attributes
    ----------
    criterion : Criterion
        Stops when the residual of the scaled system falls below epsilon, relative to that of zero unless
        `absolute`.
    """

    criterion: Criterion = Criterion()
    name = "bicgstab"
    # And the product of a matrix that relaxes nothing on the way.
    vectors: ClassVar[int] = BICGSTAB_VECTORS + OPERANDS + 1

    def solve(
        self,
        matrix: LinearOperator,
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

        Notes
        -----
        Six vectors besides the operands, where the matrix has its space; nothing is allocated inside the
        loop.
        """
        if b is None:
            raise ValueError("bicgstab solves systems with a right-hand side; choose jor for steady states")
        clock = Clock(progress)
        space = space_of(matrix)
        space.reserve(self.vectors, b.size)
        system = space.system(diagonal, b)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            scale = 1.0 if self.criterion.absolute else _norm(space, b / diagonal) or 1.0
            kept = clock.resumed(space.xp, self.name, b.size)
            first = start if kept is None else kept.vectors["x"]
            recurrence = system.idr(first, self.criterion.epsilon * scale, directions=1)
            before = 0 if kept is None else int(kept.numbers["iterations"])
            run = _BiCGStabRun(recurrence, scale, before)
            status = self._repeat(run, clock)
            if status in (Status.CONVERGED, Status.MAX_ITERATIONS):
                clock.keep(run.state, status is Status.CONVERGED)
        seconds, looks = clock.seconds, space.synchronisations
        (residual,) = space.read(system.residual(recurrence.x, recurrence.spare))
        values = space.result(recurrence.x, b)
        return Solution(
            values, status, run.iterations, seconds, run.difference, residual, synchronisations=looks,
            products=recurrence.products + 1,
        )  # fmt: skip

    def _repeat(self, run: _BiCGStabRun, clock: Clock) -> Status:
        """Run and restart the recurrence until it has converged or failed."""
        before, in_vain, ended = math.inf, 0, Status.STAGNATED
        for _ in range(_RESTARTS + 1):
            # The recurrence drifts away from the residual it stands for: only a fresh one counts.
            run.restart()
            if not math.isfinite(run.difference):
                return Status.DIVERGED
            if run.difference < 2.0 * self.criterion.epsilon:
                return Status.CONVERGED
            if run.iterations >= self.criterion.max_iterations:
                return Status.MAX_ITERATIONS
            in_vain = 0 if run.difference <= _HELPED * before else in_vain + 1
            if in_vain >= _IN_VAIN:
                return ended
            before = run.difference
            ended = self._run(run, clock)
        run.restart()
        return Status.CONVERGED if run.difference < 2.0 * self.criterion.epsilon else ended

    def _run(self, run: _BiCGStabRun, clock: Clock) -> Status:
        """Iterate until the recurrence stops; return what to call it if its result does not do."""
        smallest, found_at = run.difference, run.iterations
        while not run.ended and run.iterations < self.criterion.max_iterations:
            run.advance(self.criterion.max_iterations - run.iterations)
            if math.isfinite(run.difference):
                clock.offer(run.state)
            clock.tick(run.iterations, run.difference)
            if run.difference < smallest:
                smallest, found_at = run.difference, run.iterations
            elif run.iterations - found_at >= _PLATEAU:
                break
        return Status.BREAKDOWN if run.broken else Status.STAGNATED


@dataclass
class _BiCGStabRun:
    """Progress of the recurrence, as its checks have shown."""

    recurrence: Recurrence
    scale: float
    before: int = 0
    iterations: int = 0
    difference: float = math.inf
    ended: bool = True
    broken: bool = False

    def __post_init__(self) -> None:
        """Count from where an earlier run was."""
        self.iterations = self.before

    def state(self) -> tuple[Mapping[str, Array], Numbers]:
        """Return the iterate, for records."""
        return {"x": self.recurrence.x}, {"iterations": self.iterations}

    def restart(self) -> None:
        """Begin with a fresh residual, and read how great it is."""
        self.difference = self.recurrence.restart() / self.scale
        self.ended = self.broken = False

    def advance(self, most: int) -> None:
        """Make some iterations and look where they have led."""
        made, norm, self.ended, self.broken = self.recurrence.advance(most)
        self.iterations = self.before + made
        self.difference = norm / self.scale


def _norm(space: VectorSpace, x: Vector) -> float:
    """Return the length of a vector, wherever it lies."""
    return float(np.hypot.reduce(space.communicator.gather([math.sqrt(inner(x, x))]).reshape(-1)))
