"""The entries of a matrix of few states, from its diagram; see `mtbdd.offset.offset.OffsetMTBDD.written`.

Most matrices of a small model are the rows and columns of some states in a whole matrix that is known.
Some array operations number such a part among the entries of the whole. To cut the diagram, to read it and to
label it takes a few for every bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.nodes import FALSE, NodeTable
from mtbdd.offset.convert import OUTSIDE
from mtbdd.offset.entries import Entries
from mtbdd.offset.states import StateIndex
from mtbdd.offset.tuples import stable_order

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
