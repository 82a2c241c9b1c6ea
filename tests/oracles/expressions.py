"""Values of expressions from their definitions, with fractions; nothing is shared but the syntax tree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from mtbdd.language.syntax import Binary, Call, Conditional, Expression, Literal, Name, Unary

__all__ = ["OracleFaultError", "Value", "evaluate_exactly"]

Value = bool | int | Fraction


class OracleFaultError(Exception):
    """A reachable state in which the model is at fault."""


def evaluate_exactly(e: Expression, values: Mapping[str, bool | int]) -> Value:
    """Return an expression's value; doubles are fractions: 0.1 is 1/10, 0.3333333333333333 is 1/3.

    Raises
    ------
    OracleFaultError
        The value is undefined (division by zero, modulus that is not positive, ...).
    """
    if isinstance(e, Literal):
        return _fraction(e.value) if isinstance(e.value, float) else e.value
    if isinstance(e, Name):
        return values[e.name]
    if isinstance(e, Unary):
        operand = evaluate_exactly(e.operand, values)
        return (not operand) if e.operator == "!" else -operand
    if isinstance(e, Conditional):
        return evaluate_exactly(e.then if evaluate_exactly(e.condition, values) else e.otherwise, values)
    if isinstance(e, Binary):
        return _binary(e, values)
    if isinstance(e, Call):
        return _call(e.function, [evaluate_exactly(a, values) for a in e.arguments])
    raise TypeError(f"no value in a state: {type(e).__name__}")


def _fraction(value: float) -> Fraction:
    """Return the number meant by a double: a small fraction that rounds to it, or its shortest decimal."""
    small = Fraction(value).limit_denominator(10**5)
    return small if float(small) == value else Fraction(repr(value))


def _binary(e: Binary, values: Mapping[str, bool | int]) -> Value:
    a, b = evaluate_exactly(e.left, values), evaluate_exactly(e.right, values)
    if e.operator == "/":
        if b == 0:
            raise OracleFaultError("division by zero")
        return Fraction(a) / Fraction(b)
    operations = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "&": lambda: bool(a and b),
        "|": lambda: bool(a or b),
        "=>": lambda: bool(not a or b),
        "<=>": lambda: a == b,
        "=": lambda: a == b,
        "!=": lambda: a != b,
        "<": lambda: a < b,
        "<=": lambda: a <= b,
        ">": lambda: a > b,
        ">=": lambda: a >= b,
    }
    return operations[e.operator]()


def _call(function: str, a: Sequence[Value]) -> Value:
    if function == "min":
        return min(a)
    if function == "max":
        return max(a)
    if function == "floor":
        return math.floor(a[0])
    if function == "ceil":
        return math.ceil(a[0])
    if function == "round":
        return math.floor(Fraction(a[0]) + Fraction(1, 2))
    if function == "mod":
        if a[1] <= 0:
            raise OracleFaultError("modulus")
        return a[0] % a[1]
    if function == "pow":
        if Fraction(a[1]).denominator == 1 and (a[1] >= 0 or (isinstance(a[0], Fraction) and a[0])):
            return a[0] ** int(a[1])
        return Fraction(float(a[0]) ** float(a[1]))
    if function == "log":
        return Fraction(math.log(a[0], a[1]))
    raise TypeError(f"unknown function {function}")
