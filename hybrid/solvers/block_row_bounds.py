"""Bounds block row by block row, where rows refer to themselves and to rows of block rows before them alone.

A protocol that counts what it has sent goes on for thousands of steps, and an iteration over all rows takes a
product for each.  Block row by block row only those rows are iterated whose values are about to be known,
until a step changes nothing in them.

Above, f rounded up leaves ``y = f(y)`` so in all rows, which one step over all rows then verifies.  Below,
from a lower bound x, f rounded down leaves ``x = f(x)``, so that ``x <= f(x) <= f(f(x)) <= ...`` rise to the
solution.  Rows without cycles stand still after as many steps as their longest path has; where others do not
within some time, the iteration over all rows goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hybrid.matrix.space.base import Clock, Criterion, RecordedState
from hybrid.matrix.space.bellman import BellmanOperator, BoundAccelerator, LowerIterationState
from hybrid.matrix.space.bounded_solution import WIDEST, width_of
from hybrid.matrix.space.vector_space import Array, Pair, Steps

if TYPE_CHECKING:
    from hybrid.matrix.gpu.repeated_steps import DeviceBlockRows

_BEGIN = 1024  # steps over all rows before block rows are looked for
_PASSING = 0.3  # relative change times steps: 1 where sums grow, less from where they settle geometrically
_AGAIN = 4  # times the steps before an attempt, until the next one
_WORTH = 2.0  # times the steps made: products that the block rows may take for each bound
_LEAST_SHARE = 1 / 16  # of these at least: the cost of an attempt that fails
_OF_ZEROS = 2  # vectors that their proof takes
_LOOKS = 4  # in as many steps as have been made, in the first block row
_MORE_LOOKS = 16  # the same in later ones, with the number of steps of the one before


class BlockRowBounds(BoundAccelerator):
    """Computes both bounds block row by block row; see :class:`hybrid.matrix.space.bellman.BoundAccelerator`.

    Parameters
    ----------
    operator : BellmanOperator
    criterion : Criterion
    find : callable
        Returns the block rows, or None; called when many steps have been made.
    otherwise : BoundAccelerator, optional
        What may take over besides.
    """

    def __init__(
        self,
        operator: BellmanOperator,
        criterion: Criterion,
        find: Callable[[], DeviceBlockRows | None],
        otherwise: BoundAccelerator | None,
    ) -> None:
        super().__init__(otherwise)
        self._operator, self._criterion, self._find = operator, criterion, find
        self._block_rows: DeviceBlockRows | None = None
        self._not_before: float = _BEGIN

    def is_asked(self, made: int, difference: float) -> bool:
        """See `BoundAccelerator.is_asked`."""
        return made >= self._not_before or super().is_asked(made, difference)

    def budget(self, iterate: LowerIterationState, difference: float) -> float:
        """See `BoundAccelerator.budget`."""
        if iterate.made >= self._not_before:
            self._not_before = _AGAIN * iterate.made
            if self._passes(iterate.made):
                self._block_rows = self._block_rows or self._find()
                if self._block_rows is not None:
                    self._is_due = True
                    return _WORTH * iterate.made
                self._not_before = math.inf
        return super().budget(iterate, difference)

    def _passes(self, made: int) -> bool:
        """Whether values go on to be reached or to grow, and do not settle all together."""
        (_, relative) = self._operator.space.read(self._operator.down.changes)
        return not relative * made < _PASSING

    def solve(
        self,
        iterate: LowerIterationState,
        most: float,
        limit: int,
        clock: Clock,
        kept: RecordedState | None = None,
    ) -> int:
        """Attempt to find bounds; return the products made, those with parts of the matrix as shares.

        Notes
        -----
        It has succeeded if `width` is finite.  One vector more, and three where zeros are to be proved.
        """
        block_rows = self._block_rows if self._is_due and kept is None else None
        if block_rows is None:
            return super().solve(iterate, most, limit, clock, kept)
        operator, self.width, self._is_due = self._operator, math.inf, False
        before = operator.products
        if not operator.space.has_room(1, operator.size):
            return 0
        self.more_vectors = 1
        with np.errstate(over="ignore", invalid="ignore"):
            width = self._enclosed(iterate, block_rows, min(most, limit), clock)
        made = operator.products - before
        if width is not None and made <= limit:
            self.width = width
        return min(made, limit)

    def _enclosed(
        self, iterate: LowerIterationState, block_rows: DeviceBlockRows, most: float, clock: Clock
    ) -> float | None:
        """Leave the lower bound in x and the upper one in y, and return their distance.

        None if there are none; then x is as it was.
        """
        operator, xp = self._operator, self._operator.space.xp
        x, y, spare = iterate.x, iterate.y, iterate.spare
        y[...], spare[...] = x, x
        if not self._stands(block_rows.steps(operator.up), block_rows, (y, spare), most, clock):
            return None
        # lemma: park
        if not operator.verifies(y, x, spare, None):
            return None
        y[...], spare[...] = spare, x
        low = x.copy()
        if not self._stands(block_rows.steps(operator.down), block_rows, (low, spare), most, clock):
            return None
        if not self._is_far_from_underflow(low, y, spare):
            return None
        xp.subtract(y, low, out=spare)
        width, least = operator.space.read(
            width_of(self._criterion, spare, y, operator.space), operator.space.least(spare)
        )
        # Double precision brings fixed points no closer.
        if not least >= 0.0 or not width <= max(WIDEST, self._criterion.epsilon):
            return None
        x[...] = low
        return width

    def _is_far_from_underflow(self, low: Array, y: Array, spare: Array) -> bool:
        """Whether all values but proven zeros are; `spare` is overwritten."""
        operator, space, xp = self._operator, self._operator.space, self._operator.space.xp
        if not operator.is_near_underflow(low):
            return True
        if not space.has_room(_OF_ZEROS, operator.size):
            return False
        self.more_vectors = 1 + _OF_ZEROS
        spare[...] = xp.greater(y, 0.0)
        if not operator.are_zeros(spare):
            return False
        least = space.least(xp.where(xp.greater(y, 0.0), low, np.inf))
        return bool(space.read(least)[0] > operator.negligible)

    def _stands(
        self, steps: Sequence[Steps], block_rows: DeviceBlockRows, pair: Pair, most: float, clock: Clock
    ) -> bool:
        """Iterate block row by block row until a step changes nothing; False where that takes too long.

        Parameters
        ----------
        pair : pair of arrays, shape (n,)
            Equal; equal afterwards where everything stands still.
        most : float
            Products that it may take.
        """
        operator, space = self._operator, self._operator.space
        stride = space.stride + space.stride % 2
        done, spent, first, change = 0.0, 0.0, stride, math.nan
        for block_row, share in zip(steps, block_rows.shares, strict=True):
            made, count = 0, first
            while True:
                block_row.sweep(pair, made, count)
                made += count
                (change, _) = space.read(block_row.changes)
                is_long = spent + made * share > most * max(done + share, _LEAST_SHARE)
                if not 0.0 < change < math.inf or is_long or clock.tick(operator.products, math.inf):
                    break
                count = max(made // (_LOOKS if done == 0.0 else _MORE_LOOKS) // stride, 1) * stride
            done, spent = done + share, spent + made * share
            if change != 0.0:
                break
            first = max((made - made // _MORE_LOOKS) // stride, 1) * stride
        operator.products += math.ceil(spent)
        return change == 0.0
