"""The GPU backend's product: a matrix in tiles or as pairs on the device, joined to the compiled kernels."""

from __future__ import annotations

from typing import Any

from gpu_kernels import (
    Device,
    IterationState,
    Mode,
    PairMatrix,
    Step,
    TileMatrix,
    coded_step,
    finish_iteration,
    product_step,
    run_pairs,
    run_tiles,
)
from hybrid.core.arrays import Array, to_host
from hybrid.gpu.workspace import DeviceWorkspace

__all__ = ["GpuProduct"]


class GpuProduct:
    """Multiplies vectors on the device by a matrix laid out there.

    Parameters
    ----------
    device : Device
    matrix : TileMatrix or PairMatrix
        Pairs where rows are long.
    """

    def __init__(self, device: Device, matrix: TileMatrix | PairMatrix) -> None:
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

    def relax(self, x: Any, b: Any, diagonal: Any, omega: float, out: Any) -> tuple[float, float]:
        """Write ``(1 - omega) x + omega (b + M x) / diagonal`` to ``out``.

        Returns
        -------
        tuple of float, float
            Greatest absolute change and greatest change relative to the new value.

        Notes
        -----
        Synchronises: yes, for the two numbers. Iterations that leave them on the device have a workspace.
        """
        xp = self.device.xp
        state = IterationState.create(self.device)
        step = coded_step(self.device, Mode.JACOBI, diagonal, b, omega, state)
        target = out if isinstance(out, xp.ndarray) else xp.empty(self.matrix.n_rows)
        self.run(step, xp.asarray(x), target)
        finish_iteration(self.device, state, -1.0, False)
        if target is not out:
            out[:] = to_host(target)
        absolute, relative = to_host(state.differences).tolist()
        return absolute, relative

    def workspace(self) -> DeviceWorkspace:
        """Return memory and operations for a solution on the device."""
        return DeviceWorkspace(self.device, self.run)
