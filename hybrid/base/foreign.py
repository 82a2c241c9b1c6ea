"""Arrays of other libraries at the border: NumPy's, CuPy's, and whatever speaks DLPack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hybrid.base.arrays import Array

_HOST_KINDS = (1, 3)
"""DLPack's numbers for memory that the host reads: its own, and pinned by CUDA."""


def lies_on_device(x: Any) -> bool:
    """Return whether an array lies where the host cannot read it.

    Notes
    -----
    Asked by DLPack first: PyTorch's type has the CUDA interface also for tensors on the host.
    """
    if isinstance(x, np.ndarray):
        return False
    where = getattr(x, "__dlpack_device__", None)
    if where is not None:
        kind, _ = where()
        return int(kind) not in _HOST_KINDS
    return hasattr(x, "__cuda_array_interface__")


def on_host(x: Any) -> Any:
    """Return an array that lies on the host as a NumPy array, without a copy where there is a buffer.

    Raises
    ------
    TypeError
        If its elements are of a type that NumPy does not have.
    """
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "__dlpack__"):
        try:
            return np.from_dlpack(x)
        except (BufferError, RuntimeError) as error:
            raise TypeError(f"x: expected an array that NumPy can take by DLPack: {error}") from error
    return np.asarray(x)


def through_host(work: Callable[[Any], Array], x: Any) -> Array:
    """Return what `work` makes of a device array for a matrix on the host: copied there, and the result back.

    Notes
    -----
    Synchronises: yes. Two copies a call.
    """
    import cupy

    result: Array = cupy.asarray(work(cupy.asarray(x).get()))
    return result
