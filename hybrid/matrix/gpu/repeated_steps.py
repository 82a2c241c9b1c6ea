"""Repeated steps on the device: queued in one go, from a recorded graph of launches where they repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import (
    Device,
    IterationState,
    Mode,
    Step,
    TileMatrix,
    add_scaled,
    current_device,
    finish_iteration,
    made_for,
    relax_rows,
    run_tiles,
)
from gpu_kernels.runtime.coded import array_module
from hybrid.base.arrays import Array
from hybrid.matrix.gpu.cost import check_memory, layout_items
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.gpu.tuning import LayoutOptions
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.space.vector_space import Steps

# Steps of matrices whose products relax nothing on the way.


class UnfusedSteps:
    """Steps as a product and a sweep over its rows; products alone go without the sweep.

    Parameters
    ----------
    device : Device
    multiply : callable
        Queues a product: ``multiply(x, out)``.
    n_rows : int
        Rows; a vector is allocated at the first step, so that products queued beyond the end of an iteration
        harm nothing.
    """

    def __init__(self, device: Device, multiply: Callable[[Array, Array], None], n_rows: int) -> None:
        self._device, self._multiply, self._n_rows = device, multiply, n_rows
        self._product: Array | None = None

    def __call__(self, step: Step, x: Array, out: Array) -> None:
        """Queue a step over all rows."""
        if step.mode == Mode.PRODUCT:
            self._multiply(x, out)
            return
        if self._product is None:
            self._product = self._device.xp.empty(self._n_rows)
        self._multiply(x, self._product)
        relax_rows(self._device, step, x, out, product=self._product)


RECORDED = 10
"""Steps in a recording; an even number, so that the vectors are back in their places afterwards."""

_KEPT = 2
"""Recordings kept, with their vectors: a system that is solved again and again must not gather vectors."""

Run = Callable[[Step, Array, Array], None]
"""Queues a step over all rows of a matrix."""

_Vectors = tuple[Array, Array, Array | None]


class DeviceSteps(Steps):
    """Steps of one kind on the device.

    Parameters
    ----------
    device : Device
    run : callable
        Queues a step over all rows.
    step : Step
        With an iteration state of its own.
    epsilon, absolute
        Stopping test, see :func:`gpu_kernels.finish_iteration`.
    synchronises : callable
        Called where the host waits.
    is_recorded : bool
        Not where the host waits in every step.
    agreed : callable, optional
        Returns the changes of all processes that share the states.

    Notes
    -----
    A step is followed by the second pass of its measurement where a stopping test asks for it.  Where nothing
    ends the steps, those before the last two go without: the one before the last clears what they measured.
    """

    def __init__(
        self,
        device: Device,
        run: Run,
        step: Step,
        epsilon: float,
        absolute: bool,
        synchronises: Callable[[], None],
        is_recorded: bool = True,
        agreed: Callable[[Array], Array] | None = None,
    ) -> None:
        if step.state is None:
            raise ValueError("steps that are repeated need an iteration state")
        self._device, self._run, self._step, self._state = device, run, step, step.state
        self._epsilon, self._absolute = epsilon, absolute
        self._synchronises, self._is_recorded, self._agreed = synchronises, is_recorded, agreed
        self._made = 0
        # Recordings by the vectors' identities; the vectors are kept, so that no other can take their places.
        self._recordings: dict[tuple[int, int, int], tuple[_Vectors, Callable[[], None] | None]] = {}

    def over(self, run: Run) -> DeviceSteps:
        """Return the same steps queued by another `run`, as over some rows; they share their state."""
        found = copy(self)
        found._run, found._recordings = run, {}
        return found

    @property
    def state(self) -> IterationState:
        """Position of the steps."""
        return self._state

    def sweep(self, pair: tuple[Array, Array], done: int, count: int, total: Array | None = None) -> None:
        """Queue steps. Synchronises: only to record those that come for the second time."""
        self._made = done + count
        while self._is_recorded and count >= RECORDED and done % 2 == 0:
            self._block(pair, total)
            done, count = done + RECORDED, count - RECORDED
        self._queue(pair, done, count, total)

    def _block(self, pair: tuple[Array, Array], total: Array | None) -> None:
        vectors = (*pair, total)
        key = (id(vectors[0]), id(vectors[1]), id(vectors[2]))
        known = self._recordings.get(key)
        if known is None:
            while len(self._recordings) >= _KEPT:
                del self._recordings[next(iter(self._recordings))]
            # The first time kernels are compiled and loaded, which no recording can hold.
            self._recordings[key] = vectors, None
            self._queue(pair, 0, RECORDED, total)
            return
        replay = known[1]
        if replay is None:
            self._synchronises()
            replay = self._device.record(lambda: self._queue(pair, 0, RECORDED, total))
            self._recordings[key] = vectors, replay
        replay()

    def _queue(self, pair: tuple[Array, Array], done: int, count: int, total: Array | None) -> None:
        for k in range(done, done + count):
            x, out = pair[k % 2], pair[1 - k % 2]
            if total is not None:
                add_scaled(self._device, 1.0, x, total)
            self._run(self._step, x, out)
            if not self._measures_only or k >= done + count - 2:
                finish_iteration(self._device, self._state, self._epsilon, self._absolute)

    @property
    def _measures_only(self) -> bool:
        return self._epsilon < 0.0

    @property
    def changes(self) -> Array:
        """Greatest absolute and relative change of the last step; a copy, on the device of one process."""
        found = self._state.differences
        return found.copy() if self._agreed is None else self._agreed(found)

    @property
    def course(self) -> Array:
        """Steps made, and the changes of the last one, where these are."""
        changes = self.changes
        xp, real = array_module(changes), changes.dtype
        made = xp.full(1, self._made, real) if self._measures_only else self._state.status[1:].astype(real)
        return xp.concatenate((made, changes))


# The rows of a matrix in block rows on a device: steps over the rows of one block row alone.

_SHAPE = LayoutOptions(slices=1)
"""Small items: a block row has few rows for a card, and a step takes as long as its longest item."""


class DeviceBlockRows:
    """Steps over the rows of one block row at a time, each after those that it refers to.

    Parameters
    ----------
    device : Device
    tiles : TileMatrix
        With block rows.
    shares : sequence of float
        What a step over each block row costs beside one over all rows.
    """

    def __init__(self, device: Device, tiles: TileMatrix, shares: Sequence[float]) -> None:
        self._device, self._tiles, self.shares = device, tiles, shares

    @property
    def nbytes(self) -> int:
        """Bytes of the tiles."""
        return self._tiles.nbytes

    def steps(self, steps: Steps) -> list[DeviceSteps]:
        """Return steps of the matrix on the device over the rows of each block row alone."""
        assert isinstance(steps, DeviceSteps)
        return [steps.over(partial(self._run, number)) for number in range(len(self.shares))]

    def _run(self, number: int, step: Step, x: Array, out: Array) -> None:
        run_tiles(self._device, self._tiles, step, x, out, part=number)


def build_block_rows(
    types: RowTypes, k: int, block_row: NDArray[np.int64], shares: Sequence[float]
) -> DeviceBlockRows:
    """Lay the block rows of a level out on the current device.

    Parameters
    ----------
    types : RowTypes
        Blocks shared when equal.
    k : int
        Level.
    block_row : ndarray, shape (groups,), int64
        The block row of every group.
    shares : sequence of float
        See `DeviceBlockRows`.

    Raises
    ------
    MemoryError
        The device has no room.
    """
    device = current_device()
    check_memory(device, types, k)
    tiles = made_for(
        device,
        layout_items(types, k),
        lambda place: build_tile_matrix(place, types, k, _SHAPE, block_row=block_row),
    )
    if tiles is None:
        raise RuntimeError("classes of equal blocks are exact, yet were refused as inexact")
    return DeviceBlockRows(device, tiles, shares)
