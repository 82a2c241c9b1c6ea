"""States that come as a list of valuations: their variables and numbers, and their set as a diagram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.arrays import few_values
from hybrid.models.interchange.explicit_model import (
    ExplicitModel,
    Mask,
    Numbers,
    StateVariable,
    Vector,
    narrowed,
)
from mtbdd.build.given import BitRows, diagram_of
from mtbdd.build.given_model import given_variable
from mtbdd.diagrams.encoding import EncodedVariable, Encoding
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.language.model_syntax import ResolvedVariable
from mtbdd.offset.states import StateIndex, index_states, states_from


@dataclass(frozen=True, eq=False)
class StateColumns:
    """Distinct valuations, variables in the order of the source.

    Attributes
    ----------
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
    variable ``state`` holds their numbers. Time: O(states x variables), and that of sorting where the
    valuations do not ascend.
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


@dataclass(frozen=True)
class EncodedStates:
    """The states of a model that came written out.

    Attributes
    ----------
    variables : tuple of ResolvedVariable
        In the order of the source.
    rows : BitRows
        The states' row bits in index order.
    order : ndarray of int64, shape (n_states,), or None
        The source's number of the state with each index; None if they are equal.
    rank : ndarray of int64, shape (n_states,), or None
        The index of each of the source's states.
    """

    variables: tuple[ResolvedVariable, ...]
    encoding: Encoding
    rows: BitRows
    index: StateIndex
    order: Numbers | None
    rank: Numbers | None

    @property
    def node(self) -> Node:
        """The set of all states, over row bits."""
        return self.index.states

    def by_index(self, vector: NDArray[Any]) -> NDArray[Any]:
        """Return a vector over the source's states in index order."""
        return vector if self.order is None else vector[self.order]

    def indices(self, states: Numbers) -> Numbers:
        """Return the indices of some of the source's states."""
        return states if self.rank is None else self.rank[states]

    def set_of(self, mask: Mask) -> Node:
        """Return the states that a mask over the source's states marks.  Time: O(states)."""
        return states_from(self.encoding.manager, self.index, self.by_index(mask))

    def function_of(self, vector: Vector, units: float = 0.0) -> SymbolicMatrix | None:
        """Return a vector over the source's states as a function of row bits; None if it is zero.

        Time: O(distinct prefixes at every bit), and one package call a distinct node.
        """
        values = self.by_index(np.asarray(vector, dtype=np.float64))
        terminals, numbers = few_values(values)
        kept = terminals != 0
        if not bool(kept.any()):
            return None
        manager = self.encoding.manager
        leaf = np.where(kept, np.cumsum(kept), 0)
        own = terminals[kept]
        bits = manager.index_bits((len(own) - 1).bit_length())
        leaves = [manager.false, *manager.cubes(bits, len(own))]
        node = diagram_of(manager, manager.rows, self.rows, leaf[numbers], leaves)
        return SymbolicMatrix(manager, node, own, units)

    def variable(self, number: int) -> EncodedVariable:
        """Return a variable by its place in the source."""
        return self.encoding.by_name[self.variables[number].name]

    def number_sets(self, variable: int, numbers: list[int]) -> Node:
        """Return the states-to-be in which a variable has one of some stored numbers."""
        manager = self.encoding.manager
        names = self.encoding.row_names(self.variable(variable))
        return manager.disjunction(manager.cube(names, number) for number in numbers)

    def between(self, variable: int, low: int, high: int) -> Node:
        """Return the states-to-be in which a variable's stored number lies within bounds."""
        v, encoding = self.variable(variable), self.encoding
        found = encoding.at_most(v, high) if high < (1 << len(v.bits)) - 1 else encoding.manager.true
        return found & ~encoding.at_most(v, low - 1) if low > 0 else found


def encode_states(columns: StateColumns, places: Sequence[int], package: str = "auto") -> EncodedStates:
    """Return states as a set of assignments.

    `places`: the variables in the order of their bits, by their places in the source. `package` ({"auto",
    "cudd", "autoref"}): back end of `dd`. Time: O(states x bits), and that of sorting where the valuations do
    not ascend in this order.
    """
    declared = tuple(
        given_variable(v.name, v.low, v.high, v.is_bool, columns.source) for v in columns.variables
    )
    encoding = Encoding([declared[k] for k in places], package, [v.name for v in declared])
    rows, order = columns.sorted_bits(places)
    manager = encoding.manager
    every = np.ones(columns.n_states, dtype=np.int64)
    node = diagram_of(manager, manager.rows, rows, every, [manager.false, manager.true])
    rank = None
    if order is not None:
        rank = np.empty(columns.n_states, dtype=np.int64)
        rank[order] = np.arange(columns.n_states, dtype=np.int64)
    return EncodedStates(declared, encoding, rows, index_states(manager, node), order, rank)
