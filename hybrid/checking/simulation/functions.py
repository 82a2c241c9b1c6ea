"""Functions of a state, evaluated for many states at once, as tables where their variables allow it.

Values are those of the engine (`mtbdd.language.enclosing`): decided on the reals where rounding leaves a
comparison open. A function over few combinations of values is evaluated once for all of them. Its value in a
state is then read from a table, at the same cost however long the expression is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.language.enclosing import enclose
from mtbdd.language.errors import BuildError, Fault, format_state
from mtbdd.language.evaluate import Definedness
from mtbdd.language.syntax import Binary, Expression, Literal, ResolvedModel
from mtbdd.language.walk import expression_variables

# The variables of a model as rows of integers, one column a path.

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]
Array = NDArray[Any]

_FURTHEST = 1 << 62
"""Magnitude below which values of variables lie, so that differences of two have 64 bits."""


class Variables:
    """Rows of a model's variables in a matrix of states.

    In model order row `i` holds variable `i`, booleans as 0 and 1; `place` has the row of each name, `types`
    the smallest dtype that holds the values of each. Raises BuildError where a range reaches beyond 2^62.
    """

    def __init__(self, model: ResolvedModel) -> None:
        found = model.variables
        for v in found:
            if max(-v.low, v.high) >= _FURTHEST:
                message = f"expected a range within -2^62..2^62 to simulate, got [{v.low}..{v.high}]"
                raise BuildError([Fault(v.position, f"{message}; narrow it")])
        self.names = tuple(v.name for v in found)
        self.place = {name: i for i, name in enumerate(self.names)}
        self.low = tuple(v.low for v in found)
        self.high = tuple(v.high for v in found)
        self.is_bool = tuple(v.is_bool for v in found)
        self.types = tuple(
            np.dtype(bool)
            if v.is_bool
            else np.result_type(np.min_scalar_type(v.low), np.min_scalar_type(v.high))
            for v in found
        )

    @cached_property
    def definedness(self) -> Definedness:
        """Says under which condition an expression has a value."""
        ranges = zip(self.names, self.low, self.high, self.is_bool, strict=True)
        return Definedness({name: (low, high) for name, low, high, is_bool in ranges if not is_bool})

    def rows(self, names: Sequence[str] | frozenset[str]) -> tuple[int, ...]:
        """Return the rows of some variables, ascending; names of labels are passed over."""
        return tuple(sorted(self.place[name] for name in names))

    def size(self, rows: Sequence[int]) -> int:
        """Return the number of combinations of values of some variables."""
        product = 1
        for row in rows:
            product *= self.high[row] - self.low[row] + 1
        return product

    def axes(self, rows: Sequence[int]) -> tuple[dict[str, Array], tuple[int, ...]]:
        """Return all values of some variables as axes of a grid, and its shape."""
        shape = tuple(self.high[row] - self.low[row] + 1 for row in rows)
        found: dict[str, Array] = {}
        for axis, row in enumerate(rows):
            own = [1] * len(rows)
            own[axis] = shape[axis]
            values = np.arange(self.low[row], self.high[row] + 1, dtype=np.int64)
            found[self.names[row]] = self.typed(row, values).reshape(own)
        return found, shape

    def typed(self, row: int, values: Array) -> Array:
        """Return a row's values as expressions take them: bools of a boolean, else integers."""
        return values.astype(np.bool_) if self.is_bool[row] else values

    def text(self, column: Ints) -> str:
        """Return one state as text, ``(a=1, b=true)``."""
        values = zip(self.names, self.is_bool, column.tolist(), strict=True)
        return format_state({name: bool(value) if is_bool else value for name, is_bool, value in values})


class Columns:
    """Some columns of a matrix of states, int64, shape (variables, paths), all by default.

    A row is gathered when it is first requested; `known` has functions and their values in these columns, by
    identity.
    """

    def __init__(self, states: Ints, where: Array | None = None) -> None:
        self._states, self._where = states, where
        self._rows: dict[int, Ints] = {}
        self.known: dict[int, tuple[object, Array]] = {}
        self.count = states.shape[1] if where is None else where.size

    def __getitem__(self, row: int) -> Ints:
        if self._where is None:
            found: Ints = self._states[row]
            return found
        if row not in self._rows:
            self._rows[row] = self._states[row].take(self._where)
        return self._rows[row]

    def environment(self, variables: Variables, rows: Sequence[int]) -> dict[str, Array]:
        """Return rows by name, as expressions take them."""
        return {variables.names[row]: variables.typed(row, self[row]) for row in rows}


TABLE = 1 << 12
"""Entries that a table may have, so that those of a model stay in the processor's caches."""

FALSE, TRUE, MISSING = 0, 1, 2
"""Codes of a condition; the last one where it has no value."""

NO_INTEGER = -(2**63)
"""Stands for an assigned value that does not exist or lies out of range."""


class Function(ABC):
    """A function of the variables in some rows, ascending."""

    def __init__(self, variables: Variables, rows: Sequence[int]) -> None:
        self.variables = variables
        self.rows = tuple(sorted(set(rows)))

    @abstractmethod
    def over(self, values: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
        """Return the function's values, of a shape to which the variables' values broadcast."""

    def __call__(self, columns: Columns) -> Array:
        """Return the function's values in some states, shape (columns.count,)."""
        return self.over(columns.environment(self.variables, self.rows), (columns.count,))

    def compiled(self, entries: int = TABLE) -> Function:
        """Return the same function as a table, if one of so many entries holds it."""
        if self.variables.size(self.rows) <= entries:
            return Tabulated(self)
        return self


class Tabulated(Function):
    """A function as a table, in lexicographic order of the values of the rows.

    `steps` has rows, and how far apart neighbouring values of each lie in the table; `offset` is taken from
    the sum of values times steps to get a place.
    """

    def __init__(self, function: Function) -> None:
        super().__init__(function.variables, function.rows)
        axes, shape = self.variables.axes(self.rows)
        self.table: Array = np.ascontiguousarray(function.over(axes, shape)).reshape(-1)
        self.offset = 0
        self.steps: list[tuple[int, int]] = []
        step = 1
        for row, size in zip(reversed(self.rows), reversed(shape), strict=True):
            self.steps.append((row, step))
            self.offset += self.variables.low[row] * step
            step *= size

    def over(self, values: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
        """Return the function's values."""
        place: Array = np.full(shape, -self.offset, dtype=np.int64)
        for row, step in self.steps:
            place = place + values[self.variables.names[row]].astype(np.int64) * step
        return self.table[place]

    def __call__(self, columns: Columns) -> Array:
        """Return the function's values in some states."""
        if not self.steps:
            return np.broadcast_to(self.table, (columns.count,))
        (row, _), *others = self.steps
        place = columns[row] - self.offset if self.offset or others else columns[row]
        for row, step in others:
            place += columns[row] * step
        return self.table.take(place)

    def compiled(self, entries: int = TABLE) -> Function:
        """Return this table."""
        return self


class Combined(Function):
    """A function of the values of other functions."""

    def __init__(self, variables: Variables, parts: Sequence[Function]) -> None:
        super().__init__(variables, [row for part in parts for row in part.rows])
        self.parts = list(parts)

    @abstractmethod
    def combine(self, found: list[Array]) -> Array:
        """Return the value from those of the parts, which must not be changed."""

    def over(self, values: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
        """Return the function's values."""
        return self.combine([part.over(values, shape) for part in self.parts])

    def __call__(self, columns: Columns) -> Array:
        """Return the function's values in some states."""
        return self.combine([part(columns) for part in self.parts])

    def compiled(self, entries: int = TABLE) -> Function:
        """Return a table, or the function with its parts as tables where these are small enough."""
        if self.variables.size(self.rows) <= entries:
            return Tabulated(self)
        self.parts = [part.compiled(entries) for part in self.parts]
        return self


class _Of(Function):
    """A function that is an expression, with the condition under which it has a value."""

    def __init__(self, variables: Variables, expression: Expression) -> None:
        self.condition = variables.definedness(expression)
        names = expression_variables(expression) | expression_variables(self.condition)
        super().__init__(variables, variables.rows(names))
        self.expression = expression

    def __call__(self, columns: Columns) -> Array:
        """Return the function's values in some states; the columns keep them."""
        found = columns.known.get(id(self))
        if found is None:
            value = self.over(columns.environment(self.variables, self.rows), (columns.count,))
            # Kept together with the function, whose identity is unique as long as it lives.
            found = columns.known[id(self)] = self, value
        return found[1]

    def missing(self, values: Mapping[str, Array], shape: tuple[int, ...]) -> Array | None:
        """Return where the expression has no value; None if it always has one."""
        if isinstance(self.condition, Literal) and self.condition.value is True:
            return None
        return ~enclose(self.condition, values, shape).values.astype(np.bool_)


class BooleanExpression(_Of):
    """A boolean expression: its codes, int8."""

    def over(self, values: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
        """Return the codes."""
        found: Array = enclose(self.expression, values, shape).values.astype(np.int8)
        missing = self.missing(values, shape)
        return found if missing is None else np.where(missing, np.int8(MISSING), found)


class _Conjunction(Combined):
    """Conditions joined by `&`: later ones are not examined where an earlier one is false."""

    def combine(self, found: list[Array]) -> Array:
        """Return the codes."""
        result = found[0]
        for other in found[1:]:
            result = np.where(result == TRUE, other, result)
        return result


def condition(variables: Variables, expression: Expression) -> Function:
    """Return a condition; long conjunctions operand by operand, for each may be a small table."""
    operands = []
    while isinstance(expression, Binary) and expression.operator == "&":
        operands.append(expression.right)
        expression = expression.left
    operands.append(expression)
    parts: list[Function] = [BooleanExpression(variables, operand) for operand in reversed(operands)]
    return parts[0] if len(parts) == 1 else _Conjunction(variables, parts)


class Number(_Of):
    """A numeric expression as float64; NaN where it has no value, or none that is finite."""

    def over(self, values: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
        """Return the numbers."""
        found: Array = enclose(self.expression, values, shape).values.astype(np.float64)
        missing = self.missing(values, shape)
        wrong = ~np.isfinite(found) if missing is None else missing | ~np.isfinite(found)
        return np.where(wrong, math.nan, found) if wrong.any() else found


class NewValue(_Of):
    """A variable's new value as int64; `NO_INTEGER` where it is out of range or does not exist."""

    def __init__(self, variables: Variables, row: int, expression: Expression) -> None:
        super().__init__(variables, expression)
        self.low, self.high = variables.low[row], variables.high[row]

    def over(self, values: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
        """Return the values."""
        found = enclose(self.expression, values, shape).values
        inside = (self.low <= found) & (found <= self.high)  # False for NaN
        missing = self.missing(values, shape)
        if missing is not None:
            inside &= ~missing
        return np.where(inside, found, NO_INTEGER).astype(np.int64)


class Sum(Combined):
    """The sum of numbers; NaN where one of them is."""

    def combine(self, found: list[Array]) -> Array:
        """Return the numbers."""
        total = found[0]
        for other in found[1:]:
            total = total + other
        return total


class ProductOfRates(Combined):
    """The product of numbers that are not negative; zero where one of them is zero, else NaN where one is."""

    def combine(self, found: list[Array]) -> Array:
        """Return the numbers."""
        total = found[0]
        with np.errstate(over="ignore", invalid="ignore"):
            for other in found[1:]:
                total = total * other
        if len(found) > 1 and np.isnan(total).any():
            nothing = np.zeros(total.shape, dtype=np.bool_)
            for other in found:
                nothing |= other == 0
            total = np.where(nothing, 0.0, total)
        return total


class Where(Combined):
    """A number where a condition holds, else zero; NaN where the condition has no value.

    The parts are the condition and the number.
    """

    def __call__(self, columns: Columns) -> Array:
        """Return the numbers in some states; none is worked out where the condition holds nowhere."""
        codes = self.parts[0](columns)
        if not (codes == TRUE).any():
            return self.combine([codes, np.zeros(1)])
        return self.combine([codes, self.parts[1](columns)])

    def combine(self, found: list[Array]) -> Array:
        """Return the numbers."""
        codes, numbers = found
        result = np.where(codes == TRUE, numbers, 0.0)
        return np.where(codes == MISSING, math.nan, result) if (codes == MISSING).any() else result
