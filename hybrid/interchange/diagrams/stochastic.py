"""Rows of probabilities as diagrams: what they add up to, and their division by it."""

from __future__ import annotations

import numpy as np

from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.validate import TOLERANCE, rounding_of_sums
from mtbdd.arithmetic import divide, sum_over
from mtbdd.encoding import Encoding
from mtbdd.faults import format_state
from mtbdd.manager import Node
from mtbdd.matrix import SymbolicMatrix
from mtbdd.partition import Partition

# lemma: entry-units
_NEAR = 2.0**-50  # of 1: rows that add up so closely only have rounding errors
_MOST_NODES = 1 << 20  # of sums of rows: seconds; more values of rows than that are no use as a diagram
_NEAR_UNITS = 9.0  # the same in units of 2^-53, its own computation included


def row_sums(matrix: SymbolicMatrix) -> SymbolicMatrix:
    """Return what the rows of a matrix add up to, over row bits.

    Raises
    ------
    InterchangeError
        The sums take far more values than the entries, too many for a diagram.
    """
    try:
        return sum_over(matrix, matrix.manager.columns, _MOST_NODES)
    except MemoryError as error:
        raise InterchangeError(
            f"the sums of the rows are too large as a diagram: {error}; models whose states have millions of "
            "different exit rates are better given as a text"
        ) from None


def divided_rows(
    encoding: Encoding, matrix: SymbolicMatrix, sums: SymbolicMatrix, source: str
) -> SymbolicMatrix:
    """Return a matrix with every row divided by what it adds up to.

    Parameters
    ----------
    encoding : Encoding
    matrix : SymbolicMatrix
        Probabilities.
    sums : SymbolicMatrix
        What its rows add up to, over row bits; 0 for rows without entries.
    source : str
        What messages begin with.

    Returns
    -------
    SymbolicMatrix
        Rows that add up to 1 but for rounding errors stay as they are.

    Raises
    ------
    InterchangeError
        A row adds up to another number than 1, by more than 1e-5; the message names a state.
    """
    values = sums.terminals
    off = np.abs(values - 1)
    rounding = rounding_of_sums(matrix.units + sums.units)
    for k in np.flatnonzero(~(off <= TOLERANCE + rounding)).tolist():
        wrong = _where(sums, k)
        if wrong != encoding.manager.false:
            state = format_state(encoding.pick(wrong))
            raise InterchangeError(
                f"{source}: state {state}: expected probabilities that add up to 1, got {values[k]}; "
                "add what is missing, or use type='ctmc' for rates"
            )
    near = off <= _NEAR
    if near.all():
        exact = bool((values == 1).all()) and _adds_exactly(matrix)
        # lemma: entry-units
        units = matrix.units + (0.0 if exact else _NEAR_UNITS)
        return SymbolicMatrix(matrix.manager, matrix.node, matrix.terminals, units)
    pieces: dict[float, list[Node]] = {}
    for k, value in enumerate(values.tolist()):
        pieces.setdefault(1.0 if near[k] else value, []).append(_where(sums, k))
    united = {value: encoding.manager.disjunction(sets) for value, sets in pieces.items()}
    # lemma: entry-units
    divisors = Partition(encoding.manager, united, sums.units + _NEAR_UNITS)
    return divide(matrix, SymbolicMatrix.from_partition(divisors, unite=False))


def _where(function: SymbolicMatrix, number: int) -> Node:
    """Return where a function has the terminal of a number."""
    manager, index = function.manager, function.index_bits
    if not index:
        return function.node
    return manager.exists(index, function.node & manager.cube(index, number))


def _adds_exactly(matrix: SymbolicMatrix) -> bool:
    """Whether sums of the entries up to 2 round nothing: they are multiples of 2^-52."""
    scaled = np.ldexp(matrix.terminals, 52)
    return bool((scaled == np.floor(scaled)).all())
