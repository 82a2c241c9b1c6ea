"""Value iteration with all choices written out: arrays and launch (cuda/choice_rows.cu)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu_kernels.compressed.steps import NULL, ChoiceStep
from gpu_kernels.explicit.rows import ScanPlan
from gpu_kernels.runtime._launch import blocks_for, check_vector, index_bits, index_type, macros
from gpu_kernels.runtime.device import Device

Array = Any

_THREADS = 256
_LANES = 32


@dataclass(frozen=True, eq=False)
class ChoiceRows:
    """Choices in compressed sparse rows, one row a choice; pointers from states to choices.

    All arrays lie on the host, or all on a device, as `to_device` puts them there.

    Attributes
    ----------
    choice_ptr : ndarray, shape (n + 1,), int32 or int64
        First choice of every state, and the end.
    offsets : ndarray, shape (choices + 1,), like choice_ptr
        First transition of every choice, and the end.
    columns : ndarray, shape (transitions,), int32 or int64
        Targets; int32 on a device.
    values : ndarray, shape (transitions,), float64, or None
        Probabilities; None if they are not asked for.
    gains : ndarray, shape (choices,), float64, or None
        What each choice is worth by itself; None if it is not asked for.
    layers : ndarray, shape (choices,), unsigned integers
        The layer that each choice comes from; uint16 on a device.
    state_lanes, choice_lanes : int
        Threads of a state, and of a choice: powers of two up to 32, the latter not greater.
    plan : ScanPlan or None
        Flags where choices begin: a step then makes all products, scans them and takes the first sum of each
        choice ([BESW10]'s M2), instead of a sum a choice (its M1). See `scanned`.
    products : ndarray, shape (transitions,), float64, or None
        Scratch of the scan.
    """

    choice_ptr: Array
    offsets: Array
    columns: Array
    values: Array
    gains: Array
    layers: Array
    state_lanes: int = 1
    choice_lanes: int = 1
    plan: ScanPlan | None = None
    products: Array = None

    def to_device(self, device: Device, wide: bool = False) -> ChoiceRows:
        """Return the choices copied to a device, with the narrowest indices, and with a launch shape.

        A state gets about as many threads as it has choices on average, and several for each choice where
        these have more than eight transitions.

        Parameters
        ----------
        device : Device
        wide : bool
            Use 64-bit indices although 32 bits would do.

        Raises
        ------
        ValueError
            If pointers and arrays do not belong together, or there are 2**31 states or more.
        """
        states, choices, entries = self.size, len(self.offsets) - 1, len(self.columns)
        if (
            states < 0
            or choices < 0
            or int(self.choice_ptr[-1]) != choices
            or int(self.offsets[-1]) != entries
        ):
            raise ValueError(
                "choice_ptr and offsets: expected the numbers of choices and transitions at their ends"
            )
        if len(self.values) != entries or not len(self.gains) == len(self.layers) == choices:
            raise ValueError("values, gains and layers: expected one a transition, and one a choice")
        if states >= 2**31:
            raise ValueError(f"columns have 32 bits, so that {states} states are too many")
        index = index_type(index_bits(max(states, choices, entries), wide))
        xp = device.xp
        many, long = choices / max(states, 1), entries / max(choices, 1)
        choice_lanes = _power(long / 4.0) if long > 8.0 else 1
        return ChoiceRows(
            xp.asarray(self.choice_ptr, dtype=index),
            xp.asarray(self.offsets, dtype=index),
            xp.asarray(self.columns, dtype=np.int32),
            xp.asarray(self.values, dtype=np.float64),
            xp.asarray(self.gains, dtype=np.float64),
            xp.asarray(self.layers, dtype=np.uint16),
            min(_power(many) * choice_lanes, _LANES),
            choice_lanes,
        )

    def scanned(self, device: Device) -> ChoiceRows:
        """Return the choices on a device with what steps by a segmented scan need ([BESW10] §II, method M2).

        Notes
        -----
        12 to 13 bytes more a transition. Synchronises: no.
        """
        xp, entries = device.xp, len(self.columns)
        flags = xp.zeros(entries, np.uint8)
        starts = self.offsets[:-1]
        flags[starts[starts < entries]] = 1
        plan = ScanPlan.create(device, flags)
        return replace(self, choice_lanes=1, plan=plan, products=xp.empty(entries))

    @property
    def size(self) -> int:
        """States."""
        return len(self.choice_ptr) - 1

    @property
    def matrix_bytes(self) -> int:
        """Bytes of transitions and pointers."""
        return sum(int(a.nbytes) for a in (self.choice_ptr, self.offsets, self.columns, self.values))

    @property
    def operand_bytes(self) -> int:
        """Bytes of gains and layers."""
        return int(self.gains.nbytes + self.layers.nbytes)

    @property
    def nbytes(self) -> int:
        """Bytes that a step reads: matrices, pointers and gains, and what a scan needs."""
        scan = 0 if self.plan is None else self.plan.nbytes + int(self.products.nbytes)
        return self.matrix_bytes + int(self.gains.nbytes) + scan


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
    Synchronises: no. Time: O(transitions). One launch; with a plan one more for the products, and two a level
    of the scan.
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
    scanned, values = int(rows.plan is not None), rows.values
    if rows.plan is not None and entries:
        special = macros(INDEX_BITS=bits, VALUE_BITS=64, SCAN_THREADS=rows.plan.threads)
        kernel = device.kernel("scan.cu", "multiply_entries", special)
        products = (index_type(bits)(entries), rows.columns, rows.values, NULL, x, rows.products)
        kernel((blocks_for(entries, _THREADS),), (_THREADS,), products)
        rows.plan.run(device, rows.products, bits == 64)
        values = rows.products
    options = macros(
        INDEX_BITS=bits, STATE_LANES=lanes[0], CHOICE_LANES=lanes[1], SCANNED=scanned, **step.macros()
    )
    kernel = device.kernel("choice_rows.cu", "step_choice_rows", options)
    arguments = (
        index_type(bits)(size), rows.choice_ptr, rows.offsets, rows.columns, values,
        NULL if step.plain else rows.gains, rows.layers, *step.arguments(), x, out,
    )  # fmt: skip
    kernel((blocks_for(size * lanes[0], _THREADS),), (_THREADS,), arguments)
