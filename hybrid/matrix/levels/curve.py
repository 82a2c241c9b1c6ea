"""The level curve: what every candidate level would cost in memory, before any level is chosen.

Sizes follow [Tealdi13] §§4.4.1.1, 4.4.1.2 and 5.2.3.1. Bytes of one record:

========================= ===== ==========================================================================
record                    bytes contents
========================= ===== ==========================================================================
submatrix entry           16    local row and column (4 each, 8 each if a submatrix has 2**31 rows or
                                columns), value (8)
submatrix pointer         8     where its entries begin
path, first form          12    row and column (4 each, 8 each if the matrix has 2**31 rows or columns),
                                submatrix (4)
instance, second form     20    row and column as above, submatrix (4), offset_begin and offset_end (4 each, 8
                                each if a submatrix has 2**31 entries)
task pointer              8     where the instances of 256 rows begin
========================= ===== ==========================================================================
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.cpu.layout import least_seconds, predict_seconds
from hybrid.matrix.gpu.cost import choice_level_seconds, layout_seconds, least_choice_seconds
from hybrid.matrix.gpu.tile_layout import row_types_of
from hybrid.matrix.injection.injected import TASK_ROWS
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.injection.slices import WIDTH
from hybrid.matrix.injection.submatrices import find_block_classes
from hybrid.matrix.levels.table import CandidateLevel, LevelTable, Weight
from mtbdd.base.memoised import Memoised
from mtbdd.offset.divided import StackedLayers
from mtbdd.offset.offset import OffsetMTBDD

# Both kinds of row types of a matrix: blocks shared when equal, or when equal up to a scale.

_MOST_TIMES = 8
"""How many times as many slots plain row types may have as scaled ones."""

_MANY_SLOTS = 1 << 10
"""Slots of a level from which that is asked."""

_MOST_TIMES_LARGER = 2
"""The same where plain row types take more bytes than scaled ones as well."""

_VERY_MANY_SLOTS = 1 << 14
"""Slots of a level from which that is asked: finding fewer is soon done."""


class RowTypeKinds:
    """The row types of a matrix, plain and scaled.

    Rates that depend on the state make plain row types many where scaled ones are few; then plain ones are
    not followed further down. Neither are they where they are a multiple of the scaled ones and no smaller
    for having no scales.

    Parameters
    ----------
    matrix : OffsetMTBDD

    Attributes
    ----------
    plain, scaled : RowTypes
        Row types with blocks shared when equal and when equal up to a scale.
    """

    def __init__(self, matrix: OffsetMTBDD) -> None:
        self.plain = RowTypes(find_block_classes(matrix, scaled=False))
        if len(matrix.terminals) <= 1:
            # Submatrices with one value are equal where they are up to a scale.
            self.scaled = self.plain.under(replace(self.plain.classes, scaled=True))
        else:
            self.scaled = RowTypes(find_block_classes(matrix, scaled=True))
        self._is_small: dict[int, bool] = {}

    def at(self, k: int) -> tuple[RowTypes, ...]:
        """Return the kinds that level k may be held in, the plain one first.

        Notes
        -----
        Time: that of finding the row types down to level k, once.
        """
        scaled = (self.scaled,) if self.scaled.reaches(k) else ()
        return (self.plain, *scaled) if self._plain_is_small(k) else scaled

    def _plain_is_small(self, k: int) -> bool:
        """Tell whether plain row types are followed as far as level k."""
        for level in range(len(self._is_small), k + 1):
            # Below a level where they are not, no more are looked for.
            self._is_small[level] = self._is_small.get(level - 1, True) and not self._is_many(level)
        return self._is_small[k]

    def _is_many(self, level: int) -> bool:
        """Tell whether plain row types are too many at a level, or not known."""
        if not self.plain.reaches(level):
            return True
        slots = len(self.plain[level].blocks)
        if slots <= _MANY_SLOTS or not self.scaled.reaches(level):
            return False
        times = slots / len(self.scaled[level].blocks)
        if times > _MOST_TIMES:
            return True
        if slots <= _VERY_MANY_SLOTS or times <= _MOST_TIMES_LARGER:
            return False
        return row_type_bytes(self.plain, level) > row_type_bytes(self.scaled, level)


def row_type_bytes(types: RowTypes, k: int, wide: int = 4) -> int:
    """Return the bytes of the row-type representation of level k.

    Parameters
    ----------
    types : RowTypes
    k : int
        Level.
    wide : {4, 8}
        Bytes of an index of a row or column.
    """
    # Of a type: packed entries (8) and row pointers (4). Of a group: row, type (4), column bases, scales (4).
    level = types[k]
    merged = 8 * int(level.entries.sum()) + 4 * int(level.rows.sum())
    slot = wide + (4 if types.classes.scaled else 0)
    return merged + level.n_groups * (wide + 4) + level.group_slots * slot


_log = logging.getLogger(__name__)

_ENTRY_LIMIT = 1 << 26
"""Merged entries of all row types beyond which no row-type representation is offered for a level."""


@dataclass(frozen=True, eq=False)
class LevelCurve(LevelTable, Memoised):
    """All candidate levels of one matrix; they are counted when they are asked for.

    Attributes
    ----------
    shape, nonzeros
        See `LevelTable`.
    matrix : OffsetMTBDD
    row_types : RowTypeKinds
    """

    matrix: OffsetMTBDD
    row_types: RowTypeKinds

    @property
    def plain(self) -> RowTypes:
        """Row types with blocks shared when equal."""
        return self.row_types.plain

    @property
    def scaled(self) -> RowTypes:
        """Row types with blocks shared when equal up to a scale."""
        return self.row_types.scaled

    def kinds(self, k: int) -> tuple[RowTypes, ...]:
        """Return those of both that level k may be held in, the plain ones first."""
        return self.row_types.at(k)

    def __len__(self) -> int:
        return self.matrix.n_levels + 1

    def seconds(self, level: int, backend: str) -> float | None:
        """See `LevelTable.seconds`."""
        if backend == "reference":
            return self._reference_seconds(level)
        if backend == "gpu":
            from hybrid.matrix.gpu.cost import predicted_level_seconds

            return predicted_level_seconds(self, level)
        return self[level].seconds_predicted

    def least_seconds(self, level: int, backend: str) -> float:
        """See `LevelTable.least_seconds`."""
        if backend == "gpu":
            from hybrid.matrix.gpu.cost import least_level_seconds

            return least_level_seconds(self, level)
        if backend == "cpu":
            return min((least_seconds(types, level) for types in self.kinds(level)), default=math.inf)
        return 0.0

    def set_up_seconds(self, level: int, backend: str) -> float:
        """See `LevelTable.set_up_seconds`."""
        if backend != "gpu":
            return 0.0
        from hybrid.matrix.gpu.cost import layout_seconds, types_of_level

        return layout_seconds(types_of_level(self, level), level)

    def weights(self, backend: str) -> list[Weight]:
        """See `LevelTable.weights`."""
        found = []
        for k in range(len(self)):
            if self.seconds(k, backend) is not None:
                found.append(row_type_weight(self._types(k, backend), k, k, backend))
        return found

    def _candidate(self, level: int) -> CandidateLevel:
        return candidate_level(self.matrix, level, self.kinds(level), max(self.shape))

    def _types(self, k: int, backend: str) -> RowTypes:
        """Return the row types that a backend uses at a level."""
        if backend == "gpu":
            from hybrid.matrix.gpu.cost import types_of_level

            return types_of_level(self, k)
        return self.scaled if self[k].scaled else self.plain


def row_type_weight(types: RowTypes, k: int, number: int, backend: str) -> Weight:
    """Return what level k of row types costs at least where a backend holds it.

    Parameters
    ----------
    types : RowTypes
    k : int
        Level of their matrix.
    number : int
        What the level is called.
    backend : {"cpu", "gpu"}
    """
    level, scale = types[k], 1 if types.classes.scaled else 0
    slots, groups = level.group_slots, level.n_groups
    items = int(level.entries.sum()) + slots + int(types.classes.entries(k).sum())
    if backend == "gpu":
        return Weight(items, number, 4 * slots)
    slices = int((-(-level.rows // WIDTH)).sum())
    return Weight(items, number, 32 * groups + 8 * (1 + scale) * slots + 16 * level.n_types + 4 * slices)


def base_memory_bytes(n_states: int, with_b: bool = False) -> int:
    """Return MemB: two solution vectors, the diagonal and, if needed, b, of doubles ([Tealdi13] §5.2.3.1).

    An MDP has no diagonal: the third vector is a layer's product.
    """
    return 8 * n_states * (4 if with_b else 3)


def level_curve(matrix: OffsetMTBDD) -> LevelCurve:
    """Return the levels of a matrix, each of which is counted when it is asked for.

    Parameters
    ----------
    matrix : OffsetMTBDD
        The matrix.

    Returns
    -------
    LevelCurve
        2n + 1 candidates.

    Raises
    ------
    OverflowError
        If a number of paths or non-zeros does not fit 63 bits.

    Notes
    -----
    Time: O(nodes log nodes); that of a candidate is the sweep of
    :class:`hybrid.matrix.injection.row_types.RowTypes` down to it, twice.
    """
    _log.info("counting paths and row types of levels")
    _total(matrix.entries_below[0], "non-zeros")
    return LevelCurve(matrix.shape, matrix.n_entries, matrix, RowTypeKinds(matrix))


def candidate_levels(matrix: OffsetMTBDD) -> tuple[CandidateLevel, ...]:
    """Count every level of a matrix, without row types.

    Returns
    -------
    tuple of CandidateLevel
        The 2n + 1 candidates.

    Raises
    ------
    OverflowError
        If a number of paths or non-zeros does not fit 63 bits.
    """
    return tuple(candidate_level(matrix, k, (), max(matrix.shape)) for k in range(matrix.n_levels + 1))


def candidate_level(matrix: OffsetMTBDD, k: int, kinds: Sequence[RowTypes], span: int) -> CandidateLevel:
    """Count a level of a matrix.

    Parameters
    ----------
    matrix : OffsetMTBDD
        The matrix.
    k : int
        The level.
    kinds : sequence of RowTypes
        The row types of the matrix that may be used; the smallest are counted, the fastest predicted.
    span : int
        What rows and columns of instances stay below: 4 bytes hold each up to 2**31.

    Raises
    ------
    OverflowError
        If a number of paths or entries does not fit 63 bits.
    """
    below, above = matrix.entries_below[k], matrix.paths_above[k]
    wide = 8 if span >= 2**31 else 4
    own = RecordBytes.of(matrix, k, wide)
    paths = _total(above, f"paths to level {k}")
    entries = _total(below, f"entries of the submatrices of level {k}")
    cuts = matrix.rows[k] // TASK_ROWS + 2
    instances = _total_product(above, cuts, f"instances of level {k}")
    stored = entries * own.entry + 8 * (matrix.nodes[k] + 1)
    most = max(_ENTRY_LIMIT, entries)
    options = [
        (row_type_bytes(types, k, wide), types) for types in kinds if int(types[k].entries.sum()) <= most
    ]
    smallest, chosen = min(options, key=lambda o: o[0]) if options else (None, None)
    times = [(predict_seconds(types, k), types.classes.scaled) for _, types in options]
    seconds, is_scaled = min(times) if times else (None, False)
    return CandidateLevel(
        level=k,
        nodes=matrix.nodes[k],
        paths=paths,
        submatrix_nonzeros=entries,
        instances_worst_case=instances,
        bytes_first=stored + paths * own.path,
        bytes_worst_case=task_list_bytes(matrix, k, instances, own),
        row_types=None if chosen is None else chosen[k].n_types,
        groups=None if chosen is None else chosen[k].n_groups,
        row_type_bytes=smallest,
        seconds_predicted=seconds,
        scaled=is_scaled,
    )


class RecordBytes(NamedTuple):
    """Bytes of a record of a level, as the table at the top of this module says.

    Attributes
    ----------
    entry, path, instance : int
    """

    entry: int
    path: int
    instance: int

    @classmethod
    def of(cls, matrix: OffsetMTBDD, k: int, wide: int) -> RecordBytes:
        """Return those of a level; ``wide`` are the bytes of a row or column of the matrix."""
        offset = 8 if _widest(matrix.entries_below[k]) >= 2**31 else 4
        index = 8 if max(_widest(matrix.rows[k]), _widest(matrix.columns[k])) >= 2**31 else 4
        return cls(2 * index + 8, 2 * wide + 4, 2 * wide + 4 + 2 * offset)


def task_list_bytes(matrix: OffsetMTBDD, k: int, instances: int, own: RecordBytes | None = None) -> int:
    """Return the bytes of the second representation of a level with so many instances.

    Parameters
    ----------
    matrix : OffsetMTBDD
    k : int
        Level.
    instances : int
        Instances cut at every 256 rows.
    own : RecordBytes, optional
        Those of the level; of the matrix alone if left out.
    """
    if own is None:
        own = RecordBytes.of(matrix, k, 8 if max(matrix.shape) >= 2**31 else 4)
    entries = int(matrix.entries_below[k].sum())
    pointers = matrix.nodes[k] + 1 - (-matrix.n_rows // TASK_ROWS) + 1
    return entries * own.entry + 8 * pointers + instances * own.instance


def _widest(counts: NDArray[np.int64]) -> int:
    return int(counts.max(initial=0))


def _total(counts: NDArray[np.int64], what: str) -> int:
    return _total_product(counts, np.ones(1, np.int64), what)


def _total_product(counts: NDArray[np.int64], factors: NDArray[np.int64], what: str) -> int:
    if float((counts.astype(np.float64) * factors).sum()) >= 2.0**62:
        raise OverflowError(f"the {what} number 2**62 or more; counts have 63 bits")
    return int((counts * factors).sum())


# The level curve of the layers of a decision process, laid out on a device as one, fused.

MOST_LAYERS = 64
"""Layers of a system at most: a state's layers with entries are bits of a word."""


@dataclass(frozen=True, eq=False)
class StackedCurve(LevelTable):
    """All candidate levels of stacked layers, numbered as in the diagram of a layer.

    Attributes
    ----------
    shape, nonzeros
        See `LevelTable`.
    stacked : StackedLayers
    types : RowTypes
        Row types of the stacked matrix; blocks are shared when equal and of one layer.
    """

    stacked: StackedLayers
    types: RowTypes

    @property
    def form(self) -> str:
        """See `LevelTable.form`."""
        return f"{self.stacked.layers} layers of choices, fused"

    def __len__(self) -> int:
        return self.stacked.matrix.n_levels + 1 - self.stacked.first_level

    def seconds(self, level: int, backend: str) -> float | None:
        """Predict the time of a step at a level; see `LevelTable.seconds`.

        Raises
        ------
        ValueError
            For another backend than ``gpu``: it does not hold layers so.
        """
        if backend != "gpu":
            raise ValueError(f"backend: layers are stacked for 'gpu' alone, got {backend!r}")
        if level not in self._times:
            self._times[level] = choice_level_seconds(self.stacked, self.types, level)
        return self._times[level]

    @cached_property
    def _times(self) -> dict[int, float | None]:
        return {}

    def least_seconds(self, level: int, backend: str) -> float:
        """See `LevelTable.least_seconds`."""
        return least_choice_seconds(self.stacked, self.types, level)

    def set_up_seconds(self, level: int, backend: str) -> float:
        """See `LevelTable.set_up_seconds`."""
        return layout_seconds(self.types, self.stacked.first_level + level)

    def ranked(self) -> list[tuple[int, float]]:
        """Return the levels that can be used, with predicted seconds, the fastest first."""
        times = ((self.seconds(k, "gpu"), k) for k in range(len(self)))
        return [(k, seconds) for seconds, k in sorted((s, k) for s, k in times if s is not None)]

    def weights(self, backend: str) -> list[Weight]:
        """See `LevelTable.weights`."""
        first = self.stacked.first_level
        return [row_type_weight(self.types, first + k, k, "gpu") for k, _ in self.ranked()]

    def _candidate(self, level: int) -> CandidateLevel:
        k = self.stacked.first_level + level
        kinds = (self.types,) if self.types.reaches(k) else ()
        found = candidate_level(self.stacked.matrix, k, kinds, self.stacked.columns)
        return replace(found, level=level, seconds_predicted=None)


def stacked_curve(stacked: StackedLayers) -> StackedCurve:
    """Compute the memory of every level at which each submatrix belongs to one layer.

    Parameters
    ----------
    stacked : StackedLayers

    Returns
    -------
    StackedCurve
        2n + 1 candidates, n the row bits of a layer. They have no prediction for the CPU backend.

    Raises
    ------
    OverflowError
        If a number of paths or non-zeros does not fit 63 bits.

    Notes
    -----
    Columns are those of a layer, which a submatrix knows, so that indices are no wider than a layer needs.
    Time: as of :func:`hybrid.matrix.levels.curve.level_curve`, with one sweep over row types instead of two.
    """
    nonzeros = stacked.matrix.n_entries
    return StackedCurve((stacked.size, stacked.columns), nonzeros, stacked, row_types_of(stacked))
