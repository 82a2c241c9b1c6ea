"""Values of expressions, for single values of the variables and for whole arrays of them.

Arrays hold booleans, 64-bit integers or doubles. Entries without a value (a division of zero by zero, a
modulus that is not positive, an integer too large) are NaN. So an array evaluated over more than the
meaningful combinations raises nothing. A single value without one is a fault. Within an expression, integers
beside such entries are extended doubles, whose 64 bits of mantissa hold every integer of 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mtbdd.language.definedness import DEFINED
from mtbdd.language.errors import EvaluationError, Fault
from mtbdd.language.expression_parser import FUNCTIONS
from mtbdd.language.reals import as_double
from mtbdd.language.scalars import INT_LIMIT, Scalar, apply_binary, apply_call, apply_unary
from mtbdd.language.syntax import Binary, Call, Conditional, Expression, LabelReference, Literal, Name, Unary
from mtbdd.language.types import is_double
from mtbdd.language.walk import Walk, occurrences

# Operators and functions of the language over arrays: integers keep 64 bits, NaN stands for no value.

Array = np.ndarray[Any, np.dtype[Any]]
Value = Scalar | Array


HOLED = np.dtype(np.longdouble)  # of integers beside entries without a value


def _extent(value: Value) -> int:
    """Return the largest magnitude in an integer array or value."""
    if not isinstance(value, np.ndarray):
        return abs(int(value))
    if value.dtype == HOLED:
        return INT_LIMIT
    return max(abs(int(value.min())), abs(int(value.max()))) if value.size else 0


def is_float(value: Value) -> bool:
    """Return whether a value is a double, or an array of doubles."""
    return value.dtype == np.float64 if isinstance(value, np.ndarray) else isinstance(value, float)


def _arithmetic(operation: Callable[..., Array], left: Value, right: Value, product: bool) -> Array:
    """Apply + - *; integers that may leave 64 bits are computed in extended precision, NaN where they do."""
    if not (is_float(left) or is_float(right)):
        a, b = _extent(left), _extent(right)
        if (a * b if product else a + b) >= INT_LIMIT:
            return to_whole_numbers(operation(np.asarray(left, HOLED), np.asarray(right, HOLED)))
    return operation(left, right)


_COMPARISONS: dict[str, Callable[..., Array]] = {
    "&": np.logical_and,
    "|": np.logical_or,
    "<=>": np.equal,
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "/": np.true_divide,
}


def _array_binary(operator: str, left: Value, right: Value) -> Array:
    if operator == "+":
        return _arithmetic(np.add, left, right, False)
    if operator == "-":
        return _arithmetic(np.subtract, left, right, False)
    if operator == "*":
        return _arithmetic(np.multiply, left, right, True)
    if operator == "=>":
        return np.logical_or(np.logical_not(left), right)
    return _COMPARISONS[operator](left, right)


def to_whole_numbers(value: Array) -> Array:
    """Return whole numbers as int64; with NaN where an entry is undefined or too large if there are any."""
    whole = (-INT_LIMIT <= value) & (value < INT_LIMIT)  # False for NaN
    return value.astype(np.int64) if whole.all() else np.where(whole, value.astype(HOLED), np.nan)


def _rounded(function: Callable[..., Array]) -> Callable[[Sequence[Value]], Array]:
    def apply(arguments: Sequence[Value]) -> Array:
        value = np.asarray(arguments[0])
        return value if value.dtype.kind == "i" or value.dtype == HOLED else to_whole_numbers(function(value))

    return apply


def _round_half_up(value: Array) -> Array:
    below = np.floor(value)
    return below + (value - below >= 0.5)


def _power(arguments: Sequence[Value]) -> Array:
    base, exponent = np.broadcast_arrays(*(np.asarray(a) for a in arguments))
    estimate = np.power(base.astype(np.float64), exponent.astype(np.float64))
    if is_float(base) or is_float(exponent):
        return estimate
    # Powers of ints above the first are 2^63 or far from it, so that rounding does not matter.
    sound = (exponent >= 0) & ((np.abs(estimate) < INT_LIMIT) | (estimate == -INT_LIMIT) | (exponent <= 1))
    sound &= ~(np.isnan(base) | np.isnan(exponent))
    exact = np.power(np.where(sound, base, 0).astype(np.int64), np.where(sound, exponent, 1).astype(np.int64))
    return exact if sound.all() else np.where(sound, exact.astype(HOLED), np.nan)


def _modulo(arguments: Sequence[Value]) -> Array:
    value, modulus = (np.asarray(a) for a in arguments)
    sound = modulus > 0
    result = np.mod(value, np.where(sound, modulus, 1))
    return result if sound.all() else np.where(sound, result.astype(HOLED), np.nan)


def _logarithm(arguments: Sequence[Value]) -> Array:
    value, base = (np.asarray(a, np.float64) for a in arguments)
    result = np.log(value) / np.log(base)
    return np.where((base > 0) & (base != 1), result, np.nan)


def apply_to_arrays(e: Expression, operands: Sequence[Value]) -> Value:
    """Return what an operator or a function, other than `?:`, makes of its operands' values."""
    arrays = any(isinstance(operand, np.ndarray) for operand in operands)
    if isinstance(e, Binary):
        left, right = operands
        if arrays:
            return _array_binary(e.operator, left, right)
        return apply_binary(e.operator, left, right, e.position)  # type: ignore[arg-type]
    if isinstance(e, Unary):
        if not arrays:
            return apply_unary(e.operator, operands[0], e.position)  # type: ignore[arg-type]
        if e.operator == "!":
            return np.logical_not(operands[0])
        if is_float(operands[0]):
            return np.negative(operands[0])
        return _arithmetic(np.subtract, 0, operands[0], False)
    if not isinstance(e, Call):
        raise TypeError(f"not an operator: {type(e).__name__}")
    if e.function.startswith(DEFINED):
        return _has_value(e, operands)
    if not arrays:
        return apply_call(e.function, operands, e.position)  # type: ignore[arg-type]
    if e.function not in _FUNCTIONS:
        raise EvaluationError([Fault(e.position, f"unknown function '{e.function}'")])
    return _FUNCTIONS[e.function](operands)


def _has_value(e: Call, operands: Sequence[Value]) -> Value:
    """Return where an operator or function, named behind `DEFINED`, has a value for its operands."""
    operation, place = e.function.removeprefix(DEFINED), e.position
    named: Expression = Call(place, operation, e.arguments)
    if operation not in FUNCTIONS:
        named = Unary(place, operation, e) if len(operands) == 1 else Binary(place, operation, e, e)
    try:
        result = apply_to_arrays(named, operands)
    except EvaluationError:
        return False
    if not isinstance(result, np.ndarray):
        return True
    return ~np.isnan(result) if result.dtype.kind == "f" else np.ones(result.shape, np.bool_)


def _extreme(function: Callable[..., Array]) -> Callable[[Sequence[Value]], Array]:
    def apply(arguments: Sequence[Value]) -> Array:
        result = np.asarray(arguments[0])
        for argument in arguments[1:]:
            result = function(result, argument)
        return result

    return apply


_FUNCTIONS: dict[str, Callable[[Sequence[Value]], Array]] = {
    "min": _extreme(np.minimum),
    "max": _extreme(np.maximum),
    "floor": _rounded(np.floor),
    "ceil": _rounded(np.ceil),
    "round": _rounded(_round_half_up),
    "pow": _power,
    "mod": _modulo,
    "log": _logarithm,
}


# The left operand that decides a logical operator, and the result then.
_DECIDED = {"&": (False, False), "|": (True, True), "=>": (False, True)}


def evaluate(expression: Expression, environment: Mapping[str, Any]) -> Value:
    """Return the value of an expression.

    `expression`: well-typed. `environment`: the value of each name; that of a label under its name in double
    quotes. Arrays (bool, integer or float64) must have shapes that broadcast. Returns bool, int, float or
    ndarray: a Python value if no array takes part, else an array of the broadcast shape of those that do:
    bool; int64 for an int expression; float64 for a double, and for an int expression with undefined entries
    (NaN). Raises EvaluationError: if a name has no value, or a single value is undefined (division by zero
    and the like).

    Single values are computed lazily: `&`, `|`, `=>` and `?:` skip what does not matter. Time: O(distinct
    objects in the expression × entries); what occurs in several places is kept while it is needed.
    """
    values = Values(environment, expression)
    try:
        with np.errstate(all="ignore"):
            result = values(expression)
            if isinstance(result, np.ndarray) and result.dtype.kind == "f":
                if values.is_int(expression):
                    result = to_whole_numbers(result)
                if result.dtype == HOLED:
                    result = result.astype(np.float64)
    except RecursionError:
        raise EvaluationError(
            [Fault(expression.position, "expected an expression nested less deeply; split it with formulas")]
        ) from None
    return result


def _normalise(value: Any) -> Value:
    """Return numpy scalars as Python's and integer arrays as int64."""
    if isinstance(value, np.generic):
        return value.item()  # type: ignore[no-any-return]
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "iu":
            return value.astype(np.int64, copy=False)
        if value.dtype.kind == "f":
            return value.astype(np.float64, copy=False)
        if value.dtype.kind != "b":
            raise TypeError(f"expected an array of bools, integers or floats, got dtype {value.dtype}")
        return value
    if not isinstance(value, (bool, int, float)):
        raise TypeError(f"expected a bool, an int, a float or an array, got {type(value).__name__}")
    return value


class Values(Walk[Value]):
    """Values over arrays, or single ones on the reals; those of one expression are forgotten once used."""

    def __init__(self, environment: Mapping[str, Any], expression: Expression) -> None:
        super().__init__(occurrences(expression))
        self._names = {name: _normalise(value) for name, value in environment.items()}

    def binary(self, e: Binary, left: Value) -> Value:
        """Return the value of a binary operator, given that of its left operand."""
        decided = _DECIDED.get(e.operator)
        if decided is not None and left is decided[0]:
            return decided[1]
        return apply_to_arrays(e, [left, self(e.right)])

    def node(self, e: Expression) -> Value:
        """Return the value of what is no binary operator."""
        if isinstance(e, Literal):
            return e.value
        if isinstance(e, Name):
            try:
                return self._names[e.name]
            except KeyError:
                raise EvaluationError(
                    [Fault(e.position, f"expected a value for '{e.name}', got none")]
                ) from None
        if isinstance(e, LabelReference) and f'"{e.name}"' in self._names:
            return self._names[f'"{e.name}"']
        if isinstance(e, Conditional):
            return self._conditional(e)
        if isinstance(e, (Unary, Call)):
            try:
                return apply_to_arrays(
                    e, [self(a) for a in (e.arguments if isinstance(e, Call) else (e.operand,))]
                )
            except EvaluationError:
                if isinstance(e, Call) and e.function.startswith(DEFINED):
                    return False  # a single value that does not exist
                raise
        kind = type(e).__name__
        message = f"expected an expression over variables, got {kind}; it has no value in a single state"
        raise EvaluationError([Fault(e.position, message)])

    def is_int(self, e: Expression) -> bool:
        """Return whether an expression is no double, names being what their values are."""
        return not is_double(e, lambda name: is_float(self._names.get(name, 0)))

    def _conditional(self, e: Conditional) -> Value:
        condition = self(e.condition)
        if isinstance(condition, np.ndarray):
            then, otherwise = self(e.then), self(e.otherwise)
            return np.where(condition, then, otherwise)
        chosen, other = (e.then, e.otherwise) if condition else (e.otherwise, e.then)
        value = self(chosen)
        if isinstance(value, bool) or (isinstance(value, np.ndarray) and value.dtype.kind == "b"):
            return value
        # An int beside a double is a double: pow(c ? 2 : 0.5, -1) is 0.5.
        if not self.is_int(other):
            return value.astype(np.float64) if isinstance(value, np.ndarray) else as_double(value)
        return value
