"""Operations on two real numbers, for whole arrays, and where a diagram's node decides them at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtbdd.diagrams.partition import LEAST

Ids = NDArray[np.int64]
Values = NDArray[np.float64]

ZERO = 0
"""Number of the leaf 0 in every `mtbdd.diagrams.value_diagrams.ValueDiagrams`."""

ONE = 1
"""Number of the leaf 1."""


@dataclass(frozen=True)
class Operation:
    """An operation that is applied to every pair of values of two functions.

    Attributes
    ----------
    values : callable
        The operation on two arrays of values.
    known : callable
        Maps two arrays of nodes to an array of results: a node, or -1 where both have to be walked through.
    commutes : bool
        Whether the operands may be exchanged.
    doubles : bool
        Whether ``operation(a, a)`` is ``2 * a`` (else it is ``a``): what folding over a bit does to a
        function that does not depend on it.
    """

    values: Callable[[Values, Values], Values]
    known: Callable[[Ids, Ids], Ids]
    commutes: bool = True
    doubles: bool = False


def _sum_known(x: Ids, y: Ids) -> Ids:
    return np.where(x == ZERO, y, np.where(y == ZERO, x, -1))


def _product_known(x: Ids, y: Ids) -> Ids:
    zero = (x == ZERO) | (y == ZERO)
    return np.where(zero, ZERO, np.where(x == ONE, y, np.where(y == ONE, x, -1)))


def _quotient_known(x: Ids, y: Ids) -> Ids:
    return np.where(y == ONE, x, np.where((x == ZERO) & (y != ZERO), ZERO, -1))


def _same_known(x: Ids, y: Ids) -> Ids:
    return np.where(x == y, x, -1)


def _product(a: Values, b: Values) -> Values:
    """Return products that are zero only where a factor is; a smaller one becomes the least double."""
    found = a * b
    lost = (found == 0) & (a != 0) & (b != 0)  # lemma: underflow
    return np.where(lost, np.copysign(LEAST, found), found)


def _quotient(a: Values, b: Values) -> Values:
    """Return quotients that are zero only where the dividend is; 0 where that is 0, whatever the divisor."""
    if ((b == 0) & (a != 0)).any():
        raise ZeroDivisionError("expected a divisor that is nowhere 0 where the dividend is not")
    found = np.divide(a, b, out=np.zeros_like(a), where=a != 0)
    return np.where((found == 0) & (a != 0), np.copysign(LEAST, found), found)


SUM = Operation(lambda a, b: a + b, _sum_known, doubles=True)
PRODUCT = Operation(_product, _product_known)
QUOTIENT = Operation(_quotient, _quotient_known, commutes=False)
MAXIMUM = Operation(lambda a, b: np.maximum(a, b), _same_known)
MINIMUM = Operation(lambda a, b: np.minimum(a, b), _same_known)
