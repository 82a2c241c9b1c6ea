"""Semantics of a model's text in rational numbers: literals, constants, formulas, labels.

Nothing is folded by the parser's arithmetic in doubles: a decimal is the rational number that is written,
1/3 a third.  The parser and the checks of names and types are those of `mtbdd.language`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from hybrid.base.errors import NotCertifiableError
from mtbdd.language.reals import Enclosure, Rounded
from mtbdd.language.syntax import (
    Binary,
    Call,
    Conditional,
    Constant,
    Expression,
    Formula,
    Label,
    LabelReference,
    Literal,
    Name,
    Unary,
)
from mtbdd.language.walk import walk

Exact = bool | int | Fraction

_NUMBER = re.compile(r"[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?")
_MOST_EXPONENT = 5000
_MOST_POWER = 1 << 14


def exact_number(value: object, written: str | None = None) -> Exact:
    """Return the number that a constant stands for.

    A double that knows what it was rounded from is that; any other is the shortest decimal that rounds to it.
    `written`: how it was written, if that is known. Raises NotCertifiableError: the number is longer than can
    be calculated with, or known between bounds alone.
    """
    if isinstance(value, (bool, int, Fraction)):
        return value
    if isinstance(value, Rounded) and written is None:
        number = value.number
        if isinstance(number, Enclosure):
            raise NotCertifiableError(f"the constant {float(value)!r} is a rounded logarithm or power")
        if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_POWER:
            raise NotCertifiableError(f"the number {float(value)!r} is too long for exact arithmetic")
        return number
    text = repr(float(value)) if written is None else written  # type: ignore[arg-type]
    _, _, exponent = text.lower().partition("e")
    if len(text) > 4000 or len(exponent) > 6 or abs(int(exponent or 0)) > _MOST_EXPONENT:
        raise NotCertifiableError(f"the number {text[:40]} is too long for exact arithmetic")
    return Fraction(text)


class TextSemantics:
    """The names of a model, and of properties about it, in exact numbers.

    `texts` has the sources by the file names that positions carry; declarations have been checked before, and
    `given` has values of the constants that the texts leave open.
    """

    def __init__(
        self,
        texts: Mapping[str, str],
        constants: Sequence[Constant],
        formulas: Sequence[Formula],
        labels: Sequence[Label],
        given: Mapping[str, object],
        variables: Sequence[str],
    ) -> None:
        self._lines = {file: text.split("\n") for file, text in texts.items()}
        self._definitions: dict[str, Expression] = {f.name: f.expression for f in formulas}
        self._definitions |= {c.name: c.value for c in constants if c.value is not None}
        self.labels: dict[str, Expression] = {label.name: label.expression for label in labels}
        self.constants: dict[str, Exact] = {}
        self._constant_names = {c.name for c in constants}
        self.variables = frozenset(variables)
        self._used: dict[str, frozenset[str]] = {}
        for constant in constants:
            if constant.value is None and constant.name in given:
                self.constants[constant.name] = exact_number(given[constant.name])

    # ------------------------------------------------------------------ what expressions mention

    def definition(self, node: Expression) -> Expression | None:
        """Return what a name or label stands for; None for variables, given constants, built-in labels."""
        if isinstance(node, Name) and node.name not in self.variables:
            return self._definitions.get(node.name)
        if isinstance(node, LabelReference):
            return self.labels.get(node.name)
        return None

    def variables_of(self, expression: Expression) -> frozenset[str]:
        """Return the variables that an expression depends on, also through formulas and labels."""
        found: set[str] = set()
        for node in walk(expression):
            if isinstance(node, Name) and node.name in self.variables:
                found.add(node.name)
                continue
            below = self.definition(node)
            if below is not None:
                key = f'"{node.name}"' if isinstance(node, LabelReference) else node.name  # type: ignore[attr-defined]
                if key not in self._used:
                    self._used[key] = self.variables_of(below)
                found |= self._used[key]
        return frozenset(found)

    # ------------------------------------------------------------------ values

    def value(self, expression: Expression, environment: Mapping[str, bool | int] | None = None) -> Exact:
        """Return an expression's value where the variables have given values.

        Raises NotCertifiableError where it has none, or none that is rational. Lazy as the language is: `&`,
        `|`, `=>` and `?:` skip what does not matter, and formulas are worked out once. Time: O(size of the
        expression and of the formulas that it needs).
        """
        return _Evaluation(self, environment or {}).value(expression)

    def literal(self, literal: Literal) -> Exact:
        """Return the number that is written where a literal stands.

        Lemma: text (docs/certificates.md).
        """
        if not isinstance(literal.value, float):
            return literal.value
        place = literal.position
        lines = self._lines.get(place.file, [])
        if 1 <= place.line <= len(lines):
            match = _NUMBER.match(lines[place.line - 1], place.column - 1)
            if match and float(match.group()) == literal.value:  # lemma: text
                return exact_number(literal.value, match.group())
        return exact_number(literal.value)

    def constant(self, name: str) -> Exact | None:
        """Return a constant's value if it is known already."""
        return self.constants.get(name)

    def is_constant(self, name: str) -> bool:
        """Return whether a name is a constant's."""
        return name in self._constant_names


class _Evaluation:
    """One valuation of the variables, with the formulas worked out so far."""

    def __init__(self, meaning: TextSemantics, environment: Mapping[str, bool | int]) -> None:
        self._meaning, self._environment = meaning, environment
        self._known: dict[str, Exact] = {}

    def value(self, e: Expression) -> Exact:
        chain: list[Binary] = []
        while type(e) is Binary:
            chain.append(e)
            e = e.left
        result = self._operand(e)
        for node in reversed(chain):
            result = self._binary(node, result)
        return result

    def _operand(self, e: Expression) -> Exact:
        if isinstance(e, Literal):
            return self._meaning.literal(e)
        if isinstance(e, Name):
            return self._name(e)
        if isinstance(e, LabelReference):
            return self._defined(e, f'"{e.name}"')
        if isinstance(e, Unary):
            operand = self.value(e.operand)
            return (not operand) if e.operator == "!" else -operand
        if isinstance(e, Conditional):
            return self.value(e.then if self.value(e.condition) else e.otherwise)
        if isinstance(e, Call):
            return _call(e, [self.value(a) for a in e.arguments])
        raise NotCertifiableError(f"{e.position}: {type(e).__name__} has no value in a single state")

    def _name(self, e: Name) -> Exact:
        if e.name in self._environment:
            return self._environment[e.name]
        constant = self._meaning.constant(e.name)
        if constant is not None:
            return constant
        found = self._defined(e, e.name)
        if self._meaning.is_constant(e.name):
            self._meaning.constants[e.name] = found
        return found

    def _defined(self, e: Expression, key: str) -> Exact:
        if key not in self._known:
            definition = self._meaning.definition(e)
            if definition is None:
                raise NotCertifiableError(f"{e.position}: no value is known for {key}")
            self._known[key] = self.value(definition)
        return self._known[key]

    def _binary(self, e: Binary, left: Exact) -> Exact:
        operator = e.operator
        if operator == "&":
            return left and self.value(e.right)
        if operator == "|":
            return left or self.value(e.right)
        if operator == "=>":
            return True if not left else self.value(e.right)
        right = self.value(e.right)
        if operator == "/":
            if right == 0:
                raise NotCertifiableError(f"{e.position}: a division by zero")
            return Fraction(left) / Fraction(right)
        return _BINARY[operator](left, right)  # type: ignore[no-any-return]


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "<=>": lambda a, b: a == b,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def _call(e: Call, values: list[Exact]) -> Exact:
    """Return a function's value."""
    name = e.function
    if name in ("min", "max"):
        return min(values) if name == "min" else max(values)
    if name in ("floor", "ceil", "round"):
        value = Fraction(values[0])
        if name == "round":
            return math.floor(value + Fraction(1, 2))
        return math.floor(value) if name == "floor" else math.ceil(value)
    if name == "mod":
        if values[1] <= 0:
            raise NotCertifiableError(f"{e.position}: a modulus that is not positive")
        return values[0] % values[1]
    if name == "pow":
        base, exponent = Fraction(values[0]), Fraction(values[1])
        if exponent.denominator != 1 or (base == 0 and exponent < 0):
            raise NotCertifiableError(
                f"{e.position}: a power that is no rational number; exact arithmetic needs a whole exponent"
            )
        size = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(exponent) * size > _MOST_POWER:
            raise NotCertifiableError(f"{e.position}: a power of more than {_MOST_POWER} bits")
        power = base ** int(exponent)
        whole = all(isinstance(v, int) for v in values)
        return int(power) if whole and power.denominator == 1 else power
    raise NotCertifiableError(f"{e.position}: {name}(...) is no rational number and has no certificate")
