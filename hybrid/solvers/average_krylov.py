"""Poisson's equation of an average by IDR(s).

Let M be the rates within one closed class, without diagonal, d the exit rates and r the rewards. The average
g and the bias h satisfy ``d * h = M h + r - g``. The equation is singular: h is known up to a constant. With
the constant chosen so that ``h[s] = g`` for some state s it is ``d * h = M h - h[s] + r``. That has one
solution. The difference u of two satisfies ``d * u = M u - u[s]``, and the stationary mean of both sides
gives ``u[s] = 0``. The rest, ``d * u = M u``, has constants alone as solutions, and u is zero in s. The
bounds of any vector hold (:mod:`hybrid.solvers.average_reward`); they meet as the residual vanishes.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hybrid.base.arrays import extremes
from hybrid.matrix.space.base import Clock, Criterion, Numbers, RecordedState, Status, Vector
from hybrid.matrix.space.idr import BICGSTAB_VECTORS
from hybrid.matrix.space.vector_space import OPERANDS, Array, Recurrence, RecurrenceStatus, VectorSpace
from hybrid.solvers.forecast import relative_width, steps_to_check
from mtbdd.base.records import Record

# Bounds on a long-run average from any bias; see :mod:`hybrid.solvers.average_reward`.


def average_bounds(
    space: VectorSpace, h: Array, rewards: Array, diagonal: Array, rho: Array, error: Array, slack: float
) -> tuple[Array, Array]:
    """Return the least and greatest element of ``r + M h - d * h``, widened by the errors of computing it.

    Parameters
    ----------
    h, rho, error : array, shape (n,), float64
        The bias, and room; all are overwritten.
    rewards, diagonal : array, shape (n,), float64
        r and d; operands of the space.
    slack : float
        Bound on the relative error of evaluating the three terms.

    Returns
    -------
    tuple of two arrays, shape ()
        In the vector space, so that nothing waits for them.

    Lemma: gain (docs/bounds.md).
    """
    xp = space.xp
    space.multiply(h, rho)
    _write_out(space, rewards, error)
    xp.add(rho, error, out=rho)
    space.weigh(diagonal, h, error)
    # lemma: gain
    rho -= error
    xp.absolute(h, out=h)
    space.multiply(h, error)
    space.weigh(diagonal, h, h)
    error += h  # lemma: gain
    _write_out(space, rewards, h)
    xp.fabs(h, out=h)
    # lemma: gain
    error += h  # lemma: gain
    error *= slack  # lemma: gain
    xp.subtract(rho, error, out=h)
    # lemma: gain
    rho += error
    return space.least(h), space.greatest(rho)


def _write_out(space: VectorSpace, operand: Array, out: Array) -> None:
    """Write an operand to a vector: times one, which changes no bit."""
    out.fill(1.0)
    space.weigh(operand, out, out)


# Results of an average: bounds, bias, cost.


class GainResult(Record):
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
    products : int
        With the matrix, those of the bounds included.
    more_vectors : int
        Held at once besides those that the method counts, where another one took over.
    nbytes : int or None
        Of all vectors held at once, where they are fewer than the method counts.
    """

    value: float
    lower: float
    upper: float
    status: Status
    iterations: int
    seconds: float
    difference: float
    synchronisations: int = 0
    products: int = 0
    more_vectors: int = 0
    nbytes: int | None = None


_LOOK = 10  # products between measurements of the bounds, where the host need not wait for a device
_FRESH = 0.9  # of the width that is wanted, where it is that of a fresh product: the bounds' own rounding
_FAR = 30.0  # times the width that is wanted, up to which every look is taken
_LEFT_OUT = 4  # looks, one after the other, that are left out where one takes a product
_RESTARTS = 20
_HELPED = 0.9  # of the width may be left for a start to have helped
_IN_VAIN = 2  # starts that do not help, one after the other, after which the method gives up


class BiasResult(Record):
    """The result of the recurrence.

    Attributes
    ----------
    status : Status
        `STAGNATED` and `BREAKDOWN`: another method has to go on.
    difference : float
        Distance of the bounds by the recurrence's residual, see `AverageReward.criterion`.
    products : int
    """

    status: Status
    difference: float
    products: int


class AnchoredSolution:
    """The bias by a Krylov method, with measurements of the bounds that it gives.

    Parameters
    ----------
    space : VectorSpace
    recurrence : Recurrence
        Of the system with an anchor and the rewards on its right; not begun.
    diagonal : array, shape (n,)
        In the vector space, or an operand there.
    anchor : int
    criterion : Criterion
        Of the bounds.
    floor : callable
        ``floor(average, spread)`` is a distance of the bounds that rounding alone may make, where `spread` is
        the difference of the greatest and the least element of the bias.

    Attributes
    ----------
    first : float, or None
        Distance of the bounds where it began; None before.

    Notes
    -----
    The vectors of the recurrence. One measurement every ten products or more.
    """

    def __init__(
        self,
        space: VectorSpace,
        recurrence: Recurrence,
        diagonal: Array,
        anchor: int,
        criterion: Criterion,
        floor: Callable[[float, float], float],
    ) -> None:
        self._space, self.recurrence, self._diagonal = space, recurrence, diagonal
        self._anchor, self._criterion, self._floor = anchor, criterion, floor
        self._is_fresh = recurrence.is_preconditioned
        self._difference, self._exhausted = math.inf, False
        self._norm, self._left_out = math.inf, 0
        self.first: float | None = None

    @property
    def products(self) -> int:
        """Products so far, those of beginnings included."""
        return self.recurrence.products

    def run(self, before: int, most: float, clock: Clock) -> BiasResult:
        """Iterate and restart until the bounds are close, or no restart helps.

        Parameters
        ----------
        before : int
            Products made by others, which count.
        most : float
            Products after which it gives up.
        clock : Clock
        """
        best, in_vain, ended = math.inf, 0, Status.STAGNATED
        for _ in range(_RESTARTS + 1):
            # The recurrence drifts away from the residual it stands for: only a fresh one counts.
            if ended is Status.CONVERGED:
                if self._is_fresh:
                    return BiasResult(ended, self._difference, self.products)
                self.recurrence.refresh()
            else:
                self._norm = self.recurrence.restart()
            difference = self._measure()
            self.first = difference if self.first is None else self.first
            if difference <= self._criterion.epsilon or self._exhausted:
                return BiasResult(Status.CONVERGED, difference, self.products)
            if before + self.products >= self._criterion.max_iterations:
                return BiasResult(Status.MAX_ITERATIONS, difference, self.products)
            in_vain = 0 if difference <= _HELPED * best else in_vain + 1
            if in_vain >= _IN_VAIN or self.products >= most or not math.isfinite(difference):
                break
            best = difference
            ended = self._iterate(before, most, clock)
            if ended is Status.INTERRUPTED:
                return BiasResult(ended, self._measure(), self.products)
        # Close by the recurrence alone is not close.
        ended = Status.STAGNATED if ended is Status.CONVERGED else ended
        return BiasResult(ended, difference, self.products)

    def _iterate(self, before: int, most: float, clock: Clock) -> Status:
        """Iterate until the bounds seem close, which is to be seen, or the recurrence ends."""
        recurrence, smallest, found_at = self.recurrence, math.inf, self.products
        stride = max(_LOOK, 2 * self._space.stride) // recurrence.cost
        limit = min(most, self._criterion.max_iterations - before)

        def state() -> tuple[Mapping[str, Array], Numbers]:
            (offset,) = self._space.read(self._space.element(recurrence.x, self._anchor))
            numbers = {
                "offset": offset,
                "products": before + self.products,
                "most": most - self.products,
                "single": float(recurrence.r.dtype != np.float64),
                "swept": float(self._is_fresh),
            }
            return {"h": recurrence.x}, numbers

        while self.products < limit:
            left = int(max(1, min(stride, (limit - self.products) // recurrence.cost)))
            while left > 0:
                made = self.products
                standing = recurrence.advance(left)
                left -= -(-(self.products - made) // recurrence.cost)
                if standing.ended:
                    break
            if self._is_far(standing):
                clock.offer(state)
                if not clock.tick(before + self.products, self._difference):
                    continue
            difference = self._measure()
            self._norm, self._left_out = standing.norm, 0
            if standing.ended:
                return Status.BREAKDOWN if standing.broken else Status.STAGNATED
            # Half of it: the residual of the recurrence differs from that of a fresh product.
            share = _FRESH if self._is_fresh else 0.5
            if difference <= share * self._criterion.epsilon or self._exhausted:
                return Status.CONVERGED
            if not math.isfinite(difference):
                break

            clock.offer(state)
            if clock.tick(before + self.products, difference):
                clock.keep(state)
                return Status.INTERRUPTED
            if difference < smallest:
                smallest, found_at = difference, self.products
            elif self.products - found_at >= recurrence.patience:
                break
        return Status.STAGNATED

    def _is_far(self, standing: RecurrenceStatus) -> bool:
        """Whether a measurement by a product can be left out: by the recurrence bounds are far apart."""
        if not self._is_fresh or standing.ended or self._left_out == _LEFT_OUT:
            return False
        self._left_out += 1
        expected = self._difference * standing.norm / self._norm if self._norm > 0.0 else math.nan
        return expected > _FAR * self._criterion.epsilon

    def _measure(self) -> float:
        """Return the distance of the bounds by the residual. Synchronises: once."""
        space, recurrence, x = self._space, self.recurrence, self.recurrence.x
        with np.errstate(over="ignore", invalid="ignore"):
            space.weigh(self._diagonal, recurrence.plain_residual(), recurrence.spare)
            extremes = (*space.extremes(recurrence.spare), *space.extremes(x))
            anchored, low, high, least, most = space.read(space.element(x, self._anchor), *extremes)
            width, middle = high - low, anchored + 0.5 * (low + high)
            self._exhausted = width <= self._floor(middle, most - least)
        self._difference = width
        if not self._criterion.absolute:
            self._difference = width / abs(middle) if middle else (0.0 if width == 0.0 else math.inf)
        return self._difference


# The bias of an average in the fewest vectors: BiCGStab from the beginning, operands by dictionary.
#
# Where value iteration and its Krylov methods have no room (:mod:`hybrid.solvers.average_reward`), six
# vectors may still have it; with a preconditioner, where there is one and room for it.  The bounds of any
# bias hold.  Where there is no room for six, damped steps have two, and bounds of them three.

LEAN_VECTORS = BICGSTAB_VECTORS + OPERANDS
"""Those of BiCGStab, diagonal and rewards."""

DAMPED_VECTORS = 5
"""Three while bounds are measured, diagonal and rewards."""

_DAMPING = 0.9
"""Greatest rate over that of the steps: below 1 so that chains with a period settle, too."""


@dataclass(eq=False)
class LowMemoryAverage:
    """An average's bias by BiCGStab alone.

    Attributes
    ----------
    space : VectorSpace
    diagonal, rewards : vector or CodedVector, shape (n,)
        Operands of the space.
    products, probes : int
        Made so far, those of earlier runs included, and besides.
    more_vectors : int
        Always 0: `nbytes` counts the memory.
    """

    space: VectorSpace
    diagonal: Vector
    rewards: Vector
    products: int = 0
    probes: int = 0
    more_vectors = 0
    least_vectors: ClassVar[int] = LEAN_VECTORS

    def __post_init__(self) -> None:
        """Ask for room; the operands may have theirs already."""
        self.space.reserve(self.space.more(self.least_vectors, self.diagonal), len(self.rewards))
        self._h: Array | None = None
        self._anchor, self._vectors = 0, self.least_vectors

    @property
    def nbytes(self) -> int:
        """Bytes held at once beside the matrix."""
        return 8 * (self._vectors - OPERANDS) * len(self.rewards) + self.diagonal.nbytes + self.rewards.nbytes

    def take(self, kept: RecordedState) -> None:
        """Go on from what an earlier run has left, whichever course it had; constants do not count."""
        self._h, self.products = kept.vectors["h"], int(kept.numbers["products"])

    def run(
        self, anchor: int, criterion: Criterion, floor: Callable[[float, float], float], clock: Clock
    ) -> Status:
        """Iterate until the bounds are close, or nothing helps; parameters as for `AnchoredSolution`."""
        space, self._anchor = self.space, anchor
        start = np.broadcast_to(np.float64(0.0), (len(self.rewards),)) if self._h is None else self._h
        recurrence = self._recurrence(start)
        # It has a copy.
        del start
        self._h = None
        solution = AnchoredSolution(space, recurrence, self.diagonal, anchor, criterion, floor)
        reached = solution.run(self.products, np.inf, clock)
        self.products += reached.products
        self._h = recurrence.x
        if not math.isfinite(reached.difference):
            # A bias without numbers has no bounds; that of zeros has the least and the greatest reward.
            self._h[...] = 0.0
        return reached.status

    def _recurrence(self, start: Array) -> Recurrence:
        space, size, anchor = self.space, len(self.rewards), self._anchor
        system = space.system(self.diagonal, self.rewards)
        found = system.preconditioner()
        if found is not None:
            self.probes = found.probes
            vectors = LEAN_VECTORS + found.more_vectors
            if found.is_worth_it and space.has_room(space.more(vectors, self.diagonal), size):
                # Free memory may be fragmented.
                with contextlib.suppress(MemoryError):
                    recurrence = found.idr(None, start, 0.0, anchor, directions=1)
                    self._vectors = vectors
                    return recurrence
        return space.communicator.with_room(lambda: system.idr(start, 0.0, anchor, directions=1))

    def state(self) -> tuple[Mapping[str, Array], Numbers]:
        """Return the bias and the average so far, for records."""
        (offset,) = self.space.read(self.space.element(self._h, self._anchor))
        return {"h": self._h}, {"offset": offset, "products": self.products}

    def bounds(self, slack: float) -> tuple[Array, Array]:
        """Return bounds on the average, see `average_bounds`; the vectors of the iteration are freed."""
        space, h = self.space, self._h
        assert h is not None
        least, most = space.extremes(h)
        h -= 0.5 * (least + most)
        rho, error = (space.xp.empty(len(h)) for _ in range(2))
        return average_bounds(space, h, self.rewards, self.diagonal, rho, error, slack)


class DampedAverage(LowMemoryAverage):
    """An average's bias by damped steps of the uniformised chain, whose increments tell its bounds.

    A step is ``h <- h + (r + M h - d * h) / rate``.
    """

    least_vectors = DAMPED_VECTORS
    _average = 0.0

    def run(
        self, anchor: int, criterion: Criterion, floor: Callable[[float, float], float], clock: Clock
    ) -> Status:
        """See `LowMemoryAverage.run`; the anchor is of no use to steps."""
        space, zeros = self.space, np.broadcast_to(np.float64(0.0), (len(self.rewards),))
        rate = space.communicator.greatest(float(extremes(self.diagonal)[1])) / _DAMPING

        def make() -> tuple[Array, Array]:
            return space.vector(zeros) if self._h is None else self._h, space.xp.empty(len(zeros))

        self._h, before = space.communicator.with_room(make)
        h = self._h
        steps = space.system(self.diagonal, self.rewards).uniformised(rate)

        def increment(new: Array, old: Array) -> None:
            space.xp.subtract(new, old, out=old)

        best, stale = math.inf, 0
        while self.products < criterion.max_iterations:
            count = steps_to_check(self.products, criterion.max_iterations)
            steps.sweep((h, before), 0, count)
            self.products += count
            space.each(increment, h, before)
            low, high, least, most = space.read(*space.extremes(before), *space.extremes(h))
            width, self._average = rate * (high - low), 0.5 * rate * (low + high)
            if not (math.isfinite(width) and math.isfinite(most - least)):
                # A bias without numbers has no bounds; that of zeros has the least and the greatest reward.
                h[...] = 0.0
                return Status.DIVERGED
            h -= 0.5 * (least + most)
            difference = width if criterion.absolute else relative_width(width, self._average)
            # A width that no longer shrinks is made of rounding errors.
            stale = 0 if width < 0.9 * best else stale + 1
            best = min(best, width)
            if difference <= criterion.epsilon or (
                stale >= 5 and width <= floor(self._average, most - least)
            ):
                return Status.CONVERGED
            clock.offer(self.state)
            if clock.tick(self.products, difference):
                return Status.INTERRUPTED
        return Status.MAX_ITERATIONS

    def state(self) -> tuple[Mapping[str, Array], Numbers]:
        """See `LowMemoryAverage.state`."""
        return {"h": self._h}, {"offset": self._average, "products": self.products}
