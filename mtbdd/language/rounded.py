"""Doubles that know the real number they were rounded from.

The value of a constant is a Python float everywhere; a `Rounded` is one that is not, or perhaps not, the
number that the text means.  A plain float stands for itself.
"""

from __future__ import annotations

import math
import re
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction

from mtbdd.language.reals import Enclosure, Real, bounds

LONGEST = 1000
"""Digits that a decimal may have, and greatest magnitude of its exponent, divided by ten."""

_DECIMAL = re.compile(r"[+-]?(?P<digits>[0-9]*\.?[0-9]*)(?:[eE](?P<exponent>[+-]?[0-9]{1,19}))?")


class Rounded(float):
    """A double and the real number that it is nearest to.

    Parameters
    ----------
    nearest : float
    source : str, Fraction or Enclosure
        The number; a str is a decimal, read when it is asked for.
    """

    __slots__ = ("_source",)

    def __new__(cls, nearest: float, source: str | Real) -> Rounded:
        """Return the double with what it was rounded from."""
        number = super().__new__(cls, nearest)
        number._source = source
        return number

    _source: str | Real

    def __reduce__(self) -> tuple[type[Rounded], tuple[float, str | Real]]:
        return Rounded, (float(self), self._source)

    @property
    def number(self) -> Real:
        """The number that was rounded."""
        if isinstance(self._source, str):
            self._source = Fraction(self._source)
        return self._source


def from_text(text: str) -> float:
    """Return the double next to a decimal, which it remembers.

    Raises
    ------
    ValueError
        The decimal is too large for a double, or has more than 1,000 digits or an exponent beyond 10,000; the
        message continues "expected ...".
    """
    nearest = float(text)
    if math.isinf(nearest):
        raise ValueError("a number up to 1.79e308; larger ones are too large for a double")
    match = _DECIMAL.fullmatch(text)
    if match is None or len(match["digits"]) > LONGEST:
        raise ValueError(f"a decimal of at most {LONGEST} digits")
    if match["exponent"] is not None and abs(int(match["exponent"])) > 10 * LONGEST:
        raise ValueError(f"a decimal with an exponent from {-10 * LONGEST} to {10 * LONGEST}")
    return Rounded(nearest, text)


def from_real(value: Real) -> float:
    """Return the double next to a number, which it remembers if it is another one.

    Returns
    -------
    float
        Infinite if no finite double is near.
    """
    middle = (value.low + value.high) / 2 if isinstance(value, Enclosure) else value
    try:
        nearest = middle.numerator / middle.denominator
    except OverflowError:
        return math.inf if middle > 0 else -math.inf
    return nearest if Fraction(nearest) == value else Rounded(nearest, value)


def real_of(value: int | float) -> Real:
    """Return the real number that a finite value stands for."""
    return value.number if isinstance(value, Rounded) else Fraction(value)


def as_double(value: int | float) -> float:
    """Return a number as a double; an integer beyond 2^53 is remembered."""
    return value if isinstance(value, float) else from_real(Fraction(value))


def doubles_around(value: int | float) -> tuple[float, float]:
    """Return the greatest double up to a number and the least one from it; twice the number if it is one."""
    if isinstance(value, float) and not isinstance(value, Rounded):
        return value, value
    low, high = bounds(real_of(value))
    below, above = float(low), float(high)
    if Fraction(below) > low:
        # lemma: entry-units
        below = math.nextafter(below, -math.inf)
    if Fraction(above) < high:
        # lemma: entry-units
        above = math.nextafter(above, math.inf)
    return below, above


def decimal_text(value: float) -> str:
    """Return a text for a double: the shortest decimal next to it, or its number's own if they differ.

    A number that is no decimal of at most 1,000 digits is shown as the double next to it.
    """
    shown, number = repr(float(value)), real_of(value)
    if isinstance(number, Enclosure) or Fraction(shown) == number:
        return shown
    if 10 ** (4 * LONGEST) % number.denominator:
        return shown
    context = Context(prec=5 * LONGEST, Emin=MIN_EMIN, Emax=MAX_EMAX)
    exact = context.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize(context)
    return f"{exact:e}" if len(exact.as_tuple().digits) <= LONGEST else shown
