"""Sorted values of arrays on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sorted_values(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct elements of an array on the host, ascending, of which NaN is one, shape (m,).

    `numpy.unique` does so after it has loaded masked arrays, for which a start has no use.
    """
    found = np.sort(values, axis=None)
    if found.size:
        before, after = found[:-1], found[1:]
        found = found[np.concatenate(([True], (after != before) & (before == before)))]
    return found
