"""Compiled passes of IDR(s) over vectors, rows begin .. end; see `hybrid.matrix.space.passes.Passes`.

Rows are taken block by block: a block of the vectors that are written stays in the first-level cache while
others are added. Sums are those of pieces, which the rows of a call begin and end with.
"""

from __future__ import annotations

import numpy as np
from numba import types

from hybrid.base.operands import PIECE
from hybrid.base.shadow_signs import FACTORS, SIGN_BITS
from mtbdd.base.compiled import njit

_ROWS = (types.int64, types.int64)
_INPUT = types.Array(types.float64, 1, "C", readonly=True)
_OUTPUT = types.float64[::1]
_MATRIX = types.float64[:, ::1]
_BLOCK = 1024
_FIRST, _SECOND, _THIRD = FACTORS
_BIT0, _BIT1, _BIT2, _BIT3 = SIGN_BITS


@njit(
    types.void(*_ROWS, _INPUT, _INPUT, types.boolean, _MATRIX),
    cache=True,
    nogil=True,
    fastmath={"reassoc", "nsz"},
)
def shadow_sums_rows(begin, end, x, weights, weighed, found):  # type: ignore[no-untyped-def]
    """Write products of pieces with four shadow vectors and themselves to `found`, shape (pieces, 5)."""
    for low in range(begin, end, PIECE):
        part = x[low : min(low + PIECE, end)]
        scale = weights[low : min(low + PIECE, end)] if weighed else weights[:0]
        # Terms with the sign -1 have a sum of their own: a selection takes less time than a factor.
        a, b, c, d, all_, square = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        # Numbers of 32 bits throughout: with wider ones the loop does not vectorise.
        first = np.uint32(low)
        for i in range(np.uint32(len(part))):
            h = np.uint32(np.uint32(first + np.uint32(i)) * np.uint32(_FIRST))
            h = np.uint32(np.uint32(h ^ (h >> np.uint32(15))) * np.uint32(_SECOND))
            h = np.uint32(np.uint32(h ^ (h >> np.uint32(13))) * np.uint32(_THIRD))
            value = np.float64(part[i])
            if weighed:
                value *= scale[i]
            a += value if h & np.uint32(1 << _BIT0) else 0.0
            b += value if h & np.uint32(1 << _BIT1) else 0.0
            c += value if h & np.uint32(1 << _BIT2) else 0.0
            d += value if h & np.uint32(1 << _BIT3) else 0.0
            all_ += value
            square += value * value
        sums = found[low // PIECE]
        sums[0], sums[1], sums[2], sums[3] = all_ - 2.0 * a, all_ - 2.0 * b, all_ - 2.0 * c, all_ - 2.0 * d
        sums[4] = square


@njit(
    types.void(
        *_ROWS, types.int64, types.boolean, *[_INPUT] * 3, types.float64, _MATRIX, _MATRIX, _OUTPUT, _OUTPUT
    ),
    cache=True,
    nogil=True,
)
def turn_rows(begin, end, last, settles, taken, betas, shares, omega, u, g, r, x):  # type: ignore[no-untyped-def]
    """Settle direction `last`, or take it as settled, and aim at the next one.

    To settle is to take ``taken[j]`` times the vectors j < last from number `last`, and move r by the rest.
    Then ``omega r + sum over j >= k of shares[j] (u[j] - omega g[j])`` is written to ``u[k]``, where k is
    ``last + 1``; with the last direction of a cycle x moves along all of them instead.
    """
    real = u.dtype.type  # numbers of the vectors' precision, so that nothing is widened
    step = real(omega)
    for low in range(begin, end, _BLOCK):
        high = min(low + _BLOCK, end)
        residual = r[low:high]
        if settles:
            own, image = u[last, low:high], g[last, low:high]
            for j in range(last):
                share, other, others = real(taken[j]), u[j, low:high], g[j, low:high]
                for i in range(len(own)):
                    own[i] -= share * other[i]
                    image[i] -= share * others[i]
            beta = real(betas[last])
            for i in range(len(own)):
                residual[i] -= beta * image[i]
        if last + 1 < len(u):
            own, image, share = u[last + 1, low:high], g[last + 1, low:high], real(shares[last + 1])
            for i in range(len(own)):
                own[i] = step * residual[i] + share * (own[i] - step * image[i])
            for j in range(last + 2, len(u)):
                share, other, image = real(shares[j]), u[j, low:high], g[j, low:high]
                for i in range(len(own)):
                    own[i] += share * (other[i] - step * image[i])
        else:
            iterate = x[low:high]
            if len(u) == 4:
                # One turn over all of them reads and writes the iterate once.
                a, b, c, d = u[0, low:high], u[1, low:high], u[2, low:high], u[3, low:high]
                first, second, third, fourth = real(betas[0]), real(betas[1]), real(betas[2]), real(betas[3])
                for i in range(len(iterate)):
                    iterate[i] += first * a[i] + second * b[i] + third * c[i] + fourth * d[i]
            else:
                for j in range(len(u)):
                    share, other = real(betas[j]), u[j, low:high]
                    for i in range(len(iterate)):
                        iterate[i] += share * other[i]


@njit(
    types.void(*_ROWS, _INPUT, _INPUT, _INPUT, types.boolean, _MATRIX),
    cache=True,
    nogil=True,
    fastmath={"reassoc", "nsz"},
)
def step_sums_rows(begin, end, t, r, weights, weighed, found):  # type: ignore[no-untyped-def]
    """Write ``t . r``, ``t . t`` and ``r . r`` of pieces to `found`, shape (pieces, 3)."""
    for low in range(begin, end, PIECE):
        across, image, square = 0.0, 0.0, 0.0
        product, part = t[low : min(low + PIECE, end)], r[low : min(low + PIECE, end)]
        scale = weights[low : min(low + PIECE, end)] if weighed else weights[:0]
        for i in range(len(part)):
            value, other = np.float64(part[i]), np.float64(product[i])
            if weighed:
                value *= scale[i]
                other *= scale[i]
            across += other * value
            image += other * other
            square += value * value
        sums = found[low // PIECE]
        sums[0], sums[1], sums[2] = across, image, square


@njit(types.void(*_ROWS, types.float64, _INPUT, _OUTPUT, _OUTPUT), cache=True, nogil=True)
def step_rows(begin, end, omega, t, r, x):  # type: ignore[no-untyped-def]
    """``x += omega r``, then ``r -= omega t``."""
    product, residual, iterate = t[begin:end], r[begin:end], x[begin:end]
    for i in range(len(iterate)):
        iterate[i] += omega * residual[i]
        residual[i] -= omega * product[i]
