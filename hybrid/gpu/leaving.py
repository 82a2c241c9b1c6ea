"""Which own elements go to other processes, as kernels take them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import Device, Leaving, copy_blocks
from hybrid.core.arrays import Array
from mtbdd.divided import places_of

_LONG = 256
"""Mean length of ranges from which on they are copied as such, and not element by element."""


def leaving_elements(device: Device, runs: NDArray[np.int64], own: int) -> Leaving:
    """Return ranges as such where they are long, else their elements one by one.

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
    size = int(lengths.sum())
    if size >= _LONG * len(runs):
        starts, ends = xp.asarray(np.ascontiguousarray(runs[:, 0])), xp.asarray(np.cumsum(lengths))
        return Leaving(size, starts=starts, ends=ends)
    return Leaving(size, places=xp.asarray(places_of(runs).astype(np.int32 if own < 2**31 else np.int64)))


def gather(device: Device, leaving: Leaving, x: Array, out: Array) -> None:
    """Queue writing elements of x one after the other to `out`, shape (leaving.size,)."""
    if leaving.places is None:
        copy_blocks(device, x, leaving.starts, leaving.ends, out)
    else:
        device.xp.take(x, leaving.places, out=out)
