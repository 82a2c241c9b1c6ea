"""Arithmetic on doubles rounded downwards and upwards.

A result is moved to its neighbour only where it was rounded: the rounding error of a sum is a double (D. E.
Knuth's TwoSum), and so is that of a product (T. J. Dekker, A floating-point technique for extending the
available precision, 1971) of factors that are neither huge nor tiny.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The numbers of a sequence that are near its least, where bounds show that the rest are not.


def near_least(
    count: int, value: Callable[[int], float | None], floor: Callable[[int], float], factor: float
) -> list[tuple[float, int]]:
    """Return numbers of a sequence of `count`, from its beginning, until no later one can be near the least.

    `value` returns number i, None where it has none; `floor` what number i and all later ones are not below.
    Near is what is at most `factor` times the least. Numbers come with their positions, in the order of the
    sequence; others than the near ones may be among them. Time: that of value and floor for every number up
    to the first that nothing later can be near of.
    """
    found: list[tuple[float, int]] = []
    least = math.inf
    for i in range(count):
        if floor(i) > factor * least:
            break
        own = value(i)
        if own is not None:
            found.append((own, i))
            least = min(least, own)
    return found


GREATEST = float(np.finfo(np.float64).max)
"""The greatest finite double."""

_SPLIT = 2.0**27 + 1
# lemma: arithmetic
_LARGE, _SMALL = 2.0**500, 2.0**-480  # products of factors within these bounds are split exactly

Vector = NDArray[np.float64]
Directed = tuple[Vector, Vector]
"""The greatest double up to a number, or one below it, and the least double from it, or one above."""


def rounded_up(number: Fraction) -> float:
    """Return the least double from a number."""
    return 0.0 - rounded_down(-number)  # lemma: arithmetic


def rounded_down(number: Fraction) -> float:
    """Return the greatest double up to a number."""
    try:
        found = float(number)
    except OverflowError:
        return GREATEST if number > 0 else -math.inf
    return math.nextafter(found, -math.inf) if Fraction(found) > number else found  # lemma: arithmetic


def added(a: Vector, b: Vector) -> Directed:
    """Return bounds on ``a + b``."""
    with np.errstate(all="ignore"):
        total = a + b
        rest = total - a
        error = (a - (total - rest)) + (b - rest)  # lemma: arithmetic
        lower = np.where(error < 0, np.nextafter(total, -np.inf), total)  # lemma: arithmetic
        upper = np.where(error > 0, np.nextafter(total, np.inf), total)  # lemma: arithmetic
        lower, upper = _where_unsure(~np.isfinite(error), total, lower, upper)  # lemma: arithmetic
        return _finite_operands(total, np.isfinite(a) & np.isfinite(b), lower, upper)


def multiplied(a: Vector, b: Vector) -> Directed:
    """Return bounds on ``a * b``."""
    with np.errstate(all="ignore"):
        total, error, known = _product(a, b)
        unity = (a == 0) | (b == 0) | (np.abs(a) == 1) | (np.abs(b) == 1)
        error, known = np.where(unity, 0.0, error), known | unity  # lemma: arithmetic
        lower = np.where(error < 0, np.nextafter(total, -np.inf), total)  # lemma: arithmetic
        upper = np.where(error > 0, np.nextafter(total, np.inf), total)  # lemma: arithmetic
        lower, upper = _where_unsure(~known, total, lower, upper)  # lemma: arithmetic
        return _finite_operands(total, np.isfinite(a) & np.isfinite(b), lower, upper)


def divided(a: Vector, b: Vector) -> Directed:
    """Return bounds on ``a / b``; a division by zero is infinite, or NaN, without rounding."""
    with np.errstate(all="ignore"):
        total = a / b
        back, error, known = _product(total, b)
        exact = known & (back == a) & (error == 0) | (a == 0) | (np.abs(b) == 1) | (b == 0)
        lower, upper = _where_unsure(~exact, total, total, total)  # lemma: arithmetic
        return _finite_operands(total, np.isfinite(a) & np.isfinite(b) & (b != 0), lower, upper)


def outward(values: Vector, error: Vector) -> Directed:
    """Return bounds on numbers that are off by at most an error; itself where that is zero."""
    with np.errstate(all="ignore"):
        lower = np.where(error > 0, np.nextafter(values - error, -np.inf), values)  # lemma: arithmetic
        upper = np.where(error > 0, np.nextafter(values + error, np.inf), values)  # lemma: arithmetic
    return lower, upper


def _product(a: Vector, b: Vector) -> tuple[Vector, Vector, Any]:
    """Return a product, its rounding error, and where the error is known."""
    total = a * b
    known = (np.abs(a) < _LARGE) & (np.abs(b) < _LARGE) & (np.abs(a) > _SMALL) & (np.abs(b) > _SMALL)
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    error = ((ah * bh - total) + ah * bl + al * bh) + al * bl  # lemma: arithmetic
    return total, error, known


def _halves(a: Vector) -> tuple[Vector, Vector]:
    """Return a number as the sum of two with half the digits each."""
    large = a * _SPLIT
    high = large - (large - a)
    return high, a - high


def _where_unsure(unsure: Any, total: Vector, lower: Vector, upper: Vector) -> Directed:
    """Return bounds moved outwards where it is not known whether the result was rounded."""
    lower = np.where(unsure, np.nextafter(total, -np.inf), lower)  # lemma: arithmetic
    upper = np.where(unsure, np.nextafter(total, np.inf), upper)  # lemma: arithmetic
    return lower, upper


def _finite_operands(total: Vector, finite: Any, lower: Vector, upper: Vector) -> Directed:
    """Return bounds that are infinite only on the outer side where finite numbers left the doubles.

    Infinite operands give infinite results exactly.
    """
    lower = np.where(finite & (total == np.inf), GREATEST, np.where(finite, lower, total))
    upper = np.where(finite & (total == -np.inf), -GREATEST, np.where(finite, upper, total))
    return lower, upper
