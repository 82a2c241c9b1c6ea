"""States and their values, as filters list them: whole, and made when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hybrid.base.state_values import StateTruth, StateValues
from mtbdd.build.model import SymbolicModel
from mtbdd.language.faults import format_state
from mtbdd.offset.states import StateIndex

Number = float | int | bool

_PART = 1 << 14  # states read together


class Listing(Sequence[tuple[str, Number]]):
    """Some states and a formula's value in each, in the order of the states' numbers.

    As a sequence it has pairs of text and value, `("(s=3, d=0)", 0.5)`; `records` has everything.

    Parameters
    ----------
    model : SymbolicModel
    found : StateValues or StateTruth
        Over the states of `within`.
    indices : ndarray of int64, shape (k,)
        The states listed, by index in `within`, in the order wanted.
    within : StateIndex

    Notes
    -----
    Memory: the arrays given, 8 to 32 bytes a state; texts and records are made as they are read.
    """

    def __init__(
        self,
        model: SymbolicModel,
        found: StateValues | StateTruth,
        indices: NDArray[np.int64],
        within: StateIndex,
    ) -> None:
        self._model, self._found, self._indices, self._within = model, found, indices, within

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, place: int) -> tuple[str, Number]: ...

    @overload
    def __getitem__(self, place: slice) -> Listing: ...

    def __getitem__(self, place: int | slice) -> tuple[str, Number] | Listing:
        if isinstance(place, slice):
            return Listing(self._model, self._found, self._indices[place], self._within)
        one = self._indices[place : place + 1 or None]
        if not one.size:
            raise IndexError(f"listing: expected a place below {len(self)}, got {place}")
        return next(iter(Listing(self._model, self._found, one, self._within)))

    def __iter__(self) -> Iterator[tuple[str, Number]]:
        for states, indices in self._parts():
            values = self._found.values[indices].tolist()
            yield from zip(map(format_state, states), values, strict=True)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield a record a state: `state` by variable name, `value`, `lower` and `upper`.

        Bounds are None where the method gives none; a truth value is None where bounds do not decide it.
        """
        for states, indices in self._parts():
            some = self._found.at(indices)
            columns = [part.tolist() for part in some.columns()]
            unknown = some.unknown if isinstance(some, StateTruth) else None
            if unknown is not None:
                columns[0] = [None if u else v for u, v in zip(unknown.tolist(), columns[0], strict=True)]
            for state, value, lower, upper in zip(states, *columns, strict=True):
                bounds = (None, None) if lower != lower else (lower, upper)
                yield {"state": state, "value": value, "lower": bounds[0], "upper": bounds[1]}

    def __repr__(self) -> str:
        return f"<listing of {len(self)} states>"

    def _parts(self) -> Iterator[tuple[list[dict[str, bool | int]], NDArray[np.int64]]]:
        """Yield some states at a time, and their indices."""
        for begin in range(0, len(self), _PART):
            indices = self._indices[begin : begin + _PART]
            yield self._model.describe(indices, self._within), indices
