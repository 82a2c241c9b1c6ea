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
from mtbdd.diagrams.operands import both_loaded, loaded, one_sign, sum_units
from mtbdd.diagrams.partition import compound
from mtbdd.diagrams.value_diagrams import ValueDiagrams
from mtbdd.diagrams.value_nodes import MOST_NODES
from mtbdd.diagrams.value_operations import MAXIMUM, MINIMUM, PRODUCT, QUOTIENT, SUM, Operation


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
