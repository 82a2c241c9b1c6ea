"""Solutions on the devices of several processes: each has its own elements, numbers are those of all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu_kernels import (
    CodedVector,
    Device,
    IterationState,
    Mode,
    Step,
    compress,
    finish_iteration,
    relax_rows,
)
from hybrid.base.arrays import Array, to_host
from hybrid.base.halo import Halo
from hybrid.matrix.gpu.idr import RepeatedSteps
from hybrid.matrix.gpu.passes import DeviceImages, DevicePasses
from hybrid.matrix.gpu.product import DividedGpuProduct
from hybrid.matrix.gpu.sweeps import RECORDED, DeviceSteps, Run
from hybrid.matrix.gpu.workspace import DeviceSystem, DeviceWorkspace
from hybrid.matrix.space.base import Criterion, Vector
from hybrid.matrix.space.host_recurrence import HostBiCGStab
from hybrid.matrix.space.idr import IDR
from hybrid.matrix.space.repeated import RepeatedSystem
from hybrid.matrix.space.together import TogetherPasses
from mtbdd.base.communicator import Communicator

# Several steps for a product where processes share the states, each with a device of its own.


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


_MEASURE_ONLY = -1.0
"""An epsilon with which nothing ends a sequence of steps: all processes end together."""


def run_divided(device: Device, product: DividedGpuProduct | None, halo: Halo) -> Run:
    """Return what makes a step over the own rows, together with all other processes.

    Parameters
    ----------
    product : DividedGpuProduct or None
        None where no own row has an entry.
    """

    def run(step: Step, x: Array, out: Array) -> None:
        with halo.exchange(x) as arriving:
            if product is not None:
                product.run_meanwhile(step, arriving, out)
                return
            out.fill(0.0)
            if step.mode != Mode.PRODUCT:
                relax_rows(device, step, x, out)

    return run


class DividedDeviceWorkspace(DeviceWorkspace):
    """See `DeviceWorkspace` and `hybrid.matrix.space.together.TogetherWorkspace`.

    Parameters
    ----------
    device : Device
    run : callable
        From `run_divided`.
    communicator : Communicator
    host_waits : bool
        Whether the host waits in every product, so that steps cannot be recorded.

    Notes
    -----
    Synchronises: for every number that processes agree on, and at every product whose halo goes by way of the
    hosts.
    """

    stride = RECORDED  # what all have to agree on costs a message

    def __init__(self, device: Device, run: Run, communicator: Communicator, host_waits: bool) -> None:
        super().__init__(device, run)
        self.communicator, self.host_waits = communicator, host_waits
        self.passes = TogetherPasses(DevicePasses(device), communicator)

    def reserve(self, vectors: int, size: int) -> None:
        """See `Workspace.reserve`: refused in all processes, which call it at once, if some has no room."""
        self.communicator.with_room(lambda: DeviceWorkspace.reserve(self, vectors, size))

    def stretch(self, most: int) -> int:
        """See `Workspace.stretch`."""
        return min(self.stride, most)

    def system(self, diagonal: Vector, b: Vector | None) -> DividedSystem:
        """See `Workspace.system`."""
        return DividedSystem(self, self._run, *self._coded(diagonal, b))

    def steps(self, step: Step, criterion: Criterion | None, run: Run | None = None) -> DividedSteps:
        """Return the steps of a kind; the method ends them."""
        return DividedSteps(
            self.device, run or self._run, step, self._note_look, self.communicator, self.host_waits
        )

    def distance(self, x: Array, y: Array) -> Array:
        """See `Workspace.distance`."""
        return self.passes.greatest_changes(x, y)

    def extremes(self, x: Array) -> tuple[np.float64, np.float64]:
        """See `Workspace.extremes`."""
        return self.passes.extremes(x)

    def all(self, mask: Array) -> bool:
        """See `Workspace.all`."""
        return self.communicator.all(to_host(super().all(mask)))

    def any(self, mask: Array) -> bool:
        """See `Workspace.any`."""
        return self.communicator.any(to_host(super().any(mask)))

    def least(self, x: Array) -> np.float64:
        """See `Workspace.least`; infinite where no process has an element."""
        own = float(to_host(super().least(x))) if x.size else np.inf
        return np.float64(self.communicator.least(own))

    def greatest(self, x: Array) -> np.float64:
        """See `Workspace.greatest`; for numbers that are not negative."""
        own = float(to_host(super().greatest(x))) if x.size else 0.0
        return np.float64(self.communicator.greatest(own))

    def agreed(self, changes: Array) -> Vector:
        """See `Workspace.agreed`."""
        return self.passes.agreed(to_host(changes))

    def element(self, x: Array, place: int) -> Vector:
        """See `Workspace.element`."""
        return np.array([self.passes.element(x, place)])

    def read(self, *arrays: Array) -> list[float]:
        """See `Workspace.read`; most of them lie on the host."""
        self.synchronisations += 1
        return [float(number) for array in arrays for number in np.ravel(to_host(array))]


class DividedSteps(DeviceSteps):
    """See `DeviceSteps`; changes are those of all processes.

    Parameters
    ----------
    device, run, step, synchronises
        As for `DeviceSteps`.
    communicator, host_waits
        As for `DividedDeviceWorkspace`.
    """

    def __init__(
        self,
        device: Device,
        run: Run,
        step: Step,
        synchronises: Callable[[], None],
        communicator: Communicator,
        host_waits: bool,
    ) -> None:
        super().__init__(device, run, step, _MEASURE_ONLY, False, synchronises)
        self._communicator, self._host_waits = communicator, host_waits

    def sweep(self, pair: tuple[Array, Array], done: int, count: int, total: Array | None = None) -> None:
        """See `Steps.sweep`. Synchronises: where halos go by way of the hosts, at every product."""
        if self._host_waits:
            self._made = done + count
            self._queue(pair, done, count, total)
        else:
            super().sweep(pair, done, count, total)

    @property
    def changes(self) -> Vector:
        """See `Steps.changes`."""
        found: Vector = self._communicator.gather(to_host(self._state.differences)).max(axis=0)
        return found

    @property
    def course(self) -> Vector:
        """See `Steps.course`."""
        return np.append(float(self._made), self.changes)


class DividedSystem(DeviceSystem):
    """See `DeviceSystem`; recurrences have their numbers on the host, where sums of all processes meet."""

    _space: DividedDeviceWorkspace

    def bicgstab(
        self, start: Vector, limit: float, orthogonal: float, anchor: int | None = None
    ) -> HostBiCGStab:
        """See `System.bicgstab`."""
        images = self._images(len(start), anchor)
        return HostBiCGStab(self._space.passes, images, self._space.vector(start), limit, orthogonal)

    def idr(
        self,
        start: Array,
        limit: float,
        anchor: int | None = None,
        weights: Array | None = None,
        is_single: bool = False,
    ) -> IDR:
        """See `System.idr`; in double precision."""
        images = self._images(len(start), anchor)
        return IDR(self._space.passes.shadows(), images, self._space.vector(start), limit, weights)

    def repeated(self) -> RepeatedSystem:
        """See `System.repeated`."""
        space, size = self._space, self._diagonal.size

        def of(b: Array | None) -> DividedSystem:
            return self if b is None else self.sharing(b)

        def steps(b: Array | None, has_ones: bool) -> DividedRepetition:
            operands = self._diagonal, of(b)._right, size
            return DividedRepetition(space.device, self._run, *operands, has_ones, not space.host_waits)

        return RepeatedSystem(
            space.passes, steps, space.vector, lambda b, anchor: of(b)._images(size, anchor),
            space.communicator.all,
        )  # fmt: skip

    def sharing(self, b: Array) -> DividedSystem:
        """See `System.sharing`."""
        return DividedSystem(self._space, self._run, self._diagonal, CodedVector(len(b), 64, b, None))

    def residual(self, x: Array, scratch: Array) -> Vector:
        """See `System.residual`."""
        device = self._space.device
        state = IterationState.create(device)
        self._run(Step(Mode.RESIDUAL, self._diagonal, self._right, 1.0, state), x, scratch)
        finish_iteration(device, state, _MEASURE_ONLY, False)
        return self._space.agreed(state.differences)[:1]

    def _images(self, size: int, anchor: int | None) -> DeviceImages:
        space = self._space
        return DeviceImages(space.device, space.passes, self._run, self._diagonal, self._right, size, anchor)
