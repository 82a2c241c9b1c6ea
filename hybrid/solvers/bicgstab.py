"""BiCGStab, preconditioned with the diagonal.

Solves ``diagonal * x = M x + b`` as ``(I - M / diagonal) x = b / diagonal``.  Two products an iteration, no
promise that the residual falls.  The numbers of the recurrence stay where the vectors are (002, section 5.2):
on a device the host looks at them now and then, and a recurrence that has ended moves nothing any more.
Source: van der Vorst, Bi-CGSTAB, SIAM J. Sci. Stat. Comput. 13, 1992; 002, section 3.2.

Three ways to fail are told apart.  A *breakdown*: some number to divide by is zero, or has lost half its
digits because the residual has become orthogonal to the one it began with; going on would blow up x.
*Stagnation*: the residual no longer falls, or the recurrence's falls and the true one does not follow.
*No convergence* within the iteration limit.  The first two are met by starting anew from the iterate, as long
as that helps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybrid.solvers.base import Clock, Criterion, Progress, Solution, Status, Sweeper, Vector
from hybrid.solvers.workspace import Array, System, Workspace, workspace_of

__all__ = ["BiCGStab"]

_VECTORS = 8  # six, diagonal and right-hand side
_RESTARTS = 20
_HELPED = 0.9  # of the residual may be left for a start to have helped
_IN_VAIN = 2  # starts that do not help, one after the other, after which the method gives up
_ORTHOGONAL = 1e-8  # cosine of two residuals below which their product means nothing any more
_PLATEAU = 500  # iterations without a smaller residual that count as stagnation


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

        Notes
        -----
        Six vectors besides the operands, where the matrix has its workspace; nothing is allocated inside the
        loop.
        """
        if b is None:
            raise ValueError("bicgstab solves systems with a right-hand side; choose jor for steady states")
        clock = Clock(progress)
        space = workspace_of(matrix)
        space.reserve(_VECTORS, b.size)
        system = space.system(diagonal, b)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            scale = 1.0 if self.criterion.absolute else float(np.linalg.norm(b / diagonal)) or 1.0
            run = _Recurrence(space, system, start, scale, self.criterion.epsilon)
            status = self._repeat(run, clock)
        seconds, looks = clock.seconds, space.looks
        (residual,) = space.read(system.residual(run.x, run.spare))
        values = space.to_host(run.x)
        return Solution(
            values, status, run.iterations, seconds, run.difference, residual, synchronisations=looks
        )

    def _repeat(self, run: _Recurrence, clock: Clock) -> Status:
        """Run the recurrence and start it anew until it is clear how it ends."""
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

    def _run(self, run: _Recurrence, clock: Clock) -> Status:
        """Iterate until the recurrence stops; return what to call it if its result does not do."""
        smallest, found_at = run.difference, run.iterations
        while run.alive and run.iterations < self.criterion.max_iterations:
            run.advance(self.criterion.max_iterations - run.iterations)
            clock.tick(run.iterations, run.difference)
            if run.difference < smallest:
                smallest, found_at = run.difference, run.iterations
            elif run.iterations - found_at >= _PLATEAU:
                break
        return Status.BREAKDOWN if run.broken else Status.STAGNATED


class _Recurrence:
    """Vectors and numbers of the method, in the workspace.

    Once the residual is small or a number to divide by is zero, all factors are zero: x stays the same.
    """

    def __init__(self, space: Workspace, system: System, start: Vector, scale: float, epsilon: float) -> None:
        xp = space.xp
        self._space, self._scale, self._epsilon = space, scale, epsilon
        self._system, self._fresh = system, system.relaxation()
        self.x = space.vector(start)
        self._r, self._shadow, self._p = (xp.empty(start.size) for _ in range(3))
        self._v, self._t = (xp.empty(start.size) for _ in range(2))
        # Numbers are made once, too, and changed in place: an iteration allocates nothing.
        self._rho, self._norm, self._first, self._made, self._fresh_norm = (xp.zeros(()) for _ in range(5))
        self._alpha, self._omega, self._beta, self._above, self._below = (xp.zeros(()) for _ in range(5))
        self._live, self._ok, self._going, self._small, self._mark = (xp.zeros((), bool) for _ in range(5))
        self.iterations, self.difference, self.alive, self.broken = 0, math.inf, False, False

    @property
    def spare(self) -> Array:
        """A vector that is free once all is over."""
        return self._t

    def restart(self) -> None:
        """Start from the residual of x, and read how great it is."""
        xp = self._space.xp
        self._fresh.sweep((self.x, self._r), 0, 1)
        self._r -= self.x
        self._shadow[...] = self._r
        self._p[...] = self._r
        xp.dot(self._shadow, self._r, out=self._rho)
        xp.sqrt(self._rho, out=self._norm)
        xp.copyto(self._first, self._norm)
        xp.greater_equal(self._norm, self._epsilon * self._scale, out=self._live)
        xp.copyto(self._ok, self._live)
        (norm,) = self._space.read(self._norm)
        self.difference, self.alive, self.broken = norm / self._scale, True, False

    def advance(self, most: int) -> None:
        """Queue some iterations and look where they have led."""
        self._made.fill(0.0)
        for _ in range(min(self._space.stride, most)):
            self._iterate()
        live, ok, made, norm = self._space.read(self._live, self._ok, self._made, self._norm)
        self.iterations += int(made)
        self.difference, self.alive, self.broken = norm / self._scale, live != 0.0, ok == 0.0

    def _apply(self, x: Array, out: Array) -> None:
        """Queue ``out = (I - M / diagonal) x``."""
        self._system.scaled_product(x, out)
        self._space.xp.subtract(x, out, out=out)

    def _iterate(self) -> None:
        """Queue one iteration."""
        xp, add = self._space.xp, self._space.add_scaled
        r, p, v, t, live, going = self._r, self._p, self._v, self._t, self._live, self._going
        alpha, omega, beta, norm = self._alpha, self._omega, self._beta, self._fresh_norm
        xp.add(self._made, live, out=self._made)
        self._apply(p, v)
        xp.dot(self._shadow, v, out=self._below)
        xp.copyto(going, live)
        self._and(xp.not_equal, self._below, 0.0)
        self._and(xp.isfinite, self._below)
        xp.divide(self._rho, self._below, out=alpha)
        self._zero_unless(going, alpha)
        add(-1.0, v, r, alpha)  # r is what van der Vorst calls s, for a while
        self._apply(r, t)
        xp.dot(t, r, out=self._above)
        xp.dot(t, t, out=self._below)
        xp.divide(self._above, self._below, out=omega)
        self._zero_unless(going, omega)
        xp.greater(self._below, 0.0, out=self._small)
        self._zero_unless(self._small, omega)
        add(1.0, p, self.x, alpha)
        add(1.0, r, self.x, omega)
        add(-1.0, t, r, omega)
        xp.dot(r, r, out=norm)
        xp.sqrt(norm, out=norm)
        xp.copyto(beta, self._rho)
        xp.dot(self._shadow, r, out=self._rho)
        xp.copyto(self._norm, norm, where=live)
        xp.less(norm, self._epsilon * self._scale, out=self._small)
        self._and(xp.not_equal, omega, 0.0)
        xp.absolute(self._rho, out=self._above)
        xp.multiply(self._first, _ORTHOGONAL, out=self._below)
        xp.multiply(self._below, norm, out=self._below)
        self._and(xp.greater, self._above, self._below)
        self._and(xp.isfinite, norm)
        # Having arrived is no breakdown, whatever else is zero by then.
        xp.logical_or(going, self._small, out=self._mark)
        xp.copyto(self._ok, self._mark, where=live)
        xp.logical_and(live, going, out=live)
        xp.logical_not(self._small, out=self._mark)
        xp.logical_and(live, self._mark, out=live)
        xp.divide(self._rho, beta, out=beta)
        xp.divide(alpha, omega, out=self._above)
        xp.multiply(beta, self._above, out=beta)
        self._zero_unless(live, beta)
        add(-1.0, v, p, omega)
        p *= beta
        p += r

    def _and(self, test: Any, *numbers: Any) -> None:
        """Queue ``going = going and test(numbers)``."""
        test(*numbers, out=self._mark)
        self._space.xp.logical_and(self._going, self._mark, out=self._going)

    def _zero_unless(self, condition: Array, number: Array) -> None:
        """Queue ``number = number if condition else 0``."""
        self._space.xp.logical_not(condition, out=self._mark)
        self._space.xp.copyto(number, 0.0, where=self._mark)
