"""Expressions of the model language as sets of states and as partitions by value.

An expression whose variables span a small grid is evaluated on the whole grid with NumPy and turned into
decision diagrams from the table. A wider one is split at its top operator and combined from its operands.
Equal expressions are evaluated once, and the work is checked against the limits.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.sorting import sorted_values
from mtbdd.build.order import Effort
from mtbdd.build.tables import operators, set_from_table, tabulate, tabulated_assignment
from mtbdd.diagrams.encoding import EncodedVariable, Encoding
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.partition import Partition, from_table
from mtbdd.language.enclosing import has_doubles, nearest_nonzero, units_of
from mtbdd.language.errors import EvaluationError, Fault, format_state
from mtbdd.language.evaluate import Definedness, apply_to_arrays, evaluate
from mtbdd.language.reals import from_real, real_of
from mtbdd.language.scalars import TooCloseError
from mtbdd.language.syntax import (
    Binary,
    Call,
    Conditional,
    Expression,
    LabelReference,
    Literal,
    Name,
    Position,
    Unary,
)
from mtbdd.language.types import is_double
from mtbdd.language.walk import Interner, expression_variables, walk

# Results of one operator or function for all values of its operands.


def operator_results(e: Expression, *operands: Iterable[Any]) -> dict[Any, Any]:
    """Return an operator's or function's results by operand (a pair of them), for all values of the operands.

    The values travel as arrays: numpy's rules then hold (1/0 is infinite), as on a grid.
    """
    names = tuple(Name(e.position, f"operand {i}") for i in range(len(operands)))
    if isinstance(e, Binary):
        pattern: Expression = Binary(e.position, e.operator, *names)
    elif isinstance(e, Call):
        pattern = Call(e.position, e.function, names)
    else:
        raise TypeError(f"not an operator: {type(e).__name__}")
    values = [list(own) for own in operands]
    axes = np.ix_(*(_array(own) for own in values))
    environment = {n.name: axis for n, axis in zip(names, axes, strict=True)}
    shape = tuple(len(own) for own in values)
    found = np.broadcast_to(np.asarray(evaluate(pattern, environment)), shape).reshape(-1).tolist()
    keys = values[0] if len(values) == 1 else product(*values)
    return dict(zip(keys, found, strict=True))


def _array(values: Sequence[Any]) -> NDArray[Any]:
    """Return values as an array; ints beside NaN stay exact."""
    holes = [isinstance(v, float) for v in values]
    if any(holes) and not all(holes) and all(v != v for v in values if isinstance(v, float)):
        return np.array(values, dtype=np.longdouble)
    return np.array(values)


# Comparisons as sets: of a variable with a number, and of two functions with many values.

COMPARISONS = frozenset(("=", "!=", "<", "<=", ">", ">="))
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def variable_against_number(encoding: Encoding, e: Binary) -> Node | None:
    """Return the set of a comparison of an int variable with an int literal; None for other comparisons.

    Values outside the variable's range are not in it.  Time: O(bits).
    """
    left, right, operator = e.left, e.right, e.operator
    if isinstance(right, Name):
        left, right, operator = right, left, _TURNED[operator]
    if not isinstance(left, Name) or not isinstance(right, Literal) or type(right.value) is not int:
        return None
    variable = encoding.by_name[left.name]
    if variable.is_bool:
        return None
    number = right.value - variable.low
    if operator in ("=", "!="):
        found = encoding.manager.false
        if 0 <= number < variable.size:
            found = encoding.manager.cube(encoding.row_names(variable), number)
    else:
        found = _at_most(encoding, variable, number - (operator in ("<", ">=")))
    if operator in ("!=", ">", ">="):
        found = ~found & _at_most(encoding, variable, variable.size - 1)
    return found


def _at_most(encoding: Encoding, variable: EncodedVariable, number: int) -> Node:
    """Return "stored number <= number"."""
    manager = encoding.manager
    if number < 0:
        return manager.false
    if number >= (1 << len(variable.bits)) - 1:
        return manager.true
    return encoding.at_most(variable, min(number, variable.size - 1))


def compare_partitions(operator: str, left: Partition, right: Partition) -> Node:
    """Return the set where a comparison of two functions holds.

    Time: O(n log n) set operations for n values of both, not one a pair of values.
    """
    manager = left.manager
    if operator in ("=", "!="):
        equal = manager.disjunction(s & right.pieces[v] for v, s in left if v in right.pieces)
        return equal if operator == "=" else left.support & right.support & ~equal
    values = sorted(v for v in right.pieces if v == v)
    pieces = [right.pieces[v] for v in values]
    if operator in ("<", "<="):
        # The pieces from a value on.
        place = bisect_right if operator == "<" else bisect_left
        sums = _running(manager.false, pieces[::-1])[::-1]
    else:
        place = bisect_left if operator == ">" else bisect_right
        sums = _running(manager.false, pieces)
    return manager.disjunction(s & sums[place(values, v)] for v, s in left if v == v)


def _running(empty: Node, pieces: list[Node]) -> list[Node]:
    """Return the unions of the first 0, 1, 2, ... pieces."""
    sums = [empty]
    for piece in pieces:
        sums.append(sums[-1] | piece)
    return sums


NO_VALUE = (
    "a modulus that is not positive, a negative exponent of ints, the logarithm of a number that is not "
    "positive, or an integer of more than 64 bits"
)
"""Reasons why an expression has no value."""

_FEW_BITS = 4  # below, a set a value costs less than numpy's fixed costs
_CODE_BITS = 62  # a code is one signed 64-bit number
_GRID_BITS = 20  # tables of up to 10^6 entries: tens of milliseconds in numpy
_LONG_CHAIN = 16  # from this many operands on, & and | are tabulated as a whole where possible
_TRUE = Literal(Position("", 1, 1), True)
_SET_STEPS = 8  # steps of `Effort.table` that an entry takes to become part of a set
_VALUE_STEPS = 200  # ... to become part of a partition
_LOGIC = frozenset("& | => <=>".split())
_BOOLEAN = _LOGIC | COMPARISONS


class ExpressionTranslator:
    """Turns typed expressions into sets and partitions over the row bits of an encoding.

    `encoding`: where the variables live.

    Results are cached by expression. Values outside a variable's range belong to no set.

    Methods raise `BuildError` where the limits of `mtbdd.language.limits` do not suffice.
    """

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self.labels: dict[str, Node] = {}  # built-in labels, known once the model is built
        self.effort = Effort()
        self._interner = Interner()
        self._sets: dict[int, Node] = {}
        self._partitions: dict[int, Partition] = {}
        self._reals: dict[int, Partition] = {}
        self._assignments: dict[tuple[str, int], tuple[Node, Node]] = {}
        self._place = {v.name: i for i, v in enumerate(encoding.variables)}
        ranges = {v.name: (v.low, v.high) for v in encoding.variables if not v.is_bool}
        self._definedness = Definedness(ranges)

    # ------------------------------------------------------------------ sets

    def states(self, expression: Expression) -> Node:
        """Return the set of assignments where a boolean expression holds."""
        if isinstance(expression, Unary) and expression.operator == "!":
            return ~self.states(expression.operand)
        number = self._interner.number(expression)
        known = self._sets.get(number)
        if known is None:
            if isinstance(expression, Binary) and expression.operator in ("&", "|"):
                known = self._chain(expression)
            else:
                known = self._states(expression)
            self._sets[number] = known
        return known

    def _chain(self, e: Binary) -> Node:
        """Combine `a | b | c ...`, thousands of operands perhaps, without recursion."""
        operands: list[Expression] = [e.right]
        left = e.left
        while (
            isinstance(left, Binary)
            and left.operator == e.operator
            and self._interner.number(left) not in self._sets
        ):
            operands.append(left.right)
            left = left.left
        operands.append(left)
        if len(operands) > _LONG_CHAIN:
            self.effort.pairs(len(operands), e.position)
            result = self._long_chain(e)
            if result is not None:
                return result
        manager = self.encoding.manager
        sets = [self.states(operand) for operand in reversed(operands)]
        if e.operator == "&":
            return ~manager.disjunction(~s for s in sets)
        return manager.disjunction(sets)

    def _long_chain(self, e: Binary) -> Node | None:
        """Tabulate a chain over few bits at once, not operand by operand."""
        names = self._grid(e)
        return None if names is None else self._tabulated_set(e, names)

    def _grid(self, e: Expression) -> list[str] | None:
        """Return an expression's variables if it can be tabulated, None if they have too many bits.

        A built-in label is a set, not a function of single values.
        """
        names = self._ordered(e)
        if self._width(names) > _GRID_BITS or (self.labels and self._interner.has_labels(e)):
            return None
        return names

    def _width(self, names: Sequence[str]) -> int:
        """Return the number of bits of some variables."""
        return sum(len(self.encoding.by_name[name].bits) for name in names)

    def _states(self, e: Expression) -> Node:
        manager = self.encoding.manager
        if isinstance(e, Literal):
            return manager.true if e.value else manager.false
        if isinstance(e, LabelReference):
            return self.labels[e.name]
        if isinstance(e, Binary) and e.operator in _LOGIC:
            a, b = self.states(e.left), self.states(e.right)
            return ~a | b if e.operator == "=>" else manager.bdd.ite(a, b, ~b)
        if isinstance(e, Conditional):
            return manager.bdd.ite(self.states(e.condition), self.states(e.then), self.states(e.otherwise))
        if isinstance(e, Binary) and e.operator in COMPARISONS:
            found = variable_against_number(self.encoding, e)
            if found is not None:
                return found
        names = self._grid(e)
        if names is not None:
            return self._tabulated_set(e, names)
        if isinstance(e, Binary) and e.operator in COMPARISONS and not has_doubles(e):
            left, right = self.partition(e.left), self.partition(e.right)
            self.effort.pairs(len(left) + len(right), e.position)
            return compare_partitions(e.operator, left, right)
        return self.partition(e).pieces.get(True, manager.false)

    def undefined(self, expression: Expression) -> Node:
        """Return the set of assignments where an expression has no value, see `definedness`."""
        condition = self._definedness(expression)
        return self.encoding.manager.false if condition == _TRUE else ~self.states(condition)

    def require_value(self, expression: Expression, among: Node) -> None:
        """Raise `EvaluationError` if an expression has no value in one of these assignments."""
        missing = self.undefined(expression) & among
        if missing != self.encoding.manager.false:
            state = format_state(self.encoding.pick(missing))
            message = f"expected a value in every state, got none in {state}: {NO_VALUE}"
            fault = Fault(expression.position, f"{message}; guard it with a condition")
            raise EvaluationError([fault])

    # ------------------------------------------------------------------ partitions

    def partition(self, expression: Expression, domain: Node | None = None) -> Partition:
        """Return the partition of the assignments by the expression's value, zero included.

        `expression`: resolved: literals, variables and operators only. `domain`: cut the result to this set.
        """
        number = self._interner.number(expression)
        known = self._partitions.get(number)
        if known is None:
            known = self._partitions[number] = self._partition(expression)
        return known if domain is None else known.only(domain)

    def reals(self, expression: Expression) -> Partition:
        """Return the partition by the real numbers that an expression means; what has no value is NaN."""
        number = self._interner.number(expression)
        known = self._reals.get(number)
        if known is None:
            known = self._reals[number] = RealPartitions(self).of(expression)
        return known

    def _partition(self, e: Expression) -> Partition:
        manager = self.encoding.manager
        if isinstance(e, Literal):
            return constant_partition(manager, e)
        if isinstance(e, LabelReference):
            return Partition(manager, {True: self.labels[e.name], False: ~self.labels[e.name]})
        names = self._grid(e)
        if isinstance(e, Name):
            self.effort.values(self.encoding.by_name[e.name].size, e.position)
            names = [e.name]
        if names is not None:
            return self._tabulate(e, names)
        if has_doubles(e):
            return RealPartitions(self).rounded(e)
        if isinstance(e, Conditional):
            condition = self.states(e.condition)
            parts = [self.partition(e.then, condition), self.partition(e.otherwise, ~condition)]
            return Partition.united(manager, chain(*parts))
        if isinstance(e, Unary) and e.operator == "-":
            return self.partition(e.operand).map(lambda a: -a)
        if isinstance(e, (Unary, Binary)) and (e.operator in _BOOLEAN or e.operator == "!"):
            holds = self.states(e)
            return Partition(manager, {True: holds, False: ~holds})
        if isinstance(e, Binary):
            return self._combined(self.partition(e.left), self.partition(e.right), e)
        if isinstance(e, Call):
            return self._call(e)
        raise TypeError(f"not an expression over state variables: {type(e).__name__}")

    def _call(self, e: Call) -> Partition:
        """Fold a call over its arguments: associative functions two at a time, others all at once."""
        parts = [self.partition(a) for a in e.arguments]
        if len(parts) == 1:
            results = operator_results(e, parts[0].pieces)
            return parts[0].map(lambda a: results[a])
        result = parts[0]
        step = Call(e.position, e.function, e.arguments[:2])
        for part in parts[1:]:
            result = self._combined(result, part, step)
        return result

    def _combined(self, left: Partition, right: Partition, e: Expression) -> Partition:
        """Return an operator or function of two arguments, from their partitions."""
        self.effort.pairs(len(left) * len(right), e.position)
        results = operator_results(e, left.pieces, right.pieces)
        found = left.combine(right, lambda a, b: results[a, b])
        self.effort.values(len(found), e.position)
        return found

    def assignment(self, variable: EncodedVariable, expression: Expression) -> tuple[Node, Node]:
        """Return the relation "variable' = expression" and the states where the value is out of range.

        Time: O(2^k) in numpy for an expression over few enough bits k, else one conjunction a value.
        """
        key = variable.name, self._interner.number(expression)
        known = self._assignments.get(key)
        if known is None:
            known = self._assignments[key] = self._assignment(variable, expression)
        return known

    def _assignment(self, variable: EncodedVariable, expression: Expression) -> tuple[Node, Node]:
        manager = self.encoding.manager
        names = self._ordered(expression)
        width = self._width(names)
        if _FEW_BITS < width <= min(_GRID_BITS, _CODE_BITS - len(variable.bits)):
            self.effort.table((operators(expression) + _VALUE_STEPS) << width, expression.position)
            sources = [self.encoding.by_name[n] for n in names]
            return tabulated_assignment(self.encoding, variable, expression, sources)
        moves, strays = [], []
        for value, piece in self.partition(expression):
            if variable.low <= value <= variable.high:
                moves.append(piece & self.encoding.column_value(variable, int(value)))
            else:
                strays.append(piece)
        return manager.disjunction(moves), manager.disjunction(strays)

    def _ordered(self, e: Expression) -> list[str]:
        """Return an expression's variables in model order."""
        return sorted(self._interner.names(e), key=self._place.__getitem__)

    def _tabulate(self, e: Expression, names: Sequence[str]) -> Partition:
        """Evaluate on the grid of all values of the named variables."""
        self.effort.table((operators(e) + _VALUE_STEPS) << self._width(names), e.position)
        variables = [self.encoding.by_name[n] for n in names]
        bits = [name for v in variables for name in self.encoding.row_names(v)]
        found, mask = tabulate(self.encoding, e, variables)
        self.effort.values(sorted_values(found.values).size, e.position)
        result = from_table(self.encoding.manager, bits, found.values, mask)
        result.units = units_of(found, mask)
        return result

    def _tabulated_set(self, e: Expression, names: Sequence[str]) -> Node:
        """Evaluate a condition on the grid of all values of the named variables."""
        self.effort.table((operators(e) + _SET_STEPS) << self._width(names), e.position)
        variables = [self.encoding.by_name[n] for n in names]
        bits = [name for v in variables for name in self.encoding.row_names(v)]
        found, mask = tabulate(self.encoding, e, variables)
        return set_from_table(self.encoding.manager, bits, found.values.astype(np.bool_) & mask)


# Partitions by the real numbers that wide expressions take, rounded once at the end.
#
# Where an expression has too many variables for one table, it is put together from its parts.  The values of
# the parts are the real numbers themselves: a difference of two of them cancels nothing, and comparisons are
# certain.

_LEAF_COMBINATIONS = 1024  # values of its variables for which a part is evaluated one by one
_NOTHING = math.nan  # the value of an expression that has none
_REAL_STEPS = 4  # steps of `Effort.pairs` that an operation on two reals takes


def constant_partition(manager: Manager, literal: Literal) -> Partition:
    """Return the partition of a constant function; a number that is not zero is no zero there."""
    value = literal.value
    if not isinstance(value, float):
        return Partition(manager, {value: manager.true})
    double, error = nearest_nonzero(value, literal.position)
    # lemma: entry-units
    return Partition(manager, {double: manager.true}, error / abs(double) * 2.0**53 if error else 0.0)


class RealPartitions:
    """Partitions whose values are bools, ints, and reals in place of doubles.

    `translator`: gives the sets of boolean parts and the partitions of parts without doubles.
    """

    def __init__(self, translator: ExpressionTranslator) -> None:
        self._translator = translator
        self._manager = translator.encoding.manager
        self._known: dict[int, Partition] = {}

    def rounded(self, e: Expression) -> Partition:
        """Return the partition by an expression's values, numbers as the doubles next to them.

        Raises EvaluationError: irrational numbers agree in so many digits that it is not known which one is
        greater. Time: product of the numbers of values of the operands of every operator.
        """
        found = self.of(e)
        if not is_double(e, lambda _: False):
            return found
        worst = [0.0]

        def double(value: Any) -> float:
            if isinstance(value, float):
                return value
            nearest, error = nearest_nonzero(from_real(value), e.position)
            if error and math.isfinite(nearest):
                worst[0] = max(worst[0], error / abs(nearest))  # lemma: entry-units
            return nearest

        result = found.map(double)
        result.units = worst[0] * 2.0**53  # lemma: entry-units
        return result

    def of(self, e: Expression) -> Partition:
        """Return the partition by an expression's values; what has no value is NaN."""
        known = self._known.get(id(e))
        if known is None:
            known = self._known[id(e)] = self._of(e)
        return known

    def _of(self, e: Expression) -> Partition:
        if isinstance(e, Literal):
            return Partition(self._manager, {_key(e.value): self._manager.true})
        if not has_doubles(e):
            return self._translator.partition(e)
        if self._is_narrow(e):
            return self._one_by_one(e)
        if isinstance(e, Conditional):
            return self._conditional(e)
        if isinstance(e, (Unary, Binary)) and (e.operator in _LOGIC or e.operator == "!"):
            holds = self._translator.states(e)
            return Partition(self._manager, {True: holds, False: ~holds})
        if isinstance(e, Unary):
            return self.of(e.operand).map(_applied(e))
        if isinstance(e, Binary):
            left, right = self.of(e.left), self.of(e.right)
            self._translator.effort.pairs(_REAL_STEPS * len(left) * len(right), e.position)
            return left.combine(right, _applied(e))
        if isinstance(e, Call):
            parts = [self.of(a) for a in e.arguments]
            if len(parts) == 1:
                return parts[0].map(_applied(e))
            result = parts[0]
            for part in parts[1:]:
                self._translator.effort.pairs(_REAL_STEPS * len(result) * len(part), e.position)
                result = result.combine(part, _applied(e))
            return result
        raise TypeError(f"not an expression over state variables: {type(e).__name__}")

    def _conditional(self, e: Conditional) -> Partition:
        condition = self._translator.states(e.condition)
        parts = [self.of(e.then).only(condition), self.of(e.otherwise).only(~condition)]
        if is_double(e, lambda _: False):  # an int beside a double is a double
            parts = [part.map(lambda v: Fraction(v) if isinstance(v, int) else v) for part in parts]
        return Partition.united(self._manager, chain(*parts))

    def _is_narrow(self, e: Expression) -> bool:
        """Return whether the variables of an expression take few values together."""
        if any(isinstance(node, LabelReference) for node in walk(e)):
            return False
        encoding = self._translator.encoding
        return math.prod(encoding.by_name[n].size for n in expression_variables(e)) <= _LEAF_COMBINATIONS

    def _one_by_one(self, e: Expression) -> Partition:
        """Evaluate for all values of the variables."""
        encoding, manager = self._translator.encoding, self._manager
        variables = [encoding.by_name[n] for n in sorted(expression_variables(e))]
        names = [v.name for v in variables]
        cubes = [
            [manager.cube(encoding.row_names(v), k) for k in range(v.size)] for v in variables
        ]  # in the order of the stored numbers

        def pieces() -> Iterator[tuple[Any, Node]]:
            for numbers in product(*(range(v.size) for v in variables)):
                piece = manager.true
                for own, k in zip(cubes, numbers, strict=True):
                    piece = piece & own[k]
                values = [v.decode(k) for v, k in zip(variables, numbers, strict=True)]
                yield _value(e, dict(zip(names, values, strict=True))), piece

        return Partition.united(manager, pieces())


def _key(value: Any) -> Any:
    """Return a value as the piece of a partition is named by: reals in place of doubles."""
    return real_of(value) if isinstance(value, float) else value


def _value(e: Expression, environment: dict[str, Any]) -> Any:
    """Return an expression's value for single values of its variables."""
    try:
        return _key(evaluate(e, environment))
    except TooCloseError:
        raise
    except EvaluationError:
        return _of_doubles(evaluate(e, {name: np.array([v]) for name, v in environment.items()}))


def _applied(e: Unary | Binary | Call) -> Callable[..., Any]:
    """Return an operator on the values of partitions."""

    def apply(*operands: Any) -> Any:
        if not any(isinstance(operand, float) for operand in operands):
            values = [from_real(v) if not isinstance(v, int) else v for v in operands]
            try:
                return _key(apply_to_arrays(e, values))
            except TooCloseError:
                raise
            except EvaluationError:
                pass
        with np.errstate(all="ignore"):
            return _of_doubles(apply_to_arrays(e, [np.array([_double(v)]) for v in operands]))

    return apply


def _double(value: Any) -> Any:
    return value if isinstance(value, (int, float)) else from_real(value)


def _of_doubles(found: Any) -> Any:
    """Return the value of what is no number in floating point: infinite, NaN, or made of such."""
    value = np.asarray(found).reshape(-1)[0].item()
    if isinstance(value, float):
        return Fraction(value) if math.isfinite(value) else _NOTHING if math.isnan(value) else value
    return value
