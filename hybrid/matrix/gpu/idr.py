"""IDR(s)'s recurrence on the device: a cycle recorded once, replayed until a synchronisation sees its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gpu_kernels import CodedVector, Device, IDRKernels, IterationState, Mode, Step, product_step
from hybrid.base.arrays import Array
from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.gpu.repeated_steps import Run, UnfusedSteps
from hybrid.matrix.space.idr import IDR, KAPPA, LOST, ORTHOGONAL, fall_of
from hybrid.matrix.space.repeated import OMEGA, REPEATED_CYCLES, STEPS, repeat
from hybrid.matrix.space.vector_space import RecurrenceStatus, VectorSpace

RECORDED_DIRECTIONS = 4
"""In a recording: enough to hide what starting a replay takes, few enough for short solutions."""

_GOING = 0
"""Status of the kernels for a recurrence that goes on."""


class DeviceIDR:
    """The recurrence of :mod:`hybrid.matrix.space.idr` for a matrix on the device.

    Parameters
    ----------
    device : Device
    space : VectorSpace
        For synchronisations, their stride, and the iterate.
    run : callable
        Queues a step over all rows; see :class:`hybrid.matrix.gpu.device_space.DeviceSpace`.
    diagonal, right : CodedVector
        Operands of the system.
    start, limit, anchor, weights
        As for :meth:`hybrid.matrix.space.vector_space.System.idr`.
    is_single : bool
        Whether `run` multiplies vectors of single precision, and the recurrence shall have them.
    directions : {4, 1}
        s.

    Notes
    -----
    Synchronises: one a `restart` or `refresh`, and one or two in `advance`. A cycle is s + 1
    products and 3 + 2 s launches, and allocates nothing; cycles queued beyond the end move nothing, and make
    no products but those of matrices that cannot relax rows on the way. Residuals are recomputed between
    synchronisations, and not within. Memory: 3 + 2 s vectors, and one more with s = 1; such a matrix keeps
    one more.
    """

    steps, cycles, is_preconditioned = 1, IDR.cycles, False

    def __init__(
        self,
        device: Device,
        space: VectorSpace,
        run: Run,
        diagonal: CodedVector,
        right: CodedVector,
        start: Array,
        limit: float,
        anchor: int | None = None,
        weights: Array | None = None,
        is_single: bool = False,
        directions: int = DIRECTIONS,
    ) -> None:
        self._device, self._space, self._run = device, space, run
        self.cost = self.steps * (directions + 1)
        self.patience = self.cycles * self.cost
        nothing = CodedVector(0, 0, None, None)
        # Products that relax nothing would be divided in a sweep of their own: the kernels do it on the way.
        # So they do with an anchor, whose element comes in before the division.
        relaxes = not (isinstance(run, UnfusedSteps) or is_single) and anchor is None
        self._kernels = IDRKernels(
            device, space.vector(start), nothing if relaxes else diagonal, limit, KAPPA, LOST, weights,
            anchor=anchor, real=np.float32 if is_single else np.float64, directions=directions,
            orthogonal=ORTHOGONAL,
        )  # fmt: skip
        self._directions = list(zip(self._kernels.u, self._kernels.g, strict=True))
        self._fresh = Step(Mode.JACOBI, diagonal, right, 1.0, IterationState.create(device))
        self._step = product_step()
        if relaxes:
            # Products end with the recurrence, since they read its status.
            state = replace(IterationState.create(device), status=self._kernels.status)
            self._step = Step(Mode.JACOBI, diagonal, nothing, 1.0, state)
        self._replay: Callable[[], None] | None = None
        self._begun = self._made = 0
        self._fall = fall_of(directions, is_single)
        self._recorded = RECORDED_DIRECTIONS // directions
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

    def plain_residual(self) -> Array:
        """See `Recurrence.plain_residual`."""
        return self.r

    @property
    def products(self) -> int:
        """Products that moved something."""
        return self.steps * self._begun + self.cost * self._made

    def restart(self) -> float:
        """Begin with the residual of x, and return its norm, weighed. Synchronises: once."""
        return self._begin(is_new=True)

    def refresh(self) -> float:
        """Replace the residual by a fresh one, keep the directions, and return its norm; a look."""
        return self._begin(is_new=False)

    def advance(self, most: int) -> RecurrenceStatus:
        """Make some cycles. Synchronises: once, and again where a fresh residual is due.

        The first time they are recorded, without a wait, right after a synchronisation.
        """
        kernels = self._kernels
        recordings, single = divmod(min(self._space.stride, most), self._recorded)
        if recordings and self._replay is None:
            self._replay = self._device.record(self._queue_recorded)
        for _ in range(recordings):
            assert self._replay is not None
            self._replay()
        for _ in range(single):
            self._queue()
        *numbers, ended, made = self._space.read(kernels.numbers, kernels.status)
        self._made = int(made)
        norm = numbers[kernels.NORM]
        is_due = ended == _GOING and norm < self._fall * numbers[kernels.GREATEST]
        if is_due or ended == kernels.ORTHOGONAL:
            norm = self._begin(is_new=not is_due)
            ended = self._ended
        return RecurrenceStatus(self._made, norm, ended != _GOING, ended == kernels.BROKEN)

    def _begin(self, is_new: bool) -> float:
        kernels = self._kernels
        self._run(self._fresh, kernels.x, kernels.fresh)
        kernels.begin(is_new)
        self._begun += 1
        *numbers, self._ended, _ = self._space.read(kernels.numbers, kernels.status)
        return numbers[kernels.NORM]

    def _queue_recorded(self) -> None:
        for _ in range(self._recorded):
            self._queue()

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


# Krylov methods whose products are several damped steps of Jacobi's method: a polynomial preconditioner.
#
# :mod:`hybrid.matrix.space.repeated` describes the steps and the system that they solve.
# With an anchor s (:mod:`hybrid.solvers.average_krylov`) every step takes x[s] from the right-hand side.
# Source of the idea: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 2003, §12.3.


class RepeatedSteps:
    """Runs a step several times, damped, as if it were one.

    Parameters
    ----------
    run : callable
        Queues a step over all rows.
    between : array, shape (n,), float64
        For iterates between the first and the last, which differs from every vector that steps are given.
    anchor : int, optional
        Number of an element that every step takes from the right-hand side.
    """

    def __init__(self, run: Run, between: Array, anchor: int | None = None) -> None:
        self._run, self._between, self._anchor = run, between, anchor

    def __call__(self, step: Step, x: Array, out: Array) -> None:
        """Queue the steps."""
        damped = replace(step, weight=OMEGA, anchor=self._anchor)
        repeat(lambda x, out: self._run(damped, x, out), x, self._between, out)


class PolynomialIDR(DeviceIDR):
    """The recurrence of IDR(s) for I - T^k.

    Parameters
    ----------
    device, space, run, diagonal, right, start, limit, anchor, weights, directions
        As for `DeviceIDR`.

    Notes
    -----
    A cycle is ``(s + 1) STEPS`` products.  Memory: a vector more than `DeviceIDR`.
    """

    steps, cycles, is_preconditioned = STEPS, REPEATED_CYCLES, True

    def __init__(
        self,
        device: Device,
        space: VectorSpace,
        run: Run,
        diagonal: CodedVector,
        right: CodedVector,
        start: Array,
        limit: float,
        anchor: int | None = None,
        weights: Array | None = None,
        directions: int = DIRECTIONS,
    ) -> None:
        repeated = self._prepare(device, run, diagonal, right, len(start), anchor)
        super().__init__(
            device, space, repeated, diagonal, right, start, limit, None, weights, directions=directions
        )

    def _prepare(
        self,
        device: Device,
        run: Run,
        diagonal: CodedVector,
        right: CodedVector,
        size: int,
        anchor: int | None,
    ) -> RepeatedSteps:
        """Return the steps that stand for a product; the vector between them is made."""
        self._run_once, self._looks = run, 0
        self._plain = Step(Mode.JACOBI, diagonal, right, 1.0, IterationState.create(device), anchor)
        return RepeatedSteps(run, device.xp.empty(size), anchor)

    @property
    def products(self) -> int:
        """Products that moved something, or measured."""
        return super().products + self._looks

    def plain_residual(self) -> Array:
        """See `Recurrence.plain_residual`. Synchronises: no."""
        self._run_once(self._plain, self.x, self.spare)
        self._looks += 1
        self.spare[...] -= self.x
        return self.spare


class PolynomialSystem:
    """``diagonal * x = M x + b`` by polynomials; a `hybrid.matrix.space.vector_space.Preconditioner`.

    Parameters
    ----------
    device, space, run, diagonal, right
        As for `DeviceIDR`.
    """

    probes, more_vectors, is_worth_it = 0, 1, True

    def __init__(
        self, device: Device, space: VectorSpace, run: Run, diagonal: CodedVector, right: CodedVector
    ) -> None:
        self._place, self._diagonal, self._right = (device, space, run), diagonal, right

    def idr(
        self,
        b: Array | None,
        start: Array,
        limit: float,
        anchor: int | None = None,
        weights: Array | None = None,
        directions: int = DIRECTIONS,
    ) -> PolynomialIDR:
        """See `Preconditioner.idr`."""
        return PolynomialIDR(*self._place, *self._operands(b), start, limit, anchor, weights, directions)

    def _operands(self, b: Array | None) -> tuple[CodedVector, CodedVector]:
        return self._diagonal, self._right if b is None else CodedVector(len(b), 64, b, None)
