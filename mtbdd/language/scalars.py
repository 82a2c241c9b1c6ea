"""The operators of the PRISM language on single values, and folding of constant parts.

Values are Python's bool, int and float. A float stands for a real number, see `mtbdd.language.reals`.
Arithmetic is on these numbers: only the result that is shown in the end is rounded. What has no finite value
(a division by zero, an overflow) is a fault at the place of the operator's expression.
"""

from __future__ import annotations

import math
import operator as op
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NoReturn, cast

from mtbdd.language import reals
from mtbdd.language.errors import EvaluationError, Fault
from mtbdd.language.expression_parser import value_text
from mtbdd.language.reals import RealOverflowError, UndecidedError, as_double, from_real, real_of
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
from mtbdd.language.walk import Walk, map_children

Scalar = bool | int | float

# Integers are 64 bits wide, as in the arrays.
INT_LIMIT = 2**63


def _fail(position: Position, message: str) -> NoReturn:
    raise EvaluationError([Fault(position, message)])


def _checked(value: Scalar, position: Position, text: str) -> Scalar:
    """Return a value that fits 64 bits, or is finite."""
    if isinstance(value, float):
        if not math.isfinite(value):
            message = f"expected a finite number, got {text} = {value}; a double ends at 1.79e308"
            raise TooLargeError([Fault(position, message)])
    elif not -INT_LIMIT <= value < INT_LIMIT:
        _fail(position, f"expected an integer of 64 bits, got {text}, which is larger; use doubles")
    return value


class TooLargeError(EvaluationError):
    """A double leaves the range of doubles."""


class TooCloseError(EvaluationError):
    """Irrational numbers agree in so many digits that it is not known which one is greater."""


def _close(position: Position, text: str) -> NoReturn:
    message = (
        f"expected numbers that 60 digits tell apart, got {text}: logarithms and powers that may be "
        "irrational are computed no further; write the number itself"
    )
    raise TooCloseError([Fault(position, message)])


def apply_unary(operator: str, value: Scalar, position: Position) -> Scalar:
    """Return `operator value`.

    Raises EvaluationError: if the result does not fit 64 bits.
    """
    if operator == "!":
        return not value
    if isinstance(value, float):
        return from_real(reals.negate(real_of(value)))
    return _checked(-value, position, f"-({value_text(value)})")


_LOGIC: dict[str, Callable[[Any, Any], Any]] = {
    "&": lambda a, b: a and b,
    "|": lambda a, b: a or b,
    "=>": lambda a, b: not a or b,
    "<=>": op.eq,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": op.eq,
    "!=": op.ne,
    "<": op.lt,
    "<=": op.le,
    ">": op.gt,
    ">=": op.ge,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"+": op.add, "-": op.sub, "*": op.mul}
_REAL: dict[str, Callable[[reals.Real, reals.Real], reals.Real]] = {
    "+": reals.add,
    "-": lambda a, b: reals.add(a, reals.negate(b)),
    "*": reals.multiply,
    "/": reals.divide,
}


def apply_binary(operator: str, left: Scalar, right: Scalar, position: Position) -> Scalar:
    """Return `left operator right`.

    Raises EvaluationError: if a divisor is zero, the result is no finite number of 64 bits, or irrational
    numbers are too close to be distinguished.
    """
    logic = _LOGIC.get(operator)
    if logic is not None:
        return bool(logic(left, right))
    compare = _COMPARISONS.get(operator)
    doubles = isinstance(left, float) or isinstance(right, float)
    if compare is not None and not doubles:
        return bool(compare(left, right))
    text = f"{value_text(left)} {operator} {value_text(right)}"
    if not doubles and operator != "/":
        return _checked(_ARITHMETIC[operator](left, right), position, text)
    try:
        if compare is not None:
            return reals.compare(operator, real_of(left), real_of(right))
        return _checked(from_real(_REAL[operator](real_of(left), real_of(right))), position, text)
    except ZeroDivisionError:
        _fail(position, f"expected a divisor other than zero, got {text}; guard it with a condition")
    except UndecidedError:
        _close(position, text)
    except RealOverflowError:
        _checked(math.inf, position, text)
        raise


def apply_call(function: str, values: Sequence[Scalar], position: Position) -> Scalar:
    """Return a function's value.

    Raises EvaluationError: where the function is not defined: a modulus that is not positive, a negative
    exponent of ints, the logarithm of a number that is not positive, results that are not finite.
    """
    text = f"{function}({', '.join(value_text(v) for v in values)})"
    try:
        return _call(function, values, position, text)
    except UndecidedError:
        _close(position, text)
    except RealOverflowError:
        _checked(math.inf, position, text)
        raise


def _call(function: str, values: Sequence[Scalar], position: Position, text: str) -> Scalar:
    if function in ("min", "max"):
        return _extreme("<" if function == "min" else ">", values)
    if function in ("floor", "ceil", "round"):
        value = values[0]
        return _checked(
            _ROUNDING[function](real_of(value)) if isinstance(value, float) else value, position, text
        )
    if function == "pow":
        return _power(values[0], values[1], position, text)
    if function == "mod":
        if values[1] <= 0:
            _fail(position, f"expected a positive modulus, got {text}")
        return values[0] % values[1]
    if function == "log":
        number, base = map(real_of, values)
        if reals.compare("<=", number, _ZERO):
            _fail(position, f"expected the logarithm of a positive number, got {text}")
        if reals.compare("<=", base, _ZERO) or base == 1:
            _fail(position, f"expected a positive base other than 1, got {text}")
        return _checked(from_real(reals.logarithm(number, base)), position, text)
    _fail(position, f"unknown function '{function}'")


_ZERO = Fraction(0)

# To the nearest integer, halves upwards, is down from half above.
_ROUNDING: dict[str, Callable[[reals.Real], int]] = {
    "floor": reals.floor,
    "ceil": lambda a: -reals.floor(reals.negate(a)),
    "round": lambda a: reals.floor(reals.add(a, Fraction(1, 2))),
}


def _extreme(better: str, values: Sequence[Scalar]) -> Scalar:
    """Return the least (better: <) or greatest (>) of some values; a double if one of them is."""
    if not any(isinstance(v, float) for v in values):
        return min(values) if better == "<" else max(values)
    best = real_of(values[0])
    for value in values[1:]:
        other = real_of(value)
        if other != best and reals.compare(better, other, best):
            best = other
    return from_real(best)


def _power(base: Scalar, exponent: Scalar, position: Position, text: str) -> Scalar:
    if isinstance(base, float) or isinstance(exponent, float):
        try:
            result = from_real(reals.power(real_of(base), real_of(exponent)))
        except ValueError:
            result = math.inf
        if math.isinf(result):
            _fail(position, f"expected a power that is a finite real number, got {text}")
        return result
    if exponent < 0:
        _fail(
            position,
            f"expected an exponent of at least 0 for ints, got {text}; use a double, like pow(2.0, -1)",
        )
    # The bit length bounds the result before it is computed: it may be astronomically large.
    if abs(base) > 1 and exponent * (int(base).bit_length() - 1) > 64:
        _fail(position, f"expected an integer of 64 bits, got {text}, which is larger; use doubles")
    return _checked(int(base) ** int(exponent), position, text)


# Folding: constants become numbers, formulas and labels their definitions, constant parts their values.


class Folder(Walk[Expression]):
    """Folds well-typed expressions to literals, variables, operators and unknown labels.

    `values`: the constants. `definitions`: the formulas, folded before. `labels`: labels to replace, folded
    before; other labels stay. Raises EvaluationError: when called: a constant part has no value. The branch
    of `?:` that a constant condition leaves out and operands that a constant decides are not examined.
    """

    def __init__(
        self,
        values: Mapping[str, Scalar],
        definitions: Mapping[str, Expression],
        labels: Mapping[str, Expression] | None = None,
    ) -> None:
        super().__init__()
        self.values = values
        self.definitions = definitions
        self.labels = {} if labels is None else labels  # an empty one may be filled later

    def node(self, e: Expression) -> Expression:
        """Return a folded node that is no binary operator."""
        if isinstance(e, Literal):
            return e
        if isinstance(e, Name):
            if e.name in self.values:
                return Literal(e.position, self.values[e.name])
            return self.definitions.get(e.name, e)
        if isinstance(e, LabelReference):
            return self.labels.get(e.name, e)
        if isinstance(e, Unary):
            operand = self(e.operand)
            if isinstance(operand, Literal):
                return Literal(e.position, apply_unary(e.operator, operand.value, e.position))
            return e if operand is e.operand else Unary(e.position, e.operator, operand)
        if isinstance(e, Conditional):
            return self._conditional(e)
        # Calls, and the nodes of other languages built on this one.
        node = map_children(e, self)
        if isinstance(node, Call) and all(isinstance(a, Literal) for a in node.arguments):
            arguments = cast("tuple[Literal, ...]", node.arguments)
            return Literal(
                node.position, apply_call(node.function, [a.value for a in arguments], node.position)
            )
        return node

    def binary(self, e: Binary, left: Expression) -> Expression:
        """Return a folded binary operator, given its folded left operand."""
        operator = e.operator
        if isinstance(left, Literal):
            if operator == "&":
                return self(e.right) if left.value else Literal(e.position, False)
            if operator == "|":
                return Literal(e.position, True) if left.value else self(e.right)
            if operator == "=>":
                return self(e.right) if left.value else Literal(e.position, True)
        right = self(e.right)
        if isinstance(right, Literal):
            if isinstance(left, Literal):
                return Literal(e.position, apply_binary(operator, left.value, right.value, e.position))
            if operator == "&":
                return left if right.value else Literal(e.position, False)
            if operator == "|":
                return Literal(e.position, True) if right.value else left
            if operator == "=>" and right.value:
                return Literal(e.position, True)
        if left is e.left and right is e.right:
            return e
        return Binary(e.position, operator, left, right)

    def _conditional(self, e: Conditional) -> Expression:
        condition = self(e.condition)
        if not isinstance(condition, Literal):
            then, otherwise = self(e.then), self(e.otherwise)
            if condition is e.condition and then is e.then and otherwise is e.otherwise:
                return e
            return Conditional(e.position, condition, then, otherwise)
        chosen, other = (e.then, e.otherwise) if condition.value else (e.otherwise, e.then)
        result = self(chosen)
        # The expression keeps its type: an int beside a double is a double.
        if isinstance(result, Literal):
            if type(result.value) is int and self._is_double(other):
                return Literal(e.position, as_double(result.value))
        elif self._is_double(other) and not is_double(result, lambda _: False):
            return Conditional(e.position, Literal(e.position, True), result, Literal(e.position, 0.0))
        return result

    def _is_double(self, expression: Expression) -> bool:
        def name_is_double(name: str) -> bool:
            if name in self.values:
                return isinstance(self.values[name], float)
            definition = self.definitions.get(name)
            return definition is not None and is_double(definition, lambda _: False)

        return is_double(expression, name_is_double)
