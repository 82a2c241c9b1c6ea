"""Launch arithmetic, typed scalars and operand checks, shared by all wrappers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.runtime._loader import Macros
from gpu_kernels.runtime.device import Device

Array = Any

INDEX_LIMIT = 2**31
"""Counts from here on need 64-bit indices."""

GRID_LIMIT = 2**31 - 1
"""Blocks that one launch can have."""


def index_bits(largest: int, wide: bool = False) -> int:
    """Return 32 or 64, the index width for the largest of all flat counts; ``wide`` forces 64.

    Parameters
    ----------
    largest : int
        The largest of all flat counts.
    wide : bool
        Whether to take 64 in any case.

    Returns
    -------
    int
    """
    return 64 if wide or largest >= INDEX_LIMIT else 32


def loop_bits(count: int, most_blocks: int, threads: int, wide: bool = False) -> int:
    """Return the index width of a loop over a grid, whose last turn leads beyond ``count`` by a grid."""
    return index_bits(count + most_blocks * threads, wide)


def index_type(bits: int) -> type[np.signedinteger[Any]]:
    """Return the scalar and element type of an index width.

    Parameters
    ----------
    bits : {32, 64}

    Returns
    -------
    type
        `numpy.int32` or `numpy.int64`.
    """
    return np.int64 if bits == 64 else np.int32


def macros(**values: int) -> Macros:
    """Return a specialisation, sorted by name."""
    return tuple(sorted(values.items()))


def element_type(array: Array) -> type[np.floating[Any]]:
    """Return float32 for an array of it, else float64, which all other arrays are expected to have."""
    return np.float32 if getattr(array, "dtype", None) == np.float32 else np.float64


def real_macros(array: Array) -> dict[str, int]:
    """Return the macro that vectors of an element type need: none for float64."""
    return {} if array.dtype == np.float64 else {"REAL_BITS": 8 * int(array.dtype.itemsize)}


def direction_macros(directions: int) -> dict[str, int]:
    """Return the macro that passes of IDR(s) need for s: none for four."""
    return {} if directions == 4 else {"DIRECTIONS": directions}


def blocks_for(count: int, threads: int) -> int:
    """Return the blocks that ``count`` threads fill, at least one.

    Raises
    ------
    ValueError
        If one launch cannot have so many.
    """
    blocks = max(1, -(-count // threads))
    if blocks > GRID_LIMIT:
        raise ValueError(f"{count} threads make {blocks} blocks; a launch has at most {GRID_LIMIT}")
    return blocks


def check_vector(device: Device, array: Array, size: int, name: str, dtype: Any = np.float64) -> None:
    """Refuse a vector that a kernel could not read.

    Parameters
    ----------
    device : Device
    array : array
    size : int
        How many elements it must have.
    name : str
        What messages call it.
    dtype : dtype

    Raises
    ------
    TypeError
        If it is not an array of the device or has another element type.
    ValueError
        If it has another shape or is not contiguous.
    """
    if not isinstance(array, device.xp.ndarray):
        raise TypeError(
            f"{name}: expected an array on the device ({device.xp.__name__}.ndarray), got "
            f"{type(array).__module__}.{type(array).__name__}"
        )
    if array.dtype != dtype:
        raise TypeError(f"{name}: expected dtype {np.dtype(dtype)}, got {array.dtype}")
    if array.shape != (size,):
        raise ValueError(f"{name}: expected shape ({size},), got {array.shape}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name}: expected a contiguous array; copy it first")
