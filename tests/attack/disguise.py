"""Numbers written as expressions: equal in rational arithmetic, and not always in double precision."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from random import Random

from tests.attack.numerals import Numeral

__all__ = ["CONSTANTS", "disguised"]

# Constants that every model declares, for expressions to mention.
CONSTANTS = (
    ("tenth", "0.1", Fraction(1, 10)),
    ("third", "1/3", Fraction(1, 3)),
    ("most", "1-1e-17", 1 - Fraction(1, 10**17)),
    ("large", "1e9+1/7", 10**9 + Fraction(1, 7)),
)
_LONGEST = 10**15


def disguised(rng: Random, number: Numeral, state: int | None = None, constants: bool = True) -> Numeral:
    """Return a number as an expression with the same value; itself where it is too long to be written so.

    Parameters
    ----------
    state : int, optional
        Value of the variable s where the expression is looked at.
    constants : bool
        Whether the model declares `CONSTANTS`.
    """
    value = number.value
    if max(abs(value.numerator), value.denominator) > _LONGEST or value <= 0:
        return number
    forms: list[Callable[[], str]] = [
        lambda: _sum(value, rng.choice((Fraction(1, 10), Fraction(1, 3), Fraction(2, 7), Fraction(5)))),
        lambda: f"({_plain(value * 3)})/3",
        lambda: f"({_plain(value / 3)})*3",
        lambda: f"1-({_plain(1 - value)})",
        lambda: _sum(value, Fraction(10) ** rng.randint(3, 8)),
        lambda: f"max({_plain(value)}, {_plain(value * Fraction(9, 10))})",
        lambda: f"(({_plain(value * 4)})*pow(0.5, 2))",
        lambda: f"(s>=-100 ? {_plain(value)} : 1)" if state is not None else _plain(value),
    ]
    if constants:
        forms += [
            lambda: f"(({_plain(value / Fraction(1, 10))})*tenth)",
            lambda: f"(({_plain(value / Fraction(1, 3))})*third)",
            lambda: f"({_plain(value)}+large-large)",
        ]
    if state is not None and value.numerator < 10**9:
        forms += [lambda: f"(s+{value.numerator - state})/{value.denominator}"] * 2
    text = rng.choice(forms)().replace("+-", "-").replace("--", "+")
    return number if re.search(r"\d{18}", text) else Numeral(f"({text})", value)


def _sum(value: Fraction, other: Fraction) -> str:
    """Return ``(value + other) - other``."""
    return f"({_plain(value + other)})-({_plain(other)})"


def _plain(value: Fraction) -> str:
    """Return a fraction as the language writes it."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{value.numerator}/{value.denominator}"
