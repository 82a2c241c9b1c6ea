"""Values of expressions, for single values of the variables and for whole arrays, and where there are any.

Arrays hold booleans, 64-bit integers or doubles. Entries without a value (a division of zero by zero, a
modulus that is not positive, an integer too large) are NaN. So an array evaluated over more than the
meaningful combinations raises nothing. A single value without one is a fault. Within an expression, integers
beside such entries are extended doubles, whose 64 bits of mantissa hold every integer of 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mtbdd.language.errors import EvaluationError, Fault
from mtbdd.language.expression_parser import FUNCTIONS
from mtbdd.language.reals import as_double
from mtbdd.language.scalars import INT_LIMIT, Scalar, apply_binary, apply_call, apply_unary
from mtbdd.language.syntax import (
    Binary,
    Call,
    Conditional,
    Expression,
    LabelReference,
    Literal,
    Name,
    Position,
    Unary,
)
from mtbdd.language.types import is_double
from mtbdd.language.walk import Walk, bottom_up, children, occurrences

# Definedness of expressions: conditions under which partial functions of ints have a value.
#
# `pow` of ints wants an exponent of at least 0, `mod` a positive modulus and `log` a positive number; ints
# want results of 64 bits. As in the evaluation of single values, operands that `&`, `|`, `=>` and `?:` do not
# need are not examined.

# Ranges of expressions: bounds on their values from the ranges of the variables, by interval arithmetic.

Range = tuple[int, int] | tuple[float, float] | None
"""Least and greatest value: ints for an int, floats for a double, infinite if unknown; None for a bool."""

_ANY_DOUBLE: Range = (-math.inf, math.inf)
_ARITHMETIC: dict[str, Callable[..., int | float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


class RangeFinder:
    """Finds ranges of well-typed expressions and shows where integers may leave 64 bits.

    `variables`: least and greatest value of every variable that is an int. Results are kept by identity.
    Time: O(distinct objects in the expressions).
    """

    def __init__(self, variables: Mapping[str, tuple[int, int]]) -> None:
        self._variables = variables
        self._known: dict[int, tuple[Expression, Range, bool]] = {}

    def __call__(self, e: Expression) -> Range:
        """Return the range of an expression."""
        return self._entry(e)[1]

    def may_overflow(self, e: Expression) -> bool:
        """Return whether an operator or function may give an integer of more than 64 bits, operands given."""
        return self._entry(e)[2]

    def _entry(self, e: Expression) -> tuple[Expression, Range, bool]:
        known = self._known
        if id(e) not in known:
            for node, below in bottom_up(e, known):
                found = self._range(node)
                known[id(node)] = (node, *(_clipped(found) if below else (found, False)))
        return known[id(e)]

    def _range(self, e: Expression) -> Range:
        """Return the range of a node whose operands are known, ints as large as they may get."""
        if isinstance(e, Literal):
            return None if isinstance(e.value, bool) else (e.value, e.value)
        if isinstance(e, Name):
            return self._variables.get(e.name)
        operands = [self._known[id(child)][1] for child in children(e)]
        if isinstance(e, Conditional):
            return _hull(operands[1:])
        numbers = [operand for operand in operands if operand is not None]
        if len(numbers) < len(operands) or not numbers:
            return None
        if isinstance(e, Unary):
            return (-numbers[0][1], -numbers[0][0])
        if isinstance(e, Binary):
            return _binary(e.operator, numbers[0], numbers[1])
        return _call(e, numbers) if isinstance(e, Call) else None


def _clipped(found: Range) -> tuple[Range, bool]:
    """Return a range cut to 64 bits if it is that of an int, and whether it was cut."""
    if found is None or not isinstance(found[0], int) or not isinstance(found[1], int):
        return found, False
    low, high = max(found[0], -INT_LIMIT), min(found[1], INT_LIMIT - 1)
    return (min(low, high), high), (low, high) != found


def _is_int(operands: Sequence[Range]) -> bool:
    return all(r is not None and isinstance(r[0], int) and isinstance(r[1], int) for r in operands)


def _hull(parts: Sequence[Range]) -> Range:
    """Return the range of a choice between several."""
    numbers = [part for part in parts if part is not None]
    if not numbers:
        return None
    return _typed(min(n[0] for n in numbers), max(n[1] for n in numbers), _is_int(parts))


def _typed(low: int | float, high: int | float, is_int: bool) -> Range:
    return (int(low), int(high)) if is_int else (float(low), float(high))


def _binary(operator: str, a: tuple[int | float, ...], b: tuple[int | float, ...]) -> Range:
    if operator not in ("+", "-", "*", "/"):
        return None
    if operator == "/":
        return _ANY_DOUBLE if b[0] <= 0 <= b[1] else _corners(lambda x, y: x / y, a, b, False)
    return _corners(_ARITHMETIC[operator], a, b, _is_int([(a[0], a[1]), (b[0], b[1])]))


def _corners(
    function: Callable[..., int | float], a: Sequence[int | float], b: Sequence[int | float], is_int: bool
) -> Range:
    """Return the range of a function that is monotone in each operand."""
    values = [function(x, y) for x in a for y in b]
    if not is_int and any(v != v for v in values):
        return _ANY_DOUBLE
    return _typed(min(values), max(values), is_int)


def _call(e: Call, numbers: Sequence[tuple[int | float, ...]]) -> Range:
    function = e.function
    if function in ("min", "max"):
        choose = min if function == "min" else max
        is_int = _is_int([(n[0], n[1]) for n in numbers])
        return _typed(choose(n[0] for n in numbers), choose(n[1] for n in numbers), is_int)
    if function in ("floor", "ceil", "round"):
        low, high = numbers[0]
        if isinstance(low, int) and isinstance(high, int):
            return (low, high)
        # One more than 64 bits hold, on both sides, stands for all that is not finite.
        return (
            math.floor(low) - 1 if math.isfinite(low) else -INT_LIMIT - 1,
            math.ceil(high) + 1 if math.isfinite(high) else INT_LIMIT,
        )
    if function == "mod":
        return (0, max(int(numbers[1][1]) - 1, 0))
    if function == "pow" and _is_int([(n[0], n[1]) for n in numbers]):
        return _power_range(max(abs(int(v)) for v in numbers[0]), int(numbers[1][1]))
    return _ANY_DOUBLE if function in ("pow", "log") else None


def _power_range(base: int, exponent: int) -> Range:
    """Return the range of a power of ints up to a magnitude, to exponents up to another."""
    if base <= 1 or exponent <= 0:
        return (-1, 1)
    if exponent * (base.bit_length() - 1) > 64:
        return (-INT_LIMIT - 1, INT_LIMIT)
    return (-(base**exponent), base**exponent)


_TRUE = Literal(Position("", 1, 1), True)
DEFINED = "defined "
"""Begins the name of the function that shows whether the operator or function behind it has a value."""


class Definedness(Walk[Expression]):
    """Conditions under which expressions have a value, results of 64 bits presumed; `true` if they always do.

    `ranges`: least and greatest value of every variable that is an int. Where results might leave 64 bits for
    some of these values, the condition says that they do not; without ranges that is presumed.

    A division by zero is infinite or not a number, by the rules of floating point, and counts as a value.
    Conditions share parts with the expressions and with one another, and are kept by identity.
    """

    def __init__(self, ranges: Mapping[str, tuple[int, int]] | None) -> None:
        super().__init__()
        self._ranges = None if ranges is None else RangeFinder(ranges)

    def binary(self, e: Binary, left: Expression) -> Expression:
        """Return the condition of a binary operator, given that of its left operand."""
        right = self(e.right)
        if e.operator in ("&", "=>"):
            right = _either(Unary(e.position, "!", e.left), right)
        elif e.operator == "|":
            right = _either(e.left, right)
        return _both(_both(left, right), self._own(e))

    def node(self, e: Expression) -> Expression:
        """Return the condition of what is no binary operator."""
        if isinstance(e, (Literal, Name)):
            return _TRUE
        if isinstance(e, Conditional):
            then, otherwise = self(e.then), self(e.otherwise)
            chosen: Expression = _TRUE
            if not (_is_true(then) and _is_true(otherwise)):
                chosen = Conditional(e.position, e.condition, then, otherwise)
            return _both(self(e.condition), chosen)
        result: Expression = _TRUE
        for child in children(e):
            result = _both(result, self(child))
        return _both(result, self._own(e))

    def _own(self, e: Expression) -> Expression:
        """Return what an operator or a function asks of its operands' values."""
        result: Expression = _TRUE
        if isinstance(e, Call):
            zero = Literal(e.position, 0)
            if e.function == "mod":
                result = Binary(e.position, ">", e.arguments[1], zero)
            elif e.function == "log":
                result = Binary(e.position, ">", e.arguments[0], zero)
            elif e.function == "pow" and not any(is_double(a, lambda _: False) for a in e.arguments):
                result = Binary(e.position, ">=", e.arguments[1], zero)
        if self._ranges is None or not self._ranges.may_overflow(e):
            return result
        if isinstance(e, Call):
            return _both(result, Call(e.position, DEFINED + e.function, e.arguments))
        operands = tuple(children(e))
        operator = e.operator if isinstance(e, (Unary, Binary)) else ""
        return _both(result, Call(e.position, DEFINED + operator, operands))


def _is_true(e: Expression) -> bool:
    return isinstance(e, Literal) and e.value is True


def _both(a: Expression, b: Expression) -> Expression:
    if _is_true(a):
        return b
    return a if _is_true(b) else Binary(b.position, "&", a, b)


def _either(a: Expression, b: Expression) -> Expression:
    return b if _is_true(b) else Binary(b.position, "|", a, b)


# Values of expressions, for single values of the variables and for whole arrays of them.
#
# Arrays hold booleans, 64-bit integers or doubles. Entries without a value (a division of zero by zero, a
# modulus that is not positive, an integer too large) are NaN. So an array evaluated over more than the
# meaningful combinations raises nothing. A single value without one is a fault. Within an expression,
# integers beside such entries are extended doubles, whose 64 bits of mantissa hold every integer of 64 bits.

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
