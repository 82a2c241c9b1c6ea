"""Iterations that stay on the device: vectors, differences and the stopping test.

The host queues some iterations at a time and then looks at two numbers: how the iteration ended, if it did,
and after how many steps. Steps queued beyond the end do nothing, so the result is that of stopping at once.
From the second look on, the iterations between two looks are a recorded graph of launches, and looks become
rarer until about a twentieth of a second lies between them. Source: 001 section II; 003 section 4.4.2.2.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import Device, IterationState, Mode, Step, coded_step, finish_iteration
from hybrid.gpu.arrays import Array, to_host
from hybrid.gpu.product import GpuProduct
from hybrid.solvers.base import Clock, Criterion, Progress, Solution, Status

__all__ = ["CHECK_EVERY", "solve_jacobi", "solve_power"]

Vector = NDArray[np.float64]

CHECK_EVERY = 10
"""Iterations between two looks of the host, at least; an even number."""

_LOOK_SECONDS = 0.05
_STATUS = (Status.MAX_ITERATIONS, Status.CONVERGED, Status.DIVERGED)


def solve_jacobi(
    product: GpuProduct,
    criterion: Criterion,
    omega: float,
    diagonal: Vector,
    b: Vector | None,
    start: Vector,
    progress: Progress | None,
) -> Solution:
    """Iterate ``x <- (1 - omega) x + omega (M x + b) / diagonal`` on the device.

    Parameters and result are those of :meth:`hybrid.solvers.Jacobi.solve`; vectors come from the host and the
    solution goes back there.
    """
    return _iterate(product, criterion, Mode.JACOBI, omega, diagonal, b, start, progress)


def solve_power(
    product: GpuProduct,
    criterion: Criterion,
    scale: float,
    diagonal: Vector,
    b: Vector | None,
    start: Vector,
    progress: Progress | None,
) -> Solution:
    """Iterate ``x <- x + (M x + b - diagonal x) / scale``, as :class:`hybrid.solvers.Power` says."""
    return _iterate(product, criterion, Mode.POWER, 1.0 / scale, diagonal, b, start, progress)


def _iterate(
    product: GpuProduct,
    criterion: Criterion,
    mode: Mode,
    weight: float,
    diagonal: Vector,
    b: Vector | None,
    start: Vector,
    progress: Progress | None,
) -> Solution:
    device = product.device
    xp = device.xp
    state = IterationState.create(device)
    step = coded_step(device, mode, diagonal, b, weight, state)
    buffers = (xp.array(start, dtype=float), xp.empty(len(start)))
    sweeps = _Sweeps(product, step, criterion, buffers)
    clock = Clock(progress)
    ended, iterations, differences = 0, 0, np.full(2, np.inf)
    while not ended and iterations < criterion.max_iterations:
        sweeps.queue(iterations, criterion.max_iterations - iterations)
        # The only place where the host waits for the device.
        ended, iterations = to_host(state.status).tolist()
        differences = to_host(state.differences)
        clock.tick(iterations, criterion.difference(*differences.tolist()))
    seconds = clock.seconds
    x, scratch = buffers[iterations % 2], buffers[1 - iterations % 2]
    residual = product.residual(x, step, scratch)
    difference = criterion.difference(*differences.tolist())
    return Solution(to_host(x), _STATUS[ended], iterations, seconds, difference, residual)


class _Sweeps:
    """Queues iterations, from a recorded graph where that is possible."""

    def __init__(
        self, product: GpuProduct, step: Step, criterion: Criterion, buffers: tuple[Array, Array]
    ) -> None:
        self._product, self._step, self._criterion, self._buffers = product, step, criterion, buffers
        self._device: Device = product.device
        self._replay: Callable[[], None] | None = None
        self._repeats = 1
        self._last: float | None = None

    def queue(self, done: int, most: int) -> None:
        """Queue iterations after the first ``done``, at most ``most``."""
        now = time.perf_counter()
        if self._last is not None and now - self._last < _LOOK_SECONDS / 2 and self._replay is not None:
            self._repeats *= 2
        self._last = now
        if done == 0 or most < CHECK_EVERY * self._repeats or done % 2:
            # The first time kernels are compiled and loaded, which no recording can hold.
            self._run(done, min(most, CHECK_EVERY))
            return
        if self._replay is None:
            self._replay = self._device.record(lambda: self._run(0, CHECK_EVERY))
        for _ in range(self._repeats):
            self._replay()

    def _run(self, done: int, count: int) -> None:
        epsilon, absolute = self._criterion.epsilon, self._criterion.absolute
        state: Any = self._step.state
        for i in range(done, done + count):
            self._product.run(self._step, self._buffers[i % 2], self._buffers[1 - i % 2])
            finish_iteration(self._device, state, epsilon, absolute)
