"""The compiled queue of a breadth-first search; importing it needs Numba."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.compiled import njit

__all__ = ["queue_order"]

Int64Array = NDArray[np.int64]


def queue_order(row_starts: NDArray[Any], columns: NDArray[Any], start: Int64Array) -> Int64Array:
    """Return the states in the order in which the search meets them.

    Parameters
    ----------
    row_starts, columns : ndarray
        Of a :class:`hybrid.explicit.CsrArrays` with n rows and n columns.
    start : ndarray, shape (k,), int64
        Distinct states.

    Returns
    -------
    ndarray, shape (n,), int64
    """
    order = np.empty(len(row_starts) - 1, np.int64)
    _search(row_starts, columns, start, order)
    return order


@njit(cache=True, nogil=True)
def _search(row_starts, columns, start, out_order):  # type: ignore[no-untyped-def]
    """Fill ``out_order``: it is the queue as well, for what leaves a queue is in the order wanted."""
    n = len(out_order)
    seen = np.zeros(n, np.bool_)
    head, tail, candidate = 0, 0, 0
    for s in start:
        seen[s] = True
        out_order[tail] = s
        tail += 1
    while head < n:
        if head == tail:
            while seen[candidate]:
                candidate += 1
            seen[candidate] = True
            out_order[tail] = candidate
            tail += 1
        state = out_order[head]
        head += 1
        for i in range(row_starts[state], row_starts[state + 1]):
            to = columns[i]
            if not seen[to]:
                seen[to] = True
                out_order[tail] = to
                tail += 1
