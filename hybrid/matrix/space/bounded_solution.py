"""Solutions between bounds, and how rounding enters them.

All quantities here are sums of products of non-negative numbers. So one evaluation of
``(M x + b) / diagonal`` in double precision has a relative error below a `slack`, a function of the number of
terms. Therefore the diagonal scaled by ``1 + slack`` never gives too much, and scaled by ``1 - slack`` never
too little. Rounding is directed without changing a kernel.

The slack bounds every order of the additions, so that it holds for all kernels: row by row on the CPU, by
tiles on a GPU, with atomic additions. A fused multiply-add rounds once where two operations round twice, and
is covered. So are divisions: CUDA rounds them correctly by default, and the kernels are compiled without any
option that changes this. Greatest differences are found by comparisons, which are exact.

Underflow is no relative error: a product below the normal numbers is off by up to half the smallest double.
`underflow_of` bounds what it adds to one step. The rows of M / diagonal add up to at most 1, so that k steps
are off by at most k times as much. Iterates lose it, upper bounds gain it, and an upper bound is inductive
only if it holds with it. The graph of M and b is decided first: `BellmanOperator.positive` separates zeros
from values too small for a double.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import array_module
from hybrid.base.arrays import extremes
from hybrid.matrix.space.base import Criterion, Solution, Vector
from hybrid.matrix.space.vector_space import Array, VectorSpace
from mtbdd.base.communicator import ALONE, Communicator
from mtbdd.offset.states import is_any

UNIT = 2.0**-53  # lemma: rounding
"""Greatest relative error of one rounded operation."""

TINY = 1e-290
"""Values below this may have lost digits to underflow; for them only this bound is known."""

_SMALLEST = 2.0**-1074  # lemma: underflow
NEGLIGIBLE = 2.0**96
"""Above so many times the error that underflow adds in a step it vanishes beside those of rounding."""

FLOOR = 2.0**56
"""Below so many times the error that underflow adds in a step a guess of a bound leaves no room for it."""

WIDEST = 1e-3
"""Distance that bounds may have where rounding keeps them from being closer."""

ENCLOSING_VECTORS = 8
"""Four that a method keeps, the right-hand side, the diagonal as it is and for either rounding."""

_MOST_ROUNDS = 10_000  # steps of zeros and ones, at least
_PART = 1 << 20  # elements compared together: bounds the temporary memory


class BoundedSolution(Solution):
    """A solution with bounds.

    Attributes
    ----------
    lower, upper : ndarray of float64, shape (n,)
        The exact solution lies between them; `values` is their middle.  All are where the operands are.
    solved_by : tuple of str and int, or None
        Name and vectors of the method that took over from the one that was asked; None: none did.
    """

    lower: Vector
    upper: Vector
    solved_by: tuple[str, int] | None = None


def positive_after(
    space: VectorSpace, inside: Array, step: Callable[[Array, Array], None], steps: int, most: int
) -> NDArray[np.bool_] | None:
    """Return where values are positive after some steps, on the host; None if that takes too long.

    Parameters
    ----------
    inside : array, shape (n,), float64
        Ones where the first values are positive, and zeros; overwritten.
    step : callable
        ``step(x, out)`` writes numbers that are positive where a step from x leads to.
    steps, most : int
        Of many more than `most` steps, and of some thousands, the result is unknown.
    """
    reached = space.xp.empty(inside.size)
    for k in range(steps):
        step(inside, reached)
        space.xp.greater(reached, 0.0, out=reached)
        (same,) = space.read(space.all(reached == inside))
        inside, reached = reached, inside
        if same:
            break
        if k > max(most, _MOST_ROUNDS):
            return None
    found: NDArray[np.bool_] = space.to_host(inside) > 0.0
    return found


def width_of(criterion: Criterion, gap: Array, x: Array, space: VectorSpace | None = None) -> Array:
    """Return the greatest element of `gap`, relative to x unless the criterion is absolute.

    Parameters
    ----------
    criterion : Criterion
    gap, x : array, shape (n,), float64
        Not negative; where both are zero nothing is missing.
    space : VectorSpace, optional
        Where both are; default the host.

    Returns
    -------
    array, shape (), float64
        In the vector space, so that nothing waits for it.
    """
    xp = np if space is None else space.xp
    if gap.size == 0 and (space is None or space.is_empty(0)):
        return xp.zeros(())
    widths = gap if criterion.absolute else _relative_widths(gap, x, xp)
    return widths.max() if space is None else space.greatest(widths)


def _relative_widths(gap: Array, x: Array, xp: Any) -> Array:
    """Return the greatest relative width of every part of two vectors."""
    greatest = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for begin in range(0, gap.size, _PART):
            part = gap[begin : begin + _PART]
            relative = part / x[begin : begin + _PART]
            relative[xp.equal(part, 0.0)] = 0.0
            greatest.append(relative.max())
    return xp.stack(greatest) if greatest else xp.zeros(0)


class SearchEndedError(Exception):
    """A search of a graph was ended before its time."""


def least_closure(
    space: VectorSpace,
    inside: Array,
    step: Callable[[Array, Array], None],
    is_over: Callable[[], bool] | None = None,
) -> tuple[Array, int]:
    """Return the least superset of a set that is closed under a step, and the steps made.

    The set is zeros and ones, shape (n,).

    Parameters
    ----------
    inside : array, shape (n,), float64
        Zeros and ones; overwritten.
    step : callable
        ``step(x, out)`` writes numbers that are positive where x leads to.
    is_over : callable, optional
        Asked after every step whether to end.

    Raises
    ------
    SearchEndedError
        It said so.
    """
    reached, steps = space.xp.empty(inside.size), 0
    while True:
        step(inside, reached)
        steps += 1
        reached += inside
        space.xp.greater(reached, 0.0, out=reached)
        (more,) = space.read(space.any(reached != inside))
        if not more:
            return inside, steps
        inside, reached = reached, inside
        if is_over is not None and is_over():
            raise SearchEndedError


def underflow_of(diagonal: Vector, slack: float, communicator: Communicator = ALONE) -> float:
    """Return a bound on the absolute error that underflow adds to an element of ``(M x + b) / diagonal``.

    Parameters
    ----------
    diagonal : ndarray of float64, shape (n,)
        Positive, and in every row at least the sum of M.
    slack : float
        Bound on the relative error of the step: it counts every rounding as at least 2^-53.
    communicator : Communicator
        Who has other rows of M.

    Notes
    -----
    Every product and the division lose at most half the smallest double, a product of a block that is shared
    up to a scale that much times the scale, which is an entry of M.
    """
    own_least, own_most = extremes(diagonal)
    least, most = communicator.least(own_least), communicator.greatest(max(0.0, own_most))
    if not least < np.inf:
        return 0.0
    with np.errstate(over="ignore", divide="ignore"):
        # lemma: underflow
        return float(4.0 * (slack / UNIT) * _SMALLEST * np.float64(max(1.0, most)) / min(1.0, least))


_HUGE = 2.0**1022  # numbers below it have a sum


def middle_of(lower: Array, upper: Array, out: Array | None = None) -> Array:
    """Return the middle of bounds, in `out` if it is given; finite also where their sum overflows."""
    xp = array_module(upper)
    if extremes(upper)[1] < _HUGE and extremes(lower)[0] > -_HUGE:
        found: Array = xp.add(lower, upper, out=out)
        found *= 0.5
        return found
    with np.errstate(over="ignore"):
        whole = 0.5 * (lower + upper)
    found = xp.where(xp.isfinite(whole), whole, 0.5 * lower + 0.5 * upper)
    if out is None:
        return found
    out[...] = found
    return out


def guard_underflow(lower: Array, upper: Array) -> bool:
    """Widen, in place, the bounds of positive values so small that no digit of them is certain.

    Returns
    -------
    bool
        Whether there are any.

    Lemma: zeros (docs/bounds.md).
    """
    if extremes(upper)[0] >= TINY:  # lemma: zeros
        return False
    xp = array_module(upper)
    small = xp.less(upper, TINY) & xp.greater(upper, 0.0)  # lemma: zeros
    if not is_any(small):
        return False
    lower[small] = 0.0
    upper[small] = TINY
    return True
