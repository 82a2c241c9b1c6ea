"""Levels of a matrix held in tasks ([Tealdi13] §4.4.1.2): counted on the diagram, times by a model.

A product spends its time on entries and on starting instances. Entries cost more where the submatrices leave
the fast caches, instances are many near the terminals: between the two lies the level of least time of
[Tealdi13] §5.2.3.2. The constants of the gpu were fitted to measured products of the block kernel on an H200
(benchmarks/results/gpu_product.json, "baseline"), those of the cpu to the case studies on one thread. They
need only rank levels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hybrid.core.units import counted
from hybrid.errors import OptionError
from hybrid.levels.curve import candidate_levels
from hybrid.levels.table import CandidateLevel, LevelTable
from hybrid.levels.weighing import Weight
from mtbdd.offset import OffsetMTBDD

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


@dataclass(frozen=True, eq=False)
class TaskTable(LevelTable):
    """All candidate levels of a matrix in tasks, or of layers that are held one by one.

    Attributes
    ----------
    shape, nonzeros
        See `LevelTable`; levels are without row types, and sums over the layers.
    candidates : tuple of CandidateLevel
    layers : int or None
        Layers that are counted together; None for one matrix.
    """

    candidates: tuple[CandidateLevel, ...]
    layers: int | None = None

    @property
    def form(self) -> str:
        """See `LevelTable.form`."""
        return "" if self.layers is None else f"sums over {self.layers} layers of choices, held one by one"

    def __len__(self) -> int:
        return len(self.candidates)

    def seconds(self, level: int, backend: str) -> float:
        """Predict the time of a product at a level; every backend can use every level."""
        return self._seconds(self[level], _COSTS[backend])

    def bytes_predicted(self, level: int, backend: str) -> int:
        """Return the bytes of submatrices, tasks and instances, at most."""
        return self[level].bytes_worst_case

    def knows_bytes(self, backend: str) -> bool:
        """Return True: every backend holds what is counted."""
        return True

    def weights(self, backend: str) -> list[Weight]:
        """Return nothing: no level has to be built."""
        return []

    def describe(self, candidate: CandidateLevel, backend: str) -> str:
        """See `LevelTable.describe`."""
        instances = counted(candidate.instances_worst_case, "instance")
        return f"{counted(candidate.nodes, 'submatrix', 'submatrices')} and at most {instances}, "

    def _candidate(self, level: int) -> CandidateLevel:
        return self.candidates[level]

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
    return TaskTable(matrix.shape, matrix.n_entries, candidate_levels(matrix))


def layer_tasks(tables: Sequence[TaskTable]) -> TaskTable:
    """Add up the levels of layers that are held one by one.

    Parameters
    ----------
    tables : sequence of TaskTable
        At least one; of matrices with the same columns, over the same bits.

    Raises
    ------
    OptionError
        If there is none.
    """
    if not tables:
        raise OptionError("matrices: expected at least one layer, got none")
    levels = tuple(_sum(own) for own in zip(*(table.candidates for table in tables), strict=True))
    size = tables[0].shape[1]
    return TaskTable((size, size), sum(table.nonzeros for table in tables), levels, len(tables))


def _sum(layers: Sequence[CandidateLevel]) -> CandidateLevel:
    """Return one level of all layers together."""
    return CandidateLevel(
        level=layers[0].level,
        nodes=sum(c.nodes for c in layers),
        paths=sum(c.paths for c in layers),
        submatrix_nonzeros=sum(c.submatrix_nonzeros for c in layers),
        instances_worst_case=sum(c.instances_worst_case for c in layers),
        bytes_first=sum(c.bytes_first for c in layers),
        bytes_worst_case=sum(c.bytes_worst_case for c in layers),
        row_types=None,
        groups=None,
        row_type_bytes=None,
        seconds_predicted=None,
        scaled=False,
    )
