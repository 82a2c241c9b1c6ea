"""The rows of a matrix in strips on a device: steps over the rows of one strip alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import Device, Step, TileMatrix, current_device, made_for, run_tiles
from hybrid.base.arrays import Array
from hybrid.matrix.gpu.admission import check_memory
from hybrid.matrix.gpu.cost import layout_items
from hybrid.matrix.gpu.sweeps import DeviceSteps
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.gpu.tuning import LayoutOptions
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.space.workspace import Steps

_SHAPE = LayoutOptions(slices=1)
"""Small items: a strip has few rows for a card, and a step takes as long as its longest item."""


class DeviceStrips:
    """See :class:`hybrid.solvers.strip_leap.StripSteps`.

    Parameters
    ----------
    device : Device
    tiles : TileMatrix
        With strips.
    shares : sequence of float
        What a step over each strip costs beside one over all rows.
    """

    def __init__(self, device: Device, tiles: TileMatrix, shares: Sequence[float]) -> None:
        self._device, self._tiles, self.shares = device, tiles, shares

    @property
    def nbytes(self) -> int:
        """Bytes of the tiles."""
        return self._tiles.nbytes

    def steps(self, steps: Steps) -> list[DeviceSteps]:
        """Return steps of the matrix on the device over the rows of each strip alone."""
        assert isinstance(steps, DeviceSteps)
        return [steps.over(partial(self._run, number)) for number in range(len(self.shares))]

    def _run(self, number: int, step: Step, x: Array, out: Array) -> None:
        run_tiles(self._device, self._tiles, step, x, out, part=number)


def build_strips(types: RowTypes, k: int, strip: NDArray[np.int64], shares: Sequence[float]) -> DeviceStrips:
    """Lay the strips of a level out on the current device.

    Parameters
    ----------
    types : RowTypes
        Blocks shared when equal.
    k : int
        Level.
    strip : ndarray, shape (groups,), int64
        The strip of every group.
    shares : sequence of float
        See `DeviceStrips`.

    Raises
    ------
    MemoryError
        The device has no room.
    """
    device = current_device()
    check_memory(device, types, k)
    tiles = made_for(
        device, layout_items(types, k), lambda place: build_tile_matrix(place, types, k, _SHAPE, strip=strip)
    )
    if tiles is None:
        raise RuntimeError("classes of equal blocks are exact, yet were refused as inexact")
    return DeviceStrips(device, tiles, shares)
