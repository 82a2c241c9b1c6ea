"""Vectors put together from blocks (cuda/blocks.cu): equal blocks are sent to the device once."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.runtime._launch import blocks_for, check_vector, macros
from gpu_kernels.runtime.device import Device

_THREADS = 256
_SPAN = 4096
"""Elements that a block of threads writes: 512 a warp, as the kernel has it."""


def copy_blocks(device: Device, flat: Any, starts: Any, ends: Any, out: Any) -> None:
    """Queue writing blocks one after the other.

    Parameters
    ----------
    device : Device
    flat : ndarray, shape (k,), float64 or bool
        Distinct blocks.
    starts : ndarray, shape (count,), int64
        Where in `flat` every block of the result begins.
    ends : ndarray, shape (count,), int64
        Where in the result every block ends, ascending; the last is the size of the result.
    out : ndarray, shape (n,), of the type of `flat`

    Raises
    ------
    TypeError
        If an array does not lie on the device, or has another type.
    ValueError
        If a shape is wrong.

    Notes
    -----
    Synchronises: no.
    """
    size, count = len(out), len(ends)
    if flat.dtype not in (np.float64, np.bool_):
        raise TypeError(f"flat: expected float64 or bool, got {flat.dtype}")
    check_vector(device, flat, len(flat), "flat", flat.dtype)
    check_vector(device, out, size, "out", flat.dtype)
    check_vector(device, starts, count, "starts", np.int64)
    check_vector(device, ends, count, "ends", np.int64)
    if size == 0:
        return
    kernel = device.kernel("blocks.cu", "copy_blocks", macros(ELEMENT_BYTES=flat.dtype.itemsize))
    arguments = (np.int64(size), np.int64(count), flat, starts, ends, out)
    kernel((blocks_for(size, _SPAN),), (_THREADS,), arguments)
