"""Arithmetic on symbolic matrices and vectors of one manager: entry by entry, and over bits.

All functions take and return `SymbolicMatrix`, a real function of the manager's bits: a matrix has row and
column bits, a vector row bits alone.  Entries are doubles, and every operation rounds each of them once
to nearest (sums over k bits: k times).  `SymbolicMatrix.units` bounds the relative error that this makes; it
is infinite after a sum of numbers of both signs, which may cancel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.matrix import SymbolicMatrix, merge_close
from mtbdd.diagrams.partition import compound
from mtbdd.diagrams.value_diagrams import (
    MAXIMUM,
    MINIMUM,
    MOST_NODES,
    PRODUCT,
    QUOTIENT,
    SUM,
    Operation,
    ValueDiagrams,
)

# Operands of symbolic arithmetic: read into common arrays, and the errors of what is made of them.


def loaded(a: SymbolicMatrix, most_nodes: int = MOST_NODES) -> tuple[ValueDiagrams, int]:
    """Return a function in arrays that may take so many nodes."""
    work = ValueDiagrams(a.manager.index_level, most_nodes)
    return work, work.load(a)


def both_loaded(a: SymbolicMatrix, b: SymbolicMatrix) -> tuple[ValueDiagrams, int, int]:
    """Return two functions of one manager in common arrays."""
    if a.manager is not b.manager:
        raise ValueError(
            "expected functions of one manager, got two managers; "
            "`mtbdd.diagrams.matrix.transferred` moves a set from one to another"
        )
    work, x = loaded(a)
    return work, x, work.load(b)


def one_sign(work: ValueDiagrams, *functions: int) -> bool:
    """Whether all values of some functions are from 0, or all up to 0."""
    values = np.concatenate([work.values(f) for f in functions])
    return not (bool((values < 0).any()) and bool((values > 0).any()))


def sum_units(units: float, bits: int) -> float:
    """Return the units after adding two halves a bit."""
    for _ in range(bits):
        # lemma: entry-units
        units = compound(units, 1.0)
    return units


# Products of symbolic matrices and vectors of one manager.


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


def add(a: SymbolicMatrix, b: SymbolicMatrix) -> SymbolicMatrix:
    """Return the sum of two functions, entry by entry.

    Parameters
    ----------
    a, b : SymbolicMatrix

    Returns
    -------
    SymbolicMatrix

    Raises
    ------
    ValueError
        The two are of different managers.
    OverflowError
        A sum is beyond the largest double.

    Notes
    -----
    Time: O(p log p) in numpy for p pairs of nodes that meet, and one call of the package a node of the
    result; so for `multiply`, `divide`, `maximum` and `minimum`.
    """
    work, x, y = both_loaded(a, b)
    units = compound(max(a.units, b.units), 1.0) if one_sign(work, x, y) else math.inf  # lemma: entry-units
    return _applied(work, a.manager, SUM, x, y, units)


def multiply(a: SymbolicMatrix, b: SymbolicMatrix) -> SymbolicMatrix:
    """Return the product of two functions, entry by entry; it is zero only where one of them is.

    A product below the least double becomes the least double of its sign.  A set (`SymbolicMatrix.only`) cuts
    faster than a product with its indicator.

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
    """
    work, x, y = both_loaded(a, b)
    # lemma: entry-units
    return _applied(work, a.manager, PRODUCT, x, y, compound(compound(a.units, b.units), 1.0))


def divide(a: SymbolicMatrix, b: SymbolicMatrix) -> SymbolicMatrix:
    """Return the quotient of two functions, entry by entry; zero wherever `a` is.

    Parameters
    ----------
    a, b : SymbolicMatrix

    Returns
    -------
    SymbolicMatrix

    Raises
    ------
    ZeroDivisionError
        `b` is zero where `a` is not.
    ValueError, OverflowError
        As for `add`.
    """
    work, x, y = both_loaded(a, b)
    # lemma: entry-units
    return _applied(work, a.manager, QUOTIENT, x, y, compound(compound(a.units, b.units), 1.0))


def maximum(a: SymbolicMatrix, b: SymbolicMatrix) -> SymbolicMatrix:
    """Return the greater of two functions, entry by entry; entries that are zero count.

    Parameters
    ----------
    a, b : SymbolicMatrix

    Returns
    -------
    SymbolicMatrix

    Raises
    ------
    ValueError
        As for `add`.
    """
    work, x, y = both_loaded(a, b)
    return _applied(work, a.manager, MAXIMUM, x, y, max(a.units, b.units))  # lemma: entry-units


def minimum(a: SymbolicMatrix, b: SymbolicMatrix) -> SymbolicMatrix:
    """Return the smaller of two functions, entry by entry; entries that are zero count.

    Parameters
    ----------
    a, b : SymbolicMatrix

    Returns
    -------
    SymbolicMatrix

    Raises
    ------
    ValueError
        As for `add`.
    """
    work, x, y = both_loaded(a, b)
    return _applied(work, a.manager, MINIMUM, x, y, max(a.units, b.units))  # lemma: entry-units


def scaled(a: SymbolicMatrix, factor: float) -> SymbolicMatrix:
    """Return a function times a number.

    Parameters
    ----------
    a : SymbolicMatrix
    factor : float

    Returns
    -------
    SymbolicMatrix

    Raises
    ------
    ValueError
        The factor is NaN.
    OverflowError
        The factor is infinite, or a product is beyond the largest double.
    """
    work, x = loaded(a)
    y = int(work.leaves(np.array([float(factor)]))[0])
    exact = math.frexp(abs(factor))[0] in (0.0, 0.5)
    # lemma: entry-units
    return _applied(work, a.manager, PRODUCT, x, y, a.units if exact else compound(a.units, 1.0))


def restricted(a: SymbolicMatrix, bits: Mapping[str, bool]) -> SymbolicMatrix:
    """Return a function with some bits fixed (its cofactor), which no longer depends on them.

    Parameters
    ----------
    a : SymbolicMatrix
    bits : mapping of str to bool
        Names out of ``manager.rows`` and ``manager.columns``. `SymbolicMatrix.only` restricts to a set.

    Returns
    -------
    SymbolicMatrix

    Raises
    ------
    ValueError
        A name is no row or column bit.

    Notes
    -----
    Time: O(n log n) in numpy for n nodes, and one call of the package a node of the result.
    """
    work, x = loaded(a)
    levels = dict(zip(_levels(a.manager, bits), bits.values(), strict=True))
    return work.store(a.manager, work.cofactor(x, levels), a.units)


def united(a: SymbolicMatrix) -> SymbolicMatrix:
    """Return a function in which values that are a rounding error apart have become one.

    What is equal on paper comes out of sums in different orders as several doubles, and each is a terminal.
    Values within 4 units in the last place become the least of them; the `units` grow by what that moves.

    Parameters
    ----------
    a : SymbolicMatrix

    Returns
    -------
    SymbolicMatrix

    Notes
    -----
    Time: O(values log values), and as for `restricted`.
    """
    work, x = loaded(a)
    old = work.values(x)
    close = merge_close(old.tolist())
    new = np.array([close[value] for value in old.tolist()])
    moved = np.divide(np.abs(new - old), np.abs(old), out=np.zeros_like(old), where=old != 0)
    distance = float(moved.max(initial=0.0)) * 2.0**53 * (1 + 2.0**-40)  # lemma: entry-units
    found = work.mapped(x, lambda values: new[np.searchsorted(old, values)])
    units = compound(a.units, distance) if distance else a.units  # lemma: entry-units
    return work.store(a.manager, found, units)


def sum_over(a: SymbolicMatrix, bits: Iterable[str], most_nodes: int = MOST_NODES) -> SymbolicMatrix:
    """Return a function summed over all values of some bits; over the column bits these are the row sums.

    Parameters
    ----------
    a : SymbolicMatrix
    bits : iterable of str
        Names out of ``manager.rows`` and ``manager.columns``.
    most_nodes : int
        Nodes of all that is made, beyond which to give up.

    Returns
    -------
    SymbolicMatrix

    Raises
    ------
    ValueError
        A name is no row or column bit.
    OverflowError
        A sum is beyond the largest double.
    MemoryError
        More nodes are needed: the sums take very many values.

    Notes
    -----
    Numbers are added as a balanced tree, two halves a bit: k bits make k roundings.  Time: that of an `add` a
    bit, of the parts of the diagram below it.
    """
    work, x = loaded(a, most_nodes)
    levels = _levels(a.manager, bits)
    units = sum_units(a.units, len(levels)) if one_sign(work, x) else math.inf
    return work.store(a.manager, work.fold(SUM, x, levels), units)


def maximum_over(a: SymbolicMatrix, bits: Iterable[str]) -> SymbolicMatrix:
    """Return the greatest value over all values of some bits; entries that are zero count.

    Parameters
    ----------
    a : SymbolicMatrix
    bits : iterable of str

    Returns
    -------
    SymbolicMatrix

    Raises
    ------
    ValueError
        A name is no row or column bit.
    """
    work, x = loaded(a)
    return work.store(a.manager, work.fold(MAXIMUM, x, _levels(a.manager, bits)), a.units)


def minimum_over(a: SymbolicMatrix, bits: Iterable[str]) -> SymbolicMatrix:
    """Return the least value over all values of some bits; entries that are zero count.

    Parameters
    ----------
    a : SymbolicMatrix
    bits : iterable of str

    Returns
    -------
    SymbolicMatrix

    Raises
    ------
    ValueError
        A name is no row or column bit.
    """
    work, x = loaded(a)
    return work.store(a.manager, work.fold(MINIMUM, x, _levels(a.manager, bits)), a.units)


# ------------------------------------------------------------------ pieces


def _applied(
    work: ValueDiagrams, manager: Manager, operation: Operation, x: int, y: int, units: float
) -> SymbolicMatrix:
    """Return an operation on two functions as a symbolic matrix."""
    found = work.apply(operation, np.array([x]), np.array([y]))
    return work.store(manager, int(found[0]), units)


def _levels(manager: Manager, bits: Iterable[str]) -> list[int]:
    """Return the levels of row and column bits given by name."""
    known = {name: level for level, name in _named_levels(manager)}
    found = []
    for name in bits:
        if name not in known:
            raise ValueError(
                f"expected bits out of `manager.rows` and `manager.columns`, got {name!r}; "
                "`Encoding.row_names` has those of a variable"
            )
        found.append(known[name])
    return list(dict.fromkeys(found))


def _named_levels(manager: Manager) -> Iterable[tuple[int, str]]:
    """Yield the level and the name of every row and column bit."""
    for i in range(manager.n_bits):
        yield manager.row_level(i), manager.rows[i]
        yield manager.column_level(i), manager.columns[i]
