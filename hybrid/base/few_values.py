"""The distinct values of an array that mostly has few."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_SAMPLE = 1 << 16
_FEW = 1 << 12
_CHUNK = 1 << 18


def few_values(array: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.integer]]:
    """Return the distinct values of an array, ascending, and every element's place among them.

    Parameters
    ----------
    array : ndarray, shape (n,)
        Numbers without NaN.

    Returns
    -------
    values : ndarray, shape (m,)
    places : ndarray, shape (n,), uint16 or int64

    Notes
    -----
    Time: O(n log m) for m values while they are few: new ones are gathered from samples until none is left;
    otherwise O(n log n).
    """
    found = np.unique(array[:_SAMPLE])
    places = np.empty(len(array), dtype=np.uint16)
    begin = moved = 0
    while len(found) <= _FEW and begin < len(array):
        part = array[begin : begin + _CHUNK]
        own = np.searchsorted(found, part)
        new = np.take(found, own, mode="clip") != part
        if bool(new.any()):
            found = np.union1d(found, part[new])
            moved = begin  # the places of all before have
        else:
            places[begin : begin + _CHUNK] = own
            begin += _CHUNK
    if len(found) > _FEW:
        found, numbers = np.unique(array, return_inverse=True)
        return found, numbers.reshape(-1)
    for begin in range(0, moved, _CHUNK):
        places[begin : begin + _CHUNK] = np.searchsorted(found, array[begin : begin + _CHUNK])
    return found, places
