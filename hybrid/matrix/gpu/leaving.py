"""Which own elements go to other processes, as kernels take them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import Device, Leaving, copy_blocks
from hybrid.base.arrays import Array
from mtbdd.offset.divided import places_of

_SPAN = 1024
"""Elements that a warp writes at a time."""

_MOST_RANGES = 16
"""Ranges in a span up to which they are copied as such: a warp takes them in turn."""

_LISTED = 1 << 27
"""Elements from which on their list would take too much memory."""


def leaving_elements(device: Device, runs: NDArray[np.int64], own: int) -> Leaving:
    """Return ranges as such where they are long, or very many, else their elements one by one.

    Parameters
    ----------
    device : Device
    runs : ndarray, shape (ranges, 2), int64
        Begins and ends.
    own : int
        Length of the vector.

    Notes
    -----
    Memory: O(ranges) on the device, or four bytes (eight from 2**31 own elements on) an element.
    """
    xp, lengths = device.xp, runs[:, 1] - runs[:, 0]
    size, ends = int(lengths.sum()), np.cumsum(lengths)
    in_span = np.diff(np.searchsorted(ends, np.arange(0, size + _SPAN, _SPAN)))
    if size >= _LISTED or in_span.max(initial=0) <= _MOST_RANGES:
        starts = xp.asarray(np.ascontiguousarray(runs[:, 0]))
        return Leaving(size, starts=starts, ends=xp.asarray(ends))
    return Leaving(size, places=xp.asarray(places_of(runs).astype(np.int32 if own < 2**31 else np.int64)))


def gather(device: Device, leaving: Leaving, x: Array, out: Array) -> None:
    """Queue writing elements of x one after the other to `out`, shape (leaving.size,)."""
    if leaving.places is None:
        copy_blocks(device, x, leaving.starts, leaving.ends, out)
    else:
        device.xp.take(x, leaving.places, out=out)
