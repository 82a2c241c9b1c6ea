"""Values of expressions, for single values of the variables and for whole arrays of them.

Arrays hold booleans, 64-bit integers or doubles.  Entries without a value (a division of zero by zero, a
modulus that is not positive, an integer too large) are NaN, so that an array evaluated over more than the
meaningful combinations raises nothing; a single value without one is a fault.  Within an expression, integers
beside such entries are extended doubles, whose 64 bits of mantissa hold every integer of 64 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mtbdd.language.array_operations import HOLED, Value, apply_to_arrays, is_float, to_whole_numbers
from mtbdd.language.definedness import DEFINED
from mtbdd.language.errors import EvaluationError, Fault
from mtbdd.language.rounded import as_double
from mtbdd.language.syntax import Binary, Call, Conditional, Expression, LabelReference, Literal, Name, Unary
from mtbdd.language.types import is_double
from mtbdd.language.walk import children

# What decides a logical operator without its right operand, and the result then.
_DECIDED = {"&": (False, False), "|": (True, True), "=>": (False, True)}


def evaluate(expression: Expression, environment: Mapping[str, Any]) -> Value:
    """Return the value of an expression.

    Parameters
    ----------
    expression : Expression
        Well-typed.
    environment : mapping of str to bool, int, float or ndarray
        The value of each name; that of a label under its name in double quotes.  Arrays (bool, integer
        or float64) must have shapes that broadcast.

    Returns
    -------
    bool, int, float or ndarray
        A Python value if no array takes part, else an array of the broadcast shape of those that do:
        bool; int64 for an int expression; float64 for a double, and for an int expression with
        undefined entries (NaN).

    Raises
    ------
    EvaluationError
        If a name has no value, or a single value is undefined (division by zero and the like).

    Notes
    -----
    Single values are computed lazily: `&`, `|`, `=>` and `?:` skip what does not matter.
    Time: O(distinct objects in the expression × entries); what occurs in several places is kept while it is
    needed.
    """
    values = _Values({name: _normalise(value) for name, value in environment.items()}, _shared(expression))
    try:
        with np.errstate(all="ignore"):
            result = _evaluate(expression, values)
            if isinstance(result, np.ndarray) and result.dtype.kind == "f":
                if _is_int(expression, values):
                    result = to_whole_numbers(result)
                if result.dtype == HOLED:
                    result = result.astype(np.float64)
    except RecursionError:
        raise EvaluationError(
            [Fault(expression.position, "expected an expression nested less deeply; split it with formulas")]
        ) from None
    return result


class _Values(dict[str, Value]):
    """The values of names, and of the parts of an expression that occur in several places.

    Attributes
    ----------
    left : dict of int to int
        How often a part, by identity, is still to be looked at.
    known : dict of int to (bool, int, float or ndarray)
        What such parts are.
    """

    def __init__(self, values: Mapping[str, Value], left: dict[int, int]) -> None:
        super().__init__(values)
        self.left = left
        self.known: dict[int, Value] = {}

    def keep(self, e: Expression, value: Value) -> Value:
        """Note the value of a part if it will be needed again."""
        if self.left.get(id(e), 0) > 1:
            self.left[id(e)] -= 1
            self.known[id(e)] = value
        return value

    def take(self, e: Expression) -> Value:
        """Return the value of a part that is known, and forget it with its last use."""
        self.left[id(e)] -= 1
        return self.known[id(e)] if self.left[id(e)] else self.known.pop(id(e))


def _shared(expression: Expression) -> dict[int, int]:
    """Return the operators and calls that occur in several places, and in how many."""
    counts: dict[int, int] = {}
    stack = [expression]
    while stack:
        node = stack.pop()
        for child in children(node):
            if isinstance(child, (Literal, Name)):
                continue
            seen = counts.get(id(child), 0)
            counts[id(child)] = seen + 1
            if not seen:
                stack.append(child)
    return {key: count for key, count in counts.items() if count > 1}


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


def _is_int(expression: Expression, values: Mapping[str, Value]) -> bool:
    return not is_double(expression, lambda name: is_float(values.get(name, 0)))


def _evaluate(e: Expression, values: _Values) -> Value:
    chain = []
    while type(e) is Binary and id(e) not in values.known:
        chain.append(e)
        e = e.left
    result = values.take(e) if id(e) in values.known else values.keep(e, _operand(e, values))
    for node in reversed(chain):
        decided = _DECIDED.get(node.operator)
        if decided is not None and result is decided[0]:
            result = values.keep(node, decided[1])
            continue
        right = _evaluate(node.right, values)
        result = values.keep(node, apply_to_arrays(node, [result, right]))
    return result


def _operand(e: Expression, values: _Values) -> Value:
    if isinstance(e, Literal):
        return e.value
    if isinstance(e, Name):
        try:
            return values[e.name]
        except KeyError:
            raise EvaluationError([Fault(e.position, f"expected a value for '{e.name}', got none")]) from None
    if isinstance(e, LabelReference) and f'"{e.name}"' in values:
        return values[f'"{e.name}"']
    if isinstance(e, Unary):
        return apply_to_arrays(e, [_evaluate(e.operand, values)])
    if isinstance(e, Conditional):
        return _conditional(e, values)
    if isinstance(e, Call):
        return _call(e, values)
    message = (
        f"expected an expression over variables, got {type(e).__name__}; it has no value in a single state"
    )
    raise EvaluationError([Fault(e.position, message)])


def _call(e: Call, values: _Values) -> Value:
    try:
        return apply_to_arrays(e, [_evaluate(argument, values) for argument in e.arguments])
    except EvaluationError:
        if e.function.startswith(DEFINED):
            return False  # a single value that does not exist
        raise


def _conditional(e: Conditional, values: _Values) -> Value:
    condition = _evaluate(e.condition, values)
    if isinstance(condition, np.ndarray):
        then, otherwise = _evaluate(e.then, values), _evaluate(e.otherwise, values)
        return np.where(condition, then, otherwise)
    chosen, other = (e.then, e.otherwise) if condition else (e.otherwise, e.then)
    value = _evaluate(chosen, values)
    if isinstance(value, bool) or (isinstance(value, np.ndarray) and value.dtype.kind == "b"):
        return value
    # An int beside a double is a double: pow(c ? 2 : 0.5, -1) is 0.5.
    if not _is_int(other, values):
        return value.astype(np.float64) if isinstance(value, np.ndarray) else as_double(value)
    return value
