"""What a process receives before a product on a device: elements of x that others own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import Device, copy_blocks
from hybrid.core.arriving import ArrivingVector
from hybrid.core.halo import Halo
from hybrid.gpu.carriers import carrier_of
from mtbdd.communicator import Exchange
from mtbdd.divided import DividedMTBDD, places_of

Array = Any

_LONG = 256
"""Mean length of ranges from which on they are copied as such, and not element by element."""


class ArrivingOnDevice(ArrivingVector):
    """See `ArrivingVector`; kernels read the own elements where they are.

    Attributes
    ----------
    others : array, shape (halo,), float64
        The elements of others, once they have come.
    """

    def __init__(self, own: Array, halo: DeviceHalo, exchange: Exchange) -> None:
        super().__init__(own, own, exchange)
        self._halo, self.others = halo, halo.others

    def received(self) -> Array:
        """Return all elements side by side; whoever can do without reads `own` and `others`."""
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
    divided : DividedMTBDD
        A matrix over these columns; all matrices that share a halo have the same.

    Attributes
    ----------
    size : int
        Elements that are received.
    others : array, shape (size,), float64
        On the device.

    Notes
    -----
    Elements are gathered by one launch, and carried (`carrier_of`) while kernels are at work.
    """

    def __init__(self, device: Device, divided: DividedMTBDD) -> None:
        self._xp, self._own = device.xp, divided.own_columns
        self._gather = _gathering(device, np.concatenate(divided.outgoing), self._own)
        lengths = [int((own[:, 1] - own[:, 0]).sum()) for own in divided.outgoing]
        self.size = int(sum(divided.incoming))
        self._leaving, self.others = self._xp.empty(sum(lengths)), self._xp.empty(self.size)
        self._carrier = carrier_of(device, divided.communicator, lengths, divided.incoming)
        self.way = self._carrier.name
        self._whole: Array | None = None

    def cover(self, stretches: NDArray[np.int64]) -> None:
        """See `Halo.cover`: kernels need no own elements beside those of others."""

    def exchange(self, x: Array) -> ArrivingOnDevice:
        """See `Halo.exchange`. Synchronises: what it returns may, where it is waited for."""
        self._gather(x, self._leaving)
        self._carrier.begin(self._leaving, self.others)
        return ArrivingOnDevice(x, self, Exchange(partial(self._carrier.finish, self.others)))

    def ones(self) -> ArrivingOnDevice:
        """See `Halo.ones`."""
        self.others.fill(1.0)
        return ArrivingOnDevice(self._xp.ones(self._own), self, Exchange())

    def together(self, own: Array) -> Array:
        """Return own elements and those of others in one vector, which the halo keeps."""
        if self._whole is None:
            self._whole = self._xp.empty(len(own) + self.size)
        self._whole[: len(own)] = own
        self._whole[len(own) :] = self.others
        return self._whole


def _gathering(device: Device, runs: NDArray[np.int64], own: int) -> Callable[[Array, Array], object]:
    """Return what queues writing ranges of a vector, shape (runs, 2), one after the other to another one."""
    xp, lengths = device.xp, runs[:, 1] - runs[:, 0]
    if lengths.sum() >= _LONG * len(runs):
        starts, ends = xp.asarray(np.ascontiguousarray(runs[:, 0])), xp.asarray(np.cumsum(lengths))
        return lambda x, out: copy_blocks(device, x, starts, ends, out)
    places = xp.asarray(places_of(runs).astype(np.int32 if own < 2**31 else np.int64))
    return lambda x, out: xp.take(x, places, out=out)
