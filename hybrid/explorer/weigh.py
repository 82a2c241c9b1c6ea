"""Bytes by injection level, as a backend holds a matrix or the layers of a decision process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from gpu_kernels import current_device
from hybrid.backends import Backend
from hybrid.backends.base import MatrixTable
from hybrid.backends.select_level import weigh_parts
from hybrid.explorer.tables import levels_of
from hybrid.levels.curve import LevelCurve
from hybrid.levels.layers import LayerCurve
from hybrid.levels.probe_choices import build_level
from hybrid.levels.stacked_curve import StackedCurve
from hybrid.levels.weighing import weigh
from mtbdd.offset import OffsetMTBDD

if TYPE_CHECKING:
    from hybrid.operators.layer_choices import LayerChoices


def weigh_levels(
    matrix: OffsetMTBDD | Sequence[LayerChoices], backend: Backend, representation: str = "row-types"
) -> dict[int, int]:
    """Return the bytes of the levels that are worth knowing: of all, or of those that are built to know.

    Parameters
    ----------
    matrix : OffsetMTBDD or sequence of LayerChoices
        A matrix; or the choices of a decision process (`hybrid.explorer.model_choices`).
    backend : Backend
        From `hybrid.backends.choose_backend`.
    representation : {"row-types", "tasks"}
        How the matrix is held, see `hybrid.inject`.

    Returns
    -------
    dict of int to int
        Bytes by level. Row types are built, see :func:`hybrid.levels.weighing.weigh`; what the backend
        ``reference`` holds and tasks are counted, but for levels of tasks that would have to be expanded for
        it.

    Raises
    ------
    MemoryError
        There is no room for any level.
    """
    table = levels_of(matrix, backend.name, representation)
    if table.knows_bytes(backend.name):
        known = ((k, table.bytes_known(k, backend.name)) for k in range(len(table)))
        return {k: size for k, size in known if size is not None}
    if isinstance(table, StackedCurve):
        return weigh(table.weights(backend.name), partial(build_level, current_device(), table)).sizes
    parts: list[tuple[OffsetMTBDD, MatrixTable]] = []
    if isinstance(matrix, OffsetMTBDD):
        assert isinstance(table, LevelCurve)
        parts = [(matrix, table)]
    else:
        assert isinstance(table, LayerCurve)
        layers = (o.matrix for o in matrix if o.matrix is not None)
        parts = list(zip(layers, table.curves, strict=True))
    return weigh_parts(parts, table, backend).sizes
