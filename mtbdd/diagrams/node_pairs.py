"""A level of a diagram made from pairs of diagrams below it: equal pairs become one node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mtbdd.diagrams.manager import Manager, Node


def distinct_pairs(keys: NDArray[np.int64], width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct pairs, 0 always among them, and every pair's place.

    Parameters
    ----------
    keys : ndarray of int64, shape (n,)
        ``width * low + high`` of each pair of numbers below `width`.
    width : int

    Notes
    -----
    Time: O(n) where the pairs are few beside those possible, else O(n log n).
    """
    if width * width <= max(4 * keys.size, 1024):
        seen = np.zeros(width * width, dtype=np.bool_)
        seen[keys] = True
        seen[0] = True
        return np.flatnonzero(seen), (np.cumsum(seen) - 1)[keys]
    distinct, places = np.unique(np.append(keys, 0), return_inverse=True)
    return distinct, places.reshape(-1)[:-1]


def nodes_of_pairs(
    manager: Manager, name: str, below: Sequence[Node], low: NDArray[np.integer], high: NDArray[np.integer]
) -> list[Node]:
    """Return the diagrams that test a bit and go on in the given places of `below`."""
    variable, ite = manager.bdd.var(name), manager.bdd.ite
    return [
        below[a] if a == b else ite(variable, below[b], below[a])
        for a, b in zip(low.tolist(), high.tolist(), strict=True)
    ]
