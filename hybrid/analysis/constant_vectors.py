"""Vectors all of whose elements are equal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.ragged import array_module
from hybrid.base.arrays import extremes
from mtbdd.base.communicator import Communicator
from mtbdd.offset.masks import is_all

_PART = 1 << 20  # elements compared together: bounds the temporary memory


def is_constant(communicator: Communicator, vector: NDArray[np.float64]) -> bool:
    """Tell whether all elements are equal, those of other processes included.

    Part by part: most vectors differ early, some are gigabytes.
    """
    first = float(vector[0]) if vector.size else np.inf
    parts = (vector[begin : begin + _PART] for begin in range(0, vector.size, _PART))
    own = all(is_all(array_module(part).equal(part, first)) for part in parts)
    if communicator.size == 1:
        return own
    found = communicator.gather([float(own), first])
    values = found[:, 1][np.isfinite(found[:, 1])]
    return bool(found[:, 0].all() and (values == values[0]).all()) if values.size else True


def is_zero(communicator: Communicator, vector: NDArray[np.float64]) -> bool:
    """Tell whether all elements are zero, those of other processes included."""
    least, most = extremes(vector)
    return not communicator.any(least < 0.0 or most > 0.0)
