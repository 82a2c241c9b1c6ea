"""Halos on a device: elements of x that other processes own, received before a product."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import CodedVector, Device, compress, copy_blocks
from hybrid.base.operands import ArrivingVector, Halo
from hybrid.matrix.gpu.transports import transport_of
from mtbdd.offset.distributed import DistributedMTBDD
from mtbdd.offset.states import VectorPlace

# Vectors over states that are made on a device, from the blocks that the host finds on a diagram.

_BLOCK_LENGTH = 1 << 12


class DevicePlace(VectorPlace):
    """See `mtbdd.offset.states.VectorPlace`; the memory of a device.

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


Array = Any


class ArrivingOnDevice(ArrivingVector):
    """See `ArrivingVector`; kernels read the own elements where they are.

    Parameters
    ----------
    own : array, shape (own columns,), float64
    halo : DeviceHalo
    finish : callable, optional
        Waits for the elements of others; they are there without it.

    Attributes
    ----------
    others : array, shape (halo,), float64
        The elements of others, once they have come.
    aside : SideStream or None
        See `hybrid.matrix.gpu.transports.Transport`.
    """

    def __init__(self, own: Array, halo: DeviceHalo, finish: Callable[[], object] | None = None) -> None:
        super().__init__(own, own)
        self._halo, self.others, self.aside, self._finish = halo, halo.others, halo.aside, finish

    def finish(self) -> None:
        """Wait for the elements of others; again it does nothing."""
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()

    def behind(self) -> AbstractContextManager[object]:
        """Return a context in which work is queued that reads the elements of others.

        Notes
        -----
        Where the exchange goes on beside the kernels that have been queued, so does this work; any caller
        that needs what it makes calls `finish` first. Else it is queued behind the kernels.
        """
        if self.aside is not None and self._finish is not None:
            return self.aside
        self.finish()
        return nullcontext()

    def received(self) -> Array:
        """Return all elements side by side; callers that do not need this read `own` and `others`."""
        if not self._is_copied:
            self.finish()
            self.whole = self._halo.together(self.own)
            self._is_copied = True
        return self.whole


class DeviceHalo(Halo):
    """Room for what is received, and who sends what; see `Halo`.

    Parameters
    ----------
    device : Device
    divided : DistributedMTBDD
        A matrix over these columns; all matrices that share a halo have the same.

    Attributes
    ----------
    size : int
        Elements that are received.
    others : array, shape (size,), float64
        On the device.
    host_waits, aside
        See `hybrid.matrix.gpu.transports.Transport`.

    Notes
    -----
    Elements are carried (`transport_of`) while kernels are at work.
    """

    def __init__(self, device: Device, divided: DistributedMTBDD) -> None:
        self._xp, self._own = device.xp, divided.own_columns
        self.size = int(sum(divided.incoming))
        self._carrier = transport_of(
            device, divided.communicator, divided.outgoing, divided.incoming, self._own
        )
        self.others, self.way = self._carrier.others, self._carrier.name
        self.host_waits, self.aside = self._carrier.host_waits, self._carrier.aside
        self._whole: Array | None = None

    def cover(self, stretches: NDArray[np.int64]) -> None:
        """See `Halo.cover`: kernels need no own elements beside those of others."""

    def exchange(self, x: Array) -> ArrivingOnDevice:
        """See `Halo.exchange`. Synchronises: what it returns may, where it is waited for."""
        self._carrier.begin(x)
        return ArrivingOnDevice(x, self, self._carrier.finish)

    def ones(self) -> ArrivingOnDevice:
        """See `Halo.ones`."""
        self.others.fill(1.0)
        return ArrivingOnDevice(self._xp.ones(self._own), self)

    def together(self, own: Array) -> Array:
        """Return own elements and those of others in one vector, which the halo keeps."""
        if self._whole is None:
            self._whole = self._xp.empty(len(own) + self.size)
        self._whole[: len(own)] = own
        self._whole[len(own) :] = self.others
        return self._whole
