"""Numbers for expressions: equal ones get the same number, without walking what is shared more than once."""

from __future__ import annotations

from typing import Any

from mtbdd.language.syntax import Binary, Call, Expression, LabelReference, Literal, Name, Unary
from mtbdd.language.walk import children


class Interner:
    """Numbers expressions by structure; positions do not count.

    Notes
    -----
    What is numbered is kept, so that identities stay their own.  Time: O(objects not met before).
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._known: dict[int, tuple[Expression, int]] = {}
        self._names: list[int] = []
        self._labels: list[bool] = []
        self._places: dict[str, int] = {}
        self._order: list[str] = []

    def number(self, expression: Expression) -> int:
        """Return the number of an expression."""
        known = self._known
        entry = known.get(id(expression))
        if entry is not None:
            return entry[1]
        stack = [expression]
        while stack:
            node = stack[-1]
            if id(node) in known:
                stack.pop()
                continue
            below = children(node)
            missing = []
            for child in below:
                if id(child) not in known:
                    if isinstance(child, (Name, Literal)):
                        known[id(child)] = child, self._add(child, [])
                    else:
                        missing.append(child)
            if missing:
                stack += missing
                continue
            stack.pop()
            known[id(node)] = node, self._add(node, [known[id(child)][1] for child in below])
        return known[id(expression)][1]

    def names(self, expression: Expression) -> list[str]:
        """Return the names in an expression, in the order in which the first ones were met."""
        mask, found = self._names[self.number(expression)], []
        while mask:
            lowest = mask & -mask
            found.append(self._order[lowest.bit_length() - 1])
            mask ^= lowest
        return found

    def has_labels(self, expression: Expression) -> bool:
        """Return whether a label occurs in an expression."""
        return self._labels[self.number(expression)]

    def _add(self, node: Expression, below: list[int]) -> int:
        key = (type(node), _content(node), *below)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            names = 0
            for child in below:
                names |= self._names[child]
            if isinstance(node, Name):
                place = self._places.setdefault(node.name, len(self._places))
                if place == len(self._order):
                    self._order.append(node.name)
                names |= 1 << place
            self._names.append(names)
            self._labels.append(isinstance(node, LabelReference) or any(self._labels[c] for c in below))
        return number


def _content(node: Expression) -> Any:
    """Return what distinguishes a node from others of its kind with equal operands."""
    if isinstance(node, (Name, LabelReference)):
        return node.name
    if isinstance(node, (Unary, Binary)):
        return node.operator
    if isinstance(node, Call):
        return node.function
    if isinstance(node, Literal):
        return node
    return None
