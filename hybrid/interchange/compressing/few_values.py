"""The distinct values of an array that mostly has few."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_SAMPLE = 1 << 16
_FEW = 1 << 12


def few_values(array: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct values of an array, ascending, and every element's place among them.

    Parameters
    ----------
    array : ndarray, shape (n,)
        Numbers without NaN.

    Notes
    -----
    Time: O(n log m) for m values while they are few: new ones are gathered from samples until none is left;
    otherwise O(n log n).
    """
    found = np.unique(array[:_SAMPLE])
    while 0 < len(found) <= _FEW:
        places = np.searchsorted(found, array)
        new = np.take(found, places, mode="clip") != array
        if not bool(new.any()):
            return found, places
        found = np.union1d(found, array[new][:_SAMPLE])
    found, places = np.unique(array, return_inverse=True)
    return found, places.reshape(-1)
