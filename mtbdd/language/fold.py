"""Folding: constants become numbers, formulas and labels their definitions, constant parts their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from mtbdd.language.reals import as_double
from mtbdd.language.scalars import Scalar, apply_binary, apply_call, apply_unary
from mtbdd.language.syntax import Binary, Call, Conditional, Expression, LabelReference, Literal, Name, Unary
from mtbdd.language.types import is_double
from mtbdd.language.walk import Walk, map_children


class Folder(Walk[Expression]):
    """Folds well-typed expressions to literals, variables, operators and unknown labels.

    Parameters
    ----------
    values : mapping of str to bool, int or float
        The constants.
    definitions : mapping of str to Expression
        The formulas, folded before.
    labels : mapping of str to Expression, optional
        Labels to replace, folded before; other labels stay.

    Raises
    ------
    EvaluationError
        When called: a constant part has no value.  The branch of `?:` that a constant condition leaves out
        and operands that a constant decides are not looked at.
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
