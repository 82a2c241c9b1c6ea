"""IDR(s) on the device: images by its matrix, passes over vectors by kernels, numbers read one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import CodedVector, Device, IterationState, Mode, ShadowKernels, Step, product_step
from hybrid.core.arrays import Array
from hybrid.core.shadow_signs import DIRECTIONS
from hybrid.gpu.sweeps import Run
from hybrid.solvers.workspace import Workspace

Numbers = NDArray[np.float64]


class DeviceImages:
    """What IDR(s) multiplies with; see :class:`hybrid.solvers.idr.Images`.

    Parameters
    ----------
    device : Device
    run : callable
        Queues a step over all rows; see :class:`hybrid.gpu.workspace.DeviceWorkspace`.
    kernels : ShadowKernels
        Of the system's diagonal.
    diagonal, right : CodedVector
        Operands of the system.

    Attributes
    ----------
    made : int
        Products so far.
    """

    def __init__(
        self, device: Device, run: Run, kernels: ShadowKernels, diagonal: CodedVector, right: CodedVector
    ) -> None:
        self._run, self._kernels, self.made = run, kernels, 0
        self._fresh = Step(Mode.JACOBI, diagonal, right, 1.0, IterationState.create(device))
        self._product = product_step()

    def residual(self, x: Array, out: Array) -> None:
        """Queue ``b / diagonal - A x``."""
        self._run(self._fresh, x, out)
        self._kernels.residual(x, out)
        self.made += 1

    def apply(self, x: Array, out: Array) -> None:
        """Queue ``A x``."""
        self._run(self._product, x, out)
        self._kernels.image(x, out)
        self.made += 1


class DeviceShadows:
    """See :class:`hybrid.solvers.shadows.ShadowPasses`. Synchronises: where numbers are told, once each."""

    def __init__(self, space: Workspace, kernels: ShadowKernels) -> None:
        self._space, self._kernels = space, kernels

    def shadow_sums(self, x: Array, weights: Array | None) -> Numbers:
        """Return the scalar products with the shadow vectors, and of x with itself."""
        self._kernels.shadow_sums(x, weights)
        return self._read(DIRECTIONS + 1)

    def aim(self, first: int, shares: Numbers, omega: float, r: Array, u: Array, g: Array) -> None:
        """Queue the next direction."""
        self._kernels.aim(first, shares, omega, r, u, g)

    def settle(self, last: int, shares: Numbers, beta: float, u: Array, g: Array, r: Array, x: Array) -> None:
        """Queue the loss of shares and the move."""
        self._kernels.settle(last, shares, beta, u, g, r, x)

    def step_sums(self, t: Array, r: Array, weights: Array | None) -> Numbers:
        """Return ``t . r``, ``t . t`` and ``r . r``."""
        self._kernels.step_sums(t, r, weights)
        return self._read(3)

    def step(self, omega: float, t: Array, r: Array, x: Array) -> None:
        """Queue the move along the residual."""
        self._kernels.step(omega, t, r, x)

    def _read(self, count: int) -> Numbers:
        numbers: Any = self._space.read(self._kernels.numbers)
        return np.array(numbers[:count])
