"""Value iteration with all choices written out: arrays, launch and NumPy twin (cuda/choice_rows.cu)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels._launch import blocks_for, check_vector, index_bits, index_type, macros
from gpu_kernels.choice_steps import NO_CHOICE, ChoiceStep
from gpu_kernels.device import Device
from gpu_kernels.steps import NULL

__all__ = ["ChoiceRows", "run_choice_rows", "step_choice_rows_numpy"]

Array = Any

_THREADS = 256
_LANES = 32


@dataclass(frozen=True, eq=False)
class ChoiceRows:
    """Choices in compressed sparse rows on a device, one row a choice; pointers from states to choices.

    Attributes
    ----------
    choice_ptr : ndarray, shape (n + 1,), int32 or int64
        First choice of every state, and the end.
    offsets : ndarray, shape (choices + 1,), like choice_ptr
        First transition of every choice, and the end.
    columns : ndarray, shape (transitions,), int32
    values : ndarray, shape (transitions,), float64
    gains : ndarray, shape (choices,), float64
        What each choice is worth by itself.
    layers : ndarray, shape (choices,), uint16
    state_lanes, choice_lanes : int
        Threads of a state, and of a choice: powers of two up to 32, the latter not greater.
    """

    choice_ptr: Array
    offsets: Array
    columns: Array
    values: Array
    gains: Array
    layers: Array
    state_lanes: int
    choice_lanes: int

    @classmethod
    def on_device(
        cls,
        device: Device,
        choice_ptr: Array,
        offsets: Array,
        columns: Array,
        values: Array,
        gains: Array,
        layers: Array,
        wide: bool = False,
    ) -> ChoiceRows:
        """Copy arrays to a device, with the narrowest indices, and choose the launch shape.

        A state gets about as many threads as it has choices on average, and several for each choice where
        these have more than eight transitions.

        Raises
        ------
        ValueError
            If pointers and arrays do not belong together, or there are 2**31 states or more.
        """
        states, choices, entries = len(choice_ptr) - 1, len(offsets) - 1, len(columns)
        if states < 0 or choices < 0 or int(choice_ptr[-1]) != choices or int(offsets[-1]) != entries:
            raise ValueError(
                "choice_ptr and offsets: expected the numbers of choices and transitions at their ends"
            )
        if len(values) != entries or not len(gains) == len(layers) == choices:
            raise ValueError("values, gains and layers: expected one a transition, and one a choice")
        if states >= 2**31:
            raise ValueError(f"columns have 32 bits, so that {states} states are too many")
        index = index_type(index_bits(max(states, choices, entries), wide))
        xp = device.xp
        many, long = choices / max(states, 1), entries / max(choices, 1)
        choice_lanes = _power(long / 4.0) if long > 8.0 else 1
        return cls(
            xp.asarray(choice_ptr, dtype=index),
            xp.asarray(offsets, dtype=index),
            xp.asarray(columns, dtype=np.int32),
            xp.asarray(values, dtype=np.float64),
            xp.asarray(gains, dtype=np.float64),
            xp.asarray(layers, dtype=np.uint16),
            min(_power(many) * choice_lanes, _LANES),
            choice_lanes,
        )

    @property
    def size(self) -> int:
        """States."""
        return len(self.choice_ptr) - 1

    @property
    def nbytes(self) -> int:
        """Bytes that a step reads: matrices, pointers and gains."""
        arrays = (self.choice_ptr, self.offsets, self.columns, self.values, self.gains)
        return sum(int(a.nbytes) for a in arrays)


def _power(count: float) -> int:
    """Return the power of two up to 32 that is nearest from below, at least 1."""
    return 1 << min(5, max(0, int(np.floor(np.log2(max(count, 1.0))))))


def run_choice_rows(device: Device, rows: ChoiceRows, step: ChoiceStep, x: Array, out: Array) -> None:
    """Queue a step of value iteration over all states.

    Parameters
    ----------
    device : Device
    rows : ChoiceRows
    step : ChoiceStep
    x, out : ndarray, shape (n,), float64
        On the device; they must not overlap.

    Raises
    ------
    TypeError, ValueError
        If an operand has the wrong type or shape or lies elsewhere.

    Notes
    -----
    Synchronises: no. Time: O(transitions).
    """
    size = rows.size
    step.check(device, size, x, out)
    lanes = rows.state_lanes, rows.choice_lanes
    if any(n not in (1, 2, 4, 8, 16, 32) for n in lanes) or lanes[1] > lanes[0]:
        raise ValueError(f"lanes: expected powers of two up to 32, a choice's not greater, got {lanes}")
    bits = 8 * int(rows.choice_ptr.dtype.itemsize)
    entries = len(rows.columns)
    check_vector(device, rows.choice_ptr, size + 1, "choice_ptr", index_type(bits))
    check_vector(device, rows.offsets, len(rows.gains) + 1, "offsets", index_type(bits))
    check_vector(device, rows.columns, entries, "columns", np.int32)
    check_vector(device, rows.values, entries, "values")
    check_vector(device, rows.layers, len(rows.gains), "layers", np.uint16)
    if size == 0:
        return
    options = macros(INDEX_BITS=bits, STATE_LANES=lanes[0], CHOICE_LANES=lanes[1], **step.macros())
    kernel = device.kernel("choice_rows.cu", "step_choice_rows", options)
    arguments = (
        index_type(bits)(size), rows.choice_ptr, rows.offsets, rows.columns, rows.values,
        NULL if step.plain else rows.gains, rows.layers, *step.arguments(), x, out,
    )  # fmt: skip
    kernel((blocks_for(size * lanes[0], _THREADS),), (_THREADS,), arguments)


def step_choice_rows_numpy(rows: ChoiceRows, step: ChoiceStep, x: Array) -> tuple[Array, Array]:
    """Return what a step writes and the chosen layers, by NumPy; rows and operands on the host.

    Returns
    -------
    out : ndarray, shape (n,), float64
    chosen : ndarray, shape (n,), uint16
    """
    worst = -np.inf if step.maximise else np.inf
    owner = np.repeat(np.arange(len(rows.gains)), np.diff(rows.offsets))
    worth = np.bincount(owner, rows.values * x[rows.columns], minlength=len(rows.gains))
    if not step.plain:
        worth = worth + rows.gains
    state = np.repeat(np.arange(rows.size), np.diff(rows.choice_ptr))
    if step.policy is not None:
        worth = np.where(step.policy[state] == rows.layers, worth, worst)
    best = np.full(rows.size, worst)
    (np.maximum if step.maximise else np.minimum).at(best, state, worth)
    chosen = np.full(rows.size, NO_CHOICE, np.uint16)
    found = np.flatnonzero((worth == best[state]) & (worth != worst))[::-1]
    chosen[state[found]] = rows.layers[found]
    out = step.scale * best
    return out if step.shape is None else out + step.shape, chosen
