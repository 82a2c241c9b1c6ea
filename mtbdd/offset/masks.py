"""Whether masks are true everywhere or somewhere, by reductions that no library has to compile for it.

CuPy compiles a kernel with thousands of lines, two seconds of them, for the first ``mask.all()`` and another
for ``mask.any()``; those for the least and the greatest byte come with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
"""An array of NumPy or CuPy."""

_PART = 1 << 28
"""Elements looked at together: bounds the temporary memory, and libraries count elements by 32 bits."""


def is_all(mask: Array) -> bool:
    """Return whether all elements of a mask are true, shape (n,), bool."""
    return not len(mask) or bool(mask.view(np.uint8).min())


def is_any(mask: Array) -> bool:
    """Return whether some element of a mask is true, shape (n,), bool."""
    return bool(len(mask)) and bool(mask.view(np.uint8).max())


def all_finite(xp: Any, vector: Array) -> bool:
    """Return whether all elements of a vector of a module are finite, shape (n,), float64; part by part."""
    parts = (vector[begin : begin + _PART] for begin in range(0, len(vector), _PART))
    return all(is_all(xp.isfinite(part)) for part in parts)
