"""From a symbolic matrix to its offset-labelled MTBDD, level by level with arrays.

Thesis [Tealdi13] §4.3.2; the level-wise formulation replaces the recursion over nodes. A node of the new
diagram is a triple (MTBDD node, node of the row set, node of the column set). The triples of one level yield
those of the next, and equal ones are united.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.nodes import FALSE, NodeTable
from mtbdd.offset.offset import SCALED_UNITS, Entries, Level, OffsetMTBDD
from mtbdd.offset.states import StateIndex
from mtbdd.offset.tuples import distinct_rows, stable_order

# Paths carried down by one level of an offset-labelled MTBDD, all at once.

Array = Any
"""A NumPy or CuPy array."""


def descend(
    xp: Any, matrix: OffsetMTBDD, k: int, node: Array, row: Array, column: Array, *carried: Array
) -> tuple[Array, ...]:
    """Replace every path by its continuations over the else edge and the then edge of its node.

    Parameters
    ----------
    xp : module
        Array module of the paths; the diagram's level is copied to it.
    matrix : OffsetMTBDD
    k : int
        Level of the nodes; even levels test row bits, odd ones column bits.
    node : array, shape (paths,), integers
        Node of level k in which each path ends.
    row, column : array, shape (paths,), integers
        Sums of the offsets of the nodes left by their then edges.
    *carried : array, shape (paths,)
        Further data of a path.

    Returns
    -------
    tuple of arrays
        `node` of level k + 1, `row`, `column` and what is carried, for all paths over else edges and then for
        all paths over then edges. Paths to zero are left out.

    Notes
    -----
    Time: O(paths) and the copy of the level.
    """
    level = matrix.levels[k]
    low, high = xp.asarray(level.low)[node], xp.asarray(level.high)[node]
    left, right = (xp.flatnonzero(xp.greater_equal(child, 0)) for child in (low, high))
    step = xp.asarray(level.offset)[node[right]]
    both = xp.concatenate((left, right))
    row, column = row[both], column[both]
    moved = row if k % 2 == 0 else column
    moved[len(left) :] += step.astype(moved.dtype)
    return xp.concatenate((low[left], high[right])), row, column, *(array[both] for array in carried)


# The diagonal of a symbolic matrix, found on the diagram without any submatrix.


def diagonal_of(symbolic: OffsetMTBDD) -> NDArray[np.float64]:
    """Return the diagonal of a square matrix, shape (n,).

    Raises ValueError: if rows and columns stand for different sets of states. Time: O(n), array sweeps over
    the levels: only paths whose row bits equal their column bits are followed.
    """
    node = np.zeros(symbolic.nodes[0], np.int32)
    row = np.zeros(len(node), np.int64)
    for k in range(0, symbolic.n_levels, 2):
        outer, inner = symbolic.levels[k], symbolic.levels[k + 1]
        step = outer.offset[node]
        parts = []
        for first, second in ((outer.low, inner.low), (outer.high, inner.high)):
            middle = first[node]
            there = np.flatnonzero(middle >= 0)
            middle = middle[there]
            if np.any(inner.offset[middle] != step[there]):
                raise ValueError(
                    "diagonal: rows and columns stand for different sets of states; "
                    "take the diagonal of the whole matrix before restricting it"
                )
            below = second[middle]
            kept = below >= 0
            parts.append((below[kept], there[kept]))
        (low, left), (high, right) = parts
        node = np.concatenate((low, high))
        row = np.concatenate((row[left], row[right] + step[right]))
    result = np.zeros(symbolic.shape[0])
    result[row] = symbolic.terminals[node]
    return result


def has_diagonal(symbolic: OffsetMTBDD) -> bool:
    """Return whether a square matrix has an entry on its diagonal.

    `symbolic`: rows and columns stand for the same set of states. Time: O(nodes), array sweeps over the
    levels, down to the first one that no path to the diagonal reaches.
    """
    if symbolic.entries is not None:
        return bool((symbolic.entries.row == symbolic.entries.column).any())
    node = np.arange(symbolic.nodes[0])
    for k in range(0, symbolic.n_levels, 2):
        outer, inner = symbolic.levels[k], symbolic.levels[k + 1]
        below = np.zeros(symbolic.nodes[k + 2], np.bool_)
        for first, second in ((outer.low, inner.low), (outer.high, inner.high)):
            middle = first[node]
            child = second[middle[middle >= 0]]
            below[child[child >= 0]] = True
        node = np.flatnonzero(below)
        if node.size == 0:
            return False
    return bool(node.size)


OUTSIDE = (
    "the matrix has an entry outside the given row and column states: expected all entries inside; "
    "cut it with `SymbolicMatrix.only` first"
)


def offset_label(
    matrix: SymbolicMatrix, rows: StateIndex, columns: StateIndex, table: NodeTable | None = None
) -> OffsetMTBDD:
    """Return the offset-labelled MTBDD of a matrix over given row and column states.

    Parameters
    ----------
    matrix : SymbolicMatrix
        All non-zero entries must lie inside rows x columns.
    rows, columns : StateIndex
        The states that number the rows and the columns.
    table : NodeTable, optional
        The matrix's nodes if already read.

    Returns
    -------
    OffsetMTBDD
        Of shape (rows.size, columns.size).

    Raises
    ------
    ValueError
        An entry lies outside the rows or columns.
    NumberingError
        There are more than 2^62 rows or columns; OverflowError of more entries.

    Notes
    -----
    Time: O(t log t) in numpy for t triples, about the number of MTBDD nodes. Two triples may stand for the
    same submatrix if their sets differ in states without entries alone: some models have up to 1.5 % more
    nodes than distinct submatrices.
    """
    rows.require_numbers()
    columns.require_numbers()
    table = table or matrix.table()
    n = rows.n_bits
    refs = np.array([table.root] if table.root != FALSE else [], dtype=np.int64)
    row_nodes = np.zeros(refs.size, dtype=np.int64)
    column_nodes = np.zeros(refs.size, dtype=np.int64)
    if refs.size and not (rows.size and columns.size):
        raise ValueError(OUTSIDE)
    levels: list[Level] = []
    row_counts: list[NDArray[np.int64]] = []
    column_counts: list[NDArray[np.int64]] = []
    for bit in range(n):
        for is_column in (False, True):
            row_counts.append(rows.counts[bit + is_column][row_nodes])
            column_counts.append(columns.counts[bit][column_nodes])
            level = Manager.column_level(bit) if is_column else Manager.row_level(bit)
            index, nodes = (columns, column_nodes) if is_column else (rows, row_nodes)
            low_set, high_set = index.low[bit][nodes], index.high[bit][nodes]
            below = index.counts[bit + 1]
            offset = np.where(low_set >= 0, below[low_set] if below.size else 0, 0).astype(np.int64)
            # Names are taken again: where nothing is shared, these vectors are most of the memory.
            child = np.concatenate(table.cofactors(refs, level))
            live = child != FALSE
            child = child[live]
            moved = np.concatenate([low_set, high_set])[live]
            del low_set, high_set
            if (moved < 0).any():
                raise ValueError(OUTSIDE)
            kept = np.tile(row_nodes if is_column else column_nodes, 2)[live]
            links = np.full(live.size, -1, dtype=np.int32)
            triples = (child, kept, moved) if is_column else (child, moved, kept)
            first, links[live] = distinct_rows(triples)
            refs, row_nodes, column_nodes = (part[first] for part in triples)
            half = live.size // 2
            levels.append(Level(links[:half], links[half:], offset))
    row_counts.append(np.ones(refs.size, dtype=np.int64))
    column_counts.append(np.ones(refs.size, dtype=np.int64))
    numbers = matrix.terminal_numbers(table, refs)
    return OffsetMTBDD(
        levels=tuple(levels),
        terminals=matrix.terminals[numbers],
        n_rows=rows.size,
        n_columns=columns.size,
        rows=tuple(row_counts),
        columns=tuple(column_counts),
        entry_units=entry_units(matrix),
    )


def entry_units(matrix: SymbolicMatrix) -> float:
    """Return a bound on the relative error of a matrix's entries wherever they are used, in units of 2^-53.

    Blocks that are shared up to a scale are within 4 units in the last place of their own entries, which
    counts as 8 units here.
    """
    return matrix.units + SCALED_UNITS  # lemma: entry-units


# The entries of a matrix of few states, from its diagram; see `mtbdd.offset.offset.OffsetMTBDD.written`.
#
# Most matrices of a small model are the rows and columns of some states in a whole matrix that is known. Some
# array operations number such a part among the entries of the whole. To cut the diagram, to read it and to
# label it takes a few for every bit.

_MOST_BITS = 62
"""Of the number that the bits of a state spell."""


def list_entries(matrix: SymbolicMatrix, index: StateIndex, table: NodeTable, most: int) -> Entries | None:
    """Return the entries of a square matrix over a set of states.

    `index`: the states that number rows and columns. `table`: the matrix's nodes. `most`: entries that are
    listed. Returns Entries or None: None if there are more, or if states have too many bits. Raises
    ValueError: an entry lies outside the rows or columns.

    Paths are followed with the numbers that their row and column bits spell. Time: O(entries) in numpy for
    every level.
    """
    if index.n_bits > _MOST_BITS:
        return None
    refs = np.array([table.root] if table.root != FALSE else [], dtype=np.int64)
    row, column = np.zeros(refs.size, np.int64), np.zeros(refs.size, np.int64)
    for bit in range(index.n_bits):
        for level in (Manager.row_level(bit), Manager.column_level(bit)):
            low, high = table.cofactors(refs, level)
            left, right = np.flatnonzero(low != FALSE), np.flatnonzero(high != FALSE)
            both = np.concatenate((left, right))
            if both.size > most:
                return None
            refs = np.concatenate((low[left], high[right]))
            row, column = row[both], column[both]
            spelt = row if level == Manager.row_level(bit) else column
            spelt *= 2
            spelt[left.size :] += 1
    rows, columns = (_numbers(index.codes, spelt) for spelt in (row, column))
    order = stable_order(np, (rows, columns))
    numbers = matrix.terminal_numbers(table, refs)
    return Entries(rows[order], columns[order], matrix.terminals[numbers[order]])


def _numbers(codes: NDArray[np.int64], spelt: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the place of every code among those of the states."""
    place = np.searchsorted(codes, spelt)
    if spelt.size and (place.max() == codes.size or (codes[place] != spelt).any()):
        raise ValueError(OUTSIDE)
    return place.astype(np.int32)
