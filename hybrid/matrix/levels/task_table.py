"""Levels of a matrix held in tasks ([Tealdi13] §4.4.1.2): counted on the diagram, times by a model.

A product spends its time on entries and on starting instances. Entries cost more where the submatrices leave
the fast caches, and instances are many near the terminals. Between the two lies the level of least time of
[Tealdi13] §5.2.3.2. The constants of the gpu were fitted to measured products of the block kernel on an H200
(benchmarks/results/gpu_product.json, "baseline"). Those of the cpu were fitted to the case studies on one
thread. They need only rank levels.

The thesis counts instances in the worst case, floor(n / 256) + 2 for a path to a submatrix of n rows.
`InstanceCounts` has exact counts, too. The instances of a path depend on its submatrix and on the place of
its first row in a task, of which there are 256. So paths are counted by node and by that place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import index_bits
from hybrid.base.units import counted
from hybrid.matrix.injection.injected import TASK_ROWS, cut_rows
from hybrid.matrix.injection.submatrices import expand_nodes
from hybrid.matrix.levels.curve import candidate_levels, check_layers, layers_form, task_list_bytes
from hybrid.matrix.levels.table import CandidateLevel, LevelTable, Weight, sum_levels
from mtbdd.offset.offset import OffsetMTBDD

Int64Array = NDArray[np.int64]

_DENSE_CELLS = 1 << 24
"""Nodes of a level times places in a task up to which paths are counted in an array of all of them."""

_EXPANDED_ENTRIES = 1 << 16
"""Entries that are expanded, at most, to count the instances of a level that need not be known."""

_CACHED_ENTRIES = 30_000
"""Entries of all submatrices from which they cost more to read."""


class _Costs(NamedTuple):
    """Seconds of an entry, of an entry for every doubling of the submatrices, of an instance."""

    entry: float
    doubling: float
    instance: float


_COSTS = {
    "cpu": _Costs(2.0e-9, 0.1e-9, 9e-9),
    "gpu": _Costs(4.6e-12, 0.9e-12, 38e-12),
    "reference": _Costs(30e-9, 0.0, 10e-6),
}


class _Spans(NamedTuple):
    """Rows with entries of the submatrices of a level, an element a node.

    Attributes
    ----------
    first, last : ndarray, int64
        The first and the last row with entries.
    gap : ndarray, int64
        Rows that follow each other without entries between these, at most.
    """

    first: Int64Array
    last: Int64Array
    gap: Int64Array


class _Paths(NamedTuple):
    """Paths to a level, counted by node and by the place of their first row in a task.

    Attributes
    ----------
    key : ndarray, shape (distinct pairs,), int64
        ``node * 256 + row % 256``, ascending.
    number : ndarray, shape (distinct pairs,), int64
        How many paths have the pair.
    """

    key: Int64Array
    number: Int64Array


class InstanceCounts:
    """The instances of every level of a matrix, cut at every 256 rows: counted without listing a path.

    A path has an instance for every task in whose rows its submatrix has entries: for those from its first to
    its last row with entries, unless 256 rows or more between these have none. Such submatrices lie near the
    root. For them there are two bounds, and their entries are expanded where the number has to be known.

    Parameters
    ----------
    matrix : OffsetMTBDD

    Attributes
    ----------
    matrix : OffsetMTBDD
    candidates : tuple of CandidateLevel
        All levels, with instances in the worst case.

    Raises
    ------
    OverflowError
        If a number of paths or non-zeros does not fit 63 bits.

    Notes
    -----
    Time: O(256 nodes) at most, once.
    """

    def __init__(self, matrix: OffsetMTBDD) -> None:
        self.matrix = matrix
        self.candidates = candidate_levels(matrix)
        self._known: dict[int, int] = {}

    def bounds(self, k: int) -> tuple[int, int]:
        """Return how many instances level k has at least and at most; for most levels the same."""
        if k in self._known:
            return self._known[k], self._known[k]
        least, most, _ = self._counted[k]
        return least, most

    def entries_to_expand(self, k: int) -> int:
        """Return how many entries `exact` would expand."""
        paths = self._counted[k][2]
        return (
            0
            if k in self._known
            else int(self.matrix.entries_below[k][np.unique(paths.key // TASK_ROWS)].sum())
        )

    def exact(self, k: int) -> int:
        """Return the number of instances of level k."""
        if k not in self._known:
            least, _, paths = self._counted[k]
            self._known[k] = least + self._within(k, paths)
        return self._known[k]

    def _within(self, k: int, paths: _Paths) -> int:
        """Return the instances of paths beside the two that their first and last rows with entries make."""
        if not len(paths.key):
            return 0
        nodes, number = np.unique(paths.key // TASK_ROWS, return_inverse=True)
        cuts = cut_rows(expand_nodes(np, self.matrix, k, nodes), paths.key % TASK_ROWS, number)
        return int(
            (np.bincount(cuts.owner, minlength=len(number)) * paths.number).sum() - 2 * paths.number.sum()
        )

    @cached_property
    def _counted(self) -> list[tuple[int, int, _Paths]]:
        """Return, for every level, instances at least and at most, and the paths for which these differ."""
        matrix, found = self.matrix, []
        spans = self._spans()
        root = np.arange(matrix.nodes[0], dtype=np.int64)
        paths = _Paths(root * TASK_ROWS, np.ones(len(root), np.int64))
        for k in range(matrix.n_levels + 1):
            node, place = paths.key // TASK_ROWS, paths.key % TASK_ROWS
            first, last, gap = (own[node] for own in spans[k])
            tasks = (place + last) // TASK_ROWS - (place + first) // TASK_ROWS + 1
            is_open = (gap >= TASK_ROWS) & (tasks > 2)
            most = int((tasks * paths.number).sum())
            left = np.flatnonzero(is_open)
            least = most - int(((tasks[left] - 2) * paths.number[left]).sum())
            found.append((least, most, _Paths(paths.key[left], paths.number[left])))
            if k < matrix.n_levels:
                paths = self._next(k, paths)
        return found

    def _next(self, k: int, paths: _Paths) -> _Paths:
        """Follow all paths by a level."""
        level, nodes = self.matrix.levels[k], self.matrix.nodes[k + 1]
        node, place = paths.key // TASK_ROWS, paths.key % TASK_ROWS
        low, high = level.low[node].astype(np.int64), level.high[node].astype(np.int64)
        moved = (place + level.offset[node]) % TASK_ROWS if k % 2 == 0 else place
        left, right = low >= 0, high >= 0
        keys = np.concatenate((low[left] * TASK_ROWS + place[left], high[right] * TASK_ROWS + moved[right]))
        counts = np.concatenate((paths.number[left], paths.number[right]))
        if nodes * TASK_ROWS <= _DENSE_CELLS:
            cells = np.zeros(nodes * TASK_ROWS, np.int64)
            np.add.at(cells, keys, counts)
            met = np.flatnonzero(cells)
            return _Paths(met, cells[met])
        met, number = np.unique(keys, return_inverse=True)
        sums = np.zeros(len(met), np.int64)
        np.add.at(sums, number, counts)
        return _Paths(met, sums)

    def _spans(self) -> list[_Spans]:
        """Return the rows with entries of the submatrices of every level, from the terminals up."""
        matrix = self.matrix
        zeros = np.zeros(len(matrix.terminals), np.int64)
        spans = [_Spans(zeros, zeros, zeros)]
        for k in reversed(range(matrix.n_levels)):
            level, below = matrix.levels[k], spans[0]
            # Row bits put the rows of the then child below those of the else child; column bits side by side.
            step = level.offset if k % 2 == 0 else np.zeros(len(level), np.int64)
            ends = []
            for child, shift in ((level.low, 0), (level.high, step)):
                there = child >= 0
                first = np.where(there, below.first[child] + shift, np.iinfo(np.int64).max)
                last = np.where(there, below.last[child] + shift, -1)
                ends.append((first, last, np.where(there, below.gap[child], 0)))
            (first, last, gap), (other, end, wide) = ends
            both = (level.low >= 0) & (level.high >= 0)
            between = np.maximum(first, other) - np.minimum(last, end) - 1
            between = np.where(both, np.maximum(between, 0), 0)
            widest = np.maximum(np.maximum(gap, wide), between)
            spans.insert(0, _Spans(np.minimum(first, other), np.maximum(last, end), widest))
        return spans


class TaskTable(LevelTable, eq=False):
    """All candidate levels of a matrix in tasks, or of layers that are held one by one.

    Attributes
    ----------
    shape, nonzeros, form
        See `LevelTable`; levels are without row types, and sums over the layers.
    matrices : tuple of InstanceCounts
    """

    matrices: tuple[InstanceCounts, ...]

    @property
    def matrix(self) -> OffsetMTBDD:
        """The matrix of a table of one."""
        (own,) = self.matrices
        return own.matrix

    @property
    def apart(self) -> tuple[TaskTable, ...]:
        """The table of every single matrix."""
        return tuple(TaskTable(own.matrix.shape, own.matrix.n_entries, (own,)) for own in self.matrices)

    def __len__(self) -> int:
        return len(self.matrices[0].candidates)

    def seconds(self, level: int, backend: str) -> float:
        """Predict the time of a product at a level; every backend can use every level."""
        return self._seconds(self[level], _COSTS[backend])

    def bytes_predicted(self, level: int, backend: str) -> int:
        """Return the bytes of submatrices, tasks and instances.

        Notes
        -----
        Time: that of expanding submatrices with 256 rows or more without entries in a row, if there are any.
        """
        return sum(_bytes_held(own.matrix, level, own.exact(level), backend) for own in self.matrices)

    def bytes_bounds(self, level: int, backend: str) -> tuple[int, int]:
        """Return how many bytes a backend holds a level in at least and at most; nothing is expanded."""
        both = [
            [_bytes_held(own.matrix, level, count, backend) for count in own.bounds(level)]
            for own in self.matrices
        ]
        return sum(least for least, _ in both), sum(most for _, most in both)

    def bytes_known(self, level: int, backend: str) -> int | None:
        """See `LevelTable.bytes_known`."""
        if sum(own.entries_to_expand(level) for own in self.matrices) > _EXPANDED_ENTRIES:
            return None
        return self.bytes_predicted(level, backend)

    def least_memory(self, levels: Iterable[int], backend: str) -> int:
        """See `LevelTable.least_memory`; counts exactly what may be least alone."""
        least, found = math.inf, -1
        for low, level in sorted((self.bytes_bounds(k, backend)[0], k) for k in levels):
            if low > least:
                break
            size = self.bytes_predicted(level, backend)
            if (size, level) < (least, found):
                least, found = size, level
        return found

    def keeps(self, level: int, backend: str, memory_budget: int) -> bool:
        """See `LevelTable.keeps`."""
        least, most = self.bytes_bounds(level, backend)
        if most <= memory_budget or least > memory_budget:
            return most <= memory_budget
        return self.bytes_predicted(level, backend) <= memory_budget

    def knows_bytes(self, backend: str) -> bool:
        """Return True: every backend holds what is counted."""
        return True

    def parts(self, level: int) -> str:
        """See `LevelTable.parts`."""
        nodes = counted(self[level].nodes, "submatrix", "submatrices")
        return f"{nodes} and {counted(sum(own.exact(level) for own in self.matrices), 'instance')}"

    def weights(self, backend: str) -> list[Weight]:
        """Return nothing: no level has to be built."""
        return []

    def describe(self, candidate: CandidateLevel, backend: str) -> str:
        """See `LevelTable.describe`."""
        instances = counted(candidate.instances_worst_case, "instance")
        return f"{counted(candidate.nodes, 'submatrix', 'submatrices')} and at most {instances}, "

    def _candidate(self, level: int) -> CandidateLevel:
        return sum_levels([own.candidates[level] for own in self.matrices])

    def _seconds(self, c: CandidateLevel, costs: _Costs) -> float:
        # Of floor(n / 256) + 2 instances in the worst case, a path has one less as a rule.
        instances = c.instances_worst_case - c.paths
        doublings = math.log2(1.0 + c.submatrix_nonzeros / _CACHED_ENTRIES)
        return self.nonzeros * (costs.entry + costs.doubling * doublings) + instances * costs.instance


def task_table(matrix: OffsetMTBDD) -> TaskTable:
    """Count every level of a matrix in tasks.

    Returns
    -------
    TaskTable
        2n + 1 candidates.

    Raises
    ------
    OverflowError
        If a number of paths or non-zeros does not fit 63 bits.

    Notes
    -----
    Time: O(nodes). Row types, which the other representation needs, are not looked for.
    """
    return TaskTable(matrix.shape, matrix.n_entries, (InstanceCounts(matrix),))


def layer_tasks(matrices: Sequence[OffsetMTBDD]) -> TaskTable:
    """Count every level of layers that are held one by one, in tasks.

    Parameters
    ----------
    matrices : sequence of OffsetMTBDD
        At least one; with the same columns, over the same bits.

    Raises
    ------
    ValueError, OverflowError
        As :func:`hybrid.matrix.levels.curve.layer_curve`.
    """
    check_layers(matrices)
    size, nonzeros = matrices[0].n_columns, sum(matrix.n_entries for matrix in matrices)
    counts = tuple(InstanceCounts(matrix) for matrix in matrices)
    return TaskTable((size, size), nonzeros, counts, form=layers_form(len(matrices)))


def _bytes_held(matrix: OffsetMTBDD, k: int, instances: int, backend: str) -> int:
    """Return the bytes in which a backend holds a level with so many instances."""
    if backend != "gpu":
        return task_list_bytes(matrix, k, instances)
    # A device has all integers but the submatrices' numbers as wide as the longest array needs.
    entries, tasks = int(matrix.entries_below[k].sum()), -(-matrix.n_rows // TASK_ROWS)
    nodes = matrix.nodes[k]
    index = index_bits(max(*matrix.shape, tasks + 1, instances, nodes + 1, entries)) // 8
    return entries * (2 * index + 8) + index * (nodes + tasks + 2) + instances * (4 * index + 4)
