"""Products of a matrix in tiles with several vectors at once: the launches of cuda/tiles_many.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels._launch import macros
from gpu_kernels.device import Device
from gpu_kernels.tiles import TileMatrix

Array = Any

_SUMS = 16
"""Sums that a lane keeps in registers: groups that it serves at once times vectors."""


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
    Synchronises: no. One launch for eight columns, or four where a lane serves four groups, and one that
    writes zeros if some rows belong to no group.
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
    arguments, tuning = matrix.arguments(), matrix.tuning
    if matrix.gap_rows:
        out.fill(0.0)
    if not len(matrix.items):
        return
    vectors = min(_SUMS // tuning.members, 8)
    options = macros(
        THREADS=tuning.threads,
        # Twice the registers of a product with one vector.
        MIN_BLOCKS=max(tuning.min_blocks // 2, 1),
        MEMBERS=tuning.members,
        SCALED=int(matrix.scale is not None),
        VECTORS=vectors,
        **matrix.macros(),
    )
    kernel = device.kernel("tiles_many.cu", "tiles_times_vectors", options)
    for column in range(0, count, vectors):
        place = np.int32(matrix.place_words), np.int32(count), np.int32(column)
        served = np.int32(min(vectors, count - column))
        kernel(
            (len(matrix.items),),
            (tuning.threads,),
            (*arguments, *place, served, x, out),
            shared_mem=matrix.shared_bytes,
        )
