"""Values of expressions over arrays, with a bound on what rounding costs them.

Numbers are computed in doubles together with a bound on their absolute error (running error analysis,
[Higham02] §3.3). That may leave a comparison or an integer part open, or a number without correct leading
digits. For these entries alone the expression is evaluated once more on the real numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.records import Record
from mtbdd.language.errors import EvaluationError, Fault
from mtbdd.language.evaluate import DEFINED, Value, apply_to_arrays, evaluate
from mtbdd.language.reals import bounds, real_of
from mtbdd.language.scalars import TooCloseError, TooLargeError
from mtbdd.language.syntax import Binary, Call, Conditional, Expression, Literal, Unary
from mtbdd.language.types import is_double
from mtbdd.language.walk import Walk, walk

# Arithmetic in doubles with a running bound on the absolute error of every value ([Higham02] §3.3).

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


class Approximation(Record):
    """A value, the error of a double, and where a bool or an integer is not certain."""

    value: Value
    error: Any = 0.0
    doubt: Any = False


class RunningErrors(Walk[Approximation]):
    """Values over arrays, each with a bound on its error."""

    def __init__(self, environment: Mapping[str, Array]) -> None:
        super().__init__()
        self._environment = environment

    def binary(self, e: Binary, left: Approximation) -> Approximation:
        """Return the value of a binary operator, given that of its left operand."""
        return _binary(e, left, self(e.right))

    def node(self, e: Expression) -> Approximation:
        """Return the value of what is no binary operator."""
        if isinstance(e, Literal):
            return _literal(e.value)
        if isinstance(e, Conditional):
            return _conditional(e, self(e.condition), self(e.then), self(e.otherwise))
        if isinstance(e, Unary):
            operand = self(e.operand)
            return Approximation(apply_to_arrays(e, [operand.value]), operand.error, operand.doubt)
        if isinstance(e, Call):
            return _call(e, [self(argument) for argument in e.arguments])
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


_MOST_UNITS = 32
"""Relative error beyond which a number is evaluated on the reals, in units."""

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Enclosed(Record):
    """The values of an expression.

    `values` (ndarray, any shape): bools, int64 or float64; NaN where the expression has no value. `error`
    (ndarray of float64, shape of `values`, or None): bound on the distance of every value from the number
    that it stands for; None if all are exact.
    """

    values: Array
    error: Vector | None


def has_doubles(expression: Expression) -> bool:
    """Return whether a number that is no integer may occur in an expression; O(distinct objects)."""
    return any(
        isinstance(e.value, float)
        if isinstance(e, Literal)
        else (isinstance(e, Binary) and e.operator == "/") or (isinstance(e, Call) and e.function == "log")
        for e in walk(expression)
    )


def enclose(
    expression: Expression,
    environment: Mapping[str, Array],
    shape: tuple[int, ...],
    where: Mask | None = None,
) -> Enclosed:
    """Return the values of an expression over arrays.

    `expression`: well-typed. `environment`: the values of names, bools or integers, of shapes that broadcast
    to `shape`; those of labels under their names in double quotes. `where` (ndarray of bool, shape `shape`,
    optional): the entries that count; the others' values and errors mean nothing. Returns Enclosed: of the
    given shape. The error is at most 32 units of rounding of the value; a number that is not zero is not 0.0.
    Raises EvaluationError: irrational numbers agree in so many digits that it is not known which one is
    greater, or numbers that are compared or rounded leave the doubles.

    Time: several operations on whole arrays a node, and some ten microseconds a node for every entry that has
    to be evaluated once more.
    """
    if not has_doubles(expression):
        return Enclosed(np.broadcast_to(np.asarray(evaluate(expression, environment)), shape), None)
    with np.errstate(all="ignore"):
        found = RunningErrors(environment)(expression)
        # In C order, so that what is put right below is put into these arrays and not into copies of them.
        values = np.array(np.broadcast_to(np.asarray(found.value), shape), order="C")
        doubtful = np.array(np.broadcast_to(np.asarray(found.doubt, dtype=np.bool_), shape), order="C")
        error = np.array(np.broadcast_to(np.asarray(found.error, dtype=np.float64), shape), order="C")
        is_number = is_double(expression, lambda _: False)
        if is_number:
            values = values.astype(np.float64, copy=False)
            doubtful |= ~(error <= _MOST_UNITS * UNIT * np.abs(values))  # lemma: entry-units
    if where is not None:
        doubtful &= where
    at = np.flatnonzero(doubtful)
    names = sorted(environment)
    columns = [np.broadcast_to(environment[name], shape).reshape(-1)[at].tolist() for name in names]
    known: dict[tuple[Any, ...], tuple[Any, float] | None] = {}
    mended = []
    for entry in zip(*columns, strict=True) if names else [()] * at.size:
        if entry not in known:
            known[entry] = _exact(expression, dict(zip(names, entry, strict=True)), is_number)
        mended.append(known[entry])
    if not is_number:
        return Enclosed(_with(values, at, mended), None)
    flat, bound = values.reshape(-1), error.reshape(-1)
    for k, exact in zip(at.tolist(), mended, strict=True):
        # NaN, infinite or far beyond all doubles: no number anyway.
        flat[k], bound[k] = (flat[k], 0.0) if exact is None else exact
    return Enclosed(values, error if (error if where is None else error[where]).any() else None)


def _with(values: Array, at: Array, mended: Sequence[tuple[Any, float] | None]) -> Array:
    """Return bools or integers with some entries replaced; NaN where an integer has no value."""
    if values.dtype.kind != "f":
        for k, exact in zip(at.tolist(), mended, strict=True):
            if exact is not None:
                values.reshape(-1)[k] = exact[0]
        return values
    # Integers that were computed as doubles, since some may have left 64 bits.
    whole = np.where(np.abs(values) <= WHOLE, values, 0.0).astype(np.int64)
    lost = np.isnan(values)
    for k, exact in zip(at.tolist(), mended, strict=True):
        lost.reshape(-1)[k] = exact is None
        if exact is not None:
            whole.reshape(-1)[k] = exact[0]
    return np.where(lost, np.nan, whole) if lost.any() else whole


def units_of(found: Enclosed, where: Mask | None = None) -> float:
    """Return the greatest relative error of numbers that count, in units of 2^-53."""
    if found.error is None:
        return 0.0
    error, size = found.error, np.abs(found.values)
    counts = (size > 0) & np.isfinite(size)
    if where is not None:
        counts &= where
    with np.errstate(over="ignore"):
        return float((error[counts] / size[counts]).max(initial=0.0)) / UNIT * UP  # lemma: entry-units


def nearest_nonzero(value: int | float, position: Any) -> tuple[float, float]:
    """Return the double for a real number, not zero unless that is, and a bound on its error.

    Raises EvaluationError: whether it is zero is not known.
    """
    low, high = bounds(real_of(value))
    if low == high == 0:
        return 0.0, 0.0
    if low <= 0 <= high:
        message = "expected a number that 60 digits tell from zero; write the number itself"
        raise TooCloseError([Fault(position, message)])
    double = float(value)
    if double == 0:
        double = LEAST if low > 0 else -LEAST
    if low == high == double:
        return double, 0.0
    # Half a unit in the last place, and the width of the enclosure, which is far less.
    return double, max(abs(double) * UNIT * UP, LEAST)  # lemma: entry-units


def _exact(
    expression: Expression, environment: Mapping[str, Any], is_number: bool
) -> tuple[Any, float] | None:
    """Return a single value and its error, None if it has none."""
    try:
        value = evaluate(expression, environment)
        if isinstance(value, float):
            return nearest_nonzero(value, expression.position)
    except TooCloseError:
        raise
    except TooLargeError:
        # Infinite weights and rewards are refused where they are met; a truth or an integer shows nothing.
        if is_number:
            return None
        raise
    except EvaluationError:
        return None
    return value, 0.0
