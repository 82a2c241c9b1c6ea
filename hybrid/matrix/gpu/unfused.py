"""Steps of matrices whose products relax nothing on the way."""

from __future__ import annotations

from collections.abc import Callable

from gpu_kernels import Device, Mode, Step, relax_rows
from hybrid.base.arrays import Array


class Unfused:
    """Runs steps as a product and a sweep over its rows; who wants products alone is spared the sweep.

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
