"""Values of a matrix, plain or by a dictionary of the distinct ones ([WB13] §5, "compact MSR")."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.coded import CodedVector
from gpu_kernels.device import Device
from gpu_kernels.formats.arrays import require_memory

Array = Any

_CHUNK = 1 << 24
"""Elements sorted together: bounds the temporary memory."""

_SORTED_BYTES = 34
"""Of temporary arrays an element: two copies to sort between, marks, their prefix sums, what is distinct."""


def dictionary_bytes(entries: int) -> int:
    """Return the bytes of temporary arrays while a dictionary of few values is made of so many entries."""
    return _SORTED_BYTES * min(entries, _CHUNK)


def encode_values(device: Device, values: Array) -> CodedVector:
    """Put values on the device as numbers of the distinct ones, of the narrowest unsigned type.

    Parameters
    ----------
    device : Device
    values : ndarray, shape (entries,), float64
        On the host or on the device.

    Returns
    -------
    CodedVector
        With 8, 16 or 32 bits an element. Bit for bit the same numbers: minus zero is kept.

    Raises
    ------
    MemoryError
        If there are more distinct values than the device has room to sort; that there is room for few of
        them, :func:`dictionary_bytes`, is the caller's to ask.

    Notes
    -----
    Time: O(n log k) for k distinct values. Synchronises: yes.
    """
    xp, size = device.xp, len(values)
    keys = xp.zeros(0, np.int64)
    for begin in range(0, size, _CHUNK):
        part = xp.asarray(values[begin : begin + _CHUNK]).view(np.int64)
        found = xp.unique(part)
        if len(keys):
            both = len(keys) + len(found)
            require_memory(device, (8 + _SORTED_BYTES) * both, f"a dictionary of up to {both} values")
            found = xp.unique(xp.concatenate((keys, found)))
        keys = found
    bits = 8 if len(keys) <= 1 << 8 else 16 if len(keys) <= 1 << 16 else 32
    elements = xp.empty(size, f"uint{bits}")
    for begin in range(0, size, _CHUNK):
        part = xp.asarray(values[begin : begin + _CHUNK]).view(np.int64)
        elements[begin : begin + _CHUNK] = xp.searchsorted(keys, part)
    return CodedVector(size, bits, elements, keys.view(np.float64))


def scatter_values(device: Device, values: CodedVector, places: Array, size: int) -> CodedVector:
    """Return values moved to places in a longer vector; what lies between are zeros or number 0.

    Parameters
    ----------
    device : Device
    values : CodedVector
    places : ndarray, shape (values.size,), integers
    size : int
        Elements of the result.
    """
    elements = device.xp.zeros(size, values.elements.dtype)
    elements[places] = values.elements
    return CodedVector(size, values.bits, elements, values.table)
