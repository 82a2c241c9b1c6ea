"""Filters: one value out of the values of many states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.quantities import StateValues
from mtbdd.faults import format_state
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel

__all__ = ["Summary", "summarise"]


@dataclass(frozen=True)
class Summary:
    """A filter's result and whether only exact values went into it."""

    value: float | int | bool
    exact: bool


def summarise(model: SymbolicModel, operator: str, found: StateValues, states: Node) -> Summary:
    """Return what a filter makes of the values of some states.

    Parameters
    ----------
    operator : str
        A filter operator of the property language, or "initial": the one value that all
        states share (truth values: whether all hold).
    found : StateValues
    states : Node
        Subset of the reachable states.

    Raises
    ------
    ValueError
        No state is left, or the operator does not fit the values.
    """
    indices = np.flatnonzero(model.indicator(states))
    if indices.size == 0:
        raise ValueError(f"filter({operator}, ...): no reachable state satisfies the filter's condition")
    values = found.values[indices]
    value = _apply(model, operator, values, indices)
    return Summary(value, found.is_exact(indices))


def _apply(
    model: SymbolicModel,
    operator: str,
    values: NDArray[np.float64] | NDArray[np.bool_],
    indices: NDArray[np.int64],
) -> float | int | bool:
    """Reduce the values."""
    boolean = values.dtype == np.bool_
    first: float | int | bool = values[0].item()
    if operator in ("initial", "state"):
        if boolean and operator == "initial":
            return bool(values.all())
        if (values == values[0]).all() and (operator == "initial" or indices.size == 1):
            return first
        one, other = model.describe(indices[[int(values.argmin()), int(values.argmax())]])
        raise ValueError(
            f"the {indices.size} states that count have values from {values.min()} in {format_state(one)} to "
            f"{values.max()} in {format_state(other)}: say which is wanted with filter(min|max|avg|..., ...)"
        )
    if operator == "first":
        return first
    table = _OF_TRUTH_VALUES if boolean else _OF_NUMBERS
    if operator not in table:
        kind, offered = "truth values" if boolean else "numbers", ", ".join([*table, "first", "state"])
        raise ValueError(
            f"filter({operator}, ...) is not offered for {kind} by this version; there are {offered}"
        )
    return table[operator](values)


_OF_TRUTH_VALUES: dict[str, Callable[[NDArray[Any]], float | int | bool]] = {
    "forall": lambda values: bool(values.all()),
    "exists": lambda values: bool(values.any()),
    "count": lambda values: int(values.sum()),
}
_OF_NUMBERS: dict[str, Callable[[NDArray[Any]], float | int | bool]] = {
    "min": lambda values: float(values.min()),
    "max": lambda values: float(values.max()),
    "sum": lambda values: float(values.sum()),
    "avg": lambda values: float(values.mean()),
}
