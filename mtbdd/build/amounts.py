"""Sums of rewards: exact as long as they are sets by value, with a bound on their error as vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.diagrams.partition import Partition
from mtbdd.language.reals import Enclosure
from mtbdd.offset.expansion import absorbed, written_out
from mtbdd.offset.places import HOST, is_any
from mtbdd.offset.states import StateIndex

_UNIT = Fraction(1, 2**53)  # lemma: entry-units
_UP = 1 + 2.0**-40  # lemma: interval-sum
_BLOCK = 1 << 14
_LEAST_SHARED = 2.0**-900
"""A unit in the last place of a greater number is no subnormal one."""

Vector = NDArray[np.float64]
Enclosed = tuple[Vector, Vector | None]
"""Numbers, and a bound on their absolute errors; None if they are exact."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number known up to an absolute error."""

    value: Fraction
    error: Fraction

    @classmethod
    def of(cls, number: Any) -> Amount:
        """Return an integer or a real as an amount."""
        if isinstance(number, Enclosure):
            middle = (number.low + number.high) / 2
            return cls(middle, number.high - middle)
        return cls(Fraction(number), Fraction(0))

    @classmethod
    def of_carrier(cls, units: float) -> Callable[[float, Amount], Amount]:
        """Return the product of a double, off by some units of 2^-53, with an amount."""
        relative = Fraction(units) * _UNIT  # lemma: entry-units

        def product(often: float, amount: Amount) -> Amount:
            factor = Fraction(often)
            error = amount.error + relative * (abs(amount.value) + amount.error)  # lemma: entry-units
            return cls(factor * amount.value, factor * error)  # lemma: entry-units

        return product

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.value + other.value, self.error + other.error)  # lemma: interval-sum

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < other)

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > other)

    @property
    def double(self) -> float:
        """The double next to the number."""
        try:
            return self.value.numerator / self.value.denominator
        except OverflowError:
            return math.inf if self.value > 0 else -math.inf

    @property
    def distance(self) -> float:
        """A bound on the error of that double."""
        if not math.isfinite(self.double):
            return math.inf
        error = abs(self.value - Fraction(self.double)) + self.error  # lemma: interval-sum
        return math.nextafter(float(error), math.inf) if error else 0.0  # lemma: interval-sum


def added_up(parts: Sequence[Partition], vectors: Sequence[Enclosed], index: StateIndex) -> Enclosed:
    """Return the sum of functions of the states.

    Parameters
    ----------
    parts : sequence of Partition
        By `Amount`.
    vectors : sequence of pairs of ndarray
        Each of shape (index.size,).
    index : StateIndex

    Returns
    -------
    values : ndarray of float64, shape (index.size,)
    error : ndarray of float64, shape (index.size,), or None

    Notes
    -----
    Functions with few values are added as sets first, exactly; the rest meet as vectors, whose sums carry
    what is rounded off (compensated summation).  Sets are cut to the states last of all, when they are read
    out.  Time: O(n) for every function that is not absorbed.
    """
    found = [*vectors, *(_expanded(part, index) for part in absorbed(parts, index))]
    if not found:
        return index.place.xp.zeros(index.size), None
    if len(found) == 1:
        return found[0]
    return _sum(found, index)


def _expanded(part: Partition, index: StateIndex) -> Enclosed:
    """Return a function of amounts as vectors.

    All errors are that share of the value which the worst of them has: one product, and no second diagram.
    """
    values = written_out(part.map(lambda amount: amount.double), index, unite=False)
    pairs = [(abs(amount.double), amount.distance) for amount in part.pieces if amount.distance]
    if not pairs:
        return values, None
    if all(_LEAST_SHARED < size < math.inf and distance <= size for size, distance in pairs):
        share = max(Fraction(distance) / Fraction(size) for size, distance in pairs)
        xp, factor = index.place.xp, math.nextafter(float(share), math.inf) * _UP  # lemma: entry-units
        error = xp.abs(values)
        return values, xp.multiply(error, factor, out=error)
    return values, written_out(part.map(lambda amount: amount.distance), index, unite=False)


def _sum(found: Sequence[Enclosed], index: StateIndex) -> Enclosed:
    """Return the sum of vectors: what additions round off is added up, too."""
    first, xp = found[0][0], index.place.xp
    with np.errstate(all="ignore"):
        if index.place is not HOST:
            total, error = _summed_block(xp, found)
        else:
            # So much at a time as stays in the caches with what is met on the way.
            total, error = np.empty_like(first), np.empty_like(first)
            for begin in range(0, total.size, _BLOCK):
                part = slice(begin, begin + _BLOCK)
                cut = [(values[part], None if own is None else own[part]) for values, own in found]
                total[part], error[part] = _summed_block(xp, cut)
    return total, error if is_any(xp.greater(error, 0.0)) else None


def _summed_block(xp: Any, found: Sequence[Enclosed]) -> tuple[Vector, Vector]:
    """Return the sum of parts of vectors, and a bound on its error."""
    total, rest = found[0][0], np.zeros_like(found[0][0])
    error = np.zeros_like(total)
    for values, _ in found[1:]:
        total, lost = _two_sum(total, values)
        rest, second = _two_sum(rest, lost)
        # lemma: interval-sum
        error += xp.abs(second)
    for _, own in found:
        if own is not None:
            # lemma: interval-sum
            error += own
    total, lost = _two_sum(total, rest)
    error = xp.multiply(error + xp.abs(lost), _UP)  # lemma: interval-sum
    return total, xp.where(xp.isfinite(error), error, np.inf)


def _two_sum(a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """Return a sum and its rounding error, exactly (Knuth)."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


def scaled(values: Vector, error: Vector | None, often: Partition, index: StateIndex) -> Enclosed:
    """Return numbers times a function of the states, off by its units."""
    factor = written_out(often, index, unite=False)
    product = values * factor
    exact = (values == 0) | (factor == 0) | (factor == 1)
    size = np.abs(product)
    # lemma: entry-units
    bound = size * (often.units * 2.0**-53) + np.where(exact, 0.0, size * 2.0**-53 + 2.0**-1074)
    if error is not None:
        bound += error * factor * (1 + often.units * 2.0**-53)  # lemma: entry-units
    bound *= _UP
    return product, bound if bound.any() else None
