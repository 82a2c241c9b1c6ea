"""States that come as a list of valuations, as a set of a diagram's assignments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.interchange.compressing.few_values import few_values
from hybrid.interchange.explicit_model import ExplicitModel, Mask, Numbers, StateVariable, Vector
from mtbdd.encoding import Encoding
from mtbdd.from_lists import BitRows, diagram_of
from mtbdd.given_model import given_variable
from mtbdd.language.model_syntax import ResolvedVariable
from mtbdd.manager import Node
from mtbdd.matrix import SymbolicMatrix
from mtbdd.states import StateIndex, index_states, states_from


@dataclass(frozen=True)
class EncodedStates:
    """The states of a model that came written out.

    Attributes
    ----------
    variables : tuple of ResolvedVariable
    encoding : Encoding
    columns : tuple of ndarray of int64, shape (n_states,) each
        Every variable's stored number (its value less its least one), by the source's state numbers.
    rows : BitRows
        The states' row bits in index order.
    index : StateIndex
    order : ndarray of int64, shape (n_states,), or None
        The source's number of the state with each index; None if they are equal.
    rank : ndarray of int64, shape (n_states,), or None
        The index of each of the source's states.
    """

    variables: tuple[ResolvedVariable, ...]
    encoding: Encoding
    columns: tuple[Numbers, ...]
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
        leaves = [manager.false, *(manager.cube(bits, k) for k in range(len(own)))]
        node = diagram_of(manager, manager.rows, self.rows, leaf[numbers], leaves)
        return SymbolicMatrix(manager, node, own, units)

    def number_sets(self, variable: int, numbers: list[int]) -> Node:
        """Return the states-to-be in which a variable has one of some stored numbers."""
        manager = self.encoding.manager
        names = self.encoding.row_names(self.encoding.variables[variable])
        return manager.disjunction(manager.cube(names, number) for number in numbers)

    def between(self, variable: int, low: int, high: int) -> Node:
        """Return the states-to-be in which a variable's stored number lies within bounds."""
        v, encoding = self.encoding.variables[variable], self.encoding
        found = encoding.at_most(v, high) if high < (1 << len(v.bits)) - 1 else encoding.manager.true
        return found & ~encoding.at_most(v, low - 1) if low > 0 else found


def encode_states(model: ExplicitModel, package: str = "auto") -> EncodedStates:
    """Return the states of a model as a set of assignments.

    States with valuations get their variables' bits, in the source's order; if several have the same values a
    variable ``copy`` tells them apart. Without valuations one variable ``state`` holds their numbers.

    Notes
    -----
    Time: O(states x bits), and that of sorting where the valuations do not ascend.
    """
    variables, columns = _columns(model)
    rows, encoding, declared = _packed(model, variables, columns, package)
    order = rows.order()
    if order is not None:
        rows = rows.at(order)
    if rows.n_bits and bool((rows.first_difference() == rows.n_bits).any()):
        copies = _copies(rows, order, model.n_states)
        taken = {v.name for v in variables}
        name = next(n for n in ("copy", *(f"copy{i}" for i in range(len(taken) + 1))) if n not in taken)
        variables = [*variables, StateVariable(name, 0, int(copies.max()))]
        columns = [*columns, copies]
        rows, encoding, declared = _packed(model, variables, columns, package)
        order = rows.order()
        if order is not None:
            rows = rows.at(order)
    manager = encoding.manager
    every = np.ones(model.n_states, dtype=np.int64)
    node = diagram_of(manager, manager.rows, rows, every, [manager.false, manager.true])
    rank = None
    if order is not None:
        rank = np.empty(model.n_states, dtype=np.int64)
        rank[order] = np.arange(model.n_states, dtype=np.int64)
    return EncodedStates(declared, encoding, tuple(columns), rows, index_states(manager, node), order, rank)


def _columns(model: ExplicitModel) -> tuple[list[StateVariable], list[Numbers]]:
    """Return the variables and their stored numbers."""
    if not model.variables:
        every = np.arange(model.n_states, dtype=np.int64)
        return [StateVariable("state", 0, model.n_states - 1)], [every]
    columns = [np.asarray(model.valuations[v.name]).astype(np.int64) - v.low for v in model.variables]
    return list(model.variables), columns


def _packed(
    model: ExplicitModel, variables: list[StateVariable], columns: list[Numbers], package: str
) -> tuple[BitRows, Encoding, tuple[ResolvedVariable, ...]]:
    """Return the states' bits, in the source's order, and the encoding that they are of."""
    declared = tuple(given_variable(v.name, v.low, v.high, v.is_bool, model.source) for v in variables)
    encoding = Encoding(declared, package)
    widths = [len(v.bits) for v in encoding.variables]
    return BitRows.packed(columns, widths, model.n_states), encoding, declared


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
