"""Where an expression has a value: functions of ints that are defined for some arguments only.

`pow` of ints wants an exponent of at least 0, `mod` a positive modulus and `log` a positive number; ints want
results of 64 bits.  As in the evaluation of single values, operands that `&`, `|`, `=>` and `?:` do not need
are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping

from mtbdd.language.ranges import RangeFinder
from mtbdd.language.syntax import Binary, Call, Conditional, Expression, Literal, Name, Position, Unary
from mtbdd.language.types import is_double
from mtbdd.language.walk import children

_TRUE = Literal(Position("", 1, 1), True)
DEFINED = "defined "
"""Begins the name of the function that tells whether the operator or function behind it has a value."""


def definedness(expression: Expression) -> Expression:
    """Return the condition under which an expression has a value, results of 64 bits presumed.

    Parameters
    ----------
    expression : Expression
        Resolved: literals, variables, labels and operators, well-typed.

    Returns
    -------
    Expression
        A bool; the literal `true` for an expression without the functions `pow`, `mod` and `log`.

    Notes
    -----
    A division by zero is infinite or not a number, by the rules of floating point, and counts as a value.
    Time: O(distinct objects in the expression).
    """
    return Definedness(None)(expression)


class Definedness:
    """Conditions under which expressions have a value.

    Parameters
    ----------
    ranges : mapping of str to (int, int), optional
        Least and greatest value of every variable that is an int.  Where results might leave 64 bits for some
        of these values, the condition says that they do not; without ranges that is presumed.

    Notes
    -----
    Conditions share parts with the expressions and with one another, and are kept by identity.
    """

    def __init__(self, ranges: Mapping[str, tuple[int, int]] | None) -> None:
        self._ranges = None if ranges is None else RangeFinder(ranges)
        self._known: dict[int, tuple[Expression, Expression]] = {}

    def __call__(self, e: Expression) -> Expression:
        """Return the condition of an expression; the literal `true` if it always has a value."""
        if isinstance(e, (Literal, Name)):
            return _TRUE
        known = self._known
        chain = []
        while type(e) is Binary and id(e) not in known:
            chain.append(e)
            e = e.left
        if isinstance(e, (Literal, Name)):
            result: Expression = _TRUE
        elif id(e) in known:
            result = known[id(e)][1]
        else:
            result = self._operand(e)
            known[id(e)] = e, result
        for node in reversed(chain):
            right = self(node.right)
            if node.operator in ("&", "=>"):
                right = _either(Unary(node.position, "!", node.left), right)
            elif node.operator == "|":
                right = _either(node.left, right)
            result = _both(_both(result, right), self._own(node))
            known[id(node)] = node, result
        return result

    def _operand(self, e: Expression) -> Expression:
        """Return the condition for what is no binary operator."""
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
