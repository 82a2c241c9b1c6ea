"""BiCGStab's recurrence on the device: recorded once, replayed until a look finds that it has ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpu_kernels import BiCGStabKernels, CodedVector, Device, IterationState, Mode, Step, product_step
from hybrid.base.arrays import Array
from hybrid.matrix.gpu.sweeps import Run
from hybrid.matrix.gpu.unfused import Unfused
from hybrid.matrix.space.base import Vector
from hybrid.matrix.space.recurrence import Standing
from hybrid.matrix.space.workspace import Workspace

RECORDED = 4
"""Iterations in a recording: enough to hide what starting a replay takes, few enough for short solutions."""

_GOING, _BROKEN = 0, 2
"""How the kernels tell that a recurrence goes on, or that it has broken down."""


class DeviceBiCGStab:
    """The recurrence of :mod:`hybrid.matrix.space.recurrence` for a matrix on the device.

    Parameters
    ----------
    device : Device
    space : Workspace
        For looks, their stride, and the iterate.
    run : callable
        Queues a step over all rows; see :class:`hybrid.matrix.gpu.workspace.DeviceWorkspace`.
    diagonal, right : CodedVector
        Operands of the system.
    start, limit, orthogonal, anchor
        As for :meth:`hybrid.matrix.space.workspace.System.bicgstab`.

    Notes
    -----
    Synchronises: at looks alone, one a `restart` and one a `stride` of iterations. An iteration is two
    products and five launches, and allocates nothing. Iterations queued beyond the end move nothing, and make
    no products but those of matrices that cannot relax rows on the way. Memory: six vectors; such a matrix
    keeps one more.
    """

    cost, patience = 2, 400

    def __init__(
        self,
        device: Device,
        space: Workspace,
        run: Run,
        diagonal: CodedVector,
        right: CodedVector,
        start: Vector,
        limit: float,
        orthogonal: float,
        anchor: int | None = None,
    ) -> None:
        self._device, self._space, self._run = device, space, run
        nothing = CodedVector(0, 0, None, None)
        # Products that relax nothing would be divided in a sweep of their own: the kernels do it on the way.
        # So they do with an anchor, whose element comes in before the division.
        self._relaxes = not isinstance(run, Unfused) and anchor is None
        divisor = nothing if self._relaxes else diagonal
        x = space.vector(start)
        self._kernels = BiCGStabKernels(device, x, divisor, limit, orthogonal, anchor=anchor)
        self._fresh = Step(Mode.JACOBI, diagonal, right, 1.0, IterationState.create(device))
        self._step = product_step()
        if self._relaxes:
            # Products end with the recurrence, for it is its status that they look at.
            state = replace(IterationState.create(device), status=self._kernels.status)
            self._step = Step(Mode.JACOBI, diagonal, nothing, 1.0, state)
        self._replay: Callable[[], None] | None = None
        self._begun = self._made = 0
        self._load()

    @property
    def x(self) -> Array:
        """The iterate."""
        return self._kernels.x

    @property
    def r(self) -> Array:
        """The residual that the recurrence keeps."""
        return self._kernels.r

    @property
    def products(self) -> int:
        """Products that moved something."""
        return self._begun + self.cost * self._made

    @property
    def spare(self) -> Array:
        """A vector that is free between two calls."""
        return self._kernels.product_r

    def restart(self) -> float:
        """Begin with the residual of x, and return its norm. Synchronises: a look."""
        kernels = self._kernels
        self._run(self._fresh, kernels.x, kernels.r)
        kernels.begin()
        self._begun += 1
        return self._space.read(kernels.numbers)[kernels.NORM]

    def refresh(self) -> float:
        """Begin anew: directions hold for the residual that they began with alone."""
        return self.restart()

    def advance(self, most: int) -> Standing:
        """Make some iterations. Synchronises: a look.

        The first time they are recorded, for which nothing has to be waited: a look has just been taken.
        """
        kernels = self._kernels
        recordings, single = divmod(min(self._space.stride, most), RECORDED)
        if recordings and self._replay is None:
            self._replay = self._device.record(self._queue_recorded)
        for _ in range(recordings):
            assert self._replay is not None
            self._replay()
        for _ in range(single):
            self._queue(self._run)
        *numbers, ended, made = self._space.read(kernels.numbers, kernels.status)
        self._made = int(made)
        return Standing(self._made, numbers[kernels.NORM], ended != _GOING, ended == _BROKEN)

    def _load(self) -> None:
        """Launch everything once, which no recording can be the first to do; nothing has begun, or moves."""
        # A plain product would not know that; the one that a restart makes has loaded it.
        self._queue(self._run if self._relaxes else _leave_out)

    def _queue_recorded(self) -> None:
        for _ in range(RECORDED):
            self._queue(self._run)

    def _queue(self, run: Run) -> None:
        """Queue one iteration."""
        kernels = self._kernels
        run(self._step, kernels.p, kernels.product_p)
        kernels.find_alpha()
        kernels.shorten_residual()
        run(self._step, kernels.r, kernels.product_r)
        kernels.find_omega()
        kernels.move_iterate()
        kernels.turn_direction()


def _leave_out(step: Step, x: Array, out: Array) -> None:
    """Stand for a product that is not made."""
