"""Solutions on the devices of several processes: each has its own elements, numbers are those of all."""

from __future__ import annotations

from collections.abc import Callable

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
    finish_iteration,
    product_step,
    relax_rows,
)
from hybrid.base.arrays import Array, extremes, to_host
from hybrid.base.operands import Halo
from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.gpu.cost import cards_advice
from hybrid.matrix.gpu.device_space import DeviceSpace, DeviceSystem
from hybrid.matrix.gpu.idr import RepeatedSteps
from hybrid.matrix.gpu.product import DistributedGpuProduct
from hybrid.matrix.gpu.repeated_steps import RECORDED, DeviceSteps, Run
from hybrid.matrix.space.base import Criterion, Vector
from hybrid.matrix.space.distributed import DistributedPasses, DistributedReductions
from hybrid.matrix.space.idr import IDR
from hybrid.matrix.space.passes import Passes
from hybrid.matrix.space.repeated import RepeatedSystem
from mtbdd.base.communicator import AgreedMemoryError, Communicator

# Passes over the own parts of vectors on a device, whose sums the host adds to those of other processes.

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
        self._device = device
        self._kernels: tuple[int, ShadowKernels] | None = None

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

    def shadow_sums(self, x: Array, weights: Array | None) -> Numbers:
        """See `Passes.shadow_sums`."""
        found: Numbers = to_host(self._of(x).shadow_sums(x, weights))
        return found

    def clear(self, u: Array, g: Array) -> None:
        """See `Passes.clear`."""
        u[...] = 0.0
        g[...] = 0.0

    def aim(self, first: int, shares: Numbers, omega: float, r: Array, u: Array, g: Array) -> None:
        """See `Passes.aim`."""
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
        """See `Passes.settle`."""
        kernels = self._of(r)
        kernels.settle(last, taken, float(betas[last]), u, g, r, x)
        if last + 1 < len(u):
            kernels.aim(last + 1, shares, omega, r, u, g)

    def step_sums(self, t: Array, r: Array, weights: Array | None) -> Numbers:
        """See `Passes.step_sums`."""
        found: Numbers = to_host(self._of(t).step_sums(t, r, weights))
        return found

    def step(self, omega: float, t: Array, r: Array, x: Array) -> None:
        """See `Passes.step`."""
        self._of(t).step(omega, t, r, x)

    def _of(self, x: Array) -> ShadowKernels:
        """Return the launches over vectors of a size, made once: all vectors of a solution have the same."""
        if self._kernels is None or self._kernels[0] != x.size:
            self._kernels = x.size, ShadowKernels(self._device, x.size)
        return self._kernels[1]


class DeviceImages:
    """Products of a recurrence, ``A = I - M / diagonal``; see :mod:`hybrid.matrix.space.vector_space`.

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


# Several steps for a product where processes share the states, each with a device of its own.


class DistributedRepetition:
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
        Whether `of_ones` will be requested.
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
    """Return where a vector lies: recurrences make views of their vectors again."""
    return int(x.data.ptr) if hasattr(x.data, "ptr") else int(x.ctypes.data)


_MEASURE_ONLY = -1.0
"""An epsilon with which nothing ends a sequence of steps: all processes end together."""


def run_distributed(device: Device, product: DistributedGpuProduct | None, halo: Halo) -> Run:
    """Return what makes a step over the own rows, together with all other processes.

    Parameters
    ----------
    product : DistributedGpuProduct or None
        None where no own row has an entry.
    """

    def run(step: Step, x: Array, out: Array) -> None:
        with halo.exchange(x) as arriving:
            if product is not None:
                product.run_overlapped(step, arriving, out)
                return
            out.fill(0.0)
            if step.mode != Mode.PRODUCT:
                relax_rows(device, step, x, out)

    return run


class DistributedDeviceSpace(DistributedReductions, DeviceSpace):
    """See `DeviceSpace` and `hybrid.matrix.space.distributed.DistributedHostSpace`.

    Parameters
    ----------
    device : Device
    run : callable
        From `run_distributed`.
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
        self.passes = self.together = DistributedPasses(DevicePasses(device), communicator)

    def reserve(self, vectors: int, size: int) -> None:
        """See `VectorSpace.reserve`: refused in all processes, which call it at once, if some has no room."""
        alike = self.communicator
        needs = alike.gather([8.0 * vectors * size, self.device.free_bytes()])
        required, available = int(needs[:, 0].sum()), int(needs[:, 1].min())
        is_short = bool(needs[alike.rank, 0] > needs[alike.rank, 1])
        cards = cards_advice(required, available)
        told = alike.first_text(
            f"process {alike.rank}: {self.refusal(vectors, size, cards)}" if is_short else None
        )
        if told is not None:
            raise AgreedMemoryError(told)

    def system(self, diagonal: Vector, b: Vector | None) -> DistributedSystem:
        """See `VectorSpace.system`."""
        return DistributedSystem(self, self._run, *self._coded(diagonal, b))

    def steps(self, step: Step, criterion: Criterion | None, run: Run | None = None) -> DeviceSteps:
        """Return the steps of a kind; the method ends them, by the changes of all processes."""
        return DeviceSteps(
            self.device, run or self._run, step, _MEASURE_ONLY, False, self._note_look,
            not self.host_waits, self.agreed,
        )  # fmt: skip

    def read(self, *arrays: Array) -> list[float]:
        """See `VectorSpace.read`; most of them lie on the host."""
        self.synchronisations += 1
        return [float(number) for array in arrays for number in np.ravel(to_host(array))]


class DistributedSystem(DeviceSystem):
    """See `DeviceSystem`; recurrences have their numbers on the host, where sums of all processes meet."""

    _space: DistributedDeviceSpace

    def idr(
        self,
        start: Array,
        limit: float,
        anchor: int | None = None,
        weights: Array | None = None,
        is_single: bool = False,
        directions: int = DIRECTIONS,
    ) -> IDR:
        """See `System.idr`; in double precision."""
        images = self._images(len(start), anchor)
        start = self._space.vector(start)
        return IDR(self._space.passes, images, start, limit, weights, directions=directions)

    def repeated(self) -> RepeatedSystem:
        """See `System.repeated`."""
        space, size = self._space, self._diagonal.size

        def of(b: Array | None) -> DistributedSystem:
            return self if b is None else self.sharing(b)

        def steps(b: Array | None, has_ones: bool) -> DistributedRepetition:
            operands = self._diagonal, of(b)._right, size
            return DistributedRepetition(space.device, self._run, *operands, has_ones, not space.host_waits)

        return RepeatedSystem(
            space.passes, steps, space.vector, lambda b, anchor: of(b)._images(size, anchor),
            space.communicator.all,
        )  # fmt: skip

    def sharing(self, b: Array) -> DistributedSystem:
        """See `System.sharing`."""
        return DistributedSystem(self._space, self._run, self._diagonal, CodedVector(len(b), 64, b, None))

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
