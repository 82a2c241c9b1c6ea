"""What a step of value iteration does with the best over the choices of a state (cuda/choice.cuh)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels.compressed.steps import NULL, IterationState
from gpu_kernels.runtime._launch import check_vector
from gpu_kernels.runtime.device import Device

Array = Any

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
