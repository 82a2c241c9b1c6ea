"""Where an expression has a value: functions of ints that are defined for some arguments only.

`pow` of ints wants an exponent of at least 0, `mod` a positive modulus and `log` a positive number.  As in
the evaluation of single values, operands that `&`, `|`, `=>` and `?:` do not need are not looked at.
"""

from __future__ import annotations

from mtbdd.language.syntax import Binary, Call, Conditional, Expression, Literal, Unary
from mtbdd.language.types import is_double
from mtbdd.language.walk import children, walk

__all__ = ["definedness"]

_PARTIAL = frozenset(("pow", "mod", "log"))


def definedness(expression: Expression) -> Expression:
    """Return the condition under which an expression has a value.

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
    A division by zero is infinite or not a number, by the rules of floating point, and counts as a value;
    so do ints that leave 64 bits.  Time: O(size of the expression²) for nested operators that decide.
    """
    if any(isinstance(node, Call) and node.function in _PARTIAL for node in walk(expression)):
        return _condition(expression)
    return Literal(expression.position, True)


def _condition(e: Expression) -> Expression:
    chain = []
    while isinstance(e, Binary):
        chain.append(e)
        e = e.left
    result = _operand(e)
    for node in reversed(chain):
        right = definedness(node.right)
        if node.operator in ("&", "=>"):
            right = _either(Unary(node.position, "!", node.left), right)
        elif node.operator == "|":
            right = _either(node.left, right)
        result = _both(result, right)
    return result


def _operand(e: Expression) -> Expression:
    """Return the condition for what is no binary operator."""
    if isinstance(e, Conditional):
        then, otherwise = definedness(e.then), definedness(e.otherwise)
        chosen: Expression = Literal(e.position, True)
        if not (_is_true(then) and _is_true(otherwise)):
            chosen = Conditional(e.position, e.condition, then, otherwise)
        return _both(definedness(e.condition), chosen)
    result: Expression = Literal(e.position, True)
    for child in children(e):
        result = _both(result, definedness(child))
    if isinstance(e, Call):
        result = _both(result, _own(e))
    return result


def _own(e: Call) -> Expression:
    """Return what a function asks of its arguments' values."""
    zero = Literal(e.position, 0)
    if e.function == "mod":
        return Binary(e.position, ">", e.arguments[1], zero)
    if e.function == "log":
        return Binary(e.position, ">", e.arguments[0], zero)
    if e.function == "pow" and not any(is_double(a, lambda _: False) for a in e.arguments):
        return Binary(e.position, ">=", e.arguments[1], zero)
    return Literal(e.position, True)


def _is_true(e: Expression) -> bool:
    return isinstance(e, Literal) and e.value is True


def _both(a: Expression, b: Expression) -> Expression:
    if _is_true(a):
        return b
    return a if _is_true(b) else Binary(b.position, "&", a, b)


def _either(a: Expression, b: Expression) -> Expression:
    return b if _is_true(b) else Binary(b.position, "|", a, b)
