"""The variables of a model as rows of integers, one column a path."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.language.definedness import Definedness
from mtbdd.language.errors import Fault
from mtbdd.language.faults import BuildError, format_state
from mtbdd.language.model_syntax import ResolvedModel

Ints = NDArray[np.int64]
Array = NDArray[Any]

_FURTHEST = 1 << 62
"""Magnitude below which values of variables lie, so that differences of two have 64 bits."""


class Variables:
    """Where each variable of a model stands among the rows of a matrix of states.

    Parameters
    ----------
    model : ResolvedModel

    Attributes
    ----------
    names : tuple of str
        In model order; row `i` of a matrix of states holds variable `i`, booleans as 0 and 1.
    place : dict of str to int
        The row of each.
    low, high : tuple of int
    is_bool : tuple of bool
    types : tuple of dtype
        The smallest one that holds the values of each.

    Raises
    ------
    BuildError
        A range reaches beyond 2^62.
    """

    def __init__(self, model: ResolvedModel) -> None:
        found = model.variables
        for v in found:
            if max(-v.low, v.high) >= _FURTHEST:
                message = f"expected a range within -2^62..2^62 to simulate, got [{v.low}..{v.high}]"
                raise BuildError([Fault(v.position, f"{message}; narrow it")])
        self.names = tuple(v.name for v in found)
        self.place = {name: i for i, name in enumerate(self.names)}
        self.low = tuple(v.low for v in found)
        self.high = tuple(v.high for v in found)
        self.is_bool = tuple(v.is_bool for v in found)
        self.types = tuple(
            np.dtype(bool)
            if v.is_bool
            else np.result_type(np.min_scalar_type(v.low), np.min_scalar_type(v.high))
            for v in found
        )

    @cached_property
    def definedness(self) -> Definedness:
        """Tells under which condition an expression has a value."""
        ranges = zip(self.names, self.low, self.high, self.is_bool, strict=True)
        return Definedness({name: (low, high) for name, low, high, is_bool in ranges if not is_bool})

    def rows(self, names: Sequence[str] | frozenset[str]) -> tuple[int, ...]:
        """Return the rows of some variables, ascending; names of labels are passed over."""
        return tuple(sorted(self.place[name] for name in names))

    def size(self, rows: Sequence[int]) -> int:
        """Return the number of combinations of values of some variables."""
        product = 1
        for row in rows:
            product *= self.high[row] - self.low[row] + 1
        return product

    def axes(self, rows: Sequence[int]) -> tuple[dict[str, Array], tuple[int, ...]]:
        """Return all values of some variables as axes of a grid, and its shape."""
        shape = tuple(self.high[row] - self.low[row] + 1 for row in rows)
        found: dict[str, Array] = {}
        for axis, row in enumerate(rows):
            own = [1] * len(rows)
            own[axis] = shape[axis]
            values = np.arange(self.low[row], self.high[row] + 1, dtype=np.int64)
            found[self.names[row]] = self.typed(row, values).reshape(own)
        return found, shape

    def typed(self, row: int, values: Array) -> Array:
        """Return a row's values as expressions take them: bools of a boolean, else integers."""
        return values.astype(np.bool_) if self.is_bool[row] else values

    def text(self, column: Ints) -> str:
        """Return one state as text, ``(a=1, b=true)``."""
        values = zip(self.names, self.is_bool, column.tolist(), strict=True)
        return format_state({name: bool(value) if is_bool else value for name, is_bool, value in values})


class Columns:
    """Some columns of a matrix of states, row by row; a row is gathered when it is first asked for.

    Parameters
    ----------
    states : ndarray of int64, shape (variables, paths)
    where : ndarray of int, optional
        Numbers of the columns; default all.

    Attributes
    ----------
    known : dict
        Functions and their values in these columns, by identity.
    """

    def __init__(self, states: Ints, where: Array | None = None) -> None:
        self._states, self._where = states, where
        self._rows: dict[int, Ints] = {}
        self.known: dict[int, tuple[object, Array]] = {}
        self.count = states.shape[1] if where is None else where.size

    def __getitem__(self, row: int) -> Ints:
        if self._where is None:
            found: Ints = self._states[row]
            return found
        if row not in self._rows:
            self._rows[row] = self._states[row].take(self._where)
        return self._rows[row]

    def environment(self, variables: Variables, rows: Sequence[int]) -> dict[str, Array]:
        """Return rows by name, as expressions take them."""
        return {variables.names[row]: variables.typed(row, self[row]) for row in rows}
