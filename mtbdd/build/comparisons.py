"""Comparisons as sets: of a variable with a number, and of two functions with many values."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from mtbdd.diagrams.encoding import EncodedVariable, Encoding
from mtbdd.language.syntax import Binary, Literal, Name
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.partition import Partition

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
