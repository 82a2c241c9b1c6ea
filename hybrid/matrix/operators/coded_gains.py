"""What choices of a layer are worth by themselves, by dictionary where few values are met."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.few_values import few_values

Vector = NDArray[np.float64]

_CODES = 1 << 16
_SAMPLES = 1 << 12, 1 << 16, 1 << 20  # first elements, which tell whether a vector has few values
_REPEATED = 16  # values that are met so often need no larger sample


def coded_gains(gain: Vector, factor: Vector | None) -> tuple[NDArray[Any] | None, Vector, Vector]:
    """Put pairs of a gain and a factor in a dictionary, if that is much shorter than they are.

    Parameters
    ----------
    gain : ndarray, shape (rows,), float64
        Without NaN.
    factor : ndarray, shape (rows,), float64, or None
        None is 1 everywhere.

    Returns
    -------
    codes : ndarray, shape (rows,), uint8 or uint16, or None
        None if the pairs are too many; gains and factors are then the vectors themselves.
    gains, factors : ndarray of float64
        By code, or by row; `factors` is empty without factors.

    Notes
    -----
    Time: O(rows log m) for m pairs while these are few, and O(rows log rows) at most.
    """
    limit = min(_CODES, max(16, len(gain) // 8))
    none = np.zeros(0)
    columns = [gain] if factor is None else [gain, factor]
    if all(_seems_few(column, limit) for column in columns):
        (gains, codes), *others = map(few_values, columns)
        factors = none
        for every, own in others:
            pairs, codes = few_values(codes.astype(np.int64) * len(every) + own)
            gains, factors = gains[pairs // len(every)], every[pairs % len(every)]
        if len(gains) <= limit:
            return codes.astype(np.uint8 if len(gains) <= 256 else np.uint16), gains, factors
    return None, np.ascontiguousarray(gain), none if factor is None else factor


def _seems_few(column: Vector, limit: int) -> bool:
    """Whether the first elements do not tell that a vector has more values than a dictionary pays for."""
    for part in _SAMPLES:
        count = len(np.unique(column[:part]))
        if count > limit or _REPEATED * count <= part:
            break
    return count <= limit
