"""The levels that a report or a measurement goes through: of a matrix or of layers, as they would be held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.base.check_options import check_representation
from hybrid.matrix.levels.curve import level_curve
from hybrid.matrix.levels.layers import layer_levels
from hybrid.matrix.levels.table import LevelTable
from hybrid.matrix.levels.task_table import layer_tasks, task_table
from mtbdd.offset.offset import OffsetMTBDD

if TYPE_CHECKING:
    from hybrid.matrix.operators.layer_choices import LayerChoices


def levels_of(
    matrix: OffsetMTBDD | Sequence[LayerChoices], backend: str, representation: str = "row-types"
) -> LevelTable:
    """Count every level of a matrix, or of the choices of a decision process.

    Parameters
    ----------
    matrix : OffsetMTBDD or sequence of LayerChoices
    backend : {"cpu", "gpu", "reference"}
        In row types a gpu takes the layers of choices fused where it can, see
        :func:`hybrid.matrix.levels.layers.layer_levels`.
    representation : {"row-types", "tasks"}

    Raises
    ------
    ValueError
        If there is no such representation, or no choice has a matrix.

    Notes
    -----
    Time: O(nodes log nodes) with row types, O(nodes) with tasks; no path is enumerated.
    """
    check_representation(representation)
    if isinstance(matrix, OffsetMTBDD):
        return task_table(matrix) if representation == "tasks" else level_curve(matrix)
    layers = [o.matrix for o in matrix if o.matrix is not None]
    if representation == "tasks":
        return layer_tasks([task_table(layer) for layer in layers])
    return layer_levels(layers, backend)
