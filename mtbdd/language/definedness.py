"""Definedness of expressions: conditions under which partial functions of ints have a value.

`pow` of ints wants an exponent of at least 0, `mod` a positive modulus and `log` a positive number; ints want
results of 64 bits.  As in the evaluation of single values, operands that `&`, `|`, `=>` and `?:` do not need
are not examined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from mtbdd.language.scalars import INT_LIMIT
from mtbdd.language.syntax import Binary, Call, Conditional, Expression, Literal, Name, Position, Unary
from mtbdd.language.types import is_double
from mtbdd.language.walk import Walk, bottom_up, children

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
        return _power(max(abs(int(v)) for v in numbers[0]), int(numbers[1][1]))
    return _ANY_DOUBLE if function in ("pow", "log") else None


def _power(base: int, exponent: int) -> Range:
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
