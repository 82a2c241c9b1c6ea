"""Thresholds near a value: the value itself, decimals next to it, 0 and 1, and others."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

from tests.attack.numerals import Numeral, numeral

__all__ = ["decimal_near", "threshold_near"]

_LONGEST = 10**15  # of a fraction's numerator and denominator as they are written


def threshold_near(rng: Random, value: Fraction, any_size: bool) -> Numeral:
    """Return a threshold, none below 0 unless the value is, and without `any_size` none above 1.

    A tie is drawn where the value can be written; else a decimal of 13 to 17 digits, at most two units of its
    last digit from the value.
    """
    draw = rng.random()
    found = numeral(rng.choice(("0", "1", "0.5", "0.1", "1e-9", "0.999999")))
    if draw < 0.15:
        found = numeral(rng.choice(("0", "1")))
    elif draw < 0.5 and max(abs(value.numerator), value.denominator) <= _LONGEST:
        found = Numeral(f"{value.numerator}/{value.denominator}", value)
        if rng.random() < 0.4 and (decimal := _exact_decimal(value)) is not None:
            found = decimal
    elif draw < 0.9 and value:
        found = decimal_near(value, rng.randint(13, 17), rng.choice((-2, -1, 0, 0, 0, 1, 2)))
    least = numeral("-1e308" if any_size and value < 0 else "0")
    found = min(max(found, least, key=_value), numeral("1e308"), key=_value)
    return found if any_size else min(found, numeral("1"), key=_value)


def decimal_near(value: Fraction, digits: int, shift: int = 0) -> Numeral:
    """Return the decimal of so many significant digits next to a number, moved by units of the last one."""
    size = abs(value)
    exponent = math.floor(_log10(size)) - digits + 1
    mantissa = round(size / Fraction(10) ** exponent) + shift
    sign = "-" if value < 0 else ""
    if not -17 < exponent <= 0:
        return numeral(f"{sign}{mantissa}e{exponent}")
    number = mantissa * Fraction(10) ** exponent
    places = max(0, -exponent)
    text = str(int(number * 10**places)).rjust(places + 1, "0")
    return numeral(sign + (text if not places else f"{text[:-places]}.{text[-places:]}"))


def _log10(size: Fraction) -> float:
    """Return the logarithm of a positive number beyond the range of doubles."""
    bits = size.numerator.bit_length() - size.denominator.bit_length()
    return math.log10(size / Fraction(2) ** bits) + bits * math.log10(2.0)


def _exact_decimal(value: Fraction) -> Numeral | None:
    """Return a number as a decimal of at most 17 places, None if it has none."""
    for places in range(18):
        if (value * 10**places).denominator == 1:
            whole = str(abs(int(value * 10**places))).rjust(places + 1, "0")
            text = whole if not places else f"{whole[:-places]}.{whole[-places:]}"
            return numeral(f"-{text}" if value < 0 else text)
    return None


def _value(number: Numeral) -> Fraction:
    return number.value
