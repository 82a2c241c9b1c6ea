"""Expressions of the model language as sets of states and as partitions by value.

An expression whose variables span a small grid is evaluated on the whole grid with numpy
and turned into decision diagrams from the table; a wider one is split at its top operator
and put together from its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.codes import spell, union_of_codes
from mtbdd.encoding import EncodedVariable, Encoding
from mtbdd.faults import format_state
from mtbdd.language.definedness import definedness
from mtbdd.language.enclosing import Enclosed, enclose, has_doubles, units_of
from mtbdd.language.errors import EvaluationError, Fault
from mtbdd.language.evaluate import evaluate, expression_variables
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
from mtbdd.language.walk import walk
from mtbdd.manager import Node
from mtbdd.partition import Partition, from_table
from mtbdd.real_partitions import RealPartitions, constant_partition

__all__ = ["ExpressionTranslator"]

_FEW_BITS = 4  # below, a set a value costs less than numpy's fixed costs
_CODE_BITS = 62  # a code is one signed 64-bit number
_GRID_BITS = 20  # tables of up to 10^6 entries: tens of milliseconds in numpy
_LONG_CHAIN = 16  # from this many operands on, & and | are tabulated as a whole where possible
_TRUE = Literal(Position("", 1, 1), True)
_LOGIC = frozenset("& | => <=>".split())


class ExpressionTranslator:
    """Turns typed expressions into sets and partitions over the row bits of an encoding.

    Parameters
    ----------
    encoding : Encoding
        Where the variables live.

    Notes
    -----
    Results are cached by expression.  Values outside a variable's range belong to no set.
    """

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self.labels: dict[str, Node] = {}  # built-in labels, known once the model is built
        self._sets: dict[Expression, Node] = {}
        self._chains: dict[int, tuple[Expression, Node]] = {}
        self._partitions: dict[Expression, Partition] = {}

    # ------------------------------------------------------------------ sets

    def states(self, expression: Expression) -> Node:
        """Return the set of assignments where a boolean expression holds."""
        if isinstance(expression, Binary) and expression.operator in ("&", "|"):
            return self._chain(expression)
        if isinstance(expression, Unary) and expression.operator == "!":
            return ~self.states(expression.operand)
        known = self._sets.get(expression)
        if known is None:
            known = self._sets[expression] = self._states(expression)
        return known

    def _chain(self, e: Binary) -> Node:
        """Combine `a | b | c ...`, thousands of operands perhaps: without recursion, cached by identity."""
        known = self._chains.get(id(e))
        if known is not None:
            return known[1]
        operands: list[Expression] = []
        left: Expression = e
        while isinstance(left, Binary) and left.operator == e.operator:
            operands.append(left.right)
            left = left.left
        operands.append(left)
        result = self._long_chain(e) if len(operands) > _LONG_CHAIN else None
        if result is None:
            manager = self.encoding.manager
            sets = [self.states(operand) for operand in reversed(operands)]
            if e.operator == "&":
                result = ~manager.disjunction(~s for s in sets)
            else:
                result = manager.disjunction(sets)
        self._chains[id(e)] = (e, result)  # the expression is kept, so that its identity stays its own
        return result

    def _long_chain(self, e: Binary) -> Node | None:
        """Tabulate a chain over few bits at once, not operand by operand."""
        names = self.ordered(expression_variables(e))
        if len(self.encoding.bits_of(names)) > _GRID_BITS or self._has_labels(e):
            return None
        return self._tabulate(e, names).pieces.get(True, self.encoding.manager.false)

    def _has_labels(self, e: Expression) -> bool:
        """Return whether a built-in label occurs: it is a set, not a function of single values."""
        return bool(self.labels) and any(isinstance(node, LabelReference) for node in walk(e))

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
        return self.partition(e).pieces.get(True, manager.false)

    def undefined(self, expression: Expression) -> Node:
        """Return the set of assignments where an expression has no value, see `definedness`."""
        condition = definedness(expression)
        return self.encoding.manager.false if condition == _TRUE else ~self.states(condition)

    def require_value(self, expression: Expression, among: Node) -> None:
        """Raise `EvaluationError` if an expression has no value in one of these assignments."""
        missing = self.undefined(expression) & among
        if missing != self.encoding.manager.false:
            state = format_state(self.encoding.pick(missing))
            message = f"expected a value in every state, got none in {state}: a modulus that is not positive"
            advice = "a negative exponent of ints or the logarithm of a number that is not positive"
            fault = Fault(expression.position, f"{message}, {advice}; guard it with a condition")
            raise EvaluationError([fault])

    # ------------------------------------------------------------------ partitions

    def partition(self, expression: Expression, domain: Node | None = None) -> Partition:
        """Return the partition of the assignments by the expression's value, zero included.

        Parameters
        ----------
        expression : Expression
            Resolved: literals, variables and operators only.
        domain : Node, optional
            Cut the result to this set.
        """
        known = self._partitions.get(expression)
        if known is None:
            known = self._partitions[expression] = self._partition(expression)
        return known if domain is None else known.only(domain)

    def _partition(self, e: Expression) -> Partition:
        manager = self.encoding.manager
        if isinstance(e, Literal):
            return constant_partition(manager, e)
        if isinstance(e, LabelReference):
            return Partition(manager, {True: self.labels[e.name], False: ~self.labels[e.name]})
        names = self.ordered(expression_variables(e))
        if isinstance(e, Name) or (
            len(self.encoding.bits_of(names)) <= _GRID_BITS and not self._has_labels(e)
        ):
            return self._tabulate(e, names)
        if has_doubles(e):
            return RealPartitions(self).rounded(e)
        if isinstance(e, Conditional):
            condition = self.states(e.condition)
            parts = [self.partition(e.then, condition), self.partition(e.otherwise, ~condition)]
            return _union(manager, parts)
        if isinstance(e, Unary) and e.operator == "-":
            return self.partition(e.operand).map(lambda a: -a)
        if isinstance(e, (Unary, Binary)) and (e.operator in _LOGIC or e.operator == "!"):
            holds = self.states(e)
            return Partition(manager, {True: holds, False: ~holds})
        if isinstance(e, Binary):
            return self.partition(e.left).combine(self.partition(e.right), _scalar(e, [e.left, e.right]))
        if isinstance(e, Call):
            return self._call(e)
        raise TypeError(f"not an expression over state variables: {type(e).__name__}")

    def _call(self, e: Call) -> Partition:
        """Fold a call over its arguments: associative functions two at a time, others all at once."""
        parts = [self.partition(a) for a in e.arguments]
        if len(parts) == 1:
            function = _scalar(e, list(e.arguments))
            return parts[0].map(lambda a: function(a))
        result = parts[0]
        step = _scalar(Call(e.position, e.function, e.arguments[:2]), list(e.arguments[:2]))
        for part in parts[1:]:
            result = result.combine(part, step)
        return result

    def assignment(self, variable: EncodedVariable, expression: Expression) -> tuple[Node, Node]:
        """Return the relation "variable' = expression" and the states where the value is out of range.

        Time: O(2^k) in numpy for an expression over few enough bits k, else one conjunction a value.
        """
        manager = self.encoding.manager
        names = self.ordered(expression_variables(expression))
        variables = [self.encoding.by_name[n] for n in names]
        width = len(self.encoding.bits_of(names))
        if not _FEW_BITS < width <= min(_GRID_BITS, _CODE_BITS - len(variable.bits)):
            moves, strays = [], []
            for value, piece in self.partition(expression):
                if variable.low <= value <= variable.high:
                    moves.append(piece & self.encoding.column_value(variable, int(value)))
                else:
                    strays.append(piece)
            return manager.disjunction(moves), manager.disjunction(strays)
        table, mask = self._table(expression, variables)
        inside = (variable.low <= table) & (table <= variable.high)
        sources = [(v, self.encoding.row_names(v)) for v in variables]
        stored = [
            (np.asarray(n), bits) for n, (_, bits) in zip(self._stored(variables), sources, strict=True)
        ]
        rows = [name for _, bits in sources for name in bits]
        columns = self.encoding.column_names(variable)
        order = sorted([*rows, *columns], key=manager.bdd.level_of_var)
        kept = np.flatnonzero(mask & inside)
        target = (table[kept] - variable.low).astype(np.int64)
        numbers = [(values[kept], bits) for values, bits in stored]
        moves_node = union_of_codes(manager, order, spell([*numbers, (target, columns)], order))
        astray = np.flatnonzero(mask & ~inside)
        if astray.size == 0:
            return moves_node, manager.false
        codes = spell([(values[astray], bits) for values, bits in stored], rows) if rows else astray
        return moves_node, union_of_codes(manager, rows, codes)

    @staticmethod
    def _stored(variables: Sequence[EncodedVariable]) -> list[NDArray[np.int64]]:
        """Return the stored number of every variable at every place of their grid, flat."""
        shape = tuple(1 << len(v.bits) for v in variables)
        return [axis.reshape(-1) for axis in np.indices(shape, dtype=np.int64)] if shape else []

    def ordered(self, names: frozenset[str]) -> list[str]:
        """Return variable names in model order."""
        return [v.name for v in self.encoding.variables if v.name in names]

    def _tabulate(self, e: Expression, names: Sequence[str]) -> Partition:
        """Evaluate on the grid of all values of the named variables."""
        variables = [self.encoding.by_name[n] for n in names]
        bits = [name for v in variables for name in self.encoding.row_names(v)]
        found, mask = self._enclosed(e, variables)
        result = from_table(self.encoding.manager, bits, np.ascontiguousarray(found.values).reshape(-1), mask)
        result.units = units_of(found, mask.reshape(found.values.shape))
        return result

    def _table(
        self, e: Expression, variables: Sequence[EncodedVariable]
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the values on the grid, flat, and where all variables are in range."""
        found, mask = self._enclosed(e, variables)
        return np.ascontiguousarray(found.values).reshape(-1), mask

    def _enclosed(
        self, e: Expression, variables: Sequence[EncodedVariable]
    ) -> tuple[Enclosed, NDArray[np.bool_]]:
        """Return the values on the grid with their errors, and flat where all variables are in range."""
        shape = tuple(1 << len(v.bits) for v in variables)
        mask = np.ones(shape, dtype=np.bool_)
        for axis, v in enumerate(variables):
            inside = np.arange(shape[axis]) < v.size
            mask &= inside.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        grid = self.encoding.grid([v.name for v in variables])
        return enclose(e, grid, shape, mask), mask.reshape(-1)


def _union(manager: Any, parts: Sequence[Partition]) -> Partition:
    """Unite partitions with disjoint supports."""
    pieces: dict[Any, list[Node]] = {}
    for part in parts:
        for value, piece in part:
            pieces.setdefault(value, []).append(piece)
    return Partition(manager, {v: manager.disjunction(s) for v, s in pieces.items()})


def _scalar(e: Expression, operands: Sequence[Expression]) -> Any:
    """Return a function of the operands' values that applies the operator of `e`.

    The values travel as arrays of one entry: numpy's rules then hold (1/0 is infinite), as on a grid.
    """
    names = tuple(Name(o.position, f"operand {i}") for i, o in enumerate(operands))
    if isinstance(e, Binary):
        pattern: Expression = Binary(e.position, e.operator, *names)
    elif isinstance(e, Call):
        pattern = Call(e.position, e.function, names)
    else:
        raise TypeError(f"not an operator: {type(e).__name__}")

    def apply(*values: Any) -> Any:
        environment = {n.name: np.array([v]) for n, v in zip(names, values, strict=True)}
        return np.asarray(evaluate(pattern, environment)).reshape(-1)[0].item()

    return apply
