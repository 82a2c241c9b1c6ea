"""Products of symbolic matrices and vectors of one manager."""

from __future__ import annotations

import math

import numpy as np

from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.operands import both_loaded, one_sign, sum_units
from mtbdd.diagrams.partition import compound
from mtbdd.diagrams.value_diagrams import ValueDiagrams
from mtbdd.diagrams.value_operations import PRODUCT, SUM


def matrix_vector(matrix: SymbolicMatrix, vector: SymbolicMatrix) -> SymbolicMatrix:
    """Return the product of a matrix and a vector over row bits, again over row bits.

    Parameters
    ----------
    matrix, vector : SymbolicMatrix

    Returns
    -------
    SymbolicMatrix

    Raises
    ------
    ValueError
        The two are of different managers, or the vector has column bits.
    OverflowError
        As for `add`.

    Notes
    -----
    All products are made as one diagram and then summed over the column bits. Vectors that iterations make
    have nearly as many values as states: a few products are quick, hundreds belong to an offset-labelled
    matrix (`mtbdd.OffsetMTBDD`).
    """
    manager = matrix.manager
    work, x, y = both_loaded(matrix, vector)
    _no_columns(work, y, manager)
    y = work.renamed(y, {manager.row_level(i): manager.column_level(i) for i in range(manager.n_bits)})
    columns = [manager.column_level(i) for i in range(manager.n_bits)]
    # lemma: entry-units
    found, units = _contracted(work, x, y, columns, compound(matrix.units, vector.units))
    return work.store(manager, found, units)


def vector_matrix(vector: SymbolicMatrix, matrix: SymbolicMatrix) -> SymbolicMatrix:
    """Return the product of a row vector, over row bits, and a matrix: what a step makes of a distribution.

    Parameters
    ----------
    vector, matrix : SymbolicMatrix

    Returns
    -------
    SymbolicMatrix

    Raises
    ------
    ValueError, OverflowError
        As for `matrix_vector`.
    """
    manager = matrix.manager
    work, x, y = both_loaded(vector, matrix)
    _no_columns(work, x, manager)
    rows = [manager.row_level(i) for i in range(manager.n_bits)]
    found, units = _contracted(work, x, y, rows, compound(matrix.units, vector.units))  # lemma: entry-units
    back = {manager.column_level(i): manager.row_level(i) for i in range(manager.n_bits)}
    return work.store(manager, work.renamed(found, back), units)


def matrix_matrix(a: SymbolicMatrix, b: SymbolicMatrix) -> SymbolicMatrix:
    """Return the product of two matrices, over the row bits of `a` and the column bits of `b`.

    Parameters
    ----------
    a, b : SymbolicMatrix

    Returns
    -------
    SymbolicMatrix

    Raises
    ------
    ValueError, OverflowError
        As for `add`.

    Notes
    -----
    Rows stay, the bits between stand on column levels, and the columns on the spare levels below them: no
    renaming changes an order.  Time: that of the diagram of all products, of rows, between and columns.
    """
    manager = a.manager
    work, x, y = both_loaded(a, b)
    n = range(manager.n_bits)
    lower = {3 * i: 3 * i + 1 for i in n} | {3 * i + 1: 3 * i + 2 for i in n}
    between = [manager.column_level(i) for i in n]
    # lemma: entry-units
    found, units = _contracted(work, x, work.renamed(y, lower), between, compound(a.units, b.units))
    return work.store(manager, work.renamed(found, {3 * i + 2: 3 * i + 1 for i in n}), units)


def _contracted(work: ValueDiagrams, x: int, y: int, levels: list[int], units: float) -> tuple[int, float]:
    """Return the product of two functions summed over the bits of some levels, and its units."""
    product = int(work.apply(PRODUCT, np.array([x]), np.array([y]))[0])
    # lemma: entry-units
    units = sum_units(compound(units, 1.0), len(levels)) if one_sign(work, product) else math.inf
    return work.fold(SUM, product, levels), units


def _no_columns(work: ValueDiagrams, vector: int, manager: Manager) -> None:
    """Refuse a vector that depends on column bits."""
    if any(level < work.bottom and level % 3 != 0 for level, _ in work.below(vector)):
        raise ValueError(
            "expected a vector over row bits, got a function of column bits; "
            "a product of matrices is `matrix_matrix`"
        )
