"""Exact numbers over states: vectors of places in one table of rational numbers.

Models have few distinct rates and rewards, so that exact arithmetic over millions of states is arithmetic
over the distinct pairs that meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import NotCertifiableError

Places = NDArray[np.int32]
Ints = NDArray[np.int64]

_MOST_BITS = 1 << 16  # of a numerator or denominator
_MOST_NUMBERS = 1 << 24
# lemma: signs
_TINY = 2.0**-1000  # doubles below are left to exact arithmetic: products with them may underflow


def distinct_keys(keys: Ints, limit: int) -> tuple[Ints, NDArray[np.intp]]:
    """Return the distinct keys from 0 to below a limit, ascending, and each key's place among them.

    Time: O(keys + limit) where the limit is small, else that of sorting.
    """
    if limit <= max(4 * keys.size, 1 << 16):
        seen = np.zeros(limit, np.bool_)
        seen[keys] = True
        found = np.flatnonzero(seen)
        place = np.zeros(limit, np.int64)
        place[found] = np.arange(found.size)
        return found, place[keys]
    found, places = np.unique(keys, return_inverse=True)
    return found, places.reshape(-1)


class RationalTable:
    """Distinct rational numbers; 0 has place 0 and 1 place 1."""

    def __init__(self) -> None:
        self.values: list[Fraction] = []
        self._places: dict[Fraction, int] = {}
        self.zero, self.one = self.place(Fraction(0)), self.place(Fraction(1))

    def place(self, value: Fraction | int) -> int:
        """Return the place of a number, which is added if it is new.

        Raises
        ------
        NotCertifiableError
            It is too long to calculate with.
        """
        number = Fraction(value)
        found = self._places.get(number)
        if found is None:
            if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
                raise NotCertifiableError(
                    f"a number of the model takes more than {_MOST_BITS} bits as a fraction"
                )
            if len(self.values) >= _MOST_NUMBERS:
                raise NotCertifiableError(f"the model has more than {_MOST_NUMBERS:,} distinct numbers")
            found = self._places[number] = len(self.values)
            self.values.append(number)
        return found

    def places(self, values: Iterable[Fraction | int]) -> Places:
        """Return the places of several numbers."""
        return np.array([self.place(v) for v in values], np.int32)

    def full(self, size: int, value: Fraction | int) -> Places:
        """Return a vector of one number."""
        return np.full(size, self.place(value), np.int32)

    def add(self, a: Places, b: Places) -> Places:
        """Return the sum of two vectors, element by element."""
        return self._pairs(a, b, lambda x, y: x + y)

    def multiply(self, a: Places, b: Places) -> Places:
        """Return the product of two vectors, element by element."""
        return self._pairs(a, b, lambda x, y: x * y)

    def _pairs(self, a: Places, b: Places, operation: Callable[[Any, Any], Fraction]) -> Places:
        """Apply an operation to every distinct pair once."""
        if a.size == 0:
            return a
        low = int(b.min())
        width = int(b.max()) - low + 1
        keys = a.astype(np.int64) * width + (b - low)
        found, places = distinct_keys(keys, (int(a.max()) + 1) * width)
        results = [
            self.place(operation(self.values[k // width], self.values[k % width + low]))
            for k in found.tolist()
        ]
        return np.array(results, np.int32)[places]

    def doubles(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the nearest double of every number, and which numbers are no normal doubles."""
        nearest = np.array([_nearest(v) for v in self.values])
        size = np.abs(nearest)
        # lemma: signs
        awkward = (~np.isfinite(nearest) | (size < _TINY) | (size > 1 / _TINY)) & (nearest != 0)
        awkward |= (nearest == 0) & np.array([v != 0 for v in self.values])  # lemma: signs
        return np.where(np.isfinite(nearest), nearest, 0.0), awkward

    def signs(self) -> NDArray[np.int8]:
        """Return the sign of every number."""
        return np.array([(v > 0) - (v < 0) for v in self.values], np.int8)

    def common_denominator(self) -> int:
        """Return the least common multiple of the denominators; 0 if it is too long."""
        result = 1
        for value in self.values:
            result = math.lcm(result, value.denominator)
            if result.bit_length() > 1 << 13:
                return 0
        return result


def _nearest(value: Fraction) -> float:
    """Return the nearest double; infinity for what lies beyond the doubles, on either side."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
