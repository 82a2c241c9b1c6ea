"""Solutions between bounds, and how rounding enters them.

All quantities here are sums of products of non-negative numbers, so one evaluation of
``(M x + b) / diagonal`` in double precision has a relative error below some `slack` that depends on
the number of terms alone.  Evaluating with the diagonal scaled by ``1 + slack`` therefore never gives
too much, and by ``1 - slack`` never too little: rounding is directed without changing a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hybrid.solvers.base import Criterion, Progress, Solution, Sweeper, Vector

__all__ = ["TINY", "UNIT", "EnclosingMethod", "Enclosure", "settle_tiny", "width_of"]

UNIT = 2.0**-53
"""Greatest relative error of one rounded operation."""

TINY = 1e-290
"""Values below this may have lost digits to underflow; of them only this bound is told."""

_UNDERFLOW = 1e-140  # products of numbers above this do not underflow


@dataclass(frozen=True)
class Enclosure(Solution):
    """A solution with bounds.

    Attributes
    ----------
    lower, upper : ndarray of float64, shape (n,)
        The exact solution lies between them; `values` is their middle.
    """

    lower: Vector
    upper: Vector


class EnclosingMethod(Protocol):
    """A method whose solutions have bounds."""

    @property
    def name(self) -> str:
        """Name on the command line."""
        ...

    def solve(
        self,
        matrix: Sweeper,
        diagonal: Vector,
        b: Vector,
        slack: float,
        ceiling: float | None,
        progress: Progress | None = None,
    ) -> Enclosure:
        """Solve ``diagonal * x = M x + b`` for non-negative M and b, x the least solution.

        Parameters
        ----------
        matrix : Sweeper
            M, shape (n, n), without diagonal.
        diagonal, b : ndarray of float64, shape (n,)
            `diagonal` positive.
        slack : float
            Bound on the relative error of evaluating ``(M x + b) / diagonal``, including that of the
            operands.
        ceiling : float, optional
            A bound on x known beforehand, such as 1 for probabilities.
        progress : callable, optional
            Called with (iteration, difference) about twice a second.
        """
        ...


def width_of(criterion: Criterion, gap: Vector, x: Vector) -> float:
    """Return the greatest element of `gap`, relative to x unless the criterion is absolute."""
    if gap.size == 0:
        return 0.0
    if criterion.absolute:
        return float(gap.max())
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = gap / x
    return float(np.nan_to_num(relative, copy=False, nan=0.0, posinf=np.inf).max())


def settle_tiny(lower: Vector, upper: Vector) -> None:
    """Widen, in place, the bounds of values so small that underflow may have touched them.

    A zero counts as exact as long as all other values are far from the smallest doubles.
    """
    small = upper < TINY
    if not small.any():
        return
    positive = upper > 0
    if not bool((upper[positive] < _UNDERFLOW).any()):
        small &= positive
    lower[small] = 0.0
    upper[small] = TINY
