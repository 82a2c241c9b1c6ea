"""Repeated steps on the device: queued in one go, from a recorded graph of launches where they repeat."""

from __future__ import annotations

from collections.abc import Callable

from gpu_kernels import Device, IterationState, Step, add_scaled, finish_iteration
from hybrid.base.arrays import Array

RECORDED = 10
"""Steps in a recording; an even number, so that the vectors are back in their places afterwards."""

_KEPT = 2
"""Recordings kept, with their vectors: a system that is solved again and again must not gather vectors."""

Run = Callable[[Step, Array, Array], None]
"""Queues a step over all rows of a matrix."""

_Vectors = tuple[Array, Array, Array | None]


class DeviceSteps:
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
    ) -> None:
        if step.state is None:
            raise ValueError("steps that are repeated need an iteration state")
        self._device, self._run, self._step, self._state = device, run, step, step.state
        self._epsilon, self._absolute = epsilon, absolute
        self._synchronises, self._made = synchronises, 0
        # Recordings by the vectors' identities; the vectors are kept, so that no other can take their places.
        self._recordings: dict[tuple[int, int, int], tuple[_Vectors, Callable[[], None] | None]] = {}

    def over(self, run: Run) -> DeviceSteps:
        """Return the same steps queued by another `run`, as over some rows; they share their state."""
        return DeviceSteps(self._device, run, self._step, self._epsilon, self._absolute, self._synchronises)

    @property
    def state(self) -> IterationState:
        """Where the steps stand."""
        return self._state

    def sweep(self, pair: tuple[Array, Array], done: int, count: int, total: Array | None = None) -> None:
        """Queue steps. Synchronises: only to record those that come for the second time."""
        self._made = done + count
        while count >= RECORDED and done % 2 == 0:
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
        """Greatest absolute and relative change of the last step, on the device; a copy."""
        return self._state.differences.copy()

    @property
    def course(self) -> Array:
        """Steps made, and the changes of the last one, on the device."""
        xp, real = self._device.xp, self._state.differences.dtype
        made = xp.full(1, self._made, real) if self._measures_only else self._state.status[1:].astype(real)
        return xp.concatenate((made, self.changes))
