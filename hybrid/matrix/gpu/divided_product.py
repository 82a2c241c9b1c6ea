"""A process's rows of a matrix on a device: rows without columns of others go first."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import Mode, Step, TileMatrix, product_step, relax_rows, run_tiles
from hybrid.base.arrays import Array
from hybrid.base.arriving import ArrivingVector
from hybrid.matrix.gpu.halo import ArrivingOnDevice
from hybrid.matrix.gpu.operands import relax_once
from hybrid.matrix.gpu.product import GpuProduct


class DividedGpuProduct(GpuProduct):
    """See `GpuProduct` and `hybrid.matrix.backends.base.ProductMeanwhile`.

    Notes
    -----
    Tiles read the own elements of x and those of others where they are.  Pairs and tasks, which read one
    vector, wait first, for a vector of both; their steps relax rows in a launch of its own.
    """

    stretches: NDArray[np.int64] = np.zeros((0, 2), np.int64)

    def run_meanwhile(self, step: Step, x: ArrivingVector, out: Array) -> None:
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

    def multiply_meanwhile(self, x: ArrivingVector, out: Array) -> None:
        """See `ProductMeanwhile`."""
        self.run_meanwhile(product_step(), x, out)

    def relax_meanwhile(
        self, x: ArrivingVector, b: Array | None, diagonal: Array, omega: float, out: Array
    ) -> tuple[float, float]:
        """See `ProductMeanwhile`."""

        def run(step: Step, _: Any, target: Array) -> None:
            self.run_meanwhile(step, x, target)

        return relax_once(self.device, run, x.own, b, diagonal, omega, out)
