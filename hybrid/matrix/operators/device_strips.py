"""The rows of a compressed matrix on a device in strips, where its groups have an order."""

from __future__ import annotations

import numpy as np

from hybrid.matrix.gpu.sweeps import DeviceStrips, build_strips
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.operators.row_strips import find_units, strips_of_units

_LEAST_ROWS = 1 << 20
"""Rows of a matrix below which a step over all of them takes hardly longer than one over a strip."""

_STRIP_ROWS = 1 << 14
"""Rows of a strip, at least: a step over fewer takes as long, the time of a launch."""

_MOST_GROUPS = 1 << 14
"""Groups of a level that is looked at: they are put in order in Python."""

_MOST_STRIPS = 32
"""Strips at most, about: each takes recordings of its steps, and looks."""

_FEWEST_STRIPS = 8
"""With fewer a try in vain costs too much of what it may gain."""


def device_strips(types: RowTypes, k: int) -> DeviceStrips | None:
    """Return strips of a matrix, each of which refers to itself and to those before it alone.

    Parameters
    ----------
    types : RowTypes
        Of a square matrix without diagonal, blocks shared when equal.
    k : int
        Level to begin with, see `hybrid.matrix.operators.row_strips.find_units`.

    Returns
    -------
    DeviceStrips or None
        None where too many rows belong together, or too few are there.

    Raises
    ------
    MemoryError
        The device has no room for them.
    """
    n = types.classes.matrix.n_rows
    found = find_units(types, k, _MOST_GROUPS, is_small=True) if n >= _LEAST_ROWS else None
    if found is None:
        return None
    written, units, level = found
    strips = strips_of_units(units, written.size, max(_STRIP_ROWS, n // _MOST_STRIPS))
    if len(strips) < _FEWEST_STRIPS:
        return None
    strip = np.zeros(len(written.groups), np.int64)
    for number, groups in enumerate(strips):
        strip[groups] = number
    shares = [max(int(written.size[groups].sum()), _STRIP_ROWS) / n for groups in strips]
    return build_strips(types, level, strip, shares)
