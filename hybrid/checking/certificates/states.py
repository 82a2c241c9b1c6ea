"""The states of a model's text, and the meaning of its expressions in exact numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import CertificateError, NotCertifiableError
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
    ResolvedVariable,
    Unary,
)
from mtbdd.language.walk import walk

# Semantics of a model's text in rational numbers: literals, constants, formulas, labels.
#
# Nothing is folded by the parser's arithmetic in doubles: a decimal is the rational number that is written,
# 1/3 a third. The parser and the checks of names and types are those of `mtbdd.language`.

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


# Explicit states as sorted numbers, and expressions over all of them at once.
#
# A state's number is that of its variables' values read as digits, the first variable of the text (globals
# first) being the most significant. A variable's digit is its distance from its lower bound.

# Exact numbers over states: vectors of places in one table of rational numbers.
#
# Models have few distinct rates and rewards, so that exact arithmetic over millions of states is arithmetic
# over the distinct pairs that meet.

Places = NDArray[np.int32]
Ints = NDArray[np.int64]

_MOST_BITS = 1 << 16  # of a numerator or denominator
_MOST_NUMBERS = 1 << 24
# lemma: signs
_TINY = 2.0**-1000  # doubles below are left to exact arithmetic: products with them may underflow


def distinct_keys(keys: Ints, limit: int) -> tuple[Ints, NDArray[np.intp]]:
    """Return the distinct keys from 0 to below a limit, ascending, and each key's place among them.

    Time: O(keys + limit) where the limit is small, else that of sorting.
    """
    if limit <= max(4 * keys.size, 1 << 16):
        seen = np.zeros(limit, np.bool_)
        seen[keys] = True
        found = np.flatnonzero(seen)
        place = np.zeros(limit, np.int64)
        place[found] = np.arange(found.size)
        return found, place[keys]
    found, places = np.unique(keys, return_inverse=True)
    return found, places.reshape(-1)


class RationalTable:
    """Distinct rational numbers; 0 has place 0 and 1 place 1."""

    def __init__(self) -> None:
        self.values: list[Fraction] = []
        self._places: dict[Fraction, int] = {}
        self.zero, self.one = self.place(Fraction(0)), self.place(Fraction(1))

    def place(self, value: Fraction | int) -> int:
        """Return the place of a number, added if it is new; NotCertifiableError if it is too long."""
        number = Fraction(value)
        found = self._places.get(number)
        if found is None:
            if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
                raise NotCertifiableError(
                    f"a number of the model takes more than {_MOST_BITS} bits as a fraction"
                )
            if len(self.values) >= _MOST_NUMBERS:
                raise NotCertifiableError(f"the model has more than {_MOST_NUMBERS:,} distinct numbers")
            found = self._places[number] = len(self.values)
            self.values.append(number)
        return found

    def places(self, values: Iterable[Fraction | int]) -> Places:
        """Return the places of several numbers."""
        return np.array([self.place(v) for v in values], np.int32)

    def full(self, size: int, value: Fraction | int) -> Places:
        """Return a vector of one number."""
        return np.full(size, self.place(value), np.int32)

    def add(self, a: Places, b: Places) -> Places:
        """Return the sum of two vectors, element by element."""
        return self._pairs(a, b, lambda x, y: x + y)

    def multiply(self, a: Places, b: Places) -> Places:
        """Return the product of two vectors, element by element."""
        return self._pairs(a, b, lambda x, y: x * y)

    def _pairs(self, a: Places, b: Places, operation: Callable[[Any, Any], Fraction]) -> Places:
        """Apply an operation to every distinct pair once."""
        if a.size == 0:
            return a
        low = int(b.min())
        width = int(b.max()) - low + 1
        keys = a.astype(np.int64) * width + (b - low)
        found, places = distinct_keys(keys, (int(a.max()) + 1) * width)
        results = [
            self.place(operation(self.values[k // width], self.values[k % width + low]))
            for k in found.tolist()
        ]
        return np.array(results, np.int32)[places]

    def doubles(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the nearest double of every number, and which numbers are no normal doubles."""
        nearest = np.array([_nearest(v) for v in self.values])
        size = np.abs(nearest)
        # lemma: signs
        awkward = (~np.isfinite(nearest) | (size < _TINY) | (size > 1 / _TINY)) & (nearest != 0)
        awkward |= (nearest == 0) & np.array([v != 0 for v in self.values])  # lemma: signs
        return np.where(np.isfinite(nearest), nearest, 0.0), awkward

    def signs(self) -> NDArray[np.int8]:
        """Return the sign of every number."""
        return np.array([(v > 0) - (v < 0) for v in self.values], np.int8)

    def common_denominator(self) -> int:
        """Return the least common multiple of the denominators; 0 if it is too long."""
        result = 1
        for value in self.values:
            result = math.lcm(result, value.denominator)
            if result.bit_length() > 1 << 13:
                return 0
        return result


def _nearest(value: Fraction) -> float:
    """Return the nearest double; infinity for what lies beyond the doubles, on either side."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


Mask = NDArray[np.bool_]
Known = Callable[[Expression], Mask | None]

MOST_NUMBER = 1 << 60  # sums of changes of several variables still fit 64 bits
_EVERY = 1 << 22  # valuations that are written out to find those of init ... endinit


def count_valuations(variables: Sequence[ResolvedVariable]) -> int:
    """Return the number of valuations of all variables; NotCertifiableError for 2^60 or more."""
    count = 1
    for v in variables:
        count *= v.high - v.low + 1
    if count >= MOST_NUMBER:
        raise NotCertifiableError(
            "certificates number states by their variables' values, of which there are 2^60 combinations or "
            "more here: give variables smaller ranges"
        )
    return count


class States:
    """A set of states, in ascending order of their numbers: int64, shape (n,), strictly ascending.

    Raises CertificateError for a number out of range or out of order.
    """

    def __init__(
        self,
        numbers: Ints,
        variables: Sequence[ResolvedVariable],
        meaning: TextSemantics,
        table: RationalTable,
    ) -> None:
        self.variables, self.meaning, self.table = tuple(variables), meaning, table
        self.numbers, self.size = numbers, int(numbers.size)
        count = count_valuations(variables)
        if self.size == 0:
            raise CertificateError("the certificate lists no states")
        # lemma: listed-states
        if int(numbers[0]) < 0 or int(numbers[-1]) >= count or bool((np.diff(numbers) <= 0).any()):
            raise CertificateError(
                f"states: expected numbers from 0 to {count - 1}, strictly ascending; they are not"
            )
        self.weights: dict[str, int] = {}
        weight = 1
        for v in reversed(self.variables):
            self.weights[v.name] = weight
            weight *= v.high - v.low + 1
        self._digits: dict[str, NDArray[np.int32]] = {}
        self._ranges = {v.name: v for v in self.variables}

    def digits(self, name: str) -> NDArray[np.int32]:
        """Return a variable's distance from its lower bound in every state."""
        if name not in self._digits:
            v = self._ranges[name]
            if v.high - v.low >= 1 << 31:
                raise NotCertifiableError(f"the variable {name} has 2^31 values or more")
            digits = self.numbers // self.weights[name] % (v.high - v.low + 1)
            self._digits[name] = digits.astype(np.int32)
        return self._digits[name]

    def describe(self, place: int) -> str:
        """Return a state as text, `(x=1, y=true)`."""
        parts = []
        for v in self.variables:
            value = int(self.numbers[place]) // self.weights[v.name] % (v.high - v.low + 1) + v.low
            parts.append(f"{v.name}={str(bool(value)).lower() if v.is_bool else value}")
        return f"({', '.join(parts)})"

    def find(self, numbers: Ints) -> tuple[NDArray[np.int64], Mask]:
        """Return the places of states by number, and which of them are there."""
        places = np.minimum(np.searchsorted(self.numbers, numbers), self.size - 1)
        return places, self.numbers[places] == numbers

    # ------------------------------------------------------------------ expressions

    def truth(self, e: Expression, rows: Ints | None = None, known: Known | None = None) -> Mask:
        """Return where a boolean expression holds, among the states at some places or all.

        `known` returns the truth in all states of expressions with a meaning of their own, None for others.
        Raises NotCertifiableError where the expression has no value in one of these states.
        """
        size = self.size if rows is None else rows.size
        if known is not None:
            found = known(e)
            if found is not None:
                return found if rows is None else np.asarray(found[rows])
        if isinstance(e, Literal):
            return np.full(size, bool(e.value))
        if isinstance(e, Unary) and e.operator == "!":
            return ~self.truth(e.operand, rows, known)
        if isinstance(e, (Name, LabelReference)):
            below = self.meaning.definition(e)
            if below is not None:
                return self.truth(below, rows, known)
        if isinstance(e, Binary):
            if e.operator in ("&", "|", "=>"):
                return self._lazy(e, rows, known)
            if e.operator == "<=>":
                return np.equal(self.truth(e.left, rows, known), self.truth(e.right, rows, known))
        return self._tabulated(e, rows, lambda values: np.array([bool(v) for v in values], np.bool_))

    def _lazy(self, e: Binary, rows: Ints | None, known: Known | None) -> Mask:
        """Return `&`, `|` or `=>`; the right operand is requested where the left one does not decide."""
        result = self.truth(e.left, rows, known)
        if e.operator == "=>":
            result = ~result
        result = result.copy()
        open_ = np.flatnonzero(result if e.operator == "&" else ~result)
        if open_.size:
            result[open_] = self.truth(e.right, open_ if rows is None else rows[open_], known)
        return result

    def places(self, e: Expression, rows: Ints | None = None) -> Places:
        """Return a numeric expression's values as places in the table."""
        return self._tabulated(e, rows, lambda values: self.table.places(map(Fraction, values)))

    def whole(self, e: Expression, rows: Ints) -> Ints:
        """Return an integer or boolean expression's values; those beyond 62 bits are cut to them."""
        most = 1 << 62

        def convert(values: list[Exact]) -> Ints:
            return np.array([max(-most, min(most, int(v))) for v in values], np.int64)

        return self._tabulated(e, rows, convert)

    def _tabulated(
        self, e: Expression, rows: Ints | None, convert: Callable[[list[Exact]], NDArray[Any]]
    ) -> NDArray[Any]:
        """Evaluate once for every distinct valuation of the variables that an expression depends on."""
        names = sorted(self.meaning.variables_of(e), key=lambda name: -self.weights[name])
        size = self.size if rows is None else rows.size
        keys, limit = np.zeros(size, np.int64), 1
        for name in names:
            digits = self.digits(name)
            span = self._ranges[name].high - self._ranges[name].low + 1
            keys = keys * span + (digits if rows is None else digits[rows])
            limit *= span
        found, places = distinct_keys(keys, limit)
        values = [self.meaning.value(e, self._valuation(names, key)) for key in found.tolist()]
        return convert(values)[places]

    def _valuation(self, names: Sequence[str], key: int) -> dict[str, bool | int]:
        """Return the values that a key of some variables stands for."""
        values: dict[str, bool | int] = {}
        for name in reversed(names):
            v = self._ranges[name]
            key, digit = divmod(key, v.high - v.low + 1)
            values[name] = bool(digit) if v.is_bool else v.low + digit
        return values


def initial_numbers(
    variables: Sequence[ResolvedVariable],
    predicate: Expression | None,
    meaning: TextSemantics,
    table: RationalTable,
) -> Ints:
    """Return the numbers of the initial states, ascending.

    Raises NotCertifiableError where `init ... endinit` would have to be tried on more than four million
    valuations.
    """
    count = count_valuations(variables)
    if predicate is None:
        number = 0
        for v in variables:
            number = number * (v.high - v.low + 1) + v.initial - v.low
        return np.array([number], np.int64)
    if count > _EVERY:
        raise NotCertifiableError(
            f"init ... endinit: the variables have {count:,} valuations; a certificate tries them all, up to "
            f"{_EVERY:,}: give the variables initial values instead"
        )
    every = States(np.arange(count), variables, meaning, table)
    return np.flatnonzero(every.truth(predicate))
