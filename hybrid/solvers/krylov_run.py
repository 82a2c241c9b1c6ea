"""A recurrence followed until it has arrived by a measure of its user's, or leads nowhere."""

from __future__ import annotations

import math
from collections.abc import Callable

from hybrid.matrix.space.base import Clock
from hybrid.matrix.space.bellman import BellmanOperator
from hybrid.matrix.space.record import State
from hybrid.matrix.space.recurrence import Recurrence

_LOOK = 10  # products between two looks
_HELPED = 0.9  # of the measure may be left for a beginning to have helped


def follow(
    operator: BellmanOperator,
    recurrence: Recurrence,
    measure: Callable[[], float],
    close: Callable[[float], bool],
    tell: Callable[[float], float],
    most: float,
    clock: Clock,
    state: State,
) -> float | None:
    """Iterate until a measure of a fresh residual is close; None if it does not become so.

    Parameters
    ----------
    operator : BellmanOperator
        Whose products are counted.
    recurrence : Recurrence
        Not begun.
    measure : callable
        A look at the recurrence.
    close : callable
        Of what was measured.
    tell : callable
        Of what was measured: what is told as the difference that epsilon is compared with.
    most : float
        Products after which it gives up.
    state : callable
        Where the iteration is, for records.
    """
    before = math.inf
    counted, stride = 0, max(max(_LOOK, 2 * operator.space.stride) // recurrence.cost, 1)
    recurrence.restart()
    best, found_at, fresh = math.inf, 0, True
    while True:
        now = measure()
        # What has been measured may have taken a product as well.
        operator.products += recurrence.products - counted
        counted = recurrence.products
        if not math.isfinite(now):
            return None
        if close(now):
            if fresh:
                return now
            recurrence.refresh()
            fresh = True
            continue
        if now < best:
            best, found_at = now, counted
        stale = counted - found_at >= recurrence.patience
        if counted >= most or stale:
            return None
        clock.offer(state)
        if clock.tick(operator.products, tell(now)):
            clock.keep(state)
            return None
        standing = recurrence.advance(stride)
        fresh = False
        if standing.ended:
            if best > _HELPED * before or not math.isfinite(recurrence.restart()):
                operator.products += recurrence.products - counted
                return None
            before = best
