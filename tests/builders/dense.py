"""Symbolic functions from dense arrays, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.nodes import FALSE
from mtbdd.diagrams.partition import from_table

__all__ = ["dense_matrix", "dense_vector", "symbolic_matrix", "symbolic_vector"]

Array = NDArray[np.float64]


def symbolic_matrix(manager: Manager, dense: Array) -> SymbolicMatrix:
    """Return the function whose entries, by row and column, are those of an array."""
    n = manager.n_bits
    axes = [axis for bit in range(n) for axis in (bit, n + bit)]
    table = dense.reshape((2,) * (2 * n)).transpose(axes).reshape(-1)
    names = [name for pair in zip(manager.rows, manager.columns, strict=True) for name in pair]
    return _symbolic(manager, names, table)


def symbolic_vector(manager: Manager, dense: Array) -> SymbolicMatrix:
    """Return the function of row bits whose values are those of an array."""
    return _symbolic(manager, list(manager.rows), dense)


def _symbolic(manager: Manager, names: list[str], table: Array) -> SymbolicMatrix:
    partition = from_table(manager, names, table, np.ones(table.size, dtype=np.bool_))
    return SymbolicMatrix.from_partition(partition, unite=False)


def dense_matrix(matrix: SymbolicMatrix) -> Array:
    """Return all entries, by following all assignments at once through the diagram."""
    n = matrix.manager.n_bits
    row, column = (a.reshape(-1) for a in np.indices((1 << n, 1 << n)))
    return _values(matrix, row, column).reshape(1 << n, 1 << n)


def dense_vector(vector: SymbolicMatrix) -> Array:
    """Return all values of a function of row bits."""
    entries = dense_matrix(vector)
    assert (entries == entries[:, :1]).all()
    return entries[:, 0]


def _values(function: SymbolicMatrix, row: NDArray[np.int64], column: NDArray[np.int64]) -> Array:
    manager, table = function.manager, function.table()
    refs = np.full(row.size, table.root)
    for bit in range(manager.n_bits):
        shift = manager.n_bits - 1 - bit
        for level, number in ((manager.row_level(bit), row), (manager.column_level(bit), column)):
            low, high = table.cofactors(refs, level)
            refs = np.where(number >> shift & 1, high, low)
    found = np.zeros(row.size)
    inside = refs != FALSE
    found[inside] = function.terminals[function.terminal_numbers(table, refs[inside])]
    return found
