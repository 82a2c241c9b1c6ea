"""Expressions and functions of Python as sets, partitions and relations, by tables of their values."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import ModellingError
from hybrid.models.interchange.explicit_model import rounding_of_sums
from hybrid.models.modelling.quantities import Applied, Array, ModelVariable, Quantity, applied
from mtbdd.build.expressions import ExpressionTranslator
from mtbdd.build.tables import relation_from_table, set_from_table
from mtbdd.diagrams.encoding import EncodedVariable, Encoding
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.partition import Partition, from_table
from mtbdd.language.errors import listed
from mtbdd.language.syntax import Binary, Expression, Literal, Position

MOST_BITS = 22
"""Bits of the variables that one table ranges over: 4 million combinations, a tenth of a second or so."""

_FEW_BITS = 16  # expressions over more are put together from their operands
_LOGIC = dict.fromkeys((operator.and_, np.logical_and, np.bitwise_and), "&")
_LOGIC |= dict.fromkeys((operator.or_, np.logical_or, np.bitwise_or), "|")
_NEGATION = frozenset((operator.invert, np.logical_not, np.invert))
_MOST_PAIRS = 1 << 18


class PythonExpression(Expression):
    """An expression of Python in place of one of a text."""

    quantity: Quantity = field(compare=False)
    what: str  # what messages call it, as in "the guard"
    number: int  # the part that distinguishes it from others

    @classmethod
    def of(cls, quantity: Quantity, what: str, position: Position) -> PythonExpression:
        """Return an expression."""
        return cls(position, quantity, what, id(quantity))


class TableTranslator(ExpressionTranslator):
    """Turns what users of a builder write into sets, partitions and relations.

    An expression over few variables, and every function, is called once with arrays of all values of its
    variables. A wider expression is put together from its operands: set by set under `&`, `|` and `~`, pair
    of values by pair of values under other operators.
    """

    def __init__(self, encoding: Encoding) -> None:
        super().__init__(encoding)
        self._known_sets: dict[int, tuple[Quantity, Node]] = {}
        self._known_values: dict[int, tuple[Quantity, Partition]] = {}
        self._fractional: set[tuple[str, int]] = set()
        self._known_moves: dict[tuple[str, int], tuple[Quantity, tuple[Node, Node]]] = {}

    # ------------------------------------------------------------------ what texts' expressions have, too

    def states(self, expression: Expression) -> Node:
        """Return where a condition holds."""
        if isinstance(expression, Binary) and expression.operator in ("<=", ">="):
            return self._bounded(expression)
        if not isinstance(expression, PythonExpression):
            return super().states(expression)
        return self._set(expression.quantity, expression)

    def _bounded(self, comparison: Binary) -> Node:
        """Return where a sum of weights is at most a number, or at least, give or take rounding."""
        assert isinstance(comparison.right, Literal)
        found, bound = self.partition(comparison.left), float(comparison.right.value)
        room = rounding_of_sums(found.units)
        sign = 1.0 if comparison.operator == "<=" else -1.0
        return self.encoding.manager.disjunction(
            piece for value, piece in found if sign * (value - bound) <= room
        )

    def undefined(self, expression: Expression) -> Node:
        """Return the empty set: what is no number is found as a value."""
        return self.encoding.manager.false

    def partition(self, expression: Expression, domain: Node | None = None) -> Partition:
        """Return the partition of the assignments by value, zero included; sums know their rounding."""
        if isinstance(expression, Binary):
            found = _sum(self.partition(expression.left, domain), self.partition(expression.right, domain))
            return found
        if not isinstance(expression, PythonExpression):
            return super().partition(expression, domain)
        found = self._partitioned(expression.quantity, expression)
        return found if domain is None else found.only(domain)

    def assignment(self, variable: EncodedVariable, expression: Expression) -> tuple[Node, Node]:
        """Return the relation "variable' = expression", and where the value is no integer of the range."""
        if not isinstance(expression, PythonExpression):
            return super().assignment(variable, expression)
        key = variable.name, expression.number
        if key not in self._known_moves:
            self._known_moves[key] = expression.quantity, self._moves(variable, expression)
        return self._known_moves[key][1]

    def fractions(self, variable: str, expression: Expression) -> Partition | None:
        """Return where an assignment has no integer but a number in the variable's range; None: nowhere."""
        if (variable, _key(expression)) not in self._fractional:
            return None
        own = self.encoding.by_name[variable]
        found = self.partition(expression)
        wrong = {v: s for v, s in found if own.low <= v <= own.high and v != math.floor(v)}
        return Partition(self.encoding.manager, wrong)

    # ------------------------------------------------------------------ sets

    def _set(self, quantity: Quantity, place: PythonExpression) -> Node:
        """Return where an expression holds."""
        known = self._known_sets.get(id(quantity))
        if known is None:
            known = self._known_sets[id(quantity)] = quantity, self._made_set(quantity, place)
        return known[1]

    def _made_set(self, quantity: Quantity, place: PythonExpression) -> Node:
        manager = self.encoding.manager
        if isinstance(quantity, Applied) and len(quantity.over()) > 1:
            if quantity.function in _NEGATION:
                return ~self._set(quantity.operands[0], place) & self.encoding.valid
            if sign := _LOGIC.get(quantity.function):
                a, b = (self._set(operand, place) for operand in quantity.operands)
                return a & b if sign == "&" else a | b
        variables = self._ordered_variables(quantity)
        if isinstance(quantity, Applied) and _width(variables) > _FEW_BITS:
            found = self._partitioned(quantity, place)
            for value, piece in found:
                if not isinstance(value, bool) and piece & self.encoding.valid != manager.false:
                    raise _no_boolean(place, type(value).__name__)
            return found.pieces.get(True, manager.false)
        values, mask = self._table(quantity, variables, place)
        if values.dtype.kind != "b":
            raise _no_boolean(place, str(values.dtype))
        table = np.zeros(mask.size, dtype=np.bool_)
        table[mask] = values
        return set_from_table(manager, self._bits(variables), table)

    # ------------------------------------------------------------------ values

    def _partitioned(self, quantity: Quantity, place: PythonExpression) -> Partition:
        """Return the partition by value."""
        known = self._known_values.get(id(quantity))
        if known is None:
            known = self._known_values[id(quantity)] = quantity, self._made_partition(quantity, place)
        return known[1]

    def _made_partition(self, quantity: Quantity, place: PythonExpression) -> Partition:
        variables = self._ordered_variables(quantity)
        if isinstance(quantity, Applied) and _width(variables) > _FEW_BITS:
            return self._combined_parts(quantity, place)
        values, mask = self._table(quantity, variables, place)
        if values.dtype.kind == "f":
            values = values + 0.0  # -0.0 is 0.0
        self.effort.values(np.unique(values).size, place.position)
        table = np.zeros(mask.size, dtype=values.dtype)
        table[mask] = values
        return from_table(self.encoding.manager, self._bits(variables), table, mask)

    def _combined_parts(self, quantity: Applied, place: PythonExpression) -> Partition:
        """Put a wide expression together from the values of its operands."""
        parts = [self._partitioned(operand, place) for operand in quantity.operands]
        count = int(np.prod([len(part) for part in parts], dtype=np.float64))
        if count > _MOST_PAIRS:
            names = listed([v.name for v in self._ordered_variables(quantity)])
            raise ModellingError(
                f"{place.position}: {place.what}: expected an expression that is worked out over at most "
                f"{_FEW_BITS} bits of variables, or from at most {_MOST_PAIRS} combinations of values, got "
                f"{count} over {names}; {_ADVICE}"
            )
        given = [np.array(list(part.pieces)) for part in parts]
        shape = tuple(values.size for values in given)
        grid = [axis.reshape(-1) for axis in np.meshgrid(*given, indexing="ij")]
        results = self._called(lambda: applied(quantity.function, grid), count, place).reshape(shape)
        pieces: list[tuple[Any, Node]] = []
        listed_sets = [list(part.pieces.values()) for part in parts]
        for at in product(*map(range, shape[:-1])):
            outer = self.encoding.valid
            for sets, i in zip(listed_sets, at, strict=False):
                outer = outer & sets[i]
            if outer == self.encoding.manager.false:
                continue
            for i, last in enumerate(listed_sets[-1]):
                if (piece := outer & last) != self.encoding.manager.false:
                    pieces.append((results[(*at, i)].item(), piece))
        found = Partition.united(self.encoding.manager, pieces)
        self.effort.values(len(found), place.position)
        return found

    # ------------------------------------------------------------------ assignments

    def _moves(self, variable: EncodedVariable, expression: PythonExpression) -> tuple[Node, Node]:
        variables = self._ordered_variables(expression.quantity)
        manager = self.encoding.manager
        if isinstance(expression.quantity, Applied) and _width(variables) > _FEW_BITS:
            inside, astray = [], []
            for value, piece in self._partitioned(expression.quantity, expression):
                if _fits(variable, np.array([value]))[0]:
                    inside.append(piece & self.encoding.column_value(variable, int(value)))
                else:
                    self._fractional.add((variable.name, expression.number))
                    astray.append(piece)
            return manager.disjunction(inside), manager.disjunction(astray)
        values, mask = self._table(expression.quantity, variables, expression)
        if not np.array_equal(_fits(variable, values), (variable.low <= values) & (values <= variable.high)):
            self._fractional.add((variable.name, expression.number))
        targets = np.where(_fits(variable, values), values, variable.low - 1).astype(np.int64)
        table = np.full(mask.size, variable.low, dtype=np.int64)
        table[mask] = targets
        return relation_from_table(self.encoding, variable, table, mask, variables)

    # ------------------------------------------------------------------ tables

    def _ordered_variables(self, quantity: Quantity) -> list[EncodedVariable]:
        names = {variable.name for variable in quantity.over()}
        return [v for v in self.encoding.variables if v.name in names]

    def _bits(self, variables: Sequence[EncodedVariable]) -> list[str]:
        return [name for v in variables for name in self.encoding.row_names(v)]

    def _table(
        self, quantity: Quantity, variables: Sequence[EncodedVariable], place: PythonExpression
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return the values of all combinations in range, and where these stand in a table by bits."""
        if _width(variables) > MOST_BITS:
            sizes = listed([f"{v.name} ({v.size} values)" for v in variables])
            raise ModellingError(
                f"{place.position}: {place.what}: expected a function of variables of at most {MOST_BITS} "
                f"bits together, got {_width(variables)}: {sizes}; {_ADVICE}"
            )
        self.effort.table(8 << _width(variables), place.position)
        axes = self.encoding.grid([v.name for v in variables])
        shape = np.broadcast_shapes(*(axis.shape for axis in axes.values()))
        flat = self.encoding.inside(variables).reshape(-1)
        own = {variable.name: variable for variable in quantity.over()}
        columns: dict[ModelVariable, Array] = {
            own[name]: np.broadcast_to(axis, shape).reshape(-1)[flat] for name, axis in axes.items()
        }
        count = int(np.count_nonzero(flat))
        return self._called(lambda: quantity.values(columns), count, place), flat

    def _called(self, call: Any, count: int, place: PythonExpression) -> Array:
        """Return what a call gives for so many combinations of values, of the right shape."""
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(call())
        except (MemoryError, RecursionError):
            raise
        except Exception as error:
            here = f"{place.position}: {place.what}"
            if isinstance(error, ModellingError):
                raise ModellingError(f"{here}: {error}") from error
            raise ModellingError(
                f"{here}: expected values for arrays of the variables' values, got {type(error).__name__}: "
                f"{error}; a function is called once with whole arrays: use `&`, `|`, `numpy.where`, or wrap "
                "it with numpy.vectorize"
            ) from error
        if found.shape not in ((), (1,), (count,)):
            raise ModellingError(
                f"{place.position}: {place.what}: expected one value for every combination of the variables' "
                f"values, shape ({count},), or a single one, got shape {found.shape}"
            )
        return np.broadcast_to(found.reshape(-1), (count,))


_ADVICE = (
    "split it into commands or `&` of conditions over fewer variables, or give the variables smaller ranges"
)


def _key(expression: Expression) -> int:
    return expression.number if isinstance(expression, PythonExpression) else -1


def _width(variables: Sequence[EncodedVariable]) -> int:
    return sum(len(v.bits) for v in variables)


def _fits(variable: EncodedVariable, values: Array) -> NDArray[np.bool_]:
    """Return which values are integers of a variable's range."""
    found = (variable.low <= values) & (values <= variable.high)
    return found & (values == np.floor(values)) if values.dtype.kind == "f" else found


def _no_boolean(place: PythonExpression, got: str) -> ModellingError:
    return ModellingError(
        f"{place.position}: {place.what}: expected a condition (booleans), got values of type {got}; compare "
        "them with something"
    )


def _sum(a: Partition, b: Partition) -> Partition:
    """Return the sum of two functions with the same support, exact unless something is rounded."""
    rounds = False

    def added(x: Any, y: Any) -> float:
        nonlocal rounds
        total = float(x) + float(y)
        rounds = rounds or not (total - x == y and total - y == x)
        return total

    found = a.combine(b, added)
    units = max(a.units, b.units)
    found.units = units + 1.0 + units * 2.0**-52 if rounds else units
    return found
