"""The GPU backend's product: a matrix in tiles, as pairs or in tasks on the device, joined to its kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels import (
    BlockTasks,
    Device,
    PairMatrix,
    Step,
    TileMatrix,
    product_step,
    run_block_tasks,
    run_pairs,
    run_tiles,
    run_tiles_many,
)
from hybrid.base.arrays import Array, to_host
from hybrid.matrix.gpu.operands import relax_once
from hybrid.matrix.gpu.workspace import DeviceWorkspace


class GpuProduct:
    """Multiplies vectors on the device by a matrix laid out there.

    Parameters
    ----------
    device : Device
    matrix : TileMatrix, PairMatrix or BlockTasks
        Pairs where rows are long; tasks where they are asked for.
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

    def workspace(self) -> DeviceWorkspace:
        """Return memory and operations for a solution on the device."""
        return DeviceWorkspace(self.device, self.run, isinstance(self.matrix, TileMatrix))
