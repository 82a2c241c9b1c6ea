"""Exact numbers joined and compared."""

from __future__ import annotations

from fractions import Fraction

from hybrid.analysis.exact.induction import Exact
from hybrid.base.errors import NotExactError


def calculate(operator: str, a: Exact, b: Exact) -> Exact:
    """Return ``a operator b`` for finite numbers."""
    if not isinstance(a, Fraction) or not isinstance(b, Fraction):
        raise NotExactError("infinite values are not calculated with exactly")
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    if b == 0:
        raise NotExactError("a division by zero has no exact value")
    return a / b


def compare_exactly(operator: str, a: Exact, b: Exact) -> bool:
    """Return ``a operator b``."""
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "=": a == b, "!=": a != b}[operator]


def between(value: Exact, lower: float, upper: float) -> bool:
    """Whether an exact value lies between bounds."""
    return lower <= value <= upper
