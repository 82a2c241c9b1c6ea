"""Choices written out: compressed sparse rows, one row a choice, with pointers from states to choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.ragged import pointers
from hybrid.core.lists import concatenated_ranges
from hybrid.explicit.csr import index_types
from hybrid.explicit.extract import explicit_matrix, explicit_sizes
from hybrid.operators.offers import Offer
from hybrid.solvers.choice_operator import BOUND_VECTORS
from mtbdd.memory import free_memory_bytes

__all__ = ["WrittenChoices", "device_bytes", "write_choices"]


@dataclass(frozen=True, eq=False)
class WrittenChoices:
    """All choices of a system over unknown states, on the host.

    Attributes
    ----------
    choice_ptr : ndarray, shape (size + 1,), int32 or int64
        Choices of every state.
    offsets : ndarray, shape (choices + 1,), like choice_ptr
        Transitions of every choice.
    columns : ndarray, shape (transitions,), int32 or int64
    values : ndarray, shape (transitions,), float64
        Their targets among the unknown states and their probabilities.
    gains : ndarray, shape (choices,), float64
        What each choice is worth by itself.
    layers : ndarray, shape (choices,), uint16
    """

    choice_ptr: NDArray[Any]
    offsets: NDArray[Any]
    columns: NDArray[Any]
    values: NDArray[np.float64]
    gains: NDArray[np.float64]
    layers: NDArray[np.uint16]


def write_choices(offers: list[Offer], size: int) -> WrittenChoices:
    """Write the choices of all layers out.

    Parameters
    ----------
    offers : list of Offer
    size : int
        Unknown states.

    Raises
    ------
    MemoryError
        If there is no room, before anything is allocated; with required and available bytes.

    Notes
    -----
    Time: O(transitions + states * layers).
    """
    _check_room(offers, size)
    offers = sorted(offers, key=lambda offer: offer.layer)
    rows, degrees, matrices = [], [], []
    for offer in offers:
        has = np.isfinite(offer.gain)
        rows.append(np.flatnonzero(has) if offer.place is None else offer.place[has])
        matrix = None if offer.matrix is None else explicit_matrix(offer.matrix)
        matrices.append(matrix)
        counts = np.zeros(len(has), np.int64) if matrix is None else np.diff(matrix.row_starts)
        degrees.append(counts[has].astype(np.int64))
    choices, transitions = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for own, count in zip(rows, degrees, strict=True):
        choices[own] += 1
        transitions[own] += count
    choice, cursor = pointers(np, choices), pointers(np, transitions)[:-1]
    entries, total = int(transitions.sum()), int(choices.sum())
    place, column = index_types(size, max(entries, total))
    choice_ptr = choice.astype(place)
    columns: NDArray[Any] = np.empty(entries, column)
    values = np.empty(entries)
    offsets: NDArray[Any] = np.full(total + 1, entries, place)
    gains = np.empty(total)
    layers = np.empty(total, np.uint16)
    for offer, own, count, matrix in zip(offers, rows, degrees, matrices, strict=True):
        here, starts = choice[own], cursor[own]
        has = np.isfinite(offer.gain)
        if matrix is not None:
            where = concatenated_ranges(starts, count)
            columns[where] = matrix.columns
            own_values = matrix.values
            if offer.factor is not None:
                own_values = own_values * np.repeat(offer.factor[has], count)
            values[where] = own_values
        offsets[here] = starts
        gains[here] = offer.gain[has]
        layers[here] = offer.layer
        cursor[own] += count
        choice[own] += 1
    return WrittenChoices(choice_ptr, offsets, columns, values, gains, layers)


def device_bytes(offers: list[Offer], size: int) -> int:
    """Return the bytes that a device needs for the choices of all layers and the vectors of a solution.

    Notes
    -----
    Time: O(nodes + states * layers).
    """
    entries = sum(explicit_sizes(offer.matrix).entries for offer in offers if offer.matrix is not None)
    choices = sum(int(np.isfinite(offer.gain).sum()) for offer in offers)
    index = int(np.dtype(index_types(size, max(entries, choices))[0]).itemsize)
    # The targets have 32 bits there; every choice has a gain and a layer, too.
    return 12 * entries + (index + 10) * choices + (index + 8 * BOUND_VECTORS) * (size + 1)


def _check_room(offers: list[Offer], size: int) -> None:
    """Refuse before allocating what does not fit."""
    sizes = [explicit_sizes(o.matrix) for o in offers if o.matrix is not None]
    required = 2 * sum(s.matrix_bytes for s in sizes) + max((s.peak_bytes for s in sizes), default=0)
    required += sum(18 * len(o.gain) for o in offers) + 32 * size
    available = free_memory_bytes()
    if required > available:
        raise MemoryError(
            f"the choices of {size} states, written out, need {required} bytes in the host's memory, "
            f"{available} are available; use --engine hybrid or a smaller model"
        )
