"""IDR(s)'s recurrence on the device: a cycle recorded once, replayed until a look finds that it has ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gpu_kernels import CodedVector, Device, IDRKernels, IterationState, Mode, Step, product_step
from hybrid.base.arrays import Array
from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.gpu.sweeps import Run
from hybrid.matrix.gpu.unfused import Unfused
from hybrid.matrix.space.idr import FALL, KAPPA, LOST, SINGLE_FALL
from hybrid.matrix.space.recurrence import Standing
from hybrid.matrix.space.workspace import Workspace

_GOING, _BROKEN = 0, 2
"""How the kernels tell that a recurrence goes on, or that it has broken down."""


class DeviceIDR:
    """The recurrence of :mod:`hybrid.matrix.space.idr` for a matrix on the device.

    Parameters
    ----------
    device : Device
    space : Workspace
        For looks, their stride, and the iterate.
    run : callable
        Queues a step over all rows; see :class:`hybrid.matrix.gpu.workspace.DeviceWorkspace`.
    diagonal, right : CodedVector
        Operands of the system.
    start, limit, anchor, weights
        As for :meth:`hybrid.matrix.space.workspace.System.idr`.
    is_single : bool
        Whether `run` multiplies vectors of single precision, and the recurrence shall have them.

    Notes
    -----
    Synchronises: at looks alone: one a `restart` or `refresh`, and one or two in `advance`. A cycle is five
    products and eleven launches, and allocates nothing; cycles queued beyond the end move nothing, and make
    no products but those of matrices that cannot relax rows on the way. Residuals are made anew between
    looks, and not within. Memory: 3 + 2 s vectors; such a matrix keeps one more.
    """

    cost, patience = DIRECTIONS + 1, 2000

    def __init__(
        self,
        device: Device,
        space: Workspace,
        run: Run,
        diagonal: CodedVector,
        right: CodedVector,
        start: Array,
        limit: float,
        anchor: int | None = None,
        weights: Array | None = None,
        is_single: bool = False,
    ) -> None:
        self._device, self._space, self._run = device, space, run
        nothing = CodedVector(0, 0, None, None)
        # Products that relax nothing would be divided in a sweep of their own: the kernels do it on the way.
        # So they do with an anchor, whose element comes in before the division.
        relaxes = not (isinstance(run, Unfused) or is_single) and anchor is None
        self._kernels = IDRKernels(
            device, space.vector(start), nothing if relaxes else diagonal, limit, KAPPA, LOST, weights,
            anchor=anchor, real=np.float32 if is_single else np.float64,
        )  # fmt: skip
        self._directions = list(zip(self._kernels.u, self._kernels.g, strict=True))
        self._fresh = Step(Mode.JACOBI, diagonal, right, 1.0, IterationState.create(device))
        self._step = product_step()
        if relaxes:
            # Products end with the recurrence, for it is its status that they look at.
            state = replace(IterationState.create(device), status=self._kernels.status)
            self._step = Step(Mode.JACOBI, diagonal, nothing, 1.0, state)
        self._replay: Callable[[], None] | None = None
        self._begun = self._made = 0
        self._fall = SINGLE_FALL if is_single else FALL
        # No recording can be the first to launch anything; nothing has begun, or moves.
        self._queue()

    @property
    def x(self) -> Array:
        """The iterate."""
        return self._kernels.x

    @property
    def r(self) -> Array:
        """The residual that the recurrence keeps."""
        return self._kernels.r

    @property
    def spare(self) -> Array:
        """A vector that is free between two calls."""
        kernels = self._kernels
        return kernels.t if kernels.fresh is kernels.r else kernels.fresh

    @property
    def products(self) -> int:
        """Products that moved something."""
        return self._begun + self.cost * self._made

    def restart(self) -> float:
        """Begin with the residual of x, and return its norm, weighed. Synchronises: a look."""
        return self._begin(is_new=True)

    def refresh(self) -> float:
        """Replace the residual by a fresh one, keep the directions, and return its norm; a look."""
        return self._begin(is_new=False)

    def advance(self, most: int) -> Standing:
        """Make some cycles. Synchronises: a look, and another one where a fresh residual is due.

        The first time they are recorded, for which nothing has to be waited: a look has just been taken.
        """
        kernels = self._kernels
        if self._replay is None:
            self._replay = self._device.record(self._queue)
        for _ in range(min(self._space.stride, most)):
            self._replay()
        *numbers, ended, made = self._space.read(kernels.numbers, kernels.status)
        self._made = int(made)
        norm = numbers[kernels.NORM]
        if ended == _GOING and norm < self._fall * numbers[kernels.GREATEST]:
            norm = self.refresh()
            ended = self._ended
        return Standing(self._made, norm, ended != _GOING, ended == _BROKEN)

    def _begin(self, is_new: bool) -> float:
        kernels = self._kernels
        self._run(self._fresh, kernels.x, kernels.fresh)
        kernels.begin(is_new)
        self._begun += 1
        *numbers, self._ended, _ = self._space.read(kernels.numbers, kernels.status)
        return numbers[kernels.NORM]

    def _queue(self) -> None:
        """Queue one cycle."""
        kernels = self._kernels
        kernels.aim()
        for k, (direction, image) in enumerate(self._directions):
            self._run(self._step, direction, image)
            kernels.find_image(k)
            kernels.settle(k)
        self._run(self._step, kernels.r, kernels.t)
        kernels.find_omega()
        kernels.move()
