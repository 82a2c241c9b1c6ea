"""Solutions on the devices of several processes: each has its own elements, numbers are those of all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu_kernels import CodedVector, Device, IterationState, Mode, Step, finish_iteration, relax_rows
from hybrid.base.arrays import Array, to_host
from hybrid.base.halo import Halo
from hybrid.matrix.gpu.divided_product import DividedGpuProduct
from hybrid.matrix.gpu.divided_repetition import DividedRepetition
from hybrid.matrix.gpu.passes import DeviceImages, DevicePasses
from hybrid.matrix.gpu.sweeps import RECORDED, DeviceSteps, Run
from hybrid.matrix.gpu.workspace import DeviceSystem, DeviceWorkspace
from hybrid.matrix.space.base import Criterion, Vector
from hybrid.matrix.space.host_recurrence import HostBiCGStab
from hybrid.matrix.space.idr import IDR
from hybrid.matrix.space.repeated import RepeatedSystem
from hybrid.matrix.space.together import TogetherPasses
from mtbdd.base.communicator import Communicator

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
