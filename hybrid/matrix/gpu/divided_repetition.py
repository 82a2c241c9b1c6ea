"""Several steps for a product where processes share the states, each with a device of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu_kernels import CodedVector, Device, IterationState, Mode, Step, compress
from hybrid.base.arrays import Array
from hybrid.matrix.gpu.polynomial import RepeatedSteps
from hybrid.matrix.gpu.sweeps import Run


class DividedRepetition:
    """See `hybrid.matrix.space.repeated.Repetition`; recorded where they come again.

    Parameters
    ----------
    device : Device
    run : callable
        Queues a step over all rows, together with all other processes.
    diagonal, right : CodedVector
        Operands of the system.
    size : int
        Own rows.
    has_ones : bool
        Whether `of_ones` will be asked for.
    is_recorded : bool
        Not where the host waits in every product.

    Notes
    -----
    A recurrence multiplies from few vectors to few others, again and again: steps from one to another are
    recorded the second time.  Synchronises: then.
    """

    def __init__(
        self,
        device: Device,
        run: Run,
        diagonal: CodedVector,
        right: CodedVector,
        size: int,
        has_ones: bool,
        is_recorded: bool,
    ) -> None:
        nothing, state = CodedVector(0, 0, None, None), IterationState.create(device)
        self._device, self._is_recorded = device, is_recorded
        self._repeated = RepeatedSteps(run, device.xp.empty(size))
        self._ones: Array = device.xp.empty(size) if has_ones else None
        self._fresh, self._still = (Step(Mode.JACOBI, diagonal, b, 1.0, state) for b in (right, nothing))
        # By the step and the addresses of its vectors; None after the first time, which no recording can be.
        self._recordings: dict[tuple[bool, int, int], Callable[[], None] | None] = {}

    def with_right(self, x: Array, out: Array) -> None:
        """See `Repetition.with_right`."""
        self._queue(self._fresh, x, out)

    def without(self, x: Array, out: Array) -> None:
        """See `Repetition.without`."""
        self._queue(self._still, x, out)

    def of_ones(self, out: Array) -> Array:
        """See `Repetition.of_ones`."""
        ones = compress(self._device, np.broadcast_to(np.float64(1.0), (len(out),)))
        out.fill(0.0)
        step = Step(Mode.JACOBI, self._still.diagonal, ones, 1.0, self._still.state)
        self._repeated(step, out, self._ones)
        return self._ones

    def _queue(self, step: Step, x: Array, out: Array) -> None:
        """Queue the steps, from a recording where there is one."""
        key = step is self._fresh, _address(x), _address(out)
        if not self._is_recorded or key not in self._recordings:
            self._repeated(step, x, out)
            self._recordings[key] = None
            return
        replay = self._recordings[key]
        if replay is None:
            replay = self._device.record(lambda: self._repeated(step, x, out))
            self._recordings[key] = replay
        replay()


def _address(x: Array) -> int:
    """Return where a vector lies: recurrences make views of their vectors anew."""
    return int(x.data.ptr) if hasattr(x.data, "ptr") else int(x.ctypes.data)
