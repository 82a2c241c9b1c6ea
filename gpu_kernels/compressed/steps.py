"""What a sweep over the rows does with the products: nothing, relax, or measure the residual."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from gpu_kernels.runtime._launch import check_vector, element_type, macros
from gpu_kernels.runtime.coded import CodedVector, compress
from gpu_kernels.runtime.device import Device

CHANGE_SLOTS = 256
"""Partial maxima of the change: the blocks' first pass writes them, one block's second pass reads them."""

NULL = np.uint64(0)
"""A null pointer as a kernel argument."""


class Mode(IntEnum):
    """What a row becomes; the numbers are those of cuda/relax.cuh."""

    PRODUCT = 0
    """``out = M x``."""
    JACOBI = 1
    """``out = (1 - w) x + w (M x + b) / diagonal``."""
    POWER = 2
    """``out = (1 - w diagonal) x + w (M x + b)``."""
    RESIDUAL = 3
    """``|M x + b - diagonal x|`` is measured; ``out`` may be used as scratch."""


@dataclass(frozen=True, eq=False)
class IterationState:
    """Where an iteration stands, on the device; see cuda/iteration.cu.

    Attributes
    ----------
    changes : ndarray, shape (2 * CHANGE_SLOTS,), uint64
        Partial maxima of the absolute and of the relative changes of the current iteration, as bits of
        doubles.
    status : ndarray, shape (2,), int64
        How the iteration ended (0 not yet, 1 converged, 2 diverged) and the iterations done.
    differences : ndarray, shape (2,), float64
        Greatest absolute and relative change of the last iteration done.
    """

    changes: Any
    status: Any
    differences: Any

    @classmethod
    def create(cls, device: Device) -> IterationState:
        """Return the state before the first iteration."""
        xp = device.xp
        return cls(xp.zeros(2 * CHANGE_SLOTS, np.uint64), xp.zeros(2, np.int64), xp.zeros(2))


@dataclass(frozen=True, eq=False)
class Step:
    """A mode with its vectors.

    Attributes
    ----------
    mode : Mode
    diagonal, right : CodedVector
        The diagonal (no bits in mode PRODUCT) and the right-hand side (no bits for zero).
    weight : float
        Omega, or 1 / q in mode POWER.
    state : IterationState or None
        Where changes go; None in mode PRODUCT.
    anchor : int or None
        Number of an element of x that the right-hand side loses in every row: b stands for ``b - x[anchor]``.
    """

    mode: Mode
    diagonal: CodedVector
    right: CodedVector
    weight: float = 1.0
    state: IterationState | None = None
    anchor: int | None = None

    def macros(self) -> dict[str, int]:
        """Return the macros that the step needs."""
        anchored = {} if self.anchor is None else {"ANCHORED": 1}
        bits = {"DIAGONAL_BITS": self.diagonal.bits, "RIGHT_BITS": self.right.bits}
        return {"MODE": int(self.mode), **bits, **anchored}

    def arguments(self) -> tuple[Any, ...]:
        """Return the kernel arguments, in the order of STEP_PARAMETERS."""
        vectors = (self.diagonal.elements, self.diagonal.table, self.right.elements, self.right.table)
        state = (NULL, NULL) if self.state is None else (self.state.changes, self.state.status)
        anchor = () if self.anchor is None else (np.int64(self.anchor),)
        return (*(NULL if v is None else v for v in vectors), np.float64(self.weight), *state, *anchor)

    def check(self, device: Device, n_rows: int, x: Any, out: Any) -> None:
        """Refuse operands that do not belong together; products alone may have vectors of single precision.

        Raises
        ------
        TypeError, ValueError
            See :func:`gpu_kernels.runtime._launch.check_vector`; a step besides products needs equally long x
            and out, a diagonal and a state, and an anchor has to be one of the rows.
        """
        check_vector(device, out, n_rows, "out", element_type(x) if self.mode == Mode.PRODUCT else np.float64)
        if device.xp.may_share_memory(x, out):
            raise ValueError(
                "out: shares memory with x, which is read while out is written; pass another array"
            )
        if self.anchor is not None and not (self.mode != Mode.PRODUCT and 0 <= self.anchor < n_rows):
            raise ValueError(
                f"anchor: expected a row below {n_rows} of a step that relaxes, got {self.anchor}"
            )
        if self.mode == Mode.PRODUCT:
            return
        check_vector(device, x, n_rows, "x")
        for name, vector in (("diagonal", self.diagonal), ("right", self.right)):
            if vector.bits and vector.size != n_rows:
                raise ValueError(f"{name}: expected {n_rows} elements, got {vector.size}")
        if self.diagonal.bits == 0 or self.state is None:
            raise ValueError(f"a step of mode {self.mode.name} needs a diagonal and an iteration state")


def product_step() -> Step:
    """Return the step that leaves products as they are.

    Returns
    -------
    Step
    """
    nothing = CodedVector(0, 0, None, None)
    return Step(Mode.PRODUCT, nothing, nothing)


def finish_iteration(device: Device, state: IterationState, epsilon: float, absolute: bool) -> None:
    """Queue the second pass of the reduction and the stopping test.

    Parameters
    ----------
    device : Device
    state : IterationState
        Changed in place; see cuda/iteration.cu.
    epsilon : float
        The iteration has converged once the difference is below; at 0 only divergence ends it, and at a
        negative number nothing does: changes are measured, steps go on.
    absolute : bool
        Compare the absolute instead of the relative difference.

    Notes
    -----
    Synchronises: no.
    """
    kernel = device.kernel(
        "iteration.cu",
        "finish_iteration",
        macros(INDEX_BITS=32, MODE=int(Mode.JACOBI), DIAGONAL_BITS=64, RIGHT_BITS=0),
    )
    arguments = (state.changes, state.status, state.differences, np.float64(epsilon), np.int32(absolute))
    kernel((1,), (CHANGE_SLOTS,), arguments)


def coded_step(
    device: Device, mode: Mode, diagonal: Any, right: Any, weight: float, state: IterationState
) -> Step:
    """Return a step whose vectors are put on the device and compressed by :func:`gpu_kernels.compress`.

    Parameters
    ----------
    device : Device
    mode : Mode
    diagonal, right : array_like, shape (n,), float64, or None
    weight : float
    state : IterationState
        As in `Step`.

    Returns
    -------
    Step
    """
    return Step(mode, compress(device, diagonal), compress(device, right), weight, state)
