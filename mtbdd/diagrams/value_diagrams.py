"""Real functions of the bits as shared arrays of nodes: MTBDDs on which operations run level by level.

A `SymbolicMatrix` is read into the arrays, operations make new rows in them, and a result goes back to the
package of decision diagrams with one call a node.  An operation on two functions walks down all pairs of
their nodes at once, a level a step, and then up; no node is visited alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.budget import check_budget
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.nodes import FALSE, NodeTable
from mtbdd.diagrams.value_nodes import ValueNodes
from mtbdd.diagrams.value_operations import ONE, PRODUCT, ZERO, Ids, Operation, Values


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
        image = np.zeros(self._size, dtype=np.int64)
        for level, ids in self.below(root):
            if level == self.bottom:
                image[ids] = ids
            elif level in bits:
                image[ids] = image[(self._high if bits[level] else self._low)[ids]]
            else:
                image[ids] = self.nodes(level, image[self._low[ids]], image[self._high[ids]])
        return int(image[root])

    def renamed(self, root: int, levels: Mapping[int, int]) -> int:
        """Return a function of other bits, whose levels have the same order.  Time: O(n log n) in numpy."""
        image = np.zeros(self._size, dtype=np.int64)
        last = self.bottom
        for level, ids in self.below(root):
            if level == self.bottom:
                image[ids] = ids
                continue
            new = levels.get(level, level)
            if not 0 <= new < last:
                raise ValueError("the order of the bits is to stay as it is")
            last = new
            image[ids] = self.nodes(new, image[self._low[ids]], image[self._high[ids]])
        return int(image[root])

    def mapped(self, root: int, function: Callable[[Values], Values]) -> int:
        """Return a function of another function's values.  Time: O(n log n) in numpy."""
        image = np.zeros(self._size, dtype=np.int64)
        for level, ids in self.below(root):
            if level == self.bottom:
                image[ids] = self.leaves(function(self._value[ids]))
            else:
                image[ids] = self.nodes(level, image[self._low[ids]], image[self._high[ids]])
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
