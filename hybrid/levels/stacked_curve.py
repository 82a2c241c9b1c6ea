"""The level curve of the layers of a decision process, laid out on a device as one, fused."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hybrid.gpu.cost import rank_choice_levels
from hybrid.gpu.tile_layout import row_types_of
from hybrid.injection.row_types import RowTypes
from hybrid.levels.curve import candidate_levels, row_type_weight
from hybrid.levels.table import LevelTable
from hybrid.levels.weighing import Weight
from mtbdd.stacked_layers import StackedLayers

MOST_LAYERS = 64
"""Layers of a system at most: a state's layers with entries are bits of a word."""


@dataclass(frozen=True, eq=False)
class StackedCurve(LevelTable):
    """All candidate levels of stacked layers, numbered as in the diagram of a layer.

    Attributes
    ----------
    levels, shape, nonzeros
        See `LevelTable`.
    stacked : StackedLayers
    types : RowTypes
        Row types of the stacked matrix; blocks are shared when equal and of one layer.
    step_seconds : dict of int to float
        Predicted time of a step by level, the fastest first; other levels cannot be used.
    """

    stacked: StackedLayers
    types: RowTypes
    step_seconds: dict[int, float]

    @property
    def form(self) -> str:
        """See `LevelTable.form`."""
        return f"{self.stacked.layers} layers of choices, fused"

    def seconds(self, level: int, backend: str) -> float | None:
        """Predict the time of a step at a level; see `LevelTable.seconds`.

        Raises
        ------
        ValueError
            For another backend than ``gpu``: it does not hold layers so.
        """
        if backend != "gpu":
            raise ValueError(f"backend: layers are stacked for 'gpu' alone, got {backend!r}")
        return self.step_seconds.get(level)

    def weights(self, backend: str) -> list[Weight]:
        """See `LevelTable.weights`."""
        first = self.stacked.first_level
        return [row_type_weight(self.types, first + k, k, "gpu") for k in self.step_seconds]


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
    Time: as :func:`hybrid.levels.curve.level_curve`, with one sweep over row types instead of two.
    """
    first, types = stacked.first_level, row_types_of(stacked)
    levels, nonzeros = candidate_levels(stacked.matrix, (types,), stacked.columns)
    own = tuple(replace(c, level=c.level - first, seconds_predicted=None) for c in levels[first:])
    seconds = {k - first: seconds for k, seconds in rank_choice_levels(stacked, types)}
    return StackedCurve(own, (stacked.size, stacked.columns), nonzeros, stacked, types, seconds)
