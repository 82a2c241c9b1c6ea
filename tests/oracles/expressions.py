"""Values of expressions from their definitions, with fractions; nothing is shared but the syntax tree."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from operator import itemgetter

from mtbdd.language.syntax import Binary, Call, Conditional, Expression, Literal, Name, Unary

__all__ = ["OracleFaultError", "Value", "evaluate_exactly"]

Value = bool | int | Fraction
_Meaning = Callable[[Mapping[str, bool | int]], Value]

_MEANINGS: dict[int, tuple[Expression, _Meaning]] = {}
_MOST_MEANINGS = 20_000


class OracleFaultError(Exception):
    """A reachable state in which the model is at fault."""


def evaluate_exactly(e: Expression, values: Mapping[str, bool | int]) -> Value:
    """Return an expression's value; doubles are fractions: 0.1 is 1/10, 0.3333333333333333 is 1/3.

    Raises
    ------
    OracleFaultError
        The value is undefined (division by zero, modulus that is not positive, ...).
    """
    return _meaning(e)(values)


def _meaning(e: Expression) -> _Meaning:
    """Return an expression as a function of the values; a tree is walked once, however often it is asked."""
    known = _MEANINGS.get(id(e))
    if known is None:
        if len(_MEANINGS) > _MOST_MEANINGS:
            _MEANINGS.clear()
        # The expression is kept, so that its identity stays its own.
        known = _MEANINGS[id(e)] = e, _compiled(e)
    return known[1]


def _compiled(e: Expression) -> _Meaning:
    if isinstance(e, Literal):
        value = _fraction(e.value) if isinstance(e.value, float) else e.value
        return lambda values: value
    if isinstance(e, Name):
        return itemgetter(e.name)
    if isinstance(e, Unary):
        operand = _compiled(e.operand)
        return (lambda values: not operand(values)) if e.operator == "!" else lambda values: -operand(values)
    if isinstance(e, Conditional):
        condition, then, otherwise = map(_compiled, (e.condition, e.then, e.otherwise))
        return lambda values: then(values) if condition(values) else otherwise(values)
    if isinstance(e, Binary):
        left, right, operation = _compiled(e.left), _compiled(e.right), _OPERATIONS[e.operator]
        return lambda values: operation(left(values), right(values))
    if isinstance(e, Call):
        function, arguments = e.function, [_compiled(a) for a in e.arguments]
        return lambda values: _call(function, [a(values) for a in arguments])
    kind = type(e).__name__

    def refuse(values: Mapping[str, bool | int]) -> Value:
        raise TypeError(f"no value in a state: {kind}")

    return refuse


def _fraction(value: float) -> Fraction:
    """Return the number meant by a double: a small fraction that rounds to it, or its shortest decimal."""
    small = Fraction(value).limit_denominator(10**5)
    return small if float(small) == value else Fraction(repr(value))


def _quotient(a: Value, b: Value) -> Value:
    if b == 0:
        raise OracleFaultError("division by zero")
    return Fraction(a) / Fraction(b)


# Both sides have been worked out: an undefined one is a fault whatever the other says.
_OPERATIONS: dict[str, Callable[[Value, Value], Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "&": lambda a, b: bool(a and b),
    "|": lambda a, b: bool(a or b),
    "=>": lambda a, b: bool(not a or b),
    "<=>": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


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
