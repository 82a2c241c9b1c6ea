"""Rational numbers of fixed size, and the doubles next to them."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

# Integers up to here are doubles, so that one division rounds once.
_EXACT = 2**53


def nearest_doubles(data: NDArray[np.uint8], size: int) -> tuple[NDArray[np.float64], float, int | None]:
    """Return the doubles next to rationals.

    Parameters
    ----------
    data : ndarray of uint8, shape (n * size,)
        The numerator (signed), then the denominator, `size` / 2 bytes each, little-endian.
    size : int
        Bytes a number, a multiple of 16.

    Returns
    -------
    values : ndarray of float64, shape (n,)
    units : float
        Relative error of every number, in units of 2^-53: 0 if all are doubles themselves, else 1.
    wrong : int or None
        The first number that has the denominator 0, or whose double is beyond the normal ones.

    Notes
    -----
    Time: O(n) for parts up to 2^53, else O(n log n) and a division of long integers for every distinct
    number.
    """
    count = data.size // size
    if size == 16:
        pairs = data.view("<i8").reshape(count, 2)
        numerators, denominators = pairs[:, 0], pairs[:, 1]
        if not count:
            return np.zeros(0), 0.0, None
        largest = max(-int(numerators.min()), int(numerators.max()), int(denominators.max()))
        if int(denominators.min()) > 0 and largest <= _EXACT:
            values = numerators / denominators.astype(np.float64)
            shared = np.gcd(numerators, denominators)
            reduced = denominators // shared
            return values, float((reduced & (reduced - 1)).any()), None
    rows = data.view(np.dtype((np.void, size)))
    distinct, first, which = np.unique(rows, return_index=True, return_inverse=True)
    values = np.zeros(len(distinct))
    units = 0.0
    wrong = None
    half = size // 2
    for k, row in enumerate(distinct):
        content = row.tobytes()
        numerator = int.from_bytes(content[:half], "little", signed=True)
        denominator = int.from_bytes(content[half:], "little")
        value = _divided(numerator, denominator)
        if value is None:
            wrong = int(first[k]) if wrong is None else min(wrong, int(first[k]))
            continue
        values[k] = value
        above, below = value.as_integer_ratio()
        if above * denominator != below * numerator:
            units = 1.0
    return values[which.reshape(-1)], units, wrong


def _divided(numerator: int, denominator: int) -> float | None:
    """Return the double next to a fraction if that is 0 or a normal double."""
    if not denominator:
        return None
    try:
        value = numerator / denominator
    except OverflowError:
        return None
    return value if not numerator or abs(value) >= sys.float_info.min else None
