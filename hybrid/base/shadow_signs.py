"""The shadow vectors of IDR(s), of which hosts keep the signs of short ones.

A shadow vector has the elements 1 and -1, weighted like the vectors it meets. A bit of a hash of the row's
number decides the sign. So the same system takes the same course everywhere, and devices keep no vector.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

DIRECTIONS = 4
"""s: products between two steps of least residual, and shadow vectors."""

SIGN_BITS = (5, 11, 17, 23)
"""Bits of the hash that give the signs of the shadow vectors."""

FACTORS = 0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35
"""Odd numbers that the hash multiplies by, modulo 2^32."""


_KEPT = 1 << 17
"""Elements whose signs are kept, in four megabytes: to make them takes as long as some of their products."""


def signs(begin: int, end: int) -> NDArray[np.float64]:
    """Return the elements ``begin .. end`` of the shadow vectors, shape (s, end - begin); some are kept."""
    return _kept(begin, end) if end <= _KEPT else _made(begin, end)


@lru_cache(maxsize=32)
def _kept(begin: int, end: int) -> NDArray[np.float64]:
    found = _made(begin, end)
    found.flags.writeable = False
    return found


def _made(begin: int, end: int) -> NDArray[np.float64]:
    hashed = np.arange(begin, end, dtype=np.uint64).astype(np.uint32)
    first, second, third = (np.uint32(factor) for factor in FACTORS)
    hashed *= first
    hashed ^= hashed >> np.uint32(15)
    hashed *= second
    hashed ^= hashed >> np.uint32(13)
    hashed *= third
    bits = np.stack([(hashed >> np.uint32(bit)) & np.uint32(1) for bit in SIGN_BITS])
    return 1.0 - 2.0 * bits
