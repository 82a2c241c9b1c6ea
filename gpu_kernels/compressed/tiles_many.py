"""Products of a matrix in tiles with several vectors at once: the launches of cuda/tiles_many.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.compressed.tiles import TileMatrix
from gpu_kernels.runtime._launch import macros
from gpu_kernels.runtime.device import Device

Array = Any

_THREADS = 512
_MIN_BLOCKS = 2
_MEMBERS = 2
"""The fastest of the shapes of blocks that were timed on an H200, or within 2 % of it (docs/gpu.md)."""

_PAIR_BYTES = 16
"""Operands begin at multiples of two elements, which a lane reads at once."""


def run_tiles_many(device: Device, matrix: TileMatrix, x: Array, out: Array) -> None:
    """Queue the products with the columns of an array.

    Parameters
    ----------
    device : Device
    matrix : TileMatrix
        Without marks.
    x : ndarray, shape (n_columns, k), float64
        On the device, contiguous in rows.
    out : ndarray, shape (n_rows, k), float64
        Overwritten; must not overlap x.

    Raises
    ------
    TypeError, ValueError
        If an operand has the wrong type or shape or lies elsewhere, or the tiles have marks.

    Notes
    -----
    Synchronises: no. One launch for eight columns, and for four or two at the end; one that writes zeros if
    some rows belong to no group. Memory: copies of x and out where k is odd or an operand does not begin at a
    multiple of 16 bytes.
    """
    count = int(x.shape[1]) if x.ndim == 2 else 0
    for array, rows, name in ((x, matrix.n_columns, "x"), (out, matrix.n_rows, "out")):
        if not isinstance(array, device.xp.ndarray) or array.dtype != np.float64:
            raise TypeError(
                f"{name}: expected float64 on the device, got {type(array).__name__}, {array.dtype}"
            )
        if array.shape != (rows, count) or not array.flags.c_contiguous:
            raise ValueError(
                f"{name}: expected shape ({rows}, {count}), contiguous in rows, got {tuple(array.shape)}"
            )
    if count % 2 or _address(x) % _PAIR_BYTES or _address(out) % _PAIR_BYTES:
        xp = device.xp
        even = count + count % 2
        wide, result = xp.zeros((matrix.n_columns, even)), xp.empty((matrix.n_rows, even))
        wide[:, :count] = x
        _run(device, matrix, wide, result)
        out[...] = result[:, :count]
    else:
        _run(device, matrix, x, out)


def _address(array: Array) -> int:
    """Return where an array begins, on a device or on the host that stands for one."""
    return int(array.data.ptr if hasattr(array.data, "ptr") else array.ctypes.data)


def _run(device: Device, matrix: TileMatrix, x: Array, out: Array) -> None:
    """Queue the launches for an even number of vectors."""
    if matrix.gap_rows:
        out.fill(0.0)
    if not len(matrix.items):
        return
    count = int(x.shape[1])
    column = 0
    while column < count:
        share = next(lanes for lanes in (4, 2, 1) if 2 * lanes <= count - column)
        options = macros(
            THREADS=_THREADS,
            MIN_BLOCKS=_MIN_BLOCKS,
            MEMBERS=min(_MEMBERS, matrix.tuning.members),
            SCALED=int(matrix.scale is not None),
            SHARE=share,
            **matrix.macros(),
        )
        kernel = device.kernel("tiles_many.cu", "tiles_times_vectors", options)
        scalars = np.int32(matrix.place_words), np.int32(count), np.int32(column)
        arguments = (*matrix.arguments(), *scalars, x, out)
        kernel((len(matrix.items),), (_THREADS,), arguments, shared_mem=matrix.shared_bytes)
        column += 2 * share
