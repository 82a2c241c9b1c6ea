"""Arithmetic in doubles with a running bound on the absolute error of every value ([Higham02] 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.language.array_operations import Value, apply_to_arrays
from mtbdd.language.definedness import DEFINED
from mtbdd.language.evaluate import evaluate
from mtbdd.language.reals import bounds
from mtbdd.language.rounded import real_of
from mtbdd.language.syntax import Binary, Call, Conditional, Expression, LabelReference, Literal, Name, Unary

LEAST = 2.0**-1074  # lemma: interval-sum
"""The least positive double, which stands for positive numbers that are smaller."""

UNIT = 2.0**-53  # lemma: interval-sum
"""Greatest relative error of one rounding."""

UP = 1 + 2.0**-40  # lemma: interval-sum
"""Covers the rounding of the bounds, which are computed in doubles, too."""

WHOLE = 2.0**53
"""Integers below it are doubles; the next one beyond it becomes this one."""

_LIBRARY_UNITS = 16
"""Relative error granted to the library's powers and logarithms, in units."""

Array = NDArray[Any]


@dataclass(frozen=True)
class Approximation:
    """A value, the error of a double, and where a bool or an integer is not certain."""

    value: Value
    error: Any = 0.0
    doubt: Any = False


class RunningErrors:
    """One evaluation; the values of nodes that occur twice are kept."""

    def __init__(self, environment: Mapping[str, Array]) -> None:
        self._environment = environment
        self._known: dict[int, Approximation] = {}

    def of(self, e: Expression) -> Approximation:
        """Return the value of an expression."""
        chain = []
        while isinstance(e, Binary) and id(e) not in self._known:
            chain.append(e)
            e = e.left
        result = self._known.get(id(e)) or self._operand(e)
        self._known[id(e)] = result
        for node in reversed(chain):
            result = self._known[id(node)] = _binary(node, result, self.of(node.right))
        return result

    def _operand(self, e: Expression) -> Approximation:
        if isinstance(e, Literal):
            return _literal(e.value)
        if isinstance(e, (Name, LabelReference)):
            return Approximation(evaluate(e, self._environment))
        if isinstance(e, Conditional):
            return _conditional(e, self.of(e.condition), self.of(e.then), self.of(e.otherwise))
        if isinstance(e, Unary):
            operand = self.of(e.operand)
            return Approximation(apply_to_arrays(e, [operand.value]), operand.error, operand.doubt)
        if isinstance(e, Call):
            return _call(e, [self.of(argument) for argument in e.arguments])
        return Approximation(evaluate(e, self._environment))


def _literal(value: bool | int | float) -> Approximation:
    if not isinstance(value, float):
        return Approximation(value)
    low, high = bounds(real_of(value))
    error = max(abs(high - _exactly(value)), abs(low - _exactly(value)))  # lemma: interval-sum
    return Approximation(float(value), float(error) * UP + LEAST if error else 0.0)  # lemma: interval-sum


def _exactly(value: float) -> Any:
    return real_of(float(value))


def _doubt(*parts: Approximation) -> Any:
    result: Any = False
    for part in parts:
        result = np.logical_or(result, part.doubt)
    return result


def _as_double(a: Approximation) -> tuple[Any, Any]:
    """Return a number as doubles with their error: that of integers beyond 2^53 is what rounding costs."""
    if isinstance(a.value, float) or (isinstance(a.value, np.ndarray) and a.value.dtype.kind == "f"):
        return a.value, a.error
    value = np.asarray(a.value, dtype=np.float64)
    size = np.abs(value)
    # lemma: interval-sum
    return value, np.where(size >= WHOLE, size * (2 * UNIT), 0.0) if bool((size >= WHOLE).any()) else 0.0


def _binary(e: Binary, a: Approximation, b: Approximation) -> Approximation:
    operator, doubt = e.operator, _doubt(a, b)
    value = apply_to_arrays(e, [a.value, b.value])
    if operator in ("&", "|", "=>", "<=>"):
        return Approximation(value, 0.0, doubt)
    integers = _is_int(a.value) and _is_int(b.value)
    if operator in ("=", "!=", "<", "<=", ">", ">="):
        if integers:
            return Approximation(value, 0.0, doubt)
        (x, dx), (y, dy) = _as_double(a), _as_double(b)
        margin = (dx + dy) * UP
        return Approximation(value, 0.0, doubt | ((margin != 0) & ~(np.abs(x - y) > margin * UP)))
    if integers and operator != "/":
        return Approximation(value, 0.0, doubt | _leaves_64_bits(value))
    (x, dx), (y, dy) = _as_double(a), _as_double(b)
    size = np.abs(np.asarray(value, dtype=np.float64))
    if operator in ("+", "-"):
        error = dx + dy + size * UNIT  # lemma: interval-sum
        if not np.any(dx) and not np.any(dy):
            # Whole numbers are added exactly, so that sums of integers and round constants stay exact.
            exact = (np.trunc(x) == x) & (np.trunc(y) == y) & (np.abs(x) + np.abs(y) < WHOLE)
            error = np.where(exact, 0.0, error)
        return Approximation(value, error * UP, doubt)  # lemma: interval-sum
    if operator == "*":
        error = np.abs(x) * dy + np.abs(y) * dx + dx * dy + size * UNIT + LEAST  # lemma: interval-sum
        if not np.any(dx) and not np.any(dy):
            exact = (x == 0) | (y == 0) | (np.trunc(x) == x) & (np.trunc(y) == y) & (size < WHOLE)
            # Halves and doubles keep all digits, unless they underflow.
            exact |= (_is_power_of_two(x) | _is_power_of_two(y)) & (size >= 2.0**-1022)  # lemma: interval-sum
            error = np.where(exact | (np.abs(x) == 1) | (np.abs(y) == 1), 0.0, error)  # lemma: interval-sum
        nothing = (x == 0) & (np.asarray(dx) == 0) | (y == 0) & (np.asarray(dy) == 0)
        # lemma: interval-sum
        return Approximation(
            value, np.where(nothing, 0.0, error * UP) if np.any(nothing) else error * UP, doubt
        )
    left = np.abs(y) - dy
    # lemma: interval-sum
    error = np.where(left > 0, (dx + size * dy) / (left * (1 - UNIT)) + size * UNIT + LEAST, np.inf)
    if not np.any(dx) and not np.any(dy):
        error = np.where((y != 0) & ((x == 0) | (np.abs(y) == 1)), 0.0, error)  # lemma: interval-sum
    return Approximation(value, error * UP, doubt)  # lemma: interval-sum


def _is_power_of_two(value: Any) -> Any:
    return np.abs(np.frexp(value)[0]) == 0.5


def _is_int(value: Value) -> bool:
    return value.dtype.kind == "i" if isinstance(value, np.ndarray) else isinstance(value, int)


def _leaves_64_bits(value: Value) -> Any:
    """Return where the integers of an array computed as doubles may be rounded or have left 64 bits."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return ~(np.abs(value) < WHOLE)
    return False


def _conditional(
    e: Conditional, condition: Approximation, then: Approximation, otherwise: Approximation
) -> Approximation:
    parts = (condition.value, then.value, otherwise.value)
    if not any(isinstance(part, np.ndarray) for part in parts):
        chosen = then if condition.value else otherwise
        value = chosen.value if _is_int(then.value) == _is_int(otherwise.value) else _as_double(chosen)[0]
        # Python's number, as every value without variables: one of NumPy would be no int and have 64 bits.
        return Approximation(
            value if isinstance(value, (bool, int)) else float(value), chosen.error, _doubt(condition, chosen)
        )
    where = np.asarray(condition.value, dtype=np.bool_)
    error = np.where(where, then.error, otherwise.error)
    doubt = np.logical_or(condition.doubt, np.where(where, then.doubt, otherwise.doubt))
    if _is_int(then.value) != _is_int(otherwise.value):  # the integers become doubles
        sides = _as_double(then), _as_double(otherwise)
        return Approximation(
            np.where(where, sides[0][0], sides[1][0]), np.where(where, sides[0][1], sides[1][1]), doubt
        )
    return Approximation(np.where(where, then.value, otherwise.value), error, doubt)


def _call(e: Call, parts: list[Approximation]) -> Approximation:
    function, doubt = e.function, _doubt(*parts)
    value = apply_to_arrays(e, [part.value for part in parts])
    if function.startswith(DEFINED):
        return Approximation(value, 0.0, doubt)
    if all(_is_int(part.value) for part in parts) and function != "log":
        return Approximation(value, 0.0, doubt | _leaves_64_bits(value))
    doubles = [_as_double(part) for part in parts]
    x, dx = doubles[0]
    if function in ("min", "max"):
        error = dx
        for _, other in doubles[1:]:
            # lemma: interval-sum
            error = np.maximum(error, other)
        return Approximation(value, error, doubt)
    if function in ("floor", "ceil", "round"):
        shifted = x + 0.5 if function == "round" else x
        # lemma: interval-sum
        margin = (dx + np.abs(shifted) * UNIT * (function == "round")) * UP
        nearest = np.rint(shifted)
        unclear = (margin != 0) & ~(np.abs(shifted - nearest) > margin * UP)
        return Approximation(value, 0.0, doubt | unclear | _leaves_64_bits(value))
    y, dy = doubles[1]
    size = np.abs(np.asarray(value, dtype=np.float64))
    if function == "pow":
        # |d(x^y)| <= x^y (|y| dx/x + |ln x| dy), for small relative errors.
        relative = (np.abs(y) * dx / np.abs(x) + np.abs(np.log(np.abs(x))) * dy) * 1.01
        relative = np.where((x == 0) | ~(relative < 0.01), np.inf, relative)
        if not np.any(dx) and not np.any(dy):
            sure = (x == 1) | (y == 0) | ((x == 0) & (y > 0))
            # lemma: interval-sum
            error = size * (relative + _LIBRARY_UNITS * UNIT) * UP + LEAST
            return Approximation(value, np.where(sure, 0.0, error), doubt)
    else:
        left, right = np.log(x), np.log(y)
        relative = (dx / np.abs(x) / np.abs(left) + dy / np.abs(y) / np.abs(right)) * 1.01
        relative = np.where((left == 0) | ~(relative < 0.01), np.inf, relative)
    # lemma: interval-sum
    return Approximation(value, size * (relative + _LIBRARY_UNITS * UNIT) * UP + LEAST, doubt)
