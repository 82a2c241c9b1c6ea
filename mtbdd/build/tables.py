"""Tables of an expression's values over the grid of its variables, and the sets of their true entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mtbdd.build.order import Effort
from mtbdd.diagrams.encoding import EncodedVariable, Encoding, spell, union_of_codes
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.partition import Partition
from mtbdd.language.enclosing import Enclosed, enclose, has_doubles, nearest_nonzero
from mtbdd.language.errors import EvaluationError
from mtbdd.language.evaluate import apply_to_arrays, evaluate
from mtbdd.language.reals import from_real, real_of
from mtbdd.language.scalars import TooCloseError
from mtbdd.language.syntax import Binary, Call, Conditional, Expression, LabelReference, Literal, Name, Unary
from mtbdd.language.types import is_double
from mtbdd.language.walk import expression_variables, walk

# Partitions by the real numbers that wide expressions take, rounded once at the end.
#
# Where an expression has too many variables for one table, it is put together from its parts.  The values of
# the parts are the real numbers themselves: a difference of two of them cancels nothing, and comparisons are
# certain.

_LEAF_COMBINATIONS = 1024  # values of its variables for which a part is evaluated one by one
_NOTHING = math.nan  # the value of an expression that has none
_REAL_STEPS = 4  # steps of `Effort.pairs` that an operation on two reals takes
_LOGIC = frozenset(("&", "|", "=>", "<=>"))


class Translator(Protocol):
    """What sets and partitions of expressions without doubles come from."""

    @property
    def encoding(self) -> Encoding:
        """Where the variables live."""

    @property
    def effort(self) -> Effort:
        """What the work is counted by."""

    def states(self, expression: Expression) -> Node:
        """Return the set of assignments where a boolean expression holds."""

    def partition(self, expression: Expression) -> Partition:
        """Return the partition of the assignments by the expression's value."""


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

    Parameters
    ----------
    translator : Translator
        Gives the sets of boolean parts and the partitions of parts without doubles.
    """

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self._manager = translator.encoding.manager
        self._known: dict[int, Partition] = {}

    def rounded(self, e: Expression) -> Partition:
        """Return the partition by an expression's values, numbers as the doubles next to them.

        Raises
        ------
        EvaluationError
            Irrational numbers agree in so many digits that it is not known which one is greater.

        Notes
        -----
        Time: product of the numbers of values of the operands of every operator.
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
        pieces: dict[Any, Node] = {}
        for part in parts:
            for value, piece in part:
                pieces[value] = pieces[value] | piece if value in pieces else piece
        return Partition(self._manager, pieces)

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

        found: dict[Any, list[Node]] = {}
        for value, piece in pieces():
            found.setdefault(value, []).append(piece)
        return Partition(manager, {v: manager.disjunction(s) for v, s in found.items()})


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


_AT_ONCE = 1 << 26  # entries of all an expression's parts held at a time, with their errors: 1 GiB
_FEWEST = 1 << 10
_WORD_BITS = 6

Bools = NDArray[np.bool_]


def operators(expression: Expression) -> int:
    """Return the number of distinct operators and calls in an expression, at least 1."""
    return max(1, sum(not isinstance(node, (Literal, Name)) for node in walk(expression)))


def tabulate(
    encoding: Encoding, e: Expression, variables: Sequence[EncodedVariable]
) -> tuple[Enclosed, Bools]:
    """Return an expression's values on the grid of some variables, and where all of these are in range.

    Parameters
    ----------
    encoding : Encoding
    e : Expression
        Over these variables.
    variables : sequence of EncodedVariable
        In the order of their bits.

    Returns
    -------
    found : Enclosed
        Of shape (2 ** bits,), in lexicographic order of the bits.
    mask : ndarray of bool, shape (2 ** bits,)

    Notes
    -----
    A long expression is worked out for parts of the grid, so that not all of its parts' tables are held at
    once.  Time: O(operators × entries).
    """
    shape = tuple(1 << len(v.bits) for v in variables)
    grid = encoding.grid([v.name for v in variables])
    mask = np.ones(shape, dtype=np.bool_)
    for axis, v in enumerate(variables):
        inside = np.arange(shape[axis]) < v.size
        mask &= inside.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    share = max(_FEWEST, _AT_ONCE // operators(e))
    if share >= mask.size:
        return _flat(enclose(e, grid, shape, mask)), mask.reshape(-1)
    # Cut along the axes from the first on, until a part is small enough.
    found, done = [], 0
    for part in _parts(grid, list(grid), shape, share):
        own = np.broadcast_shapes(*(axis.shape for axis in part.values()))
        size = int(np.prod(own, dtype=np.int64))
        inside = mask.reshape(-1)[done : done + size].reshape(own)
        found.append(_flat(enclose(e, part, own, inside)))
        done += size
    return _joined(found), mask.reshape(-1)


def _joined(parts: Sequence[Enclosed]) -> Enclosed:
    """Return parts of a table as one."""
    values = np.concatenate([part.values for part in parts])
    if all(part.error is None for part in parts):
        return Enclosed(values, None)
    errors = [np.zeros(part.values.size) if part.error is None else part.error for part in parts]
    return Enclosed(values, np.concatenate(errors))


def _parts(
    grid: dict[str, Any], names: Sequence[str], shape: tuple[int, ...], share: int
) -> list[dict[str, Any]]:
    """Return grids of about `share` entries each that make up a grid, in its order."""
    name, *others = names
    below = int(np.prod(shape[1:], dtype=np.int64))
    width = max(1, share // max(1, below))
    axis = grid[name].ndim - len(names)
    parts = []
    for begin in range(0, shape[0], width):
        cut = [slice(None)] * grid[name].ndim
        cut[axis] = slice(begin, begin + width)
        part = {**grid, name: grid[name][tuple(cut)]}
        parts += _parts(part, others, shape[1:], share) if others and below > share else [part]
    return parts


def _flat(found: Enclosed) -> Enclosed:
    """Return values as one row in lexicographic order."""
    error = None if found.error is None else np.ascontiguousarray(found.error).reshape(-1)
    return Enclosed(np.ascontiguousarray(found.values).reshape(-1), error)


def tabulated_assignment(
    encoding: Encoding, variable: EncodedVariable, e: Expression, sources: Sequence[EncodedVariable]
) -> tuple[Node, Node]:
    """Return the relation "variable' = e" and the states where the value is out of range, from e's table.

    Parameters
    ----------
    encoding : Encoding
    variable : EncodedVariable
    e : Expression
    sources : sequence of EncodedVariable
        Those of the expression, in the order of their bits.
    """
    found, mask = tabulate(encoding, e, sources)
    return relation_from_table(encoding, variable, found.values, mask, sources)


def relation_from_table(
    encoding: Encoding,
    variable: EncodedVariable,
    table: NDArray[Any],
    mask: Bools,
    sources: Sequence[EncodedVariable],
) -> tuple[Node, Node]:
    """Return the relation "variable' = value" and the states where the value is out of range.

    Parameters
    ----------
    encoding : Encoding
    variable : EncodedVariable
    table, mask : ndarray, shape (2 ** bits,)
        Values in lexicographic order of the bits of some variables, and where they count.
    sources : sequence of EncodedVariable
        These variables, in the order of their bits.
    """
    manager = encoding.manager
    inside = (variable.low <= table) & (table <= variable.high)
    spelled = [encoding.row_names(v) for v in sources]
    shape = tuple(1 << len(bits) for bits in spelled)
    stored = [axis.reshape(-1) for axis in np.indices(shape, dtype=np.int64)]
    rows = [name for bits in spelled for name in bits]
    columns = encoding.column_names(variable)
    order = sorted([*rows, *columns], key=manager.bdd.level_of_var)
    kept = np.flatnonzero(mask & inside)
    target = (table[kept] - variable.low).astype(np.int64)
    numbers = [(values[kept], bits) for values, bits in zip(stored, spelled, strict=True)]
    moves = union_of_codes(manager, order, spell([*numbers, (target, columns)], order))
    astray = np.flatnonzero(mask & ~inside)
    if astray.size == 0:
        return moves, manager.false
    codes = spell([(values[astray], bits) for values, bits in zip(stored, spelled, strict=True)], rows)
    return moves, union_of_codes(manager, rows, codes)


def set_from_table(manager: Manager, names: Sequence[str], table: Bools) -> Node:
    """Return the set of the assignments where a table is true.

    Parameters
    ----------
    manager : Manager
    names : sequence of str
        Variables, from top to bottom of the order.
    table : ndarray of bool, shape (2 ** len(names),)
        In lexicographic order of the assignments.

    Notes
    -----
    Time: O(2^k / 64) for k names in numpy, and one package call a distinct part of the table.
    """
    bits = min(_WORD_BITS, len(names))
    weights = np.uint64(1) << np.arange(1 << bits, dtype=np.uint64)
    if bits == _WORD_BITS:
        words = np.packbits(table, bitorder="little").view("<u8").astype(np.uint64)
    else:
        words = np.array([np.sum(weights[table], dtype=np.uint64)], dtype=np.uint64)
    distinct, current = np.unique(words, return_inverse=True)
    current = current.reshape(-1).astype(np.int64)
    known: dict[tuple[int, int], Node] = {}
    below = [_word(manager, names[len(names) - bits :], int(w), known) for w in distinct]
    for name in reversed(names[: len(names) - bits]):
        pairs = current.reshape(-1, 2)
        width = len(below)
        keys, current = np.unique(pairs[:, 0] * width + pairs[:, 1], return_inverse=True)
        current = current.reshape(-1)
        variable, ite = manager.bdd.var(name), manager.bdd.ite
        below = [
            below[a] if a == b else ite(variable, below[b], below[a])
            for a, b in zip((keys // width).tolist(), (keys % width).tolist(), strict=True)
        ]
    return below[int(current[0])]


def _word(manager: Manager, names: Sequence[str], word: int, known: dict[tuple[int, int], Node]) -> Node:
    """Return the set of a table whose entries are the bits of a number, the first one lowest."""
    size = 1 << len(names)
    if word == 0:
        return manager.false
    if word == (1 << size) - 1:
        return manager.true
    key = (len(names), word)
    if key not in known:
        half = size // 2
        low, high = word & ((1 << half) - 1), word >> half
        below = [_word(manager, names[1:], part, known) for part in (low, high)]
        known[key] = manager.bdd.ite(manager.bdd.var(names[0]), below[1], below[0])
    return known[key]
