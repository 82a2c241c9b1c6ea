"""Solutions between bounds, and how rounding enters them.

All quantities here are sums of products of non-negative numbers, so one evaluation of
``(M x + b) / diagonal`` in double precision has a relative error below some `slack` that depends on
the number of terms alone.  Evaluating with the diagonal scaled by ``1 + slack`` therefore never gives
too much, and by ``1 - slack`` never too little: rounding is directed without changing a kernel.

The slack bounds every order of the additions, so that it holds for all kernels: row by row on the CPU, by
tiles on a GPU, with atomic additions.  A fused multiply-add rounds once where two operations round twice,
and is covered; so are divisions, which CUDA rounds correctly unless told otherwise, and the kernels are
compiled without any option that tells it.  Greatest differences are found by comparisons, which are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hybrid.solvers.base import Clock, Criterion, Progress, Solution, Status, Sweeper, Vector
from hybrid.solvers.host import workspace_of
from hybrid.solvers.workspace import Array

__all__ = [
    "TINY",
    "UNIT",
    "DirectedSystem",
    "EnclosingMethod",
    "Enclosure",
    "Outcome",
    "settle_tiny",
    "width_of",
]

UNIT = 2.0**-53
"""Greatest relative error of one rounded operation."""

TINY = 1e-290
"""Values below this may have lost digits to underflow; of them only this bound is told."""

_UNDERFLOW = 1e-140  # products of numbers above this do not underflow
_VECTORS = 8  # four that a method keeps, the right-hand side, the diagonal as it is and for either rounding
_PART = 1 << 20  # elements compared together: bounds the temporary memory


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


@dataclass
class Outcome:
    """How far an enclosing method has come.

    Attributes
    ----------
    status : Status
    iterations : int
    difference : float
        The last difference compared with epsilon.
    """

    status: Status = Status.MAX_ITERATIONS
    iterations: int = 0
    difference: float = float("inf")


class DirectedSystem:
    """``x = (M x + b) / diagonal`` where the matrix has its workspace, rounded down and rounded up.

    Parameters
    ----------
    matrix, diagonal, b, slack
        As for `EnclosingMethod.solve`.

    Attributes
    ----------
    space : Workspace
    down, up : Steps
        Steps whose results are never too great, and never too small.
    """

    def __init__(self, matrix: Sweeper, diagonal: Vector, b: Vector, slack: float) -> None:
        self.space = workspace_of(matrix)
        self.space.reserve(_VECTORS, b.size)
        self.size, self.slack = b.size, slack
        self._system = self.space.system(diagonal, b)
        self.down = self._system.relaxation(factor=1.0 + slack)
        self.up = self._system.relaxation(factor=1.0 - slack)

    def zeros(self) -> Array:
        """Return a vector of zeros."""
        return self.space.xp.zeros(self.size)

    def enclosure(
        self, outcome: Outcome, clock: Clock, lower: Array, upper: Array | None, spare: tuple[Array, Array]
    ) -> Enclosure:
        """Return what has been found, brought to the host; both vectors of `spare` are overwritten."""
        seconds, looks = clock.seconds, self.space.looks
        middle, scratch = spare
        if upper is None:
            middle = lower
        else:
            self.space.xp.add(lower, upper, out=middle)
            middle *= 0.5
        (residual,) = self.space.read(self._system.residual(middle, scratch))
        low = self.space.to_host(lower)
        if upper is None:
            values, high = low, np.full_like(low, np.inf)
        else:
            high = self.space.to_host(upper)
            settle_tiny(low, high)
            values = 0.5 * (low + high)
        return Enclosure(
            values, outcome.status, outcome.iterations, seconds, outcome.difference, residual, low, high,
            synchronisations=looks,
        )  # fmt: skip


def width_of(criterion: Criterion, gap: Array, x: Array, xp: Any = np) -> Array:
    """Return the greatest element of `gap`, relative to x unless the criterion is absolute.

    Parameters
    ----------
    criterion : Criterion
    gap, x : array, shape (n,), float64
        Not negative; where both are zero nothing is missing.
    xp : module
        Array module of both.

    Returns
    -------
    array, shape (), float64
        Of the same module, so that nothing waits for it.
    """
    if gap.size == 0:
        return xp.zeros(())
    if criterion.absolute:
        return gap.max()
    greatest = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for begin in range(0, gap.size, _PART):
            part = gap[begin : begin + _PART]
            relative = part / x[begin : begin + _PART]
            relative[part == 0.0] = 0.0
            greatest.append(relative.max())
    return xp.stack(greatest).max()


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
