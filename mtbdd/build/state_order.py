"""Vectors and numbers of states, from the order of the diagram to that of users and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.build.model import SymbolicModel
from mtbdd.build.numbering import inverse, keeps_order, sorted_places
from mtbdd.offset.states import StateIndex


def for_users(model: SymbolicModel, vector: NDArray[Any]) -> NDArray[Any]:
    """Return a vector over all states in the order of their numbers: the same one where that is the index."""
    return vector if model.numbering is None else vector[..., model.numbering]


def for_diagram(model: SymbolicModel, vector: NDArray[Any]) -> NDArray[Any]:
    """Return a vector in the order of the states' numbers in that of the index: inverse of `for_users`."""
    numbers = model.once(_numbers)
    return vector if numbers is None else vector[numbers]


def in_order(
    model: SymbolicModel, indices: NDArray[np.int64], within: StateIndex | None = None
) -> NDArray[np.int64]:
    """Return indices of states in a set (default: all states), ascending, in the order of the numbers.

    Time: O(1) where the two orders are the same, otherwise O(k log k) for k indices; O(n) more in a
    model whose numbers were given to it.
    """
    index = model.index if within is None else within
    if indices.size < 2 or keeps_text(model):
        return indices
    if "numbering" not in vars(model):  # nor is it made for the sake of a few states
        return indices[sorted_places(model.encoding, index, indices)]
    numbers = model.once(_numbers)
    assert numbers is not None
    places = indices if index is model.index else np.flatnonzero(model.indicator(index.states))[indices]
    return indices[np.argsort(numbers[places])]


def keeps_text(model: SymbolicModel) -> bool:
    """Tell whether states are numbered as they are indexed."""
    return model.numbering is None if "numbering" in vars(model) else keeps_order(model.encoding)


def _numbers(model: SymbolicModel) -> NDArray[np.int64] | None:
    return None if model.numbering is None else inverse(model.numbering)
