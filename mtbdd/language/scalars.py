"""The operators of the PRISM language on single values.

Values are Python's bool, int and float.  What has no finite value (a division by zero, an overflow) is a
fault at the place of the operator's expression.
"""

from __future__ import annotations

import math
import operator as op
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mtbdd.language.errors import EvaluationError, Fault
from mtbdd.language.syntax import Position
from mtbdd.language.text import value_text

__all__ = ["INT_LIMIT", "Scalar", "apply_binary", "apply_call", "apply_unary"]

Scalar = bool | int | float

# Integers are 64 bits wide, as in the arrays.
INT_LIMIT = 2**63


def _fail(position: Position, message: str) -> NoReturn:
    raise EvaluationError([Fault(position, message)])


def _checked(value: Scalar, position: Position, text: str) -> Scalar:
    """Return a value that fits 64 bits, or is finite."""
    if isinstance(value, float):
        if not math.isfinite(value):
            _fail(position, f"expected a finite number, got {text} = {value}; a double ends at 1.79e308")
    elif not -INT_LIMIT <= value < INT_LIMIT:
        _fail(position, f"expected an integer of 64 bits, got {text}, which is larger; use doubles")
    return value


def apply_unary(operator: str, value: Scalar, position: Position) -> Scalar:
    """Return `operator value`.

    Raises
    ------
    EvaluationError
        If the result does not fit 64 bits.
    """
    if operator == "!":
        return not value
    return _checked(-value, position, f"-({value_text(value)})")


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "&": lambda a, b: a and b,
    "|": lambda a, b: a or b,
    "=>": lambda a, b: not a or b,
    "<=>": op.eq,
    "=": op.eq,
    "!=": op.ne,
    "<": op.lt,
    "<=": op.le,
    ">": op.gt,
    ">=": op.ge,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": op.add, "-": op.sub, "*": op.mul}


def apply_binary(operator: str, left: Scalar, right: Scalar, position: Position) -> Scalar:
    """Return `left operator right`.

    Raises
    ------
    EvaluationError
        If a divisor is zero or the result is no finite number of 64 bits.
    """
    compare = _BINARY.get(operator)
    if compare is not None:
        return bool(compare(left, right))
    text = f"{value_text(left)} {operator} {value_text(right)}"
    if operator == "/":
        if right == 0:
            _fail(position, f"expected a divisor other than zero, got {text}; guard it with a condition")
        return _checked(left / right, position, text)
    return _checked(_ARITHMETIC[operator](left, right), position, text)


def apply_call(function: str, values: Sequence[Scalar], position: Position) -> Scalar:
    """Return a function's value.

    Raises
    ------
    EvaluationError
        Where the function is not defined: a modulus that is not positive, a negative exponent of ints,
        the logarithm of a number that is not positive, results that are not finite.
    """
    text = f"{function}({', '.join(value_text(v) for v in values)})"
    if function in ("min", "max"):
        chosen = min(values) if function == "min" else max(values)
        return float(chosen) if any(isinstance(v, float) for v in values) else chosen
    if function in ("floor", "ceil", "round"):
        return _checked(_ROUNDING[function](values[0]), position, text)
    if function == "pow":
        return _power(values[0], values[1], position, text)
    if function == "mod":
        if values[1] <= 0:
            _fail(position, f"expected a positive modulus, got {text}")
        return values[0] % values[1]
    if function == "log":
        value, base = values
        if value <= 0:
            _fail(position, f"expected the logarithm of a positive number, got {text}")
        if base <= 0 or base == 1:
            _fail(position, f"expected a positive base other than 1, got {text}")
        return _checked(math.log(value) / math.log(base), position, text)
    _fail(position, f"unknown function '{function}'")


def _round(value: int | float) -> int:
    """Round to the nearest integer, halves upwards."""
    below = math.floor(value)
    return below + (value - below >= 0.5)


_ROUNDING: dict[str, Callable[[Any], int]] = {"floor": math.floor, "ceil": math.ceil, "round": _round}


def _power(base: Scalar, exponent: Scalar, position: Position, text: str) -> Scalar:
    if isinstance(base, float) or isinstance(exponent, float):
        try:
            return math.pow(base, exponent)
        except (ValueError, OverflowError):
            _fail(position, f"expected a power that is a finite real number, got {text}")
    if exponent < 0:
        _fail(
            position,
            f"expected an exponent of at least 0 for ints, got {text}; use a double, like pow(2.0, -1)",
        )
    # The bit length bounds the result before it is computed: it may be astronomically large.
    if abs(base) > 1 and exponent * (int(base).bit_length() - 1) > 64:
        _fail(position, f"expected an integer of 64 bits, got {text}, which is larger; use doubles")
    return _checked(int(base) ** int(exponent), position, text)
