"""A sample of a model's states: entries of their rows, and the rows that use their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import StateIndex, index_states
from mtbdd.offset.tuples import distinct_rows

Int64Array = NDArray[np.int64]
Float64Array = NDArray[np.float64]

MOST_STATES = 1 << 13
"""States of a sample at most, where no more are needed for the number of parts."""

_STATES_OF_A_PART = 1 << 9
_LEAST_STATES = 1 << 12
_FEWEST_OF_A_PART = 16

_MOST_USES = 1 << 20
"""Entries of the columns of a sample, about, beyond which it has fewer states."""

ROW_ENTRIES = 3.0
"""Cost of a row without entries, in entries: reading x, writing y and the steps of a solver."""

BLOCK_ROWS = 512
"""Rows that a card multiplies as one block, at least: with bits above them alone a cut goes around blocks."""

_MOST_VARIABLES = 64
"""Variables that sums may have: the first ones of a model."""


@dataclass(frozen=True, eq=False)
class StateSample:
    """States drawn at random, all of them where there are few.

    Attributes
    ----------
    states : int
        States of the model.
    names : tuple of str
        Variables, in the order of the diagram.
    nodes : ndarray, shape (variables,), float64
        Nodes of the matrices that test a variable.
    above : ndarray, shape (variables,), bool
        Whether a variable is tested above blocks of `BLOCK_ROWS` rows.
    number : ndarray, shape (k,), int64
        The states, ascending.
    value : ndarray, shape (variables, k), int64
        Values of their variables, counted from the least.
    work : ndarray, shape (k,), float64
        Predicted time of their rows, in entries: whole numbers.
    column : ndarray, shape (uses,), int64
        Place in the sample of every use of a column, ascending.
    user : ndarray, shape (uses,), int64
        The state whose row uses the column.
    user_value : ndarray, shape (variables, uses), int64
        Values of its variables.
    """

    states: int
    names: tuple[str, ...]
    nodes: Float64Array
    above: NDArray[np.bool_]
    number: Int64Array
    value: Int64Array
    work: Float64Array
    column: Int64Array
    user: Int64Array
    user_value: Int64Array


def sample_states(model: SymbolicModel, parts: int, most: int = MOST_STATES) -> StateSample:
    """Draw states of a model, with the entries of their rows and columns.

    Parameters
    ----------
    model : SymbolicModel
    parts : int
        Parts that the states will be cut into.
    most : int
        States at most.

    Notes
    -----
    The seed is fixed: the same model has the same sample.  Time: O(nodes log nodes) for the transposed
    matrices, and O(entries of the sampled rows and columns) in numpy for every bit.
    """
    index = model.index
    matrices = [model.layer_transitions(layer) for layer in range(len(model.layers))]
    mean = sum(matrix.n_entries for matrix in matrices) / max(index.size, 1)
    wanted = min(most, max(_LEAST_STATES, _STATES_OF_A_PART * parts), int(_MOST_USES / max(mean, 1.0)))
    wanted = max(wanted, _FEWEST_OF_A_PART * parts)
    if index.size <= wanted:
        number = np.arange(index.size, dtype=np.int64)
    else:
        # One of every stretch of states, so that stretches are shared out as they are.
        drawn = np.arange(wanted) + np.random.default_rng(0).random(wanted)
        number = np.unique(np.minimum((drawn * (index.size / wanted)).astype(np.int64), index.size - 1))
    bits = index.bits_at(number)
    work = np.full(len(number), ROW_ENTRIES)
    column, user = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for matrix in matrices:
        work += np.bincount(entries_in_rows(matrix, bits)[0], minlength=len(number))
        places, rows = entries_in_rows(matrix.transpose(), bits)
        column.append(places)
        user.append(rows)
    columns, users = np.concatenate(column), np.concatenate(user)
    order = np.lexsort((users, columns))
    columns, users = columns[order], users[order]
    variables = [v for v in model.encoding.variables if v.bits][:_MOST_VARIABLES]
    variables.sort(key=lambda variable: variable.bits[0])
    fields = [variable.bits for variable in variables]
    distinct, place = np.unique(users, return_inverse=True)
    prefixes = prefix_counts(index)
    nodes = [sum(m.nodes[2 * bit] + m.nodes[2 * bit + 1] for m in matrices for bit in f) for f in fields]
    return StateSample(
        index.size,
        tuple(variable.name for variable in variables),
        np.array(nodes, np.float64),
        np.array([BLOCK_ROWS * prefixes[f[-1] + 1] <= index.size for f in fields], bool),
        number,
        values_of(bits, fields),
        work,
        columns,
        users,
        values_of(index.bits_at(distinct), fields)[:, place.reshape(-1)],
    )


def prefix_counts(index: StateIndex) -> list[float]:
    """Return in how many ways the states begin, by the number of bits.  Time: O(nodes)."""
    paths = np.ones(min(index.size, 1))
    found = [float(paths.sum())]
    for bit in range(index.n_bits):
        below = np.zeros(len(index.counts[bit + 1]))
        for links in (index.low[bit], index.high[bit]):
            np.add.at(below, links[links >= 0], paths[links >= 0])
        paths = below
        found.append(float(paths.sum()))
    return found


def entries_in_rows(matrix: OffsetMTBDD, bits: NDArray[np.bool_]) -> tuple[Int64Array, Int64Array]:
    """Find the entries of some rows.

    Parameters
    ----------
    matrix : OffsetMTBDD
    bits : ndarray, shape (rows, bits of a row), bool

    Returns
    -------
    place, column : ndarray, shape (entries,), int64
        Place of the row among those given, and the column.
    """
    place: Int64Array = np.arange(len(bits) if matrix.nodes[0] else 0)
    node, column = np.zeros_like(place), np.zeros_like(place)
    for bit in range(matrix.n_levels // 2):
        outer, inner = matrix.levels[2 * bit : 2 * bit + 2]
        middle = np.where(bits[place, bit], outer.high[node], outer.low[node])
        place, column, middle = (array[middle >= 0] for array in (place, column, middle))
        low, high = inner.low[middle], inner.high[middle]
        left, right = np.flatnonzero(low >= 0), np.flatnonzero(high >= 0)
        node = np.concatenate((low[left], high[right])).astype(np.int64)
        column = np.concatenate((column[left], column[right] + inner.offset[middle[right]]))
        place = np.concatenate((place[left], place[right]))
    return place, column


def values_of(bits: NDArray[np.bool_], fields: Sequence[Sequence[int]]) -> Int64Array:
    """Return the numbers that fields of bits spell, shape (fields, states)."""
    found = np.zeros((len(fields), len(bits)), np.int64)
    for value, field in zip(found, fields, strict=True):
        for bit in field:
            value *= 2
            value += bits[:, bit]
    return found


# Exact counts of rows, on the diagrams.


class RowCounts(NamedTuple):
    """Nodes and entries of the rows of some states, in the matrices of all layers together."""

    states: int
    nodes: int
    entries: int

    @property
    def work(self) -> float:
        """Predicted time, in entries."""
        return self.entries + ROW_ENTRIES * self.states


def count_rows(model: SymbolicModel, states: Node, first_level: int = 0) -> RowCounts:
    """Count nodes, from a level on, and entries of the rows of a set of states.  Time: see `rows_of`."""
    rows = index_states(model.manager, states)
    counts = [
        rows_of(model.layer_transitions(layer), rows, first_level) for layer in range(len(model.layers))
    ]
    return RowCounts(rows.size, sum(nodes for nodes, _ in counts), sum(entries for _, entries in counts))


def rows_of(matrix: OffsetMTBDD, rows: StateIndex, first_level: int = 0) -> tuple[int, int]:
    """Return the nodes, from a level on, and the entries of some rows of a matrix, a set of its states.

    Notes
    -----
    Pairs of a node of the matrix and one of the set go down level by level, with their paths.  Time: O(pairs
    log pairs).
    """
    node: Int64Array = np.zeros(1 if matrix.nodes[0] and rows.size else 0, np.int64)
    inside, paths, nodes = node, np.ones(len(node), np.int64), 0
    for k, level in enumerate(matrix.levels):
        if k >= first_level:
            nodes += len(np.unique(node))
        child = np.concatenate((level.low[node], level.high[node])).astype(np.int64)
        if k % 2 == 0:
            below = np.concatenate((rows.low[k // 2][inside], rows.high[k // 2][inside])).astype(np.int64)
        else:
            below = np.tile(inside, 2)
        kept = np.flatnonzero((child >= 0) & (below >= 0))
        first, place = distinct_rows((child[kept], below[kept]))
        total = np.zeros(len(first), np.int64)
        np.add.at(total, place, np.tile(paths, 2)[kept])
        node, inside, paths = child[kept][first], below[kept][first], total
    return nodes, int(paths.sum())
