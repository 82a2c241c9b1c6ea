"""The level report: memory of every injection level of a matrix or an MDP, and the chosen levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid.base.check_options import check_representation
from hybrid.base.units import bytes_text, counted, seconds_text
from hybrid.matrix.backends import Backend, weigh_parts
from hybrid.matrix.levels.curve import LevelCurve, base_memory_bytes, layer_levels, level_curve
from hybrid.matrix.levels.table import LevelChoice, LevelTable, choose_level, weigh
from hybrid.matrix.levels.task_table import layer_tasks, task_table
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.offset import OffsetMTBDD

if TYPE_CHECKING:
    from hybrid.matrix.backends import MatrixTable
    from hybrid.matrix.operators.layer_choices import LayerChoices


def matrix_held(model: SymbolicModel, backend: str, representation: str) -> OffsetMTBDD | list[LayerChoices]:
    """Return the matrix of a chain, or an MDP's choices as a backend holds them in a representation.

    Parameters
    ----------
    model : SymbolicModel
    backend : str
        Where it is held.
    representation : {"row-types", "tasks"}

    Returns
    -------
    OffsetMTBDD or list of LayerChoices
    """
    if not model.is_mdp:
        return model.transitions
    # In tasks layers are held one by one, on a device too.
    return model_choices(model, "cpu" if representation == "tasks" else backend)


def model_choices(model: SymbolicModel, backend: str = "cpu") -> list[LayerChoices]:
    """Return all choices between the reachable states of an MDP, worth nothing by themselves.

    Parameters
    ----------
    model : SymbolicModel
        An MDP.
    backend : {"cpu", "gpu", "reference"}
        A device takes all layers fused, which needs a row for every state; elsewhere a layer with few
        choices has few rows.

    Returns
    -------
    list of LayerChoices
        For :func:`hybrid.app.explorer.report.report_levels` and
        :func:`hybrid.app.explorer.sheet.measure_levels`.

    Raises
    ------
    ValueError
        The model is a chain, which has one matrix, ``model.transitions``.

    Notes
    -----
    A check takes the part of these matrices that lies between the states which it has to solve for.
    """
    from hybrid.matrix.levels.curve import MOST_LAYERS
    from hybrid.matrix.operators.layer_choices import layer_choices_of

    if not model.is_mdp:
        raise ValueError("model: expected an MDP; a chain has one matrix, model.transitions")
    enabled = [layer.enabled for layer in model.layers]
    whole = backend == "gpu" and len(enabled) <= MOST_LAYERS
    return layer_choices_of(model, model.index, enabled, lambda _, rows: np.zeros(rows.size), True, whole)


def levels_of(
    matrix: OffsetMTBDD | Sequence[LayerChoices], backend: str, representation: str = "row-types"
) -> MatrixTable:
    """Count every level of a matrix, or of the choices of a decision process, in row types or in tasks.

    In row types a gpu takes the layers of choices fused where it can, see
    :func:`hybrid.matrix.levels.curve.layer_levels`. Time: O(nodes log nodes) with row types, O(nodes) with
    tasks; no path is enumerated.
    """
    check_representation(representation)
    if isinstance(matrix, OffsetMTBDD):
        return task_table(matrix) if representation == "tasks" else level_curve(matrix)
    layers = [o.matrix for o in matrix if o.matrix is not None]
    if representation == "tasks":
        return layer_tasks(layers)
    return layer_levels(layers, backend)


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
        Bytes by level. Row types are built, see :func:`hybrid.matrix.levels.table.weigh`; what the backend
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
    assert isinstance(table, LevelCurve)
    if table.matrices[0].stacked is None:
        return weigh_parts(table, backend).costs
    from gpu_kernels import current_device
    from hybrid.matrix.levels.probe import build_level

    build = partial(build_level, current_device(), table.typed)
    return weigh(table.weights(backend.name), build, lambda tiles: tiles.nbytes).costs


@dataclass(frozen=True)
class LevelReport:
    """The explorer's report on the levels of one matrix, or of the layers of one MDP.

    Attributes
    ----------
    label : str
        Name in plots, for example ``t=5``.
    curve : LevelTable
    base_memory_bytes : int
        MemB: two solution vectors and the diagonal, or the product in its place.
    representation : str
        How the matrix would be held, one of `hybrid.base.check_options.REPRESENTATIONS`.
    min_memory, min_time : int
        Levels of least memory and of least time as the matrix would be held, among those that the backend can
        use.
    reason : str
        Why the asked-for policy chooses the level it chooses.
    reasons : dict of str to str
        Why each mark stands where it does: ``min_memory``, ``min_memr`` and ``min_time``.
    seconds : dict of int to float
        Measured time of a product, by level; empty if nothing was measured.
    held : dict of int to int
        Bytes of the representation that the backend holds, by level; empty if nothing was weighed.

    Notes
    -----
    Least memory has two meanings. `min_memory` takes the fewest bytes as the matrix would be held. `min_memr`
    is the thesis's level of minimum memory ([Tealdi13] §5.2.3.2), whose MemR, submatrices and tasks in the
    worst case, is least. They are the same level for some matrices only.
    """

    label: str
    curve: LevelTable
    base_memory_bytes: int
    representation: str
    min_memory: int
    min_time: int
    reason: str
    reasons: dict[str, str]
    seconds: dict[int, float]
    held: dict[int, int]

    @property
    def min_memr(self) -> int:
        """Level of least MemR, see `LevelTable.min_memory`."""
        return self.curve.min_memory

    def bytes_at(self, level: int) -> int | None:
        """Return the bytes of a level as the matrix would be held: weighed or counted; None if not known.

        They are those of row types for a report on row types, and of tasks for one on tasks.
        """
        candidate = self.curve[level]
        counted = candidate.bytes_worst_case if self.representation == "tasks" else candidate.row_type_bytes
        return self.held.get(level, counted)

    def record(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        levels = [
            {
                "level": c.level,
                "nodes": c.nodes,
                "paths": c.paths,
                "submatrix_nonzeros": c.submatrix_nonzeros,
                "instances_worst_case": c.instances_worst_case,
                "bytes_worst_case": c.bytes_worst_case,
                "row_type_bytes": c.row_type_bytes,
                "representation_bytes": self.held.get(c.level),
                "seconds_per_product": self.seconds.get(c.level),
            }
            for c in self.curve.levels
        ]
        return {
            "base_memory_bytes": self.base_memory_bytes,
            "levels": levels,
            "min_memory": self.min_memory,
            "min_memr": self.min_memr,
            "min_time": self.min_time,
            "reason": self.reason,
            "reasons": self.reasons,
        }


def report_levels(
    matrix: OffsetMTBDD | Sequence[LayerChoices],
    label: str = "",
    policy: str | int = "auto",
    backend: str = "cpu",
    seconds: dict[int, float] | None = None,
    representation: str = "row-types",
    held: dict[int, int] | None = None,
) -> LevelReport:
    """Return the report of a matrix, or of the choices of a decision process.

    Parameters
    ----------
    matrix : OffsetMTBDD or sequence of LayerChoices
        A matrix; or choices, of a whole MDP from `hybrid.app.explorer.model_choices`. The layers are
        counted as the backend holds them: fused on the gpu, if all have a row for every state, else one
        by one.
    label : str
        Name in plots.
    policy : str or int
        Whose choice the reason explains.
    backend : {"cpu", "gpu", "reference"}
        For which "min-time" is predicted.
    seconds : dict, optional
        Measured times by level (`hybrid.app.explorer.sheet.measure_levels`); "min-time" then is the fastest
        of these.
    representation : {"row-types", "tasks"}
        How the matrix would be held, see `hybrid.inject`.
    held : dict, optional
        Bytes by level (`hybrid.app.explorer.report.weigh_levels`); "min-memory" then is the level of the
        fewest. Without them bytes are counted: exactly in tasks, and without what built row types share.

    Returns
    -------
    LevelReport

    Raises
    ------
    ValueError
        If the policy or the representation is unknown, a level does not exist or cannot be used; or no choice
        has a matrix.

    Notes
    -----
    Time: O(nodes log nodes); no path is enumerated.
    """
    curve = levels_of(matrix, backend, representation)
    chosen = choose_level(curve, policy, backend)
    measured = dict(seconds or {})
    weighed = dict(held or curve.all_bytes_known(backend))
    smallest = least_held(curve, backend, representation, weighed)
    fastest = least_time(curve, backend, measured)
    memr = curve.min_memory
    asked = {"min-memory": smallest, "auto": fastest if measured else chosen, "min-time": fastest}
    reasons = {
        "min_memory": smallest.reason,
        "min_memr": f"level {memr} has the least MemR, {bytes_text(curve[memr].bytes_worst_case)} for "
        "submatrices and tasks in the worst case",
        "min_time": fastest.reason,
    }
    return LevelReport(
        label,
        curve,
        base_memory_bytes(curve.shape[0]),
        representation,
        smallest.level,
        fastest.level,
        (asked[policy] if isinstance(policy, str) else chosen).reason,
        reasons,
        measured,
        weighed,
    )


def least_held(table: LevelTable, backend: str, representation: str, held: dict[int, int]) -> LevelChoice:
    """Return the level of the fewest bytes and why it is that.

    Bytes are those of `held` where levels were weighed, else counted where the table knows them. An
    `OptionError` says that the backend can use no level.
    """
    if table.knows_bytes(backend):
        return choose_level(table, "min-memory", backend)
    if held:
        level = min(held, key=lambda k: (held[k], list(held).index(k)))
        many = "the one level" if len(held) == 1 else f"the {len(held)} levels"
        return LevelChoice(
            level,
            f"level {level} takes the fewest bytes of {many} built to weigh them, {bytes_text(held[level])}",
        )
    level = choose_level(table, "min-memory", backend).level
    return LevelChoice(
        level,
        f"level {level} takes the fewest bytes, {bytes_text(table.bytes_predicted(level, backend))} in "
        f"{representation.replace('-', ' ')}, as counted before any level is built",
    )


def least_time(table: LevelTable, backend: str, seconds: dict[int, float]) -> LevelChoice:
    """Return the level of least time and why it is that: measured, if any was, else predicted."""
    if not seconds:
        return choose_level(table, "min-time", backend)
    level = min(seconds, key=lambda k: (seconds[k], k))
    return LevelChoice(
        level,
        f"level {level} was measured to be the fastest of {counted(len(seconds), 'level')}, "
        f"{seconds_text(seconds[level])} a product",
    )
