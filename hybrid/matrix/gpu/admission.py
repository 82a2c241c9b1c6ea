"""Admission of a matrix to the device: its predicted time and memory, before anything is allocated."""

from __future__ import annotations

import math

from gpu_kernels import Device
from hybrid.matrix.gpu.cost import pair_build_bytes, rank_levels
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from hybrid.matrix.space.base import DEFAULT_VECTORS
from mtbdd.base.errors import either, option

SMALL_ENTRIES = 1 << 20
"""Entries below which a product takes less time than launching it."""

_BYTES_PER_ENTRY = 110
"""Peak memory of sorting the entries of the row types, an entry."""

_BYTES_PER_LAYER_ENTRY = 180
"""The same where the terms are sorted by layers as well."""

_BYTES_PER_SLOT = 60
"""Peak memory of laying out the groups, a slot and a group."""

_LEAST_BYTES_PER_ROW = 8 + 2
"""The result of a step, and two operands by dictionary; the iterate that is multiplied counts by columns."""

_CPU_SECONDS_ENTRY = 0.1e-9
"""Time of an entry on a CPU with many cores; the device takes longer where it waits for its longest rows."""

_MOST_CARDS = 1024
"""Cards that a message speaks of at most."""

_START_SECONDS = 0.1e-3
"""Added to the time on a CPU: a shorter product on the device is mostly the start of its launch."""


def least_vector_bytes(rows: int, columns: int) -> int:
    """Return the bytes of the vectors of damped steps, the fewest; columns are own and received ones."""
    return _LEAST_BYTES_PER_ROW * rows + 8 * columns


def cards_advice(required: int, available: int) -> str:
    """Return how many cards would do for bytes that are shared out, as free as one; empty if no few would."""
    cards = math.ceil(required / available) if available > 0 else _MOST_CARDS + 1
    return f", or {cards} such cards ({either('--distributed', 'ranks')})" if 1 < cards <= _MOST_CARDS else ""


def build_bytes(types: RowTypes, k: int, layers: bool = False) -> int:
    """Return the peak memory of building level k and of the method that keeps the fewest vectors, in bytes.

    Methods that keep more vectors ask for them when they begin, by
    :meth:`hybrid.matrix.space.vector_space.VectorSpace.reserve`.

    ``layers``: whether the matrix is that of stacked layers, whose terms are sorted by layers.
    """
    classes, level = types.classes, types[k]
    entries = int(level.entries.sum())
    vectors = least_vector_bytes(classes.matrix.n_rows, classes.matrix.n_columns)
    per_entry = _BYTES_PER_LAYER_ENTRY if layers else _BYTES_PER_ENTRY
    return vectors + per_entry * entries + _BYTES_PER_SLOT * (level.group_slots + level.n_groups)


def check_memory(device: Device, types: RowTypes, k: int, pairs: bool = False, layers: bool = False) -> None:
    """Refuse a level that the device has no room for, as tiles of a matrix or of layers, or as pairs.

    Raises
    ------
    MemoryError
        With required and available bytes, and what to do.
    """
    if pairs:
        required = pair_build_bytes(types, k)
    else:
        required = build_bytes(types, k, layers)
    available = device.free_bytes()
    if required > available:
        raise MemoryError(
            f"level {k} needs up to {required} bytes on {device.name} to be built and solved with, "
            f"{available} are free; choose another {option('level')}, or {option('backend', 'cpu')}"
            f"{cards_advice(required, available)}"
        )


def reason_for_cpu(device: Device, matrix: TypedMatrix) -> str | None:
    """Say why a matrix is better multiplied on the CPU; None if the device is to be preferred."""
    reason = reason_of_size(device, matrix.nonzeros, matrix.shape)
    if reason is not None:
        return reason
    ranked = rank_levels(matrix, 1.0)
    return reason_of_time(device, matrix.nonzeros, ranked[0][2]) if ranked else None


def reason_of_size(device: Device, nonzeros: int, shape: tuple[int, int]) -> str | None:
    """Say why a matrix is too small for the device, or its vectors too large; None if they are not."""
    if nonzeros < SMALL_ENTRIES:
        return f"{nonzeros} non-zeros are too few for the GPU to be faster"
    vectors = 8 * DEFAULT_VECTORS * max(shape)
    available = device.free_bytes()
    if vectors > available:
        return f"the vectors of a solution need {vectors} bytes, and {available} are free on {device.name}"
    return None


def reason_of_time(device: Device, nonzeros: int, seconds: float) -> str | None:
    """Say that a product predicted to take some time would be faster on the CPU; None if it would not."""
    if seconds > _CPU_SECONDS_ENTRY * nonzeros + _START_SECONDS:
        return (
            f"a product would take about {seconds * 1e3:.3g} ms on {device.name}, longer than a CPU "
            f"takes for {nonzeros} non-zeros"
        )
    return None
