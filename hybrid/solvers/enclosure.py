"""Solutions between bounds, and how rounding enters them.

All quantities here are sums of products of non-negative numbers, so one evaluation of
``(M x + b) / diagonal`` in double precision has a relative error below some `slack` that depends on
the number of terms alone.  Evaluating with the diagonal scaled by ``1 + slack`` therefore never gives
too much, and by ``1 - slack`` never too little: rounding is directed without changing a kernel.

The slack bounds every order of the additions, so that it holds for all kernels: row by row on the CPU, by
tiles on a GPU, with atomic additions.  A fused multiply-add rounds once where two operations round twice,
and is covered; so are divisions, which CUDA rounds correctly unless told otherwise, and the kernels are
compiled without any option that tells it.  Greatest differences are found by comparisons, which are exact.

Underflow is no relative error: a product below the normal numbers is off by up to half the smallest double.
`underflow_of` bounds what it adds to one step.  The rows of M / diagonal add up to at most 1, so that k steps
are off by at most k times as much: iterates lose it, upper bounds gain it, and an upper bound is inductive
only if it holds with it.  What the graph of M and b decides is decided there: `DirectedSystem.positive_rows`
tells zeros from values too small for a double.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from hybrid.solvers.base import Clock, Criterion, Progress, Solution, Status, Sweeper, Vector
from hybrid.solvers.host import workspace_of
from hybrid.solvers.workspace import Array, Steps, Workspace

__all__ = [
    "ENCLOSING_VECTORS",
    "FLOOR",
    "NEGLIGIBLE",
    "TINY",
    "UNIT",
    "DirectedSystem",
    "EnclosingMethod",
    "Enclosure",
    "Outcome",
    "least_closure",
    "settle_tiny",
    "underflow_of",
    "width_of",
]

UNIT = 2.0**-53
"""Greatest relative error of one rounded operation."""

TINY = 1e-290
"""Values below this may have lost digits to underflow; of them only this bound is told."""

_SMALLEST = 2.0**-1074
NEGLIGIBLE = 2.0**96
"""Above so many times the error that underflow adds in a step it vanishes beside those of rounding."""

FLOOR = 2.0**56
"""Below so many times the error that underflow adds in a step a guess of a bound leaves no room for it."""

ENCLOSING_VECTORS = 8
"""Four that a method keeps, the right-hand side, the diagonal as it is and for either rounding."""

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
    """A method whose solutions have bounds.

    Attributes
    ----------
    vectors : int
        Vectors of the system's size that it holds at once, its operands among them.
    """

    vectors: ClassVar[int]

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
    vectors : int
        Of the method, for which room is asked.

    Attributes
    ----------
    space : Workspace
    down, up : Steps
        Steps whose results are never too great, and never too small, but for `underflow`.
    underflow : float
        Bound on the absolute error that underflow adds to an element in one step.
    negligible : float
        Elements above it are so far from underflow that it counts as one more relative error of rounding.
    floor : float
        Elements below it are so near to it that no guess of a bound leaves room for it.
    is_far : bool
        Whether b alone keeps all iterates far from underflow.
    """

    def __init__(
        self, matrix: Sweeper, diagonal: Vector, b: Vector, slack: float, vectors: int = ENCLOSING_VECTORS
    ) -> None:
        self.space = workspace_of(matrix)
        self.space.reserve(vectors, b.size)
        self.size, self.slack = b.size, slack
        self.underflow = underflow_of(diagonal, slack)
        self.negligible, self.floor = NEGLIGIBLE * self.underflow, FLOOR * self.underflow
        self._diagonal, self._b = diagonal, b
        self.is_far = _exceeds(b, 2.0 * self.negligible * float(diagonal.max(initial=0.0)))
        self._system = self.space.system(diagonal, b)
        self.down = self._system.relaxation(factor=1.0 + slack)
        self.up = self._system.relaxation(factor=1.0 - slack)

    def zeros(self) -> Array:
        """Return a vector of zeros."""
        return self.space.xp.zeros(self.size)

    def positive_rows(self) -> Array:
        """Return where the solution is positive, as zeros and ones, shape (n,), float64.

        These are the rows from which the graph of M leads to a positive element of b.

        Notes
        -----
        Products with zeros and ones alone, which never underflow.  Time: a product and a look a round, for as
        many rounds as the graph is deep.
        """
        inside = self.space.vector(np.asarray(self._b > 0.0, dtype=np.float64))
        return least_closure(self.space, inside, self.space.multiply)

    def raised(self, positive: Array) -> Steps:
        """Return the steps `down` of the system with b raised above the floor in some rows.

        Its solution is no less than that of the system, and above the floor in these rows.
        """
        space, xp = self.space, self.space.xp
        b = space.vector(self._diagonal)
        with np.errstate(over="ignore"):  # an infinite solution is no bound, and is told as such
            b *= 4.0 * self.floor
        xp.maximum(b, space.operand(self._b), out=b)
        # Not a product: infinity times zero is no number.
        xp.copyto(b, 0.0, where=positive == 0.0)
        return self._system.sharing(b).relaxation(factor=1.0 + self.slack)

    def lowered(self, lower: Array, steps: int) -> None:
        """Take from a lower bound what underflow may have added to it in some steps, in place."""
        lower -= steps * self.underflow
        self.space.xp.maximum(lower, 0.0, out=lower)

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


def least_closure(space: Workspace, inside: Array, step: Callable[[Array, Array], None]) -> Array:
    """Return the least set that holds a set and what a step leads to from it, as zeros and ones, shape (n,).

    Parameters
    ----------
    inside : array, shape (n,), float64
        Zeros and ones; overwritten.
    step : callable
        ``step(x, out)`` writes numbers that are positive where x leads to.
    """
    reached = space.xp.empty(inside.size)
    while True:
        step(inside, reached)
        reached += inside
        space.xp.greater(reached, 0.0, out=reached)
        (more,) = space.read((reached != inside).any())
        if not more:
            return inside
        inside, reached = reached, inside


def _exceeds(x: Vector, limit: float) -> bool:
    """Whether all elements are greater; most vectors have a small one among the first."""
    return all(bool((x[i : i + _PART] > limit).all()) for i in range(0, x.size, _PART))


def underflow_of(diagonal: Vector, slack: float) -> float:
    """Return a bound on the absolute error that underflow adds to an element of ``(M x + b) / diagonal``.

    Parameters
    ----------
    diagonal : ndarray of float64, shape (n,)
        Positive, and in every row at least the sum of M.
    slack : float
        Bound on the relative error of the step: it counts every rounding as at least 2^-53.

    Notes
    -----
    Every product and the division lose at most half the smallest double, a product of a block that is shared
    up to a scale that much times the scale, which is an entry of M.
    """
    if diagonal.size == 0:
        return 0.0
    least, most = float(diagonal.min()), float(diagonal.max())
    with np.errstate(over="ignore", divide="ignore"):
        return float(4.0 * (slack / UNIT) * _SMALLEST * np.float64(max(1.0, most)) / min(1.0, least))


def settle_tiny(lower: Vector, upper: Vector) -> None:
    """Widen, in place, the bounds of positive values so small that no digit of them is told."""
    small = (upper < TINY) & (upper > 0.0)
    if bool(small.any()):
        lower[small] = 0.0
        upper[small] = TINY
