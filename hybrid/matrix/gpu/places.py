"""Vectors over states that are made on a device, from the blocks that the host finds on a diagram."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import CodedVector, Device, compress, copy_blocks

_BLOCK_LENGTH = 1 << 12


class DevicePlace:
    """See `mtbdd.offset.places.VectorPlace`; the memory of a device.

    Parameters
    ----------
    device : Device

    Notes
    -----
    The host has the distinct blocks of a vector, and where each one goes, and nothing of its length.
    """

    block_length: int | None = _BLOCK_LENGTH

    def __init__(self, device: Device) -> None:
        self._device, self.xp = device, device.xp

    def written(self, flat: NDArray[Any], cuts: NDArray[np.int64], sequence: NDArray[np.int64]) -> Any:
        """See `VectorPlace.written`. Synchronises: no."""
        xp, ends = self.xp, np.cumsum(np.diff(cuts)[sequence])
        out = xp.empty(int(ends[-1]) if ends.size else 0, flat.dtype)
        copy_blocks(self._device, xp.asarray(flat), xp.asarray(cuts[sequence]), xp.asarray(ends), out)
        return out

    def array(self, values: Any) -> Any:
        """See `VectorPlace.array`."""
        return self.xp.asarray(values)

    def compressed(self, vector: Any) -> CodedVector:
        """See `VectorPlace.compressed`; by dictionary where it has few values."""
        return compress(self._device, vector)

    def require(self, needed: int, what: str, advice: str) -> None:
        """See `VectorPlace.require`; of the device."""
        free = self._device.free_bytes()
        if needed > free:
            raise MemoryError(
                f"{what} needs {needed} bytes ({needed / 1e9:.1f} GB) on {self._device.name}, {free} "
                f"({free / 1e9:.1f} GB) are free; {advice}"
            )
