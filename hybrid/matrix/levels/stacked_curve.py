"""The level curve of the layers of a decision process, laid out on a device as one, fused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from hybrid.matrix.gpu.cost import choice_level_seconds, layout_seconds, least_choice_seconds
from hybrid.matrix.gpu.tile_layout import row_types_of
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.levels.curve import candidate_level, row_type_weight
from hybrid.matrix.levels.table import CandidateLevel, LevelTable
from hybrid.matrix.levels.weighing import Weight
from mtbdd.offset.stacked_layers import StackedLayers

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
