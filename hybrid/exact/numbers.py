"""Which number a double stands for: the one that a person would have written.

A model says 1/6, the matrix holds the double next to it.  A double is read as the shortest decimal that
rounds to it if that has at most 12 digits, else as the simplest fraction that rounds to it if that is
simple, else as a decimal of at most 15 digits.  Where products and sums of entries have cost the last
digits, it is read as the simplest fraction or short decimal within 4 units in the last place, the distance
within which values count as one terminal.
"""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["read_number", "simplest_between"]

_DECIMAL_DIGITS = 15  # a decimal of so many digits is the only one that rounds to its double
_SHORT_DIGITS = 12
_MAX_DENOMINATOR = 10**6  # fractions of this size are so far apart that meeting one is no accident
_LAST_PLACES = 4


def simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction with the least denominator in a closed interval of positive numbers.

    Parameters
    ----------
    low, high : Fraction
        ``0 < low <= high``.

    Notes
    -----
    The walk down the Stern-Brocot tree, as continued fractions.  Time: O(digits).
    """
    terms: list[int] = []
    while True:
        whole = math.floor(low)
        if whole == low or whole + 1 <= high:
            terms.append(whole if whole == low else whole + 1)
            break
        terms.append(whole)
        low, high = 1 / (high - whole), 1 / (low - whole)
    result = Fraction(terms[-1])
    for term in reversed(terms[:-1]):
        result = term + 1 / result
    return result


def read_number(value: float) -> Fraction | None:
    """Return the rational number that a finite double stands for; None if that is anybody's guess."""
    if value == 0:
        return Fraction(0)
    if value < 0:
        read = read_number(-value)
        return None if read is None else -read
    digits = _digits(repr(value))
    if digits <= _SHORT_DIGITS:
        return Fraction(repr(value))
    exact, place = Fraction(value), Fraction(math.ulp(value))
    # Half a place either way rounds to the value, give or take the even neighbour at a tie.
    simple = simplest_between(exact - place / 2, exact + place / 2)
    if simple.denominator <= _MAX_DENOMINATOR and float(simple) == value:
        return simple
    if digits <= _DECIMAL_DIGITS:
        return Fraction(repr(value))
    reach = _LAST_PLACES * place
    simple = simplest_between(exact - reach, exact + reach)
    if simple.denominator <= _MAX_DENOMINATOR:
        return simple
    rounded = f"{value:.15g}"
    decimal = Fraction(rounded)
    return decimal if _digits(rounded) <= _SHORT_DIGITS and abs(decimal - exact) <= reach else None


def _digits(text: str) -> int:
    """Return the number of significant digits of a positive decimal."""
    mantissa = text.partition("e")[0]
    return len(mantissa.replace(".", "").strip("0"))
