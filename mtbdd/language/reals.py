"""The real numbers that expressions stand for: rationals, and enclosures of irrational numbers.

A decimal in a text is the rational number written, and arithmetic on it is exact. Logarithms, and powers
whose exponent is no integer, may be irrational. These are held as two rationals that enclose them, as are
rationals of more than `MOST_BITS` bits. The functions of `decimal` that they come from are correctly rounded.
"""

from __future__ import annotations

import math
import operator as op
import re
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

from mtbdd.base.records import Record

MOST_BITS = 4096
"""Bits of numerator and denominator beyond which a rational is replaced by an enclosure."""

_KEPT_BITS = 512  # of a bound that replaces a longer one
_EXTREME_BITS = 65_536  # magnitudes beyond 2^65536 are refused, those below 2^-65536 enclosed from 0
_DIGITS = 60  # of logarithms and exponentials
_ROOTS = 64  # roots up to this degree are looked for among the rationals


class UndecidedError(ArithmeticError):
    """Two real numbers too close for their enclosures to decide which one is greater."""


class RealOverflowError(ArithmeticError):
    """A number far beyond what a double holds."""


class Enclosure(Record):
    """A real number of which only bounds are known, `low` < `high`."""

    low: Fraction
    high: Fraction


Real = Fraction | Enclosure


def bounds(a: Real) -> tuple[Fraction, Fraction]:
    """Return the rationals between which a number lies, equal ones for a rational."""
    return (a.low, a.high) if isinstance(a, Enclosure) else (a, a)


def _between(low: Fraction, high: Fraction) -> Real:
    """Return the number known to lie between two rationals, long ones replaced by short ones outwards."""
    low, high = _shortened(low, ROUND_FLOOR), _shortened(high, ROUND_CEILING)
    return low if low == high else Enclosure(low, high)


def _kept(value: Fraction) -> Real:
    """Return a rational, or its enclosure if it is long."""
    if value.denominator.bit_length() + value.numerator.bit_length() <= MOST_BITS:
        return value
    return _between(value, value)


def _shortened(value: Fraction, direction: str) -> Fraction:
    """Return a rational of few bits at most (ROUND_FLOOR) or at least (ROUND_CEILING) as large."""
    top, bottom = value.numerator, value.denominator
    if bottom.bit_length() + top.bit_length() <= MOST_BITS:
        return value
    size = top.bit_length() - bottom.bit_length()
    if size > _EXTREME_BITS:
        raise RealOverflowError("a number of more than 65536 bits")
    shift = _KEPT_BITS - max(size, -_EXTREME_BITS)
    if direction == ROUND_CEILING:
        top = -top
    whole = ((top << shift) if shift >= 0 else (top >> -shift)) // bottom
    if direction == ROUND_CEILING:
        whole = -whole
    return Fraction(whole, 1 << shift) if shift >= 0 else Fraction(whole << -shift)


# ------------------------------------------------------------------ arithmetic


def negate(a: Real) -> Real:
    """Return ``-a``."""
    return Enclosure(-a.high, -a.low) if isinstance(a, Enclosure) else -a


def add(a: Real, b: Real) -> Real:
    """Return ``a + b``."""
    if isinstance(a, Enclosure) or isinstance(b, Enclosure):
        (low, high), (more, most) = bounds(a), bounds(b)
        return _between(low + more, high + most)
    return _kept(a + b)


def multiply(a: Real, b: Real) -> Real:
    """Return ``a * b``."""
    if isinstance(a, Enclosure) or isinstance(b, Enclosure):
        corners = [x * y for x in bounds(a) for y in bounds(b)]
        return _between(min(corners), max(corners))
    return _kept(a * b)


def divide(a: Real, b: Real) -> Real:
    """Return ``a / b``.

    Raises
    ------
    ZeroDivisionError
        The divisor is zero.
    UndecidedError
        It may be.
    """
    if isinstance(b, Enclosure):
        if b.low <= 0 <= b.high:
            raise UndecidedError("a divisor that may be zero")
        return multiply(a, Enclosure(1 / b.high, 1 / b.low))
    if isinstance(a, Enclosure):
        return multiply(a, 1 / b)
    return _kept(a / b)


_ORDER: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "=": op.eq, "!=": op.ne, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge,
}  # fmt: skip


def compare(operator: str, a: Real, b: Real) -> bool:
    """Return ``a operator b`` for one of = != < <= > >=.

    Raises UndecidedError: the enclosures meet.
    """
    (low, high), (least, most) = bounds(a), bounds(b)
    if low == high and least == most:
        return _ORDER[operator](low, least)
    if low <= most and least <= high:
        raise UndecidedError("two numbers that agree in all digits computed")
    # Apart, so that any members compare alike.
    return _ORDER[operator](low, least)


def floor(a: Real) -> int:
    """Return the greatest integer up to a number.

    Raises UndecidedError: the enclosure holds an integer.
    """
    low, high = bounds(a)
    below = math.floor(low)
    if math.floor(high) != below:
        raise UndecidedError("a number that agrees with an integer in all digits computed")
    return below


# ------------------------------------------------------------------ powers and logarithms


def power(base: Real, exponent: Real) -> Real:
    """Return ``base ** exponent``.

    Raises ValueError: it is no real number, or zero to a negative power. Raises UndecidedError,
    RealOverflowError.
    """
    if isinstance(exponent, Fraction) and exponent.denominator == 1:
        return _whole_power(base, exponent.numerator)
    low, high = bounds(base)
    if high < 0:
        raise ValueError("a negative number to a power that is no integer")
    if low == high == 0:
        if compare(">", exponent, Fraction(0)):
            return Fraction(0)
        raise ValueError("zero to a negative power")
    if low <= 0:
        raise UndecidedError("a base that may be zero")
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator <= _ROOTS:
        top, bottom = (_root(n, exponent.denominator) for n in (base.numerator, base.denominator))
        if top is not None and bottom is not None:
            return _whole_power(Fraction(top, bottom), exponent.numerator)
    least, most = bounds(multiply(exponent, _natural_log(base)))
    if most > _EXTREME_BITS:
        raise RealOverflowError("a power beyond all doubles")
    if least < -_EXTREME_BITS:
        return Enclosure(Fraction(0), max(_exponential(most), Fraction(1, 1 << _EXTREME_BITS)))
    return Enclosure(_exponential(least, ROUND_FLOOR), _exponential(most))


def _whole_power(base: Real, exponent: int) -> Real:
    """Return an integer power."""
    if exponent < 0:
        if base == Fraction(0):
            raise ValueError("zero to a negative power")
        return divide(Fraction(1), _whole_power(base, -exponent))
    result: Real = Fraction(1)
    square = base
    while exponent:
        if exponent & 1:
            result = multiply(result, square)
        exponent >>= 1
        if exponent:
            square = _squared(square)
    return result


def _squared(a: Real) -> Real:
    """Return ``a * a``; never below zero."""
    product = multiply(a, a)
    if isinstance(product, Enclosure) and product.low < 0:
        return Enclosure(Fraction(0), product.high)
    return product


def _root(value: int, degree: int) -> int | None:
    """Return the root of a positive integer if it is one, too."""
    if value.bit_length() > MOST_BITS:
        return None
    low, high = 0, 1 << (value.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        if middle**degree <= value:
            low = middle
        else:
            high = middle - 1
    return low if low**degree == value else None


def logarithm(value: Real, base: Real) -> Real:
    """Return the logarithm of a positive number to a positive base other than 1; a rational one exactly."""
    result = divide(_natural_log(value), _natural_log(base))
    if isinstance(result, Enclosure) and isinstance(value, Fraction) and isinstance(base, Fraction):
        guess = result.low.limit_denominator(_ROOTS)
        short = abs(guess.numerator) + guess.denominator <= MOST_BITS // 8
        if short and result.low <= guess <= result.high:
            one, other = power(value, Fraction(guess.denominator)), power(base, Fraction(guess.numerator))
            if isinstance(one, Fraction) and one == other:
                return guess
    return result


def _context(rounding: str) -> Context:
    """Return a context of many digits whose range is never left and that raises nothing."""
    return Context(prec=_DIGITS, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def _decimal(value: Fraction, rounding: str) -> Decimal:
    """Return the nearest decimal in one direction."""
    context = Context(prec=_DIGITS + 10, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    # Numerator and denominator are exact: the constructor rounds nothing.
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _natural_log(value: Real) -> Real:
    """Return an enclosure of the natural logarithm of a positive number; exactly 0 at 1."""
    low, high = bounds(value)
    if low == high == 1:
        return Fraction(0)
    context = _context(ROUND_HALF_EVEN)
    least = context.next_minus(context.ln(_decimal(low, ROUND_FLOOR)))
    most = context.next_plus(context.ln(_decimal(high, ROUND_CEILING)))
    return Enclosure(Fraction(least), Fraction(most))


def _exponential(value: Fraction, rounding: str = ROUND_CEILING) -> Fraction:
    """Return a bound on the exponential."""
    context = _context(ROUND_HALF_EVEN)
    result = context.exp(_decimal(value, rounding))
    return Fraction(context.next_minus(result) if rounding == ROUND_FLOOR else context.next_plus(result))


# Doubles that know the real number they were rounded from.
#
# The value of a constant is a Python float everywhere; a `Rounded` is one that is not, or perhaps not, the
# number that the text means.  A plain float stands for itself.

LONGEST = 1000
"""Digits that a decimal may have, and greatest magnitude of its exponent, divided by ten."""

_DECIMAL = re.compile(r"[+-]?(?P<digits>[0-9]*\.?[0-9]*)(?:[eE](?P<exponent>[+-]?[0-9]{1,19}))?")


class Rounded(float):
    """A double and the real number that it is nearest to.

    `source`: the number; a str is a decimal, read when it is requested.
    """

    __slots__ = ("_source",)

    def __new__(cls, nearest: float, source: str | Real) -> Rounded:
        """Return the double with the number that it was rounded from."""
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

    Raises ValueError: the decimal is too large for a double, or has more than 1,000 digits or an exponent
    beyond 10,000; the message continues "expected ...".
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

    Returns float: infinite if no finite double is near.
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
