"""The long-run average of a reward in one closed class, between bounds, without a transposed matrix.

For a chain with rates M (no diagonal), exit rates d and reward rates r, and any vector h, the average g
satisfies ``min rho <= g <= max rho`` with ``rho = r + M h - d * h``, because the stationary
distribution takes the mean of rho to g (the odd bounds of value iteration for averages; Puterman,
Markov Decision Processes, section 8.5).  The bounds meet when h solves Poisson's equation.

A good h comes from relaxed steps of the jump chain, which stiff rates do not slow down as they slow
uniformisation.  The jump chain averages over visits and not over time, so two vectors are
iterated: h for r, and w for the constant reward 1, whose increments tell how long a visit lasts.
For any number g, h - g w belongs to r - g.  Once w's increments are nearly constant w is kept as it
is, h - g w goes on alone, and what g lacks is taken out of h with w now and then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hybrid.solvers.base import Clock, Criterion, MatrixOperator, Progress, Status, Vector
from hybrid.solvers.bounded_solution import underflow_of
from hybrid.solvers.host import workspace_of
from hybrid.solvers.workspace import Array, Workspace

_CHECK_EVERY = (
    10  # even number of iterations between measurements of rho, which cost as much as a small product
)
_SETTLED = 1e-3  # relative spread of w's increments at which w is good enough


@dataclass(frozen=True)
class GainResult:
    """An average between bounds.

    Attributes
    ----------
    value, lower, upper : float
    status : Status
    iterations : int
        Products.
    seconds : float
        Wall time of the iterations.
    difference : float
        Distance of the bounds, relative to the value unless the criterion is absolute.
    synchronisations : int
        How often the host waited for a device while iterating; 0 where there is none.
    """

    value: float
    lower: float
    upper: float
    status: Status
    iterations: int
    seconds: float
    difference: float
    synchronisations: int = 0


@dataclass(frozen=True)
class AverageReward:
    """Value iteration for averages.

    Attributes
    ----------
    criterion : Criterion
        Here `epsilon` bounds the distance of the bounds, relative to the value unless `absolute`.
    omega : float
        Relaxation in (0, 1); below 1 so that chains with a period settle, too.
    """

    criterion: Criterion = Criterion()
    omega: float = 0.9
    name = "gain"
    vectors: ClassVar[int] = 9  # six, diagonal and rewards, and the diagonal of the steps

    def solve(
        self,
        matrix: MatrixOperator,
        diagonal: Vector,
        rewards: Vector,
        slack: float,
        progress: Progress | None = None,
    ) -> GainResult:
        """Return the average of `rewards` per unit of time.

        Parameters
        ----------
        matrix : MatrixOperator
            Rates between the states of one closed class, shape (n, n), n > 1, without diagonal.
        diagonal : ndarray of float64, shape (n,)
            Its row sums.
        rewards : ndarray of float64, shape (n,)
            Finite, of any sign.
        slack : float
            Bound on the relative error of evaluating ``rewards + M h - diagonal * h`` term by term.

        Notes
        -----
        Six vectors besides the operands, where the matrix has its workspace; a look in ten products or more.
        If rounding keeps the bounds further apart than epsilon, they are returned as close as they come.
        """
        clock = Clock(progress, self.criterion.epsilon)
        with clock.gently():
            return self._solved(matrix, diagonal, rewards, slack, clock)

    def _solved(
        self, matrix: MatrixOperator, diagonal: Vector, rewards: Vector, slack: float, clock: Clock
    ) -> GainResult:
        """Iterate, and return the bounds that h gives in the end, wherever that is."""
        space = workspace_of(matrix)
        space.reserve(self.vectors, rewards.size)
        course = _Course(space, diagonal, rewards, self.omega)
        fastest = float(diagonal.max())
        status, difference = Status.MAX_ITERATIONS, math.inf
        best, stale = math.inf, 0
        while course.products < self.criterion.max_iterations:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                course.advance(_CHECK_EVERY)
                slowest, quickest, offset, low, high, least, most = space.read(*course.correct())
            if not all(map(math.isfinite, (slowest, quickest, offset, low, high, least, most))):
                status = Status.DIVERGED
                break
            course.settled = course.settled or slowest - quickest <= _SETTLED * slowest
            lowest, highest = offset + low, offset + high
            width, middle = highest - lowest, 0.5 * (lowest + highest)
            difference = width if self.criterion.absolute else _relative(width, middle)
            floor = 4.0 * slack * (abs(offset) + fastest * (most - least))
            # A width that no longer shrinks is made of rounding errors.
            stale = 0 if width < 0.9 * best else stale + 1
            best = min(best, width)
            if difference <= self.criterion.epsilon or width <= floor and stale >= 5:
                status = Status.CONVERGED
                break
            if clock.tick(course.products, difference):
                status = Status.INTERRUPTED
                break
        seconds, looks = clock.seconds, space.synchronisations
        with np.errstate(over="ignore", invalid="ignore"):
            lower, upper = space.read(*course.bounds(slack))
        lost = underflow_of(np.array([max(1.0, fastest)]), slack)
        lower, upper = lower - lost, upper + lost
        lower, upper = max(lower, float(rewards.min())), min(upper, float(rewards.max()))
        width, middle = upper - lower, 0.5 * (lower + upper)
        difference = width if self.criterion.absolute else _relative(width, middle)
        return GainResult(middle, lower, upper, status, course.products, seconds, difference, looks)


class _Course:
    """The two iterations; all vectors and numbers stay in the workspace."""

    def __init__(self, space: Workspace, diagonal: Vector, rewards: Vector, omega: float) -> None:
        xp, size = space.xp, rewards.size
        self._space, self._omega = space, omega
        self._diagonal, self._rewards = space.operand(diagonal), space.operand(rewards)
        self._h, self._w, self._spare = xp.zeros(size), xp.zeros(size), xp.empty(size)
        self._moved, self._paced = xp.empty(size), xp.ones(size)
        self._right = space.vector(rewards)
        system = space.system(diagonal, np.ones(size))
        self._pacing = system.relaxation(omega)
        self._moving = system.sharing(self._right).relaxation(omega)
        self._offset = xp.zeros(())
        self._paces: tuple[Array, Array] | None = None
        self.settled, self.products = False, 0

    def advance(self, count: int) -> None:
        """Make an even number of steps of h, and of w unless it has settled; note the last increments."""
        space, subtract = self._space, self._space.xp.subtract

        def increment(new: Array, old: Array, out: Array) -> None:
            subtract(new, old, out=out)

        self._moving.sweep((self._h, self._spare), 0, count)
        space.each(increment, self._h, self._spare, self._moved)
        self.products += count
        if self.settled:
            return
        self._pacing.sweep((self._w, self._spare), 0, count)
        space.each(increment, self._w, self._spare, self._paced)
        self.products += count
        quickest, slowest = space.extremes(self._paced)
        self._paces = slowest, quickest
        self._centre(self._w)

    def correct(self) -> tuple[Array, ...]:
        """Take what is missing in the average out of h, and measure what is left.

        Returns
        -------
        tuple of arrays, shape ()
            Greatest and least increment of w, average so far, its extreme errors, least and greatest h.
        """
        if self._paces is None:
            raise RuntimeError("increments are corrected after the first steps")
        space, subtract, omega = self._space, self._space.xp.subtract, self._omega
        slowest, quickest = self._paces
        missing = sum(space.extremes(self._moved)) / (slowest + quickest)
        offset = self._offset = self._offset + missing

        def offer(rewards: Array, right: Array) -> None:
            subtract(rewards, offset, out=right)

        def weigh(moved: Array, diagonal: Array) -> None:
            moved *= diagonal
            moved /= omega

        space.add_scaled(-1.0, self._w, self._h, missing)
        space.each(offer, self._rewards, self._right)
        space.add_scaled(-1.0, self._paced, self._moved, missing)
        space.each(weigh, self._moved, self._diagonal)
        least, most = self._centre(self._h)
        return slowest, quickest, offset, *space.extremes(self._moved), least, most

    def _centre(self, x: Array) -> tuple[Array, Array]:
        """Take the middle of a vector's extremes out of it, and return them."""
        least, most = self._space.extremes(x)
        middle = 0.5 * (least + most)

        def lower(x: Array) -> None:
            x -= middle

        self._space.each(lower, x)
        return least, most

    def bounds(self, slack: float) -> tuple[Array, Array]:
        """Return the least and greatest rho, widened by the rounding errors of computing them."""
        space, xp = self._space, self._space.xp
        h, rho, error = self._h, self._moved, self._spare
        space.multiply(h, rho)
        rho += self._rewards
        xp.multiply(self._diagonal, h, out=error)
        rho -= error
        xp.absolute(h, out=h)
        space.multiply(h, error)
        h *= self._diagonal
        error += h
        xp.absolute(self._rewards, out=h)
        error += h
        error *= slack
        xp.subtract(rho, error, out=h)
        rho += error
        return h.min(), rho.max()


def _relative(width: float, middle: float) -> float:
    """Return a width relative to a value."""
    return width / abs(middle) if middle else (0.0 if width == 0 else float("inf"))
