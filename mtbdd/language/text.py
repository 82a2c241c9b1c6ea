"""Expressions as text in the PRISM language, with no more brackets than needed."""

from __future__ import annotations

from mtbdd.language.expression_parser import PRECEDENCE
from mtbdd.language.reals import decimal_text
from mtbdd.language.syntax import Binary, Call, Conditional, Expression, LabelReference, Literal, Name, Unary
from mtbdd.language.walk import children

_CONDITIONAL, _NOT, _NEGATION, _OPERAND = 1, 6, 11, 12
_TIGHT = frozenset(("*", "/"))
_SHOWN = 200  # nodes of an expression that a message tells


def value_text(value: bool | int | float) -> str:
    """Return a value as it is written in the PRISM language."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def to_text(expression: Expression) -> str:
    """Return an expression in the PRISM language.

    Parameters
    ----------
    expression : Expression
        A plain expression, resolved or not.

    Returns
    -------
    str
        Text that parses to an equal expression (a negative literal comes back as a negation).

    Raises
    ------
    TypeError
        For a node that is no plain expression.
    """
    return _text(expression)[0]


def short_text(expression: Expression) -> str:
    """Return an expression for a message: its text, or three dots if it has more than 200 nodes.

    Time: O(1), also where the expression written out is exponentially larger than it is in memory.
    """
    stack, count = [expression], 0
    while stack:
        count += 1
        if count > _SHOWN:
            return "..."
        stack += children(stack.pop())
    return to_text(expression)


def _text(e: Expression) -> tuple[str, int]:
    """Return the text and how strongly its outermost operator binds."""
    chain = []
    while type(e) is Binary:
        chain.append(e)
        e = e.left
    text, strength = _other(e)
    for node in reversed(chain):
        own = PRECEDENCE[node.operator]
        left = text if strength >= own else f"({text})"
        right = _bracketed(node.right, own + 1)
        space = "" if node.operator in _TIGHT else " "
        text, strength = f"{left}{space}{node.operator}{space}{right}", own
    return text, strength


def _bracketed(e: Expression, least: int) -> str:
    text, strength = _text(e)
    return text if strength >= least else f"({text})"


def _other(e: Expression) -> tuple[str, int]:
    if isinstance(e, Literal):
        text = decimal_text(e.value) if isinstance(e.value, float) else value_text(e.value)
        return text, _NEGATION if text.startswith("-") else _OPERAND
    if isinstance(e, Name):
        return e.name, _OPERAND
    if isinstance(e, Unary):
        own = _NOT if e.operator == "!" else _NEGATION
        return e.operator + _bracketed(e.operand, own), own
    if isinstance(e, Conditional):
        parts = []
        last: Expression = e
        while isinstance(last, Conditional):
            condition = _bracketed(last.condition, _CONDITIONAL + 1)
            parts.append(f"{condition} ? {_bracketed(last.then, _CONDITIONAL + 1)} : ")
            last = last.otherwise
        return "".join(parts) + _text(last)[0], _CONDITIONAL
    if isinstance(e, Call):
        return f"{e.function}({', '.join(to_text(a) for a in e.arguments)})", _OPERAND
    if isinstance(e, LabelReference):
        return f'"{e.name}"', _OPERAND
    raise TypeError(
        f"expected a plain expression, got {type(e).__name__}; property operators have no text here"
    )
