"""Walking over expressions: their values in some domain, their variables, and replacing names.

Long chains `a + b + c + ...` lean to the left; the walks follow the left side in a loop, so that only
brackets cost stack.  An expression may hold one object in many places, as where a formula is mentioned more
than once: written out it can be exponentially larger.  Every object is therefore examined once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Generic, TypeVar

from mtbdd.language.syntax import (
    ActionRenaming,
    Binary,
    Call,
    Composition,
    Expression,
    Hiding,
    LabelReference,
    Literal,
    Name,
    Parallel,
    SystemBlock,
    Unary,
)

# Walking over compositions of modules.


def walk_composition(composition: Composition) -> Iterator[Composition]:
    """Yield a composition and everything below it, parents first, from left to right."""
    stack = [composition]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Parallel):
            stack.extend(reversed(node.operands))
        elif isinstance(node, (Hiding, ActionRenaming)):
            stack.append(node.operand)


def introduced_actions(systems: tuple[SystemBlock, ...]) -> frozenset[str]:
    """Return the actions that system blocks bring in by renaming others."""
    nodes = (node for block in systems for node in walk_composition(block.composition))
    return frozenset(new for n in nodes if isinstance(n, ActionRenaming) for _, new in n.pairs)


Node = TypeVar("Node", bound=Expression)
Domain = TypeVar("Domain")


_SLOTS: dict[type, tuple[str, ...]] = {}


def _slots(kind: type[Expression]) -> tuple[str, ...]:
    """Return the field names of a kind of node; asking dataclasses each time is slow."""
    known = _SLOTS.get(kind)
    if known is None:
        known = _SLOTS[kind] = tuple(field.name for field in fields(kind))
    return known


def children(expression: Expression) -> list[Expression]:
    """Return the expressions directly below a node, from left to right."""
    kind = type(expression)
    if kind is Binary:
        return [expression.left, expression.right]  # type: ignore[attr-defined]
    if kind is Name or kind is Literal:
        return []
    result: list[Expression] = []
    for slot in _slots(kind):
        value = getattr(expression, slot)
        if isinstance(value, Expression):
            result.append(value)
        elif isinstance(value, tuple):
            result.extend(item for item in value if isinstance(item, Expression))
    return result


def map_children(expression: Node, function: Callable[[Expression], Expression]) -> Node:
    """Return a node with a function applied to the expressions directly below it.

    The node itself is returned if the function changes none of them.
    """
    kind = type(expression)
    values = {}
    changed = False
    for slot in _slots(kind):
        value = getattr(expression, slot)
        new = value
        if isinstance(value, Expression):
            new = function(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Expression):
            new = tuple(map(function, value))
            if all(a is b for a, b in zip(new, value, strict=True)):
                new = value
        values[slot] = new
        changed = changed or new is not value
    return kind(**values) if changed else expression


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and everything below it, parents first, from left to right, every object once."""
    stack = [expression]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        stack.extend(reversed(children(node)))


def bottom_up(
    expression: Expression, known: Mapping[int, object]
) -> Iterator[tuple[Expression, list[Expression]]]:
    """Yield an expression and what is below it, operands first, each with its operands; without recursion.

    `known`: what is not to be yielded; the caller enters every node that is.
    """
    stack = [expression]
    while stack:
        node = stack[-1]
        if id(node) in known:
            stack.pop()
            continue
        below, missing = children(node), []
        for child in below:
            if id(child) not in known:
                if isinstance(child, (Name, Literal)):
                    yield child, []
                else:
                    missing.append(child)
        if missing:
            stack += missing
            continue
        stack.pop()
        yield node, below


class Walk(ABC, Generic[Domain]):
    """Values of expressions in a domain, every one made of those of the operands.

    Domains are values over arrays, numbers with a bound on their error, types, conditions and expressions
    themselves. A subclass says what becomes of a node; operands that do not matter need not be examined.
    `left`: how often an operator or call, by identity, is examined, see `occurrences`: values are then kept
    for parts that occur several times only, until they occur for the last time. None: all are kept. Time:
    O(distinct objects in the expressions); brackets cost stack, long chains do not.
    """

    def __init__(self, left: dict[int, int] | None = None) -> None:
        self._left = left
        self._known: dict[int, tuple[Expression, Domain]] = {}

    def __call__(self, e: Expression) -> Domain:
        """Return the value of an expression."""
        known, left, chain = self._known, self._left, []
        while type(e) is Binary and id(e) not in known:
            chain.append(e)
            e = e.left
        if id(e) in known:
            result = self._taken(e)
        else:
            result = self.node(e)
            if id(e) in left if left is not None else type(e) is not Name and type(e) is not Literal:
                self._keep(e, result)
        for node in reversed(chain):
            result = self.binary(node, result)
            if left is None or id(node) in left:
                self._keep(node, result)
        return result

    @abstractmethod
    def node(self, e: Expression) -> Domain:
        """Return the value of a node that is no binary operator."""

    @abstractmethod
    def binary(self, e: Binary, left: Domain) -> Domain:
        """Return the value of a binary operator, given that of its left operand."""

    def _keep(self, e: Expression, value: Domain) -> None:
        if self._left is not None:
            if self._left[id(e)] < 2:
                return
            self._left[id(e)] -= 1
        self._known[id(e)] = e, value

    def _taken(self, e: Expression) -> Domain:
        if self._left is not None:
            self._left[id(e)] -= 1
            if not self._left[id(e)]:
                return self._known.pop(id(e))[1]
        return self._known[id(e)][1]


def occurrences(expression: Expression) -> dict[int, int]:
    """Return the operators and calls that occur in several places, by identity, and in how many."""
    counts: dict[int, int] = {}
    stack = [expression]
    while stack:
        for child in children(stack.pop()):
            if not isinstance(child, (Literal, Name)):
                seen = counts.get(id(child), 0)
                counts[id(child)] = seen + 1
                if not seen:
                    stack.append(child)
    return {key: count for key, count in counts.items() if count > 1}


def expression_variables(expression: Expression) -> frozenset[str]:
    """Return the names in an expression; in a resolved one these are its variables.

    Parameters
    ----------
    expression : Expression
        Any expression.

    Returns
    -------
    frozenset of str
        Names of functions and labels are not among them.

    Notes
    -----
    Time: O(distinct objects in the expression).
    """
    return frozenset(node.name for node in walk(expression) if isinstance(node, Name))


def substitute(
    expression: Expression,
    mapping: Mapping[str, Expression],
    functions: Mapping[str, str] | None = None,
    done: dict[int, tuple[Expression, Expression]] | None = None,
) -> Expression:
    """Replace names by expressions, all at once.

    Parameters
    ----------
    expression : Expression
        Where to replace.
    mapping : mapping of str to Expression
        The expression for each name, and for each label in quotes; names and labels without one stay.
    functions : mapping of str to str, optional
        New names for functions.
    done : dict, optional
        What became of which object, by identity; calls with one dictionary and one mapping share results.

    Returns
    -------
    Expression
        Parts without any replaced name are shared with `expression`, and what it shares stays shared.

    Notes
    -----
    Time: O(distinct objects in the expression).
    """
    return _Substitution(mapping, functions or {}, {} if done is None else done)(expression)


class _Substitution(Walk[Expression]):
    def __init__(
        self,
        mapping: Mapping[str, Expression],
        functions: Mapping[str, str],
        done: dict[int, tuple[Expression, Expression]],
    ) -> None:
        super().__init__()
        self._mapping, self._functions, self._known = mapping, functions, done

    def node(self, e: Expression) -> Expression:
        if isinstance(e, Name):
            return self._mapping.get(e.name, e)
        if isinstance(e, LabelReference):
            return self._mapping.get(f'"{e.name}"', e)
        result = map_children(e, self)
        if isinstance(result, Call) and result.function in self._functions:
            return Call(result.position, self._functions[result.function], result.arguments)
        return result

    def binary(self, e: Binary, left: Expression) -> Expression:
        right = self(e.right)
        if left is e.left and right is e.right:
            return e
        return Binary(e.position, e.operator, left, right)


# Numbers for expressions: equal ones get the same number, without walking what is shared more than once.


class Interner:
    """Numbers expressions by structure; positions do not count.

    What is numbered is kept, so that identities stay their own. Time: O(objects not met before).
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
        if id(expression) not in known:
            for node, below in bottom_up(expression, known):
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
