"""Krylov methods whose products are several damped steps of Jacobi's method: a polynomial preconditioner.

What the steps are, and which system they solve, is told in :mod:`hybrid.matrix.space.repeated`.
With an anchor s (:mod:`hybrid.solvers.average_krylov`) every step takes x[s] from the right-hand side.
Source of the idea: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 2003, 12.3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpu_kernels import CodedVector, Device, IterationState, Mode, Step
from hybrid.base.arrays import Array
from hybrid.matrix.gpu.idr import DeviceIDR
from hybrid.matrix.gpu.krylov import DeviceBiCGStab
from hybrid.matrix.gpu.sweeps import Run
from hybrid.matrix.space.preconditioner import Preconditioned
from hybrid.matrix.space.repeated import IDR_PATIENCE, OMEGA, STEPS, repeat
from hybrid.matrix.space.workspace import Workspace


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


class _Measured(Preconditioned):
    """What both recurrences have in common: the residual of the system itself, and how products count."""

    cost: int
    x: Any
    spare: Any
    _begun: int
    _made: int

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
        return STEPS * self._begun + self.cost * self._made + self._looks

    def plain_residual(self) -> Array:
        """See `Preconditioned.plain_residual`. Synchronises: no."""
        self._run_once(self._plain, self.x, self.spare)
        self._looks += 1
        self.spare[...] -= self.x
        return self.spare


class PolynomialIDR(_Measured, DeviceIDR):
    """The recurrence of IDR(s) for I - T^k.

    Parameters
    ----------
    device, space, run, diagonal, right, start, limit, anchor, weights
        As for `DeviceIDR`.

    Notes
    -----
    A cycle is 5 `STEPS` products.  Memory: a vector more than `DeviceIDR`.
    """

    cost, patience = STEPS * DeviceIDR.cost, IDR_PATIENCE

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
    ) -> None:
        repeated = self._prepare(device, run, diagonal, right, len(start), anchor)
        super().__init__(device, space, repeated, diagonal, right, start, limit, None, weights)


class PolynomialBiCGStab(_Measured, DeviceBiCGStab):
    """The recurrence of BiCGStab for I - T^k.

    Parameters
    ----------
    device, space, run, diagonal, right, start, limit, orthogonal, anchor
        As for `DeviceBiCGStab`.

    Notes
    -----
    An iteration is 2 `STEPS` products.  Memory: a vector more than `DeviceBiCGStab`.
    """

    cost, patience = STEPS * DeviceBiCGStab.cost, STEPS * DeviceBiCGStab.patience

    def __init__(
        self,
        device: Device,
        space: Workspace,
        run: Run,
        diagonal: CodedVector,
        right: CodedVector,
        start: Array,
        limit: float,
        orthogonal: float,
        anchor: int | None = None,
    ) -> None:
        repeated = self._prepare(device, run, diagonal, right, len(start), anchor)
        super().__init__(device, space, repeated, diagonal, right, start, limit, orthogonal, None)


class PolynomialSystem:
    """``diagonal * x = M x + b`` by polynomials; a `hybrid.matrix.space.preconditioner.Preconditioner`.

    Parameters
    ----------
    device, space, run, diagonal, right
        As for `DeviceIDR`.
    """

    probes, more_vectors, is_worth_it = 0, 1, True

    def __init__(
        self, device: Device, space: Workspace, run: Run, diagonal: CodedVector, right: CodedVector
    ) -> None:
        self._place, self._diagonal, self._right = (device, space, run), diagonal, right

    def idr(
        self,
        b: Array | None,
        start: Array,
        limit: float,
        anchor: int | None = None,
        weights: Array | None = None,
    ) -> PolynomialIDR:
        """See `Preconditioner.idr`."""
        return PolynomialIDR(*self._place, *self._operands(b), start, limit, anchor, weights)

    def bicgstab(
        self, b: Array | None, start: Array, limit: float, orthogonal: float, anchor: int | None = None
    ) -> PolynomialBiCGStab:
        """See `Preconditioner.bicgstab`."""
        return PolynomialBiCGStab(*self._place, *self._operands(b), start, limit, orthogonal, anchor)

    def _operands(self, b: Array | None) -> tuple[CodedVector, CodedVector]:
        return self._diagonal, self._right if b is None else CodedVector(len(b), 64, b, None)
