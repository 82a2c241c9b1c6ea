"""Explicit states as sorted numbers, and expressions over all of them at once.

A state's number is that of its variables' values read as digits, the first variable of the text (globals
first) being the most significant. A variable's digit is its distance from its lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import CertificateError, NotCertifiableError
from hybrid.checking.certificates.semantics import Exact, TextSemantics
from mtbdd.language.syntax import Binary, Expression, LabelReference, Literal, Name, ResolvedVariable, Unary

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
