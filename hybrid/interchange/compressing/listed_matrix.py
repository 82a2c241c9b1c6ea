"""Matrices of transitions that come as a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.core.few_values import few_values
from hybrid.interchange.compressing.encoded_states import EncodedStates
from hybrid.interchange.compressing.moves import Moves, ValueSets, shifted, source_sets
from hybrid.interchange.explicit_model import Numbers, Vector
from mtbdd.from_lists import BitRows, diagram_of
from mtbdd.manager import Node
from mtbdd.matrix import SymbolicMatrix
from mtbdd.partition import Partition
from mtbdd.relation import Relation


@dataclass(frozen=True)
class ListedEntries:
    """Transitions of which no two have the same source and target.

    Attributes
    ----------
    sources, targets : ndarray of integers, shape (n_entries,)
        By the source's state numbers.
    numbers : ndarray of integers, shape (n_entries,)
        Numbers of their values.
    terminals : ndarray of float64
        The values, ascending.
    units : float
        Bound on their relative error, in units of 2^-53.
    """

    sources: Numbers
    targets: Numbers
    numbers: NDArray[np.integer]
    terminals: Vector
    units: float

    def at(self, places: Numbers) -> ListedEntries:
        """Return some of the transitions."""
        return ListedEntries(
            self.sources[places], self.targets[places], self.numbers[places], self.terminals, self.units
        )


def listed_matrix(
    states: EncodedStates, entries: ListedEntries, moves: Moves | None, values: Sequence[ValueSets]
) -> tuple[SymbolicMatrix, list[Relation]]:
    """Return the matrix of some transitions, and its graph in parts by the variables that moves change.

    Notes
    -----
    Time: with moves that of `source_sets`; else that of sorting the entries by all row and column bits, and
    O(distinct prefixes at every bit).
    """
    if moves is not None:
        return _moved_matrix(states, entries, moves, values)
    matrix = _bitwise_matrix(states, entries)
    return matrix, [Relation.whole(states.encoding.manager, matrix.support())]


def _moved_matrix(
    states: EncodedStates, entries: ListedEntries, moves: Moves, values: Sequence[ValueSets]
) -> tuple[SymbolicMatrix, list[Relation]]:
    """Return the matrix of moves: those that change the same variables are put together."""
    encoding = states.encoding
    manager = encoding.manager
    groups: dict[tuple[int, ...], list[int]] = {}
    for move, changes in enumerate(moves.changes != 0):
        groups.setdefault(tuple(np.flatnonzero(changes).tolist()), []).append(move)
    sets = source_sets(states, moves, entries.sources, values)
    known: dict[tuple[int, int], Node] = {}
    parts: list[tuple[Partition, Node]] = []
    relations: list[Relation] = []
    for touched, members in groups.items():
        bits = [bit for number in touched for bit in states.variable(number).bits]
        pieces: dict[float, list[Node]] = {}
        for move in members:
            relation = sets[move]
            for number in touched:
                amount = int(moves.changes[move, number])
                if (number, amount) not in known:
                    variable = states.variable(number)
                    names = encoding.row_names(variable), encoding.column_names(variable)
                    known[number, amount] = shifted(manager, *names, amount)
                relation = relation & known[number, amount]
            pieces.setdefault(float(entries.terminals[moves.values[move]]), []).append(relation)
        united = {value: manager.disjunction(nodes) for value, nodes in pieces.items()}
        partition = Partition(manager, united, entries.units)
        parts.append((partition, manager.equal_but(bits)))
        relations.append(Relation(manager, partition.support & states.node, tuple(sorted(bits))))
    matrix = SymbolicMatrix.from_disjoint(manager, parts, unite=False).only(states.node)
    return matrix, relations


def _bitwise_matrix(states: EncodedStates, entries: ListedEntries) -> SymbolicMatrix:
    """Return the matrix of entries without structure, from their list."""
    manager = states.encoding.manager
    rows, columns = states.indices(entries.sources), states.indices(entries.targets)
    bits = []
    for bit in range(manager.n_bits):
        bits += [states.rows.bit(bit, rows), states.rows.bit(bit, columns)]
    packed = BitRows.packed(bits, [1] * len(bits), len(rows))
    used, leaves = few_values(entries.numbers)
    leaves = leaves.astype(np.int64) + 1
    order = packed.order()
    if order is not None:
        packed, leaves = packed.at(order), leaves[order]
    names = [name for pair in zip(manager.rows, manager.columns, strict=True) for name in pair]
    index = manager.index_bits(max(len(used) - 1, 0).bit_length())
    cubes = [manager.false, *manager.cubes(index, len(used))]
    node = diagram_of(manager, names, packed, leaves, cubes)
    return SymbolicMatrix(manager, node, entries.terminals[used], entries.units)
