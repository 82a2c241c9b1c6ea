"""Expressions as text in the PRISM language, with no more brackets than needed."""

from __future__ import annotations

from mtbdd.language.expression_parser import PRECEDENCE
from mtbdd.language.reals import decimal_text
from mtbdd.language.syntax import Binary, Call, Conditional, Expression, LabelReference, Literal, Name, Unary
from mtbdd.language.walk import Walk, children

_CONDITIONAL, _NOT, _NEGATION, _OPERAND = 1, 6, 11, 12
_TIGHT = frozenset(("*", "/"))
_SHOWN = 200  # nodes of an expression that a message shows


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
    return _Text({})(expression)[0]  # nothing is kept: texts of a long chain would be as many as long


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


class _Text(Walk[tuple[str, int]]):
    """Texts with the precedence of their outermost operators."""

    def binary(self, e: Binary, left: tuple[str, int]) -> tuple[str, int]:
        own = PRECEDENCE[e.operator]
        space = "" if e.operator in _TIGHT else " "
        before = left[0] if left[1] >= own else f"({left[0]})"
        return f"{before}{space}{e.operator}{space}{self._bracketed(e.right, own + 1)}", own

    def _bracketed(self, e: Expression, least: int) -> str:
        text, strength = self(e)
        return text if strength >= least else f"({text})"

    def node(self, e: Expression) -> tuple[str, int]:
        if isinstance(e, Literal):
            text = decimal_text(e.value) if isinstance(e.value, float) else value_text(e.value)
            return text, _NEGATION if text.startswith("-") else _OPERAND
        if isinstance(e, Name):
            return e.name, _OPERAND
        if isinstance(e, Unary):
            own = _NOT if e.operator == "!" else _NEGATION
            return e.operator + self._bracketed(e.operand, own), own
        if isinstance(e, Conditional):
            parts = []
            last: Expression = e
            while isinstance(last, Conditional):
                condition = self._bracketed(last.condition, _CONDITIONAL + 1)
                parts.append(f"{condition} ? {self._bracketed(last.then, _CONDITIONAL + 1)} : ")
                last = last.otherwise
            return "".join(parts) + self(last)[0], _CONDITIONAL
        if isinstance(e, Call):
            return f"{e.function}({', '.join(self(a)[0] for a in e.arguments)})", _OPERAND
        if isinstance(e, LabelReference):
            return f'"{e.name}"', _OPERAND
        raise TypeError(
            f"expected a plain expression, got {type(e).__name__}; property operators have no text here"
        )
