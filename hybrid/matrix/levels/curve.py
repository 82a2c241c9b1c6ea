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
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import OptionError
from hybrid.matrix.injection.injected import TASK_ROWS
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.injection.typed_matrix import TypedMatrix, row_type_bytes
from hybrid.matrix.levels.table import CandidateLevel, LevelTable, Weight, sum_levels, total_known
from mtbdd.offset.offset import OffsetMTBDD

if TYPE_CHECKING:
    from mtbdd.offset.distributed import StackedLayers

_log = logging.getLogger(__name__)

_ENTRY_LIMIT = 1 << 26
"""Merged entries of all row types beyond which no row-type representation is offered for a level."""


class LevelCurve(LevelTable, eq=False):
    """All candidate levels in row types of matrices that have one level together; counted when requested.

    They are one matrix; the layers of a decision process, held and multiplied one by one; or those layers
    stacked, which a device lays out fused.

    Attributes
    ----------
    shape, nonzeros, form
        See `LevelTable`.
    matrices : tuple of TypedMatrix
    """

    matrices: tuple[TypedMatrix, ...]

    @property
    def typed(self) -> TypedMatrix:
        """The matrix of a curve of one, or its stacked layers."""
        (matrix,) = self.matrices
        return matrix

    @property
    def matrix(self) -> OffsetMTBDD:
        """The matrix of a curve of one; that of its stacked layers."""
        return self.typed.matrix

    @cached_property
    def apart(self) -> tuple[LevelCurve, ...]:
        """The curve of every single matrix."""
        if len(self.matrices) == 1:
            return (self,)
        return tuple(LevelCurve(matrix.shape, matrix.nonzeros, (matrix,)) for matrix in self.matrices)

    def __len__(self) -> int:
        return len(self.matrices[0])

    def seconds(self, level: int, backend: str) -> float | None:
        """Predict the time of the products with all matrices, or of a step; see `LevelTable.seconds`.

        Raises
        ------
        ValueError
            For stacked layers on another backend than ``gpu``: it does not hold layers so.
        """
        if backend == "gpu":
            from hybrid.matrix.gpu.cost import predicted_level_seconds

            return total_known(predicted_level_seconds(matrix, level) for matrix in self.matrices)
        if self.matrices[0].stacked is not None:
            raise ValueError(f"backend: layers are stacked for 'gpu' alone, got {backend!r}")
        return self._reference_seconds(level) if backend == "reference" else self[level].seconds_predicted

    def least_seconds(self, level: int, backend: str) -> float:
        """See `LevelTable.least_seconds`."""
        from hybrid.matrix.cpu.layout import least_seconds

        if backend == "gpu":
            from hybrid.matrix.gpu.cost import least_level_seconds

            return sum(least_level_seconds(matrix, level) for matrix in self.matrices)
        if backend == "cpu":
            return sum(
                min((least_seconds(types, level) for types in matrix.kinds(level)), default=math.inf)
                for matrix in self.matrices
            )
        return 0.0

    def set_up_seconds(self, level: int, backend: str) -> float:
        """See `LevelTable.set_up_seconds`."""
        if backend != "gpu":
            return 0.0
        from hybrid.matrix.gpu.cost import layout_seconds, types_of_level

        return sum(
            layout_seconds(types_of_level(matrix, level), matrix.first_level + level)
            for matrix in self.matrices
        )

    def weights(self, backend: str) -> list[Weight]:
        """See `LevelTable.weights`; levels that all matrices can use."""
        return [
            _sum_weights([own.weight(level, backend) for own in self.apart])
            for level in range(len(self))
            if self.seconds(level, backend) is not None
        ]

    def weight(self, level: int, backend: str) -> Weight:
        """Return what a level of a curve of one matrix costs at least where a backend holds it."""
        types = self.types(level, backend)
        return row_type_weight(types, self.typed.first_level + level, level, backend)

    def types(self, level: int, backend: str) -> RowTypes:
        """Return the row types that a backend uses at a level of a curve of one matrix."""
        if backend == "gpu":
            from hybrid.matrix.gpu.cost import types_of_level

            return types_of_level(self.typed, level)
        return self.typed.scaled if self[level].scaled else self.typed.plain

    def _candidate(self, level: int) -> CandidateLevel:
        if len(self.matrices) > 1:
            return sum_levels([own[level] for own in self.apart])
        matrix = self.typed
        if matrix.stacked is None:
            return candidate_level(matrix.matrix, level, matrix.kinds(level), max(matrix.shape))
        # Indices are no wider than a layer needs, whose columns a submatrix knows.
        below = matrix.first_level + level
        found = candidate_level(matrix.matrix, below, matrix.kinds(level), matrix.shape[1])
        return replace(found, level=level, seconds_predicted=None)


def _sum_weights(layers: Sequence[Weight]) -> Weight:
    return Weight(sum(own.items for own in layers), layers[0].level, sum(own.least_bytes for own in layers))


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
    from hybrid.matrix.injection.slices import WIDTH

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


def level_curve(held: OffsetMTBDD | StackedLayers) -> LevelCurve:
    """Return the levels of a matrix, or of stacked layers, each of which is counted when it is requested.

    Parameters
    ----------
    held : OffsetMTBDD or StackedLayers
        Of layers those levels count at which each submatrix belongs to one layer.

    Returns
    -------
    LevelCurve
        2n + 1 candidates, n the row bits of the matrix or of a layer. Stacked ones have no prediction for the
        CPU backend.

    Raises
    ------
    OverflowError
        If a number of paths or non-zeros does not fit 63 bits.

    Notes
    -----
    Time: O(nodes log nodes); that of a candidate is the sweep of
    :class:`hybrid.matrix.injection.row_types.RowTypes` down to it, twice for a matrix and once for layers.
    """
    from mtbdd.offset.distributed import StackedLayers

    _log.info("counting paths and row types of levels")
    matrix = TypedMatrix(held)
    form = f"{held.layers} layers of choices, fused" if isinstance(held, StackedLayers) else ""
    return LevelCurve(matrix.shape, matrix.nonzeros, (matrix,), form=form)


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
    from hybrid.matrix.cpu.layout import predict_seconds

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


# The levels of the layers of a decision process, counted in the form in which an engine holds them.
#
# All layers have one injection level. Held one by one, as on the CPU, they cost the sum of what each costs;
# laid out fused, as on a device, they are one matrix, whose row types have the submatrices of all layers.

MOST_LAYERS = 64
"""Layers that are fused at most: a state's layers with entries are bits of a word."""


def layers_form(count: int) -> str:
    """Return the form of layers that are held one by one; see `LevelTable`."""
    return f"sums over {count} layers of choices, held one by one"


def layer_curve(matrices: Sequence[OffsetMTBDD]) -> LevelCurve:
    """Compute the memory of every level of some layers, held one by one.

    Parameters
    ----------
    matrices : sequence of OffsetMTBDD
        At least one; with the same columns, over the same bits. A layer may have fewer rows than columns.

    Returns
    -------
    LevelCurve
        2n + 1 candidates.

    Raises
    ------
    ValueError
        If there is no matrix, or the matrices do not belong together.
    OverflowError
        If a number of paths or non-zeros of a layer does not fit 63 bits.

    Notes
    -----
    Time: that of `level_curve` for every layer.
    """
    check_layers(matrices)
    typed = tuple(level_curve(matrix).typed for matrix in matrices)
    size, form = matrices[0].n_columns, layers_form(len(matrices))
    return LevelCurve((size, size), sum(matrix.nonzeros for matrix in typed), typed, form=form)


def least_instance_bytes(matrices: Sequence[OffsetMTBDD]) -> int:
    """Return the least bytes that all layers take, in the worst case, in submatrices and instances.

    Parameters
    ----------
    matrices : sequence of OffsetMTBDD
        As for `layer_curve`.

    Raises
    ------
    ValueError, OverflowError
        As `layer_curve`.

    Notes
    -----
    Time: O(nodes); no row types are sought.
    """
    check_layers(matrices)
    layers = [candidate_levels(matrix) for matrix in matrices]
    sums = (sum(level.bytes_worst_case for level in levels) for levels in zip(*layers, strict=True))
    least: int = min(sums)
    return least


def layer_levels(matrices: Sequence[OffsetMTBDD], backend: str) -> LevelCurve:
    """Compute the memory of every level of the layers of a decision process, as a backend holds them.

    Parameters
    ----------
    matrices : sequence of OffsetMTBDD
        As for `layer_curve`.
    backend : {"cpu", "gpu", "reference"}

    Returns
    -------
    LevelCurve
        On the gpu those of all layers fused, if every layer has a row for every state and the layers
        are not too many; else those of layers one by one.
    """
    from mtbdd.offset.distributed import stack_layers

    if backend == "gpu":
        check_layers(matrices)
        if len(matrices) <= MOST_LAYERS and all(m.n_rows == m.n_columns for m in matrices):
            return level_curve(stack_layers(dict(enumerate(matrices)), len(matrices)))
    return layer_curve(matrices)


def check_layers(matrices: Sequence[OffsetMTBDD]) -> None:
    """Refuse matrices that are not the layers of one process."""
    if not matrices:
        raise OptionError("matrices: expected at least one layer, got none")
    found = sorted({(m.n_columns, m.n_levels) for m in matrices})
    if len(found) > 1:
        raise ValueError(f"matrices: expected the same columns and levels in every layer, got {found}")
