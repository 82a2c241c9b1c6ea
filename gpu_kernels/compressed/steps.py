"""Steps that follow the products in a sweep over the rows: none, relaxation, or measuring the residual."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from gpu_kernels.runtime._launch import blocks_for, check_vector, element_type, index_bits, index_type, macros
from gpu_kernels.runtime.coded import CodedVector, compress
from gpu_kernels.runtime.device import Device

CHANGE_SLOTS = 256
"""Partial maxima of the change: the blocks' first pass writes them, one block's second pass reads them."""

NULL = np.uint64(0)
"""A null pointer as a kernel argument."""


class Mode(IntEnum):
    """The new value of a row; the numbers are those of cuda/relax.cuh."""

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
    """The state of an iteration on the device; see cuda/iteration.cu.

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
    """A step: its mode and its vectors.

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


# Groups of states that share a value: the best of any member, given to all (cuda/groups.cu).

Array = Any

_THREADS = 256
_SPAN = 512 // 32
"""Members that a thread of a warp reads."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of rows that take one value, the best of their members, with a scratch word a group.

    Attributes
    ----------
    members : ndarray, shape (m,), int32 or int64
        Rows, group by group.
    owners : ndarray, shape (m,), int32
        The group of each member.
    keys : ndarray, shape (groups,), uint64
        Overwritten.
    """

    members: Array
    owners: Array
    keys: Array

    @classmethod
    def create(cls, device: Device, members: Any, sizes: Any, wide: bool = False) -> Groups:
        """Put groups on a device.

        Parameters
        ----------
        device : Device
        members : array, shape (m,)
            Rows, group by group, on the host.
        sizes : array, shape (groups,)
            Members of every group, one at least.
        wide : bool
            Use 64-bit indices although 32 bits would do.

        Raises
        ------
        ValueError
            If members and sizes do not belong together.
        """
        if len(sizes) and (min(sizes) < 1 or sum(sizes.tolist()) != len(members)):
            raise ValueError(f"sizes: expected positive numbers that add up to the {len(members)} members")
        xp, largest = device.xp, max(int(members.max(initial=0)), len(members) + _THREADS * _SPAN)
        index = index_type(index_bits(largest, wide))
        owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        keys = xp.zeros(len(sizes), np.uint64)
        return cls(xp.asarray(members, dtype=index), xp.asarray(owners), keys)


def join_groups(device: Device, groups: Groups, maximise: bool, values: Array) -> None:
    """Queue the best value of every group into all its members.

    Parameters
    ----------
    device : Device
    groups : Groups
    maximise : bool
        Whether the greatest value is best; one that is not a number is better than all others.
    values : ndarray, shape (n,), float64
        On the device, contiguous; changed in place.

    Notes
    -----
    Synchronises: no. Allocates nothing, so that it can be recorded. Time: O(members).
    """
    count = len(groups.members)
    if count == 0:
        return
    bits = 8 * int(groups.members.dtype.itemsize)
    options = macros(INDEX_BITS=bits, MAXIMISE=int(maximise))
    size = index_type(bits)(count)
    operands = size, groups.members, groups.owners
    groups.keys.fill(0)
    maxima = device.kernel("groups.cu", "group_maxima", options)
    maxima((blocks_for(count, _THREADS * _SPAN),), (_THREADS,), (*operands, values, groups.keys))
    spread = device.kernel("groups.cu", "spread_maxima", options)
    spread((blocks_for(count, _THREADS),), (_THREADS,), (*operands, groups.keys, values))


# A step of value iteration, given the best value over the choices of a state (cuda/choice.cuh).

NO_CHOICE = 65_535
"""The layer of a state without a choice."""


def step_macros(maximise: bool, parts: Collection[str]) -> dict[str, int]:
    """Return the macros of a step with some of SHAPE, POLICY, CHOOSE and MEASURE.

    Those of relax.cuh are for no step of its own.
    """
    flags = {name: int(name in parts) for name in ("SHAPE", "POLICY", "CHOOSE", "MEASURE")}
    return {"MAXIMISE": int(maximise), **flags, "MODE": 0, "DIAGONAL_BITS": 0, "RIGHT_BITS": 0}


@dataclass(frozen=True, eq=False)
class ChoiceStep:
    """``out = scale * opt over i of (A_i x + b_i) + shape``, i over the layers that a state has a choice in.

    Attributes
    ----------
    maximise : bool
    scale : float
    plain : bool
        Leave out b, but for the infinities that stand for no choice.
    shape : ndarray, shape (n,), float64, or None
        Added at the end, not scaled.
    policy : ndarray, shape (n,), uint16, or None
        The layer that counts for each state; `NO_CHOICE` for none.
    chosen : ndarray, shape (n,), uint16, or None
        Overwritten with the layer of the best choice, of equal ones one that is fixed.
    state : IterationState or None
        Where the differences between out and x go; None measures none.
    """

    maximise: bool
    scale: float = 1.0
    plain: bool = False
    shape: Array | None = None
    policy: Array | None = None
    chosen: Array | None = None
    state: IterationState | None = None

    def macros(self) -> dict[str, int]:
        """Return the macros that the step needs."""
        given = {
            "SHAPE": self.shape, "POLICY": self.policy, "CHOOSE": self.chosen, "MEASURE": self.state,
        }  # fmt: skip
        return step_macros(self.maximise, {name for name, value in given.items() if value is not None})

    def arguments(self) -> tuple[Any, ...]:
        """Return the kernel arguments, in the order of CHOICE_PARAMETERS."""
        vectors = (NULL if v is None else v for v in (self.shape, self.policy, self.chosen))
        state = (NULL, NULL) if self.state is None else (self.state.changes, self.state.status)
        return (np.float64(self.scale), *vectors, *state)

    def check(self, device: Device, size: int, x: Array, out: Array) -> None:
        """Refuse operands that do not belong together.

        Raises
        ------
        TypeError, ValueError
            See :func:`gpu_kernels.runtime._launch.check_vector`; out must not overlap x.
        """
        check_vector(device, x, size, "x")
        check_vector(device, out, size, "out")
        if size and device.xp.may_share_memory(x, out):
            raise ValueError(
                "out: shares memory with x, which is read while out is written; pass another array"
            )
        if self.shape is not None:
            check_vector(device, self.shape, size, "shape")
        for name, layers in (("policy", self.policy), ("chosen", self.chosen)):
            if layers is not None:
                check_vector(device, layers, size, name, np.uint16)
