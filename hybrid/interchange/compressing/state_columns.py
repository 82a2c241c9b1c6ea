"""States that come as a list of valuations: the variables and the numbers that each state has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.interchange.explicit_model import ExplicitModel, Numbers, StateVariable, narrowed
from mtbdd.from_lists import BitRows


@dataclass(frozen=True, eq=False)
class StateColumns:
    """Distinct valuations, variables in the order of the source.

    Attributes
    ----------
    source : str
    n_states : int
    variables : tuple of StateVariable
    numbers : tuple of ndarray of integers, shape (n_states,) each
        Every variable's value less its least one, by the source's state numbers.
    rows : BitRows
        The states' bits, ascending.
    order : ndarray of int64, shape (n_states,), or None
        The source's number of each of these; None if they are equal.
    """

    source: str
    n_states: int
    variables: tuple[StateVariable, ...]
    numbers: tuple[NDArray[Any], ...]
    rows: BitRows
    order: Numbers | None

    def sizes(self) -> list[int]:
        """Return the numbers of values."""
        return [v.high - v.low + 1 for v in self.variables]

    def sorted_bits(self, places: Sequence[int]) -> tuple[BitRows, Numbers | None]:
        """Return the states' bits with the variables in another order, ascending, and the states' numbers."""
        if list(places) == list(range(len(self.variables))):
            return self.rows, self.order
        return _sorted(_packed(self.variables, self.numbers, places, self.n_states))


def state_columns(model: ExplicitModel) -> StateColumns:
    """Return the states of a model as numbers of variables.

    If several states have the same values a variable ``copy`` tells them apart. Without valuations one
    variable ``state`` holds their numbers.

    Notes
    -----
    Time: O(states x variables), and that of sorting where the valuations do not ascend.
    """
    variables = list(model.variables)
    numbers = [narrowed(np.asarray(model.valuations[v.name]).astype(np.int64) - v.low) for v in variables]
    if not variables:
        variables = [StateVariable("state", 0, model.n_states - 1)]
        numbers = [np.arange(model.n_states, dtype=np.int64)]
    every = range(len(variables))
    rows, order = _sorted(_packed(variables, numbers, every, model.n_states))
    if rows.n_bits and bool((rows.first_difference() == rows.n_bits).any()):
        copies = _copies(rows, order, model.n_states)
        taken = {v.name for v in variables}
        name = next(n for n in ("copy", *(f"copy{i}" for i in range(len(taken) + 1))) if n not in taken)
        variables.append(StateVariable(name, 0, int(copies.max())))
        numbers.append(copies)
        rows, order = _sorted(_packed(variables, numbers, range(len(variables)), model.n_states))
    return StateColumns(model.source, model.n_states, tuple(variables), tuple(numbers), rows, order)


def _packed(
    variables: Sequence[StateVariable], numbers: Sequence[NDArray[Any]], places: Sequence[int], size: int
) -> BitRows:
    """Return the states' bits, variables in some order."""
    widths = [(variables[k].high - variables[k].low).bit_length() for k in places]
    return BitRows.packed([numbers[k] for k in places], widths, size)


def _sorted(rows: BitRows) -> tuple[BitRows, Numbers | None]:
    """Return assignments in lexicographic order, and their places before; None if they are in that order."""
    order = rows.order()
    return (rows, None) if order is None else (rows.at(order), order)


def _copies(rows: BitRows, order: Numbers | None, size: int) -> Numbers:
    """Return how many states with the same values come before each, by the source's numbers."""
    first = rows.first_difference() < rows.n_bits
    places = np.flatnonzero(first)
    counted = np.arange(size, dtype=np.int64) - np.repeat(places, np.diff(np.append(places, size)))
    if order is None:
        return counted
    copies = np.empty(size, dtype=np.int64)
    copies[order] = counted
    return copies
