"""Compiled passes over vectors, rows begin .. end; every one reads and writes each element once.

They make the operations of the passes in plain NumPy (`hybrid.matrix.space.passes`) in the same order, so
that the bits are the same.
"""

from __future__ import annotations

import numpy as np
from numba import types

from mtbdd.base.compiled import njit

_ROWS = (types.int64, types.int64)
_INPUT = types.Array(types.float64, 1, "C", readonly=True)
_OUTPUT = types.float64[::1]


@njit(types.void(*_ROWS, types.float64, _INPUT, _OUTPUT), cache=True, nogil=True)
def add_scaled_rows(begin, end, weight, x, total):  # type: ignore[no-untyped-def]
    """``total += weight * x``."""
    # Slices spare the tests for negative places, so that the loop vectorises.
    source, target = x[begin:end], total[begin:end]
    for i in range(len(target)):
        target[i] += weight * source[i]


@njit(
    types.void(*_ROWS, _INPUT, _INPUT, types.boolean, _INPUT, types.float64, _OUTPUT), cache=True, nogil=True
)
def uniformise_rows(begin, end, x, b, has_b, diagonal, weight, out):  # type: ignore[no-untyped-def]
    """Turn ``out = M x`` into ``(1 - weight diagonal) x + weight (M x + b)``; b is read if `has_b`."""
    own, old, rates = out[begin:end], x[begin:end], diagonal[begin:end]
    if has_b:
        right = b[begin:end]
        for i in range(len(own)):
            own[i] = (own[i] + right[i]) * weight + (rates[i] * -weight + 1.0) * old[i]
    else:
        for i in range(len(own)):
            own[i] = own[i] * weight + (rates[i] * -weight + 1.0) * old[i]


@njit(types.void(*_ROWS, _INPUT, _INPUT, types.float64, _OUTPUT), cache=True, nogil=True, error_model="numpy")
def image_rows(begin, end, x, diagonal, at_anchor, out):  # type: ignore[no-untyped-def]
    """Turn ``out = M x`` into ``x - (M x - at_anchor) / diagonal``."""
    own, old, rates = out[begin:end], x[begin:end], diagonal[begin:end]
    for i in range(len(own)):
        own[i] = old[i] - (own[i] - at_anchor) / rates[i]


@njit(types.void(*_ROWS, _INPUT, _OUTPUT), cache=True, nogil=True)
def difference_rows(begin, end, x, out):  # type: ignore[no-untyped-def]
    """``out = x - out``."""
    own, other = out[begin:end], x[begin:end]
    for i in range(len(own)):
        own[i] = other[i] - own[i]


@njit(types.void(*_ROWS, _INPUT, _INPUT, _OUTPUT), cache=True, nogil=True, error_model="numpy")
def change_rows(begin, end, new, old, found):  # type: ignore[no-untyped-def]
    """Write the greatest ``|new - old|`` and ``|new - old| / |new|`` to `found`, shape (2,).

    The first is NaN if some change is; an undefined relative change counts as none.
    """
    greatest, relative, defined = 0.0, 0.0, True
    fresh, stale = new[begin:end], old[begin:end]
    for i in range(len(fresh)):
        change = abs(fresh[i] - stale[i])
        if change > 0.0:
            greatest = max(greatest, change)
            share = change / abs(fresh[i])
            if share > relative:
                relative = share
        elif change != 0.0:
            defined = False
    found[0] = greatest if defined else np.nan
    found[1] = relative
