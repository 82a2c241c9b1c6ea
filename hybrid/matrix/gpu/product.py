"""The GPU backend's product: a matrix in tiles, as pairs or in tasks on the device, joined to its kernels."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np

from gpu_kernels import (
    BlockTasks,
    Device,
    Mode,
    PairMatrix,
    Step,
    TileMatrix,
    product_step,
    relax_rows,
    run_block_tasks,
    run_pairs,
    run_tiles,
    run_tiles_many,
)
from hybrid.base.arrays import Array, to_host
from hybrid.base.operands import ArrivingVector
from hybrid.matrix.gpu.device_space import DeviceSpace, relax_once
from hybrid.matrix.gpu.halo import ArrivingOnDevice
from hybrid.matrix.injection.injected import TaskList
from hybrid.matrix.space.base import Product


class GpuProduct(Product):
    """Multiplies vectors on the device by a matrix laid out there.

    Parameters
    ----------
    device : Device
    matrix : TileMatrix, PairMatrix or BlockTasks
        Pairs where rows are long; tasks where they are requested.
    """

    def __init__(self, device: Device, matrix: TileMatrix | PairMatrix | BlockTasks) -> None:
        self.device = device
        self.matrix = matrix
        self._product = product_step()

    @property
    def nbytes(self) -> int:
        """Bytes of the representation on the device (MemR)."""
        return self.matrix.nbytes

    def run(self, step: Step, x: Array, out: Array) -> None:
        """Queue a step over all rows; operands on the device. Synchronises: no."""
        if isinstance(self.matrix, PairMatrix):
            run_pairs(self.device, self.matrix, step, x, out)
        elif isinstance(self.matrix, BlockTasks):
            run_block_tasks(self.device, self.matrix, step, x, out)
        else:
            run_tiles(self.device, self.matrix, step, x, out)

    def multiply(self, x: Any, out: Any) -> None:
        """Write M x to ``out``; each of them lies on the device or on the host.

        Notes
        -----
        Synchronises: only where a vector lies on the host.
        """
        xp = self.device.xp
        source = xp.asarray(x)
        target = out if isinstance(out, xp.ndarray) else xp.empty(self.matrix.n_rows)
        self.run(self._product, source, target)
        if target is not out:
            out[:] = to_host(target)

    def multiply_many(self, x: Any, out: Any) -> None:
        """Write M X to ``out``, shapes (n_columns, k) and (n_rows, k); on the device or on the host.

        Notes
        -----
        Synchronises: only where an array lies on the host. Every column has the bits of its own product.
        """
        xp = self.device.xp
        source = xp.ascontiguousarray(xp.asarray(x), dtype=np.float64)
        target = out if isinstance(out, xp.ndarray) else xp.empty((self.matrix.n_rows, source.shape[1]))
        if isinstance(self.matrix, TileMatrix) and source.shape[1] > 1:
            run_tiles_many(self.device, self.matrix, source, target)
        else:
            for i in range(source.shape[1]):
                column = xp.empty(self.matrix.n_rows)
                self.run(self._product, xp.ascontiguousarray(source[:, i]), column)
                target[:, i] = column
        if target is not out:
            out[:] = to_host(target)

    def relax(self, x: Any, b: Any, diagonal: Any, omega: float, out: Any) -> tuple[float, float]:
        """Write ``(1 - omega) x + omega (b + M x) / diagonal`` to ``out``, as :func:`relax_once` does."""
        return relax_once(self.device, self.run, x, b, diagonal, omega, out)

    def vector_space(self) -> DeviceSpace:
        """Return memory and operations for a solution on the device."""
        return DeviceSpace(self.device, self.run, isinstance(self.matrix, TileMatrix))


# The representation of [Tealdi13] on the device: injected submatrices and tasks for the block kernel.


def tasks_on_device(
    device: Device, shape: tuple[int, int], tasks: TaskList, wide: bool = False
) -> BlockTasks:
    """Copy the tasks of a matrix to the device; a MemoryError says what is missing."""
    cut, blocks = tasks.instances, tasks.blocks
    return BlockTasks.on_device(
        device,
        shape,
        wide,
        task_ptr=tasks.task_ptr,
        row=cut["row"],
        column=cut["column"],
        submatrix=cut["submatrix"],
        offset_begin=cut["offset_begin"],
        offset_end=cut["offset_end"],
        entry_ptr=blocks.ptr,
        entry_row=blocks.row,
        entry_column=blocks.column,
        entry_value=blocks.value,
    )


# A process's rows of a matrix on a device: interior rows before those with ghost columns.


class DistributedGpuProduct(GpuProduct):
    """See `GpuProduct`.

    Notes
    -----
    Tiles read the own elements of x and those of others where they are.  Pairs and tasks, which read one
    vector, wait first, for a vector of both; their steps relax rows in a launch of its own.
    """

    def run_overlapped(self, step: Step, x: ArrivingVector, out: Array) -> None:
        """Queue a step over all rows. Synchronises: where elements of others come by way of the hosts."""
        arriving = cast(ArrivingOnDevice, x)
        if isinstance(self.matrix, TileMatrix):
            run_tiles(self.device, self.matrix, step, x.own, out, arriving.others, "early")
            with arriving.behind():
                run_tiles(self.device, self.matrix, step, x.own, out, arriving.others, "late")
            x.finish()
            return
        whole = arriving.received()
        if step.mode == Mode.PRODUCT:
            self.run(step, whole, out)
            return
        self.run(product_step(), whole, self._scratch)
        relax_rows(self.device, step, x.own, out, product=self._scratch)

    @cached_property
    def _scratch(self) -> Array:
        """Products before they are relaxed; kept, as recorded launches write there again."""
        return self.device.xp.empty(self.matrix.n_rows)

    def multiply_overlapped(self, x: ArrivingVector, out: Array) -> None:
        """See `Product.multiply_overlapped`."""
        self.run_overlapped(product_step(), x, out)

    def relax_overlapped(
        self, x: ArrivingVector, b: Array | None, diagonal: Array, omega: float, out: Array
    ) -> tuple[float, float]:
        """See `Product.relax_overlapped`."""

        def run(step: Step, _: Any, target: Array) -> None:
            self.run_overlapped(step, x, target)

        return relax_once(self.device, run, x.own, b, diagonal, omega, out)
