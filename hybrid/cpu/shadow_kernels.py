"""Compiled passes of IDR(s) over vectors, rows begin .. end; see `hybrid.solvers.shadows.ShadowPasses`.

Rows are taken block by block, so that a block of the vectors that are written to stays in the first-level
cache while others are added.
"""

from __future__ import annotations

import numpy as np
from numba import types

from hybrid.core.shadow_signs import DIRECTIONS, FACTORS, SIGN_BITS
from mtbdd.compiled import njit

_ROWS = (types.int64, types.int64)
_INPUT = types.Array(types.float64, 1, "C", readonly=True)
_OUTPUT = types.float64[::1]
_MATRIX = types.float64[:, ::1]
_BLOCK = 1024
_FIRST, _SECOND, _THIRD = FACTORS
_BIT0, _BIT1, _BIT2, _BIT3 = SIGN_BITS


@njit(
    types.void(*_ROWS, _INPUT, _INPUT, types.boolean, _OUTPUT),
    cache=True,
    nogil=True,
    fastmath={"reassoc"},
)
def shadow_sums_rows(begin, end, x, weights, weighed, found):  # type: ignore[no-untyped-def]
    """Write the products with four shadow vectors, and of x with itself, to `found`, shape (5,)."""
    a, b, c, d, square = 0.0, 0.0, 0.0, 0.0, 0.0
    part = x[begin:end]
    scale = weights[begin:end] if weighed else part
    for i in range(len(part)):
        h = np.uint32(np.uint32(begin + i) * np.uint32(_FIRST))
        h = np.uint32(np.uint32(h ^ (h >> np.uint32(15))) * np.uint32(_SECOND))
        h = np.uint32(np.uint32(h ^ (h >> np.uint32(13))) * np.uint32(_THIRD))
        value = part[i] * scale[i] if weighed else part[i]
        a += value * (1.0 - 2.0 * np.int32((h >> np.uint32(_BIT0)) & np.uint32(1)))
        b += value * (1.0 - 2.0 * np.int32((h >> np.uint32(_BIT1)) & np.uint32(1)))
        c += value * (1.0 - 2.0 * np.int32((h >> np.uint32(_BIT2)) & np.uint32(1)))
        d += value * (1.0 - 2.0 * np.int32((h >> np.uint32(_BIT3)) & np.uint32(1)))
        square += value * value
    found[0], found[1], found[2], found[3], found[4] = a, b, c, d, square


@njit(
    types.void(*_ROWS, types.int64, _INPUT, types.float64, _INPUT, _MATRIX, _MATRIX),
    cache=True,
    nogil=True,
)
def aim_rows(begin, end, first, shares, omega, r, u, g):  # type: ignore[no-untyped-def]
    """Write ``omega r + sum over j >= first of shares[j] (u[j] - omega g[j])`` to ``u[first]``."""
    for low in range(begin, end, _BLOCK):
        high = min(low + _BLOCK, end)
        aimed, image, residual = u[first, low:high], g[first, low:high], r[low:high]
        share = shares[first]
        for i in range(len(aimed)):
            aimed[i] = omega * residual[i] + share * (aimed[i] - omega * image[i])
        for j in range(first + 1, DIRECTIONS):
            share, other, image = shares[j], u[j, low:high], g[j, low:high]
            for i in range(len(aimed)):
                aimed[i] += share * (other[i] - omega * image[i])


@njit(
    types.void(*_ROWS, types.int64, _INPUT, types.float64, _MATRIX, _MATRIX, _OUTPUT, _OUTPUT),
    cache=True,
    nogil=True,
)
def settle_rows(begin, end, last, shares, beta, u, g, r, x):  # type: ignore[no-untyped-def]
    """Take ``shares[j]`` times the vectors j < last from number `last`, and move by beta times the rest."""
    for low in range(begin, end, _BLOCK):
        high = min(low + _BLOCK, end)
        own, image = u[last, low:high], g[last, low:high]
        for j in range(last):
            share, other, others = shares[j], u[j, low:high], g[j, low:high]
            for i in range(len(own)):
                own[i] -= share * other[i]
                image[i] -= share * others[i]
        iterate, residual = x[low:high], r[low:high]
        for i in range(len(own)):
            iterate[i] += beta * own[i]
            residual[i] -= beta * image[i]


@njit(
    types.void(*_ROWS, _INPUT, _INPUT, _INPUT, types.boolean, _OUTPUT),
    cache=True,
    nogil=True,
    fastmath={"reassoc"},
)
def step_sums_rows(begin, end, t, r, weights, weighed, found):  # type: ignore[no-untyped-def]
    """Write ``t . r``, ``t . t`` and ``r . r`` to `found`, shape (3,)."""
    across, image, square = 0.0, 0.0, 0.0
    product, part = t[begin:end], r[begin:end]
    scale = weights[begin:end] if weighed else part
    for i in range(len(part)):
        value, other = part[i], product[i]
        if weighed:
            value *= scale[i]
            other *= scale[i]
        across += other * value
        image += other * other
        square += value * value
    found[0], found[1], found[2] = across, image, square


@njit(types.void(*_ROWS, types.float64, _INPUT, _OUTPUT, _OUTPUT), cache=True, nogil=True)
def step_rows(begin, end, omega, t, r, x):  # type: ignore[no-untyped-def]
    """``x += omega r``, then ``r -= omega t``."""
    product, residual, iterate = t[begin:end], r[begin:end], x[begin:end]
    for i in range(len(iterate)):
        iterate[i] += omega * residual[i]
        residual[i] -= omega * product[i]
