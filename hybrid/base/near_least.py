"""The numbers of a sequence that are near its least, where bounds tell that the rest are not."""

from __future__ import annotations

import math
from collections.abc import Callable


def near_least(
    count: int,
    value: Callable[[int], float | None],
    floor: Callable[[int], float],
    factor: float,
) -> list[tuple[float, int]]:
    """Return numbers of a sequence, from its beginning, until no later one can be near the least.

    Parameters
    ----------
    count : int
        Numbers of the sequence.
    value : callable
        Returns number i; None where it has none.
    floor : callable
        Returns what number i and all later ones are not below.
    factor : float
        Near is what is at most so many times the least.

    Returns
    -------
    list of (float, int)
        Numbers with their positions, in the order of the sequence; others than the near ones may be among
        them.

    Notes
    -----
    Time: that of value and floor for every number up to the first that nothing later can be near of.
    """
    found: list[tuple[float, int]] = []
    least = math.inf
    for i in range(count):
        if floor(i) > factor * least:
            break
        own = value(i)
        if own is not None:
            found.append((own, i))
            least = min(least, own)
    return found
