"""Real functions of the bits as shared arrays of nodes: MTBDDs on which operations run level by level.

A `SymbolicMatrix` is read into the arrays, operations make new rows in them, and a result goes back to the
package of decision diagrams with one call a node.  An operation on two functions walks down all pairs of
their nodes at once, a level a step, and then up; no node is visited alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.budget import check_budget
from mtbdd.base.records import Record
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.nodes import FALSE, NodeTable
from mtbdd.diagrams.partition import LEAST

# Operations on two real numbers, for whole arrays, and where a diagram's node decides them at once.

Ids = NDArray[np.int64]
Values = NDArray[np.float64]

ZERO = 0
"""Number of the leaf 0 in every `mtbdd.diagrams.value_diagrams.ValueDiagrams`."""

ONE = 1
"""Number of the leaf 1."""


class Operation(Record):
    """An operation that is applied to every pair of values of two functions.

    `values`: the operation on two arrays of values. `known`: maps two arrays of nodes to an array of results:
    a node, or -1 where both have to be walked through. `commutes`: whether the operands may be exchanged.
    `doubles`: whether ``operation(a, a)`` is ``2 * a`` (else it is ``a``): what folding over a bit does to a
    function that does not depend on it.
    """

    values: Callable[[Values, Values], Values]
    known: Callable[[Ids, Ids], Ids]
    commutes: bool = True
    doubles: bool = False


def _sum_known(x: Ids, y: Ids) -> Ids:
    return np.where(x == ZERO, y, np.where(y == ZERO, x, -1))


def _product_known(x: Ids, y: Ids) -> Ids:
    zero = (x == ZERO) | (y == ZERO)
    return np.where(zero, ZERO, np.where(x == ONE, y, np.where(y == ONE, x, -1)))


def _quotient_known(x: Ids, y: Ids) -> Ids:
    return np.where(y == ONE, x, np.where((x == ZERO) & (y != ZERO), ZERO, -1))


def _same_known(x: Ids, y: Ids) -> Ids:
    return np.where(x == y, x, -1)


def _product(a: Values, b: Values) -> Values:
    """Return products that are zero only where a factor is; a smaller one becomes the least double."""
    found = a * b
    lost = (found == 0) & (a != 0) & (b != 0)  # lemma: underflow
    return np.where(lost, np.copysign(LEAST, found), found)


def _quotient(a: Values, b: Values) -> Values:
    """Return quotients that are zero only where the dividend is; 0 where that is 0, whatever the divisor."""
    if ((b == 0) & (a != 0)).any():
        raise ZeroDivisionError("expected a divisor that is nowhere 0 where the dividend is not")
    found = np.divide(a, b, out=np.zeros_like(a), where=a != 0)
    return np.where((found == 0) & (a != 0), np.copysign(LEAST, found), found)


SUM = Operation(lambda a, b: a + b, _sum_known, doubles=True)
PRODUCT = Operation(_product, _product_known)
QUOTIENT = Operation(_quotient, _quotient_known, commutes=False)
MAXIMUM = Operation(lambda a, b: np.maximum(a, b), _same_known)
MINIMUM = Operation(lambda a, b: np.minimum(a, b), _same_known)


# Nodes of real functions in arrays: leaves with values, and nodes that test a bit, no two of them equal.

MOST_NODES = 1 << 24
"""Nodes of all functions together: half a gigabyte; a level and two nodes fit into 63 bits."""


class ValueNodes:
    """Reduced MTBDDs that share their nodes.

    A function is the number of its root. Numbers 0 and 1 are the leaves 0.0 and 1.0; equal functions have
    equal numbers. `bottom`: level of the leaves; every bit's level is smaller. `most`: nodes of all functions
    together, beyond which operations raise `MemoryError`; at most `MOST_NODES`. Memory: 32 bytes a node, and
    as much for finding equal ones.
    """

    def __init__(self, bottom: int, most: int = MOST_NODES) -> None:
        self.bottom, self.most = bottom, most
        self._size = 0
        self._level = np.zeros(1024, dtype=np.int64)
        self._low = np.zeros(1024, dtype=np.int64)
        self._high = np.zeros(1024, dtype=np.int64)
        self._value = np.zeros(1024, dtype=np.float64)
        none = np.zeros(0, dtype=np.int64)
        self._known: dict[int, tuple[Ids, Ids]] = {}
        self._leaves: tuple[Values, Ids] = (np.zeros(0), none)
        self.leaves(np.array([0.0]))
        self.leaves(np.array([1.0]))

    def values_of(self, leaves: Ids) -> Values:
        """Return the values of leaves."""
        return self._value[leaves]

    def leaves(self, values: Values) -> Ids:
        """Return the leaves with some values.

        Raises ValueError: a value is NaN. Raises OverflowError: a value is infinite.
        """
        if np.isnan(values).any():
            raise ValueError("not a number (NaN) cannot be a value of a symbolic function")
        if np.isinf(values).any():
            raise OverflowError("a value is beyond 1.79e308, the largest double: expected finite values")
        distinct, inverse = np.unique(values + 0.0, return_inverse=True)  # -0.0 becomes 0.0
        known, numbers = self._leaves
        at = np.searchsorted(known, distinct)
        new = np.ones(distinct.size, dtype=np.bool_)
        inside = at < known.size
        new[inside] = known[at[inside]] != distinct[inside]
        ids = self._allot(int(new.sum()))
        self._level[ids] = self.bottom
        self._low[ids] = self._high[ids] = ids
        self._value[ids] = distinct[new]
        self._leaves = np.insert(known, at[new], distinct[new]), np.insert(numbers, at[new], ids)
        found = self._leaves[1][np.searchsorted(self._leaves[0], distinct)]
        return found[inverse.reshape(-1)]

    def nodes(self, level: int, low: Ids, high: Ids) -> Ids:
        """Return the functions that test the bit of one level and go on with given functions.

        Time: O(k log k) for k of them, plus O(nodes of the level).
        """
        result = low.copy()
        tests = np.flatnonzero(low != high)
        if not tests.size:
            return result
        both: Ids = low[tests] << 31 | high[tests]
        keys, inverse = np.unique(both, return_inverse=True)
        known, numbers = self._known.get(level, (keys[:0], keys[:0]))
        at = np.searchsorted(known, keys)
        new = np.ones(keys.size, dtype=np.bool_)
        inside = at < known.size
        new[inside] = known[at[inside]] != keys[inside]
        ids = self._allot(int(new.sum()))
        self._level[ids] = level
        self._low[ids], self._high[ids] = keys[new] >> 31, keys[new] & ((1 << 31) - 1)
        known, numbers = np.insert(known, at[new], keys[new]), np.insert(numbers, at[new], ids)
        self._known[level] = known, numbers
        result[tests] = numbers[np.searchsorted(known, keys)][inverse.reshape(-1)]
        return result

    def _allot(self, count: int) -> Ids:
        """Return numbers for new nodes, with room for them."""
        start, self._size = self._size, self._size + count
        if self._size > self.most:
            raise MemoryError(
                f"a symbolic operation needs more than {self.most} nodes: expected fewer; work on parts of "
                "the function, or in another order of the variables"
            )
        if self._size > self._level.size:
            grown = max(self._size, 2 * self._level.size)
            for name in ("_level", "_low", "_high", "_value"):
                old = getattr(self, name)
                array = np.zeros(grown, dtype=old.dtype)
                array[:start] = old[:start]
                setattr(self, name, array)
        return np.arange(start, self._size, dtype=np.int64)

    def children(self, nodes: Ids) -> tuple[Ids, Ids]:
        """Return the else and then children of nodes; those of a leaf are itself."""
        return self._low[nodes], self._high[nodes]

    def below(self, root: int | Ids) -> Iterator[tuple[int, Ids]]:
        """Yield the nodes of a function, or of several, by level from the leaves up: the level, its nodes.

        Time: O(n log n) for n nodes of all functions.
        """
        level = self._level[: self._size]
        order = np.argsort(level, kind="stable")
        levels, starts = np.unique(level[order], return_index=True)
        groups = np.split(order, starts[1:])
        met = np.zeros(self._size, dtype=np.bool_)
        met[root] = True
        found = []
        for number, group in zip(levels.tolist(), groups, strict=True):
            mine = group[met[group]]
            met[self._low[mine]] = True
            met[self._high[mine]] = True
            found.append((number, mine))
        return ((number, mine) for number, mine in reversed(found) if mine.size)

    def values(self, root: int | Ids) -> Values:
        """Return the distinct values of a function, 0 included where it occurs."""
        return np.sort(next(self._value[ids] for level, ids in self.below(root) if level == self.bottom))


class ValueDiagrams(ValueNodes):
    """Operations on functions that share their nodes, and their way from and to the package."""

    def apply(self, operation: Operation, x: Ids, y: Ids) -> Ids:
        """Return ``operation(x, y)`` for pairs of functions, shape of `x`.

        Time: O(p log p) in numpy for p pairs of nodes that meet, at most the product of the nodes; more than
        twice as many as there may be nodes are refused with a `MemoryError`.
        """
        base = self._size
        if operation.commutes:
            x, y = np.minimum(x, y), np.maximum(x, y)
        wanted = self._keys(x, y, base)
        waiting: dict[int, list[Ids]] = {}
        self._put(waiting, wanted, base)
        steps: list[tuple[int, Ids, Ids, Ids, Ids]] = []
        while waiting:
            check_budget()
            if sum(step[1].size for step in steps) > 2 * self.most:
                raise MemoryError(
                    f"a symbolic operation meets more than {2 * self.most} pairs of nodes: expected fewer; "
                    "work on parts of the function, or in another order of the variables"
                )
            level = min(waiting)
            keys = np.unique(np.concatenate(waiting.pop(level)))
            a, b = keys // base % base, keys % base
            known = operation.known(a, b)
            if level == self.bottom:
                open_ = known < 0
                with np.errstate(over="ignore", invalid="ignore"):
                    values = operation.values(self._value[a[open_]], self._value[b[open_]])
                known[open_] = self.leaves(values)
                steps.append((level, keys, known, keys[:0], keys[:0]))
                continue
            open_ = known < 0
            a, b = a[open_], b[open_]
            children: list[Ids] = []
            for child in (self._low, self._high):
                left = np.where(self._level[a] == level, child[a], a)
                right = np.where(self._level[b] == level, child[b], b)
                if operation.commutes:
                    left, right = np.minimum(left, right), np.maximum(left, right)
                children.append(self._keys(left, right, base))
                self._put(waiting, children[-1], base)
            steps.append((level, keys, known, children[0], children[1]))
        # Keys begin with the level: those of all steps, one after the other, ascend.
        all_keys = np.concatenate([step[1] for step in steps])
        result = np.concatenate([step[2] for step in steps])
        end = all_keys.size
        for level, keys, known, low, high in reversed(steps):
            start = end - keys.size
            if level != self.bottom:
                below = [result[np.searchsorted(all_keys, child)] for child in (low, high)]
                result[start:end][known < 0] = self.nodes(level, *below)
            end = start
        return result[np.searchsorted(all_keys, wanted)]

    def _keys(self, x: Ids, y: Ids, base: int) -> Ids:
        """Return a number a pair, ascending with the level of the bit that the pair tests first."""
        level = np.minimum(self._level[x], self._level[y])
        return (level * base + x) * base + y

    def _put(self, waiting: dict[int, list[Ids]], keys: Ids, base: int) -> None:
        """Sort pairs into those that wait, by level."""
        if not keys.size:
            return
        keys = np.unique(keys)
        levels, starts = np.unique(keys // base // base, return_index=True)
        for level, part in zip(levels.tolist(), np.split(keys, starts[1:]), strict=True):
            waiting.setdefault(level, []).append(part)

    def fold(self, operation: Operation, root: int, levels: Iterable[int]) -> int:
        """Return a function folded over the bits of some levels, the lowest bit first.

        The result takes, for all other bits, the operation's value of all assignments of those.
        Time: one `apply` a level, on the part of the diagram that lies below it.
        """
        folded = np.zeros(self.bottom + 1, dtype=np.int64)
        folded[list(levels)] = 1
        before = np.concatenate([[0], np.cumsum(folded)])  # folded levels above a level
        image = np.zeros(self._size, dtype=np.int64)

        def moved(children: Ids, above: int) -> Ids:
            """Return images, folded over the bits between a level and the children's, which they skip."""
            found = image[children]
            skipped = before[self._level[children]] - before[above]
            late = np.flatnonzero(skipped) if operation.doubles else skipped[:0]
            if late.size:
                factors = self.leaves(np.ldexp(1.0, skipped[late]))
                found[late] = self.apply(PRODUCT, found[late], factors)
            return found

        for level, ids in self.below(root):
            if level == self.bottom:
                image[ids] = ids
                continue
            low, high = (moved(child[ids], level + 1) for child in (self._low, self._high))
            image[ids] = self.apply(operation, low, high) if folded[level] else self.nodes(level, low, high)
        return int(moved(np.array([root]), 0)[0])

    def cofactor(self, root: int, bits: Mapping[int, bool]) -> int:
        """Return a function with the bits of some levels fixed.  Time: O(n log n) in numpy."""

        def made(level: int, low: Ids, high: Ids) -> Ids:
            if level in bits:
                return high if bits[level] else low
            return self.nodes(level, low, high)

        return self._rebuilt(root, made)

    def renamed(self, root: int, levels: Mapping[int, int]) -> int:
        """Return a function of other bits, whose levels have the same order.  Time: O(n log n) in numpy."""
        last = self.bottom

        def made(level: int, low: Ids, high: Ids) -> Ids:
            nonlocal last
            new = levels.get(level, level)
            if not 0 <= new < last:
                raise ValueError("the order of the bits is to stay as it is")
            last = new
            return self.nodes(new, low, high)

        return self._rebuilt(root, made)

    def mapped(self, root: int, function: Callable[[Values], Values]) -> int:
        """Return a function of another function's values.  Time: O(n log n) in numpy."""
        return self._rebuilt(root, self.nodes, lambda ids: self.leaves(function(self._value[ids])))

    def _rebuilt(
        self, root: int, made: Callable[[int, Ids, Ids], Ids], leaves: Callable[[Ids], Ids] = lambda ids: ids
    ) -> int:
        """Return a function rebuilt from the leaves up: a level's nodes from their children."""
        image = np.zeros(self._size, dtype=np.int64)
        for level, ids in self.below(root):
            if level == self.bottom:
                image[ids] = leaves(ids)
            else:
                image[ids] = made(level, image[self._low[ids]], image[self._high[ids]])
        return int(image[root])

    # ------------------------------------------------------------------ in and out

    def load(self, matrix: SymbolicMatrix) -> int:
        """Return a symbolic matrix as a function.  Time: O(n log n) in numpy, plus reading the diagram."""
        table = matrix.table()
        references, levels = _references(table, self.bottom)
        image = np.zeros(2 * table.level.size, dtype=np.int64)
        for level, refs in zip(reversed(levels), reversed(references), strict=True):
            if level < self.bottom:
                row, sign = refs >> 1, refs & 1
                image[refs] = self.nodes(level, image[table.low[row] ^ sign], image[table.high[row] ^ sign])
                continue
            refs = refs[refs != FALSE]
            image[refs] = self.leaves(matrix.terminals[matrix.terminal_numbers(table, refs)])
        return int(image[table.root])

    def store_sets(self, manager: Manager, roots: Ids) -> list[Node]:
        """Return functions with the values 0 and 1 as sets.  Time: one call of the package a node."""
        nodes: dict[int, Node] = {ZERO: manager.false, ONE: manager.true}
        for level, ids in self.below(roots):
            if level < self.bottom:
                self._store_level(manager, level, ids, nodes)
        return [nodes[root] for root in roots.tolist()]

    def store(self, manager: Manager, root: int, units: float) -> SymbolicMatrix:
        """Return a function as a symbolic matrix.  Time: one call of the package a node."""
        groups = list(self.below(root))
        nodes: dict[int, Node] = {ZERO: manager.false}
        terminals = np.zeros(0)
        for level, ids in groups:
            if level == self.bottom:
                terminals, leaves = _nonzero_values(self._value[ids], ids)
                bits = manager.index_bits(max(terminals.size - 1, 0).bit_length())
                nodes.update((leaf, manager.cube(bits, k)) for k, leaf in enumerate(leaves.tolist()))
                continue
            self._store_level(manager, level, ids, nodes)
        return SymbolicMatrix(manager, nodes[root], terminals, units)

    def _store_level(self, manager: Manager, level: int, ids: Ids, nodes: dict[int, Node]) -> None:
        """Make the nodes of a level in the package; those below are made already."""
        check_budget()
        ite, variable = manager.bdd.ite, manager.bdd.var(f"b{level}")
        triples = zip(ids.tolist(), self._low[ids].tolist(), self._high[ids].tolist(), strict=True)
        nodes.update((own, ite(variable, nodes[high], nodes[low])) for own, low, high in triples)


def _nonzero_values(values: Values, leaves: Ids) -> tuple[Values, Ids]:
    """Return the values that are not zero, ascending, and their leaves."""
    kept = values != 0
    order = np.argsort(values[kept])
    return values[kept][order], leaves[kept][order]


def _references(table: NodeTable, bottom: int) -> tuple[list[NDArray[np.int64]], list[int]]:
    """Return the references that lead from the root to the leaves, by level; the last ones spell leaves."""
    level = np.minimum(table.level, bottom)
    order = np.argsort(level, kind="stable")
    levels, starts = np.unique(level[order], return_index=True)
    met = np.zeros(2 * level.size, dtype=np.bool_)
    met[table.root] = True
    references = []
    for number, rows in zip(levels.tolist(), np.split(order, starts[1:]), strict=True):
        both = np.concatenate([2 * rows, 2 * rows + 1])
        mine = both[met[both]]
        if number < bottom:
            row, sign = mine >> 1, mine & 1
            met[table.low[row] ^ sign] = True
            met[table.high[row] ^ sign] = True
        references.append(mine)
    return references, levels.tolist()


# Several functions of the bits as plain arrays of shared nodes, for files: made, checked, read back.
#
# Nodes stand level by level from the leaves up, the nodes of a level ascend with their children, and no two
# are equal: a set of functions has one forest.  Whatever arrays pass the checks are diagrams, without
# circles, repeated nodes or nodes that test nothing.


class Forest(Record, eq=False):
    """Shared MTBDDs.

    Node k is a leaf for ``k < len(values)``; the others follow, from the lowest bit up. `values` (ndarray of
    float64, shape (leaves,)): distinct finite values, ascending. `levels` (ndarray of int64, shape
    (n_bits,)): how many nodes test each bit, from the highest bit down. `low`, `high` (ndarray of int64,
    shape (levels.sum(),)): numbers of the else and then children. `roots`: one a function.
    """

    values: NDArray[np.float64]
    levels: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    roots: NDArray[np.int64]

    @classmethod
    def of(cls, work: ValueDiagrams, roots: Ids, bits: Ids) -> Forest:
        """Return some functions.

        `bits`: the levels that the forest's bits stand on, ascending; no others occur in the functions. Time:
        O(n log n) in numpy.
        """
        groups = dict(work.below(roots))
        leaves = groups.pop(work.bottom)
        leaves = leaves[np.argsort(work.values_of(leaves))]
        size = 1 + max(int(ids.max()) for ids in (leaves, *groups.values()))
        place = np.zeros(size, dtype=np.int64)
        place[leaves] = np.arange(leaves.size)
        done, lows, highs = leaves.size, [leaves[:0]], [leaves[:0]]
        for level in sorted(groups, reverse=True):
            ids = groups[level]
            low, high = (place[child] for child in work.children(ids))
            order = np.lexsort((high, low))
            place[ids[order]] = done + np.arange(ids.size)
            lows.append(low[order])
            highs.append(high[order])
            done += ids.size
        levels = np.array([groups[bit].size if bit in groups else 0 for bit in bits.tolist()], dtype=np.int64)
        return cls(work.values_of(leaves), levels, np.concatenate(lows), np.concatenate(highs), place[roots])

    def check(self) -> None:
        """Refuse arrays that are no diagrams.

        Raises ValueError: what was expected, and at which node. Time: O(n) in numpy.
        """
        leaves, n = self.values.size, self.low.size
        if not np.isfinite(self.values).all() or (np.diff(self.values) <= 0).any():
            raise ValueError("expected finite values that ascend")
        if (
            ((self.levels < 0) | (self.levels > n)).any()
            or int(self.levels.sum()) != n
            or self.high.size != n
        ):
            raise ValueError("expected as many nodes as the levels have")
        sizes = self.levels[::-1]
        starts = leaves + np.cumsum(sizes) - sizes
        first = np.repeat(starts, sizes)  # of the level that a node belongs to
        for name, child in (("else", self.low), ("then", self.high)):
            _refuse((child < 0) | (child >= first), f"expected {name} children on lower levels")
        _refuse(self.low == self.high, "expected two different children")
        ascends = (np.diff(self.low) > 0) | ((np.diff(self.low) == 0) & (np.diff(self.high) > 0))
        _refuse(~np.concatenate([[True], ascends | (np.diff(first) > 0)])[:n], "expected nodes that ascend")
        if ((self.roots < 0) | (self.roots >= leaves + n)).any():
            raise ValueError("expected functions that begin at a node")

    def into(self, work: ValueDiagrams, bits: Ids) -> Ids:
        """Return the functions of a checked forest, one a root.

        `bits` (ndarray of int64, shape (n_bits,)): the levels that the bits shall stand on, ascending. Time:
        O(n log n) in numpy.
        """
        ids = np.zeros(self.values.size + self.low.size, dtype=np.int64)
        ids[: self.values.size] = work.leaves(self.values)
        start = 0
        for level, size in zip(reversed(bits.tolist()), reversed(self.levels.tolist()), strict=True):
            own = slice(start, start + size)
            made = work.nodes(level, ids[self.low[own]], ids[self.high[own]])
            ids[self.values.size + start : self.values.size + start + size] = made
            start += size
        return ids[self.roots]


def _refuse(wrong: NDArray[np.bool_], message: str) -> None:
    """Raise for the first node that is wrong."""
    if wrong.any():
        raise ValueError(f"node {int(np.argmax(wrong))}: {message}")
