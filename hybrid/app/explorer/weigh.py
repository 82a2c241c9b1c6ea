"""Bytes by injection level, as a backend holds a matrix or the layers of a decision process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from hybrid.app.explorer.tables import levels_of
from hybrid.matrix.backends import Backend
from hybrid.matrix.backends.base import MatrixTable
from hybrid.matrix.backends.host import weigh_parts
from hybrid.matrix.levels.curve import LevelCurve
from hybrid.matrix.levels.layers import LayerCurve
from hybrid.matrix.levels.weighing import weigh
from mtbdd.offset.offset import OffsetMTBDD

if TYPE_CHECKING:
    from hybrid.matrix.operators.layer_choices import LayerChoices


def weigh_levels(
    matrix: OffsetMTBDD | Sequence[LayerChoices], backend: Backend, representation: str = "row-types"
) -> dict[int, int]:
    """Return the bytes of the levels that are worth knowing: of all, or of those that are built to know.

    Parameters
    ----------
    matrix : OffsetMTBDD or sequence of LayerChoices
        A matrix; or the choices of a decision process (`hybrid.app.explorer.model_choices`).
    backend : Backend
        From `hybrid.matrix.backends.choose_backend`.
    representation : {"row-types", "tasks"}
        How the matrix is held, see `hybrid.inject`.

    Returns
    -------
    dict of int to int
        Bytes by level. Row types are built, see :func:`hybrid.matrix.levels.weighing.weigh`; what the backend
        ``reference`` holds and tasks are counted, but for levels of tasks that would have to be expanded for
        it.

    Raises
    ------
    MemoryError
        There is no room for any level.
    """
    table = levels_of(matrix, backend.name, representation)
    if table.knows_bytes(backend.name):
        return table.all_bytes_known(backend.name)
    if isinstance(table, LayerCurve | LevelCurve):
        return weigh_parts(_parts(matrix, table), table, backend).sizes
    from gpu_kernels import current_device
    from hybrid.matrix.levels.curve import StackedCurve
    from hybrid.matrix.levels.probe_choices import build_level

    assert isinstance(table, StackedCurve)
    return weigh(table.weights(backend.name), partial(build_level, current_device(), table)).sizes


def _parts(
    matrix: OffsetMTBDD | Sequence[LayerChoices], table: LevelCurve | LayerCurve
) -> list[tuple[OffsetMTBDD, MatrixTable]]:
    """Return matrices that are held one by one with their levels."""
    if isinstance(matrix, OffsetMTBDD):
        assert isinstance(table, LevelCurve)
        return [(matrix, table)]
    assert isinstance(table, LayerCurve)
    layers = (o.matrix for o in matrix if o.matrix is not None)
    return list(zip(layers, table.curves, strict=True))
