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

from dataclasses import dataclass

import numpy as np

from hybrid.solvers.base import Clock, Criterion, Progress, Status, Sweeper, Vector

__all__ = ["Gain", "GainResult"]

_CHECK_EVERY = 10  # iterations between measurements of rho, which cost as much as a small product
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
    """

    value: float
    lower: float
    upper: float
    status: Status
    iterations: int
    seconds: float
    difference: float


@dataclass(frozen=True)
class Gain:
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

    def solve(
        self,
        matrix: Sweeper,
        diagonal: Vector,
        rewards: Vector,
        slack: float,
        progress: Progress | None = None,
    ) -> GainResult:
        """Return the average of `rewards` per unit of time.

        Parameters
        ----------
        matrix : Sweeper
            Rates between the states of one closed class, shape (n, n), n > 1, without diagonal.
        diagonal : ndarray of float64, shape (n,)
            Its row sums.
        rewards : ndarray of float64, shape (n,)
            Finite, of any sign.
        slack : float
            Bound on the relative error of evaluating ``rewards + M h - diagonal * h`` term by term.

        Notes
        -----
        Six vectors besides the operands.  If rounding keeps the bounds further apart than epsilon, they
        are returned as close as they come.
        """
        clock = Clock(progress)
        ones = np.ones_like(rewards)
        h, w, spare = np.zeros_like(rewards), np.zeros_like(rewards), np.empty_like(rewards)
        moved, paced = np.empty_like(rewards), np.ones_like(rewards)
        offset, settled, products, checks = 0.0, False, 0, 0
        right = rewards.copy()
        fastest = float(diagonal.max())
        status, difference = Status.MAX_ITERATIONS, float("inf")
        best = float("inf")
        stale = 0
        while products < self.criterion.max_iterations:
            for step in range(_CHECK_EVERY):
                _ = matrix.jacobi_step(h, spare, right, diagonal, self.omega)
                products += 1
                if step == _CHECK_EVERY - 1:
                    np.subtract(spare, h, out=moved)
                h, spare = spare, h
                if not settled:
                    _ = matrix.jacobi_step(w, spare, ones, diagonal, self.omega)
                    products += 1
                    if step == _CHECK_EVERY - 1:
                        np.subtract(spare, w, out=paced)
                    w, spare = spare, w
            checks += 1
            slowest, quickest = float(paced.max()), float(paced.min())
            if not (np.isfinite(slowest) and np.isfinite(float(moved.max()))):
                status = Status.DIVERGED
                break
            if not settled:
                settled = slowest - quickest <= _SETTLED * slowest
                w -= 0.5 * (float(w.min()) + float(w.max()))
            # Take what is missing in the average out of h, and measure what is left.
            missing = (float(moved.min()) + float(moved.max())) / (slowest + quickest)
            offset += missing
            h -= missing * w
            right = rewards - offset
            moved -= missing * paced
            np.multiply(moved, diagonal, out=moved)
            moved /= self.omega
            lowest, highest = offset + float(moved.min()), offset + float(moved.max())
            middle, least, most = 0.5 * (lowest + highest), float(h.min()), float(h.max())
            h -= 0.5 * (least + most)
            width = highest - lowest
            difference = width if self.criterion.absolute else _relative(width, middle)
            floor = 4.0 * slack * (abs(offset) + fastest * (most - least))
            # A width that no longer shrinks is made of rounding errors.
            stale = 0 if width < 0.9 * best else stale + 1
            best = min(best, width)
            if difference <= self.criterion.epsilon or width <= floor and stale >= 5:
                status = Status.CONVERGED
                break
            clock.tick(products, difference)
        seconds = clock.seconds
        lower, upper = _bounds(matrix, diagonal, rewards, h, slack)
        width, middle = upper - lower, 0.5 * (lower + upper)
        difference = width if self.criterion.absolute else _relative(width, middle)
        return GainResult(middle, lower, upper, status, products, seconds, difference)


def _relative(width: float, middle: float) -> float:
    """Return a width relative to a value."""
    return width / abs(middle) if middle else (0.0 if width == 0 else float("inf"))


def _bounds(
    matrix: Sweeper, diagonal: Vector, rewards: Vector, h: Vector, slack: float
) -> tuple[float, float]:
    """Return the least and greatest rho, widened by the rounding errors of computing them."""
    rho = matrix.multiply(h)
    rho += rewards
    rho -= diagonal * h
    size = np.abs(h)
    error = matrix.multiply(size)
    error += diagonal * size
    error += np.abs(rewards)
    error *= slack
    lower, upper = float((rho - error).min()), float((rho + error).max())
    return max(lower, float(rewards.min())), min(upper, float(rewards.max()))
