"""Vectors and numbers of states, from the order of the diagram to that of users and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.model import SymbolicModel
from mtbdd.numbering import inverse
from mtbdd.states import StateIndex


def for_users(model: SymbolicModel, vector: NDArray[Any]) -> NDArray[Any]:
    """Return a vector over all states in the order of their numbers: the same one where that is the index."""
    return vector if model.numbering is None else vector[model.numbering]


def for_diagram(model: SymbolicModel, vector: NDArray[Any]) -> NDArray[Any]:
    """Return a vector in the order of the states' numbers in that of the index: inverse of `for_users`."""
    numbers = model.once(_numbers)
    return vector if numbers is None else vector[numbers]


def numbers_of(model: SymbolicModel, indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers that users know states by, from their indices among all states."""
    numbers = model.once(_numbers)
    return indices if numbers is None else numbers[indices]


def in_order(
    model: SymbolicModel, indices: NDArray[np.int64], within: StateIndex | None = None
) -> NDArray[np.int64]:
    """Return indices of states in a set (default: all states), ascending, in the order of the numbers.

    Time: O(1) where the two orders are the same, otherwise O(n + k log k) for k indices.
    """
    numbers = model.once(_numbers)
    if numbers is None:
        return indices
    places = indices
    if within is not None and within is not model.index:
        places = np.flatnonzero(model.indicator(within.states))[indices]
    return indices[np.argsort(numbers[places])]


def _numbers(model: SymbolicModel) -> NDArray[np.int64] | None:
    return None if model.numbering is None else inverse(model.numbering)
