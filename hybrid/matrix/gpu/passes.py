"""Passes over the own parts of vectors on a device, whose sums the host adds to those of other processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import (
    CodedVector,
    Device,
    IterationState,
    Mode,
    ShadowKernels,
    Step,
    add_scaled,
    coded_step,
    compare_rows,
    compress,
    product_step,
    relax_rows,
)
from hybrid.base.arrays import extremes, to_host
from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.gpu.sweeps import Run
from hybrid.matrix.space.passes import Passes

Array = Any
Numbers = NDArray[np.float64]

_PART = 1 << 26
"""Elements worked on together: bounds the temporary memory."""


class DevicePasses:
    """See `hybrid.matrix.space.passes.Passes`; of vectors on a device.

    Parameters
    ----------
    device : Device

    Notes
    -----
    Synchronises: yes, for every number.
    """

    def __init__(self, device: Device) -> None:
        self._device, self._shadows = device, DeviceShadows(device)

    def add_scaled(self, weight: float, x: Array, total: Array) -> None:
        """See `Passes.add_scaled`."""
        add_scaled(self._device, weight, x, total)

    def uniformise(self, x: Array, b: Array | None, diagonal: Array, weight: float, out: Array) -> None:
        """See `Passes.uniformise`."""
        state = IterationState.create(self._device)
        relax_rows(self._device, coded_step(self._device, Mode.POWER, diagonal, b, weight, state), x, out)

    def greatest_changes(self, new: Array, old: Array) -> Numbers:
        """See `Passes.greatest_changes`."""
        state = IterationState.create(self._device)
        compare_rows(self._device, state, new, old)
        found: Numbers = to_host(state.differences)
        return found

    def extremes(self, x: Array) -> tuple[np.float64, np.float64]:
        """See `Passes.extremes`."""
        least, most = extremes(x)
        return np.float64(least), np.float64(most)

    def dot(self, x: Array, y: Array) -> float:
        """See `Passes.dot`; the order of the sum depends on the size alone."""
        return float(self._shadows.step_sums(x, y, None)[0])

    def agreed(self, changes: Numbers) -> Numbers:
        """See `Passes.agreed`."""
        return changes

    def element(self, x: Array, place: int) -> float:
        """See `Passes.element`."""
        return float(to_host(x[place : place + 1])[0])

    def each(self, work: Callable[..., object], *vectors: Array) -> None:
        """See `Passes.each`."""
        for begin in range(0, vectors[0].size, _PART):
            work(*(vector[begin : begin + _PART] for vector in vectors))

    def image(self, x: Array, diagonal: Array, at_anchor: float, out: Array) -> None:
        """See `Passes.image`."""
        ShadowKernels(self._device, x.size, compress(self._device, diagonal)).write_image(at_anchor, x, out)

    def subtract_from(self, x: Array, out: Array) -> None:
        """See `Passes.subtract_from`."""
        self._device.xp.subtract(x, out, out=out)

    def shadows(self) -> DeviceShadows:
        """See `Passes.shadows`."""
        return self._shadows


class DeviceShadows:
    """See `hybrid.matrix.space.passes.ShadowPasses`; of vectors on a device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._kernels: tuple[int, ShadowKernels] | None = None

    def shadow_sums(self, x: Array, weights: Array | None) -> Numbers:
        """See `ShadowPasses.shadow_sums`."""
        found: Numbers = to_host(self._of(x).shadow_sums(x, weights))
        return found

    def clear(self, u: Array, g: Array) -> None:
        """See `ShadowPasses.clear`."""
        u[...] = 0.0
        g[...] = 0.0

    def aim(self, first: int, shares: Numbers, omega: float, r: Array, u: Array, g: Array) -> None:
        """See `ShadowPasses.aim`."""
        self._of(r).aim(first, shares, omega, r, u, g)

    def settle(
        self,
        last: int,
        taken: Numbers,
        betas: Numbers,
        shares: Numbers,
        omega: float,
        u: Array,
        g: Array,
        r: Array,
        x: Array,
    ) -> None:
        """See `ShadowPasses.settle`."""
        kernels = self._of(r)
        kernels.settle(last, taken, float(betas[last]), u, g, r, x)
        if last + 1 < DIRECTIONS:
            kernels.aim(last + 1, shares, omega, r, u, g)

    def step_sums(self, t: Array, r: Array, weights: Array | None) -> Numbers:
        """See `ShadowPasses.step_sums`."""
        found: Numbers = to_host(self._of(t).step_sums(t, r, weights))
        return found

    def step(self, omega: float, t: Array, r: Array, x: Array) -> None:
        """See `ShadowPasses.step`."""
        self._of(t).step(omega, t, r, x)

    def _of(self, x: Array) -> ShadowKernels:
        """Return the launches over vectors of a size, made once: all vectors of a solution have the same."""
        if self._kernels is None or self._kernels[0] != x.size:
            self._kernels = x.size, ShadowKernels(self._device, x.size)
        return self._kernels[1]


class DeviceImages:
    """What a recurrence multiplies with, ``A = I - M / diagonal``; see :mod:`hybrid.matrix.space.recurrence`.

    Parameters
    ----------
    device : Device
    passes : Passes
        Of all processes.
    run : callable
        Queues a step over all rows.
    diagonal, right : CodedVector
        Operands of the system.
    size : int
        Own rows.
    anchor : int or None
        Number of an element of x; negative where another process has it.

    Attributes
    ----------
    made : int
        Products so far.
    """

    def __init__(
        self,
        device: Device,
        passes: Passes,
        run: Run,
        diagonal: CodedVector,
        right: CodedVector,
        size: int,
        anchor: int | None,
    ) -> None:
        self._passes, self._run, self._anchor = passes, run, anchor
        self._fresh = Step(Mode.JACOBI, diagonal, right, 1.0, IterationState.create(device))
        self._kernels = ShadowKernels(device, size, diagonal)
        self.made = 0

    def residual(self, x: Array, out: Array) -> None:
        """Write ``b / diagonal - A x`` to `out`."""
        self._run(self._fresh, x, out)
        self.made += 1
        self._kernels.write_residual(self._at_anchor(x), x, out)

    def apply(self, x: Array, out: Array) -> None:
        """Write ``A x`` to `out`."""
        self._run(product_step(), x, out)
        self.made += 1
        self._kernels.write_image(self._at_anchor(x), x, out)

    def _at_anchor(self, x: Array) -> float:
        return 0.0 if self._anchor is None else self._passes.element(x, self._anchor)
