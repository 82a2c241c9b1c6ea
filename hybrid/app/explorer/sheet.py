"""Data of the explorer's page about one model, as plain JSON values: levels and their times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hybrid.app.explorer.blocks import BlockPicture, block_picture
from hybrid.app.explorer.report import least_held, least_time, levels_of, matrix_held, weigh_levels
from hybrid.base.check_options import REPRESENTATIONS
from hybrid.base.errors import OptionError
from hybrid.base.option_types import BackendName, Representation
from hybrid.matrix.backends import Backend
from hybrid.matrix.levels.curve import base_memory_bytes
from hybrid.matrix.levels.table import LevelChoice, LevelTable
from hybrid.matrix.space.choice_operator import ChoiceProblem
from mtbdd.base.memory import free_memory_bytes
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import keeps_text
from mtbdd.offset.offset import OffsetMTBDD

if TYPE_CHECKING:
    from hybrid.matrix.operators.layer_choices import LayerChoices
    from hybrid.matrix.space.choice_operator import ChoiceOperator


# Measured times by injection level: of a matrix's product, and of a decision process's step.

Work = tuple[Callable[[], object], int]
"""Something to time, and how many products or steps it makes."""

_MEASURED_SECONDS = 0.3  # a level is timed for about so long
_HOPELESS = 30.0  # levels predicted to be so many times slower than the best are not timed


def measure_levels(
    matrix: OffsetMTBDD | Sequence[LayerChoices],
    backend: BackendName = "cpu",
    progress: Callable[[str], None] | None = None,
    representation: Representation = "row-types",
) -> dict[int, float]:
    """Time a product at every level that fits in memory and is not hopelessly slow on the backend.

    Vectors lie where the backend has them; on a device some products are queued between two checks.

    Parameters
    ----------
    matrix : OffsetMTBDD or sequence of LayerChoices
        A matrix; or the choices of a decision process (`hybrid.app.explorer.model_choices`), of which a step
        is timed as an engine makes it: the products with all layers, and the best of them.
    backend : {"cpu", "gpu", "reference"}
    progress : callable, optional
        Called with a line of text at each level.
    representation : {"row-types", "tasks"}
        How the matrix is held, see `hybrid.inject`.

    Returns
    -------
    dict of int to float
        Median seconds a product, by level.

    Raises
    ------
    MemoryError
        Not even the vectors fit in the free memory.
    """
    curve = levels_of(matrix, backend, representation)
    if isinstance(matrix, OffsetMTBDD):
        vectors = 8 * (matrix.n_rows + matrix.n_columns)
        work_at = partial(_products, matrix, backend, representation)
        return _measured(curve, vectors, backend, work_at, progress)
    # Two iterates and a product, and for every layer a code or a place a row.
    vectors = 24 * curve.shape[0] + sum(5 * len(o.gain) for o in matrix)
    work_at = partial(_steps, matrix, curve.shape[0], backend, representation)
    return _measured(curve, vectors, backend, work_at, progress)


def _measured(
    curve: LevelTable,
    vectors: int,
    backend: str,
    work_at: Callable[[int], Work],
    progress: Callable[[str], None] | None,
) -> dict[int, float]:
    """Return the median seconds by level."""
    free = free_memory_bytes()
    if vectors > free:
        raise MemoryError(f"the vectors of a product need {vectors} bytes, {free} are free")
    predicted = [(curve.seconds(c.level, backend), c) for c in curve.levels]
    limit = _HOPELESS * min((s for s, _ in predicted if s is not None), default=0.0)
    found: dict[int, float] = {}
    for seconds, candidate in predicted:
        if seconds is None or seconds > limit:
            continue
        # Without a device the submatrices are expanded in the host's memory.
        if backend != "gpu" and vectors + 3 * candidate.bytes_worst_case > free:
            continue
        if progress is not None:
            progress(f"measuring level {candidate.level}")
        try:
            call, count = work_at(candidate.level)
            found[candidate.level] = _time(call) / count
        except MemoryError:
            # The device has no room for this level; others may be smaller.
            continue
    return found


def _products(matrix: OffsetMTBDD, backend: BackendName, representation: Representation, level: int) -> Work:
    """Return products with a matrix at a level."""
    from hybrid.matrix.operators.inject import inject

    operator = inject(matrix, level, backend, representation=representation)
    space = operator.vector_space()
    x, out = space.vector(_random(operator.shape[1])), space.xp.empty(operator.shape[0])

    def products() -> None:
        for _ in range(space.stride):
            space.multiply(x, out)
        space.read(out[:1])

    return products, space.stride


def _steps(
    layer_choices: Sequence[LayerChoices],
    size: int,
    backend: BackendName,
    representation: Representation,
    level: int,
) -> Work:
    """Return steps over choices at a level."""
    system = _system(list(layer_choices), size, level, backend, representation)
    space = system.space
    x, out = space.vector(_random(size)), space.xp.empty(size)

    def steps() -> None:
        for _ in range(space.stride):
            system.improve(x, out)
        space.read(system.changes)

    return steps, space.stride


def _system(
    layer_choices: list[LayerChoices],
    size: int,
    level: int,
    backend: BackendName,
    representation: Representation,
) -> ChoiceOperator:
    """Return the operator that an engine would build: fused on a device if that can be laid out."""
    from hybrid.analysis.run.options import CheckOptions
    from hybrid.matrix.operators.device_choices import device_choices
    from hybrid.matrix.operators.hybrid_choices import hybrid_choices

    engine = CheckOptions.of(backend=backend, level=level, representation=representation).matrix_backend()
    row_types = representation == "row-types"
    found = (
        device_choices(layer_choices, ChoiceProblem(size, True, None, 0.0), engine, level)
        if row_types
        else None
    )
    return (
        hybrid_choices(layer_choices, ChoiceProblem(size, True, None, 0.0), engine, level, representation)
        if found is None
        else found
    )


def _random(size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(20).random(size)


def _time(call: Callable[[], object]) -> float:
    """Return the median seconds of a call, repeated for a while after a first one, which builds things."""
    call()
    times: list[float] = []
    end = time.perf_counter() + _MEASURED_SECONDS
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 100):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


# Data of the explorer's page about one model, as plain JSON values: its levels in both representations.

Record = dict[str, Any]

_MOST_LAYERS = 8  # of an MDP, whose blocks are drawn


def model_sheet(
    model: SymbolicModel,
    backend: Backend,
    label: str = "",
    seconds: Mapping[str, dict[int, float]] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Record:
    """Return everything that the page shows of a model.

    Parameters
    ----------
    model : SymbolicModel
    backend : Backend
        From `hybrid.matrix.backends.choose_backend`; times and bytes are those on it.
    label : str
        Name of the model among others, for example ``t=5``.
    seconds : mapping, optional
        Measured times of a product, by representation and level (`measure_representations`). Row types whose
        times are given are built to weigh their levels, too.
    progress : callable, optional
        Called with a line of text at each stage.

    Returns
    -------
    dict
        Plain JSON values, for `hybrid.app.explorer.write_page`.

    Raises
    ------
    MemoryError
        There is no room for any level.

    Notes
    -----
    Time: that of `hybrid.app.explorer.report_levels`, with times that of `weigh_levels`, and less than a
    second for the blocks of a diagram of 10^5 nodes. The explicit matrix is never built.
    """
    times = seconds or {}
    tell = progress or (lambda _: None)
    representations = []
    for name in REPRESENTATIONS:
        tell(f"levels in {name.replace('-', ' ')}")
        matrix = matrix_held(model, backend.name, name)
        table = levels_of(matrix, backend.name, name)
        held = weigh_levels(matrix, backend, name) if name in times else table.all_bytes_known(backend.name)
        representations.append(_representation(name, table, backend.name, held, times.get(name, {})))
        if name == "row-types":
            counted = table
    tell("blocks of all levels")
    found = model.statistics
    return {
        "label": label,
        "file": model.source.file,
        "type": model.type.value,
        "constants": dict(model.source.constants),
        "states": found.states,
        "transitions": found.transitions,
        "choices": found.choices,
        "nodes": found.mtbdd_nodes,
        "terminals": found.terminals,
        "base_bytes": base_memory_bytes(found.states),
        "backend": backend.name,
        "backend_reason": backend.reason,
        "form": counted.form,
        "own_order": not keeps_text(model),
        "levels": {
            "nodes": [c.nodes for c in counted.levels],
            "paths": [c.paths for c in counted.levels],
            "entries": [c.submatrix_nonzeros for c in counted.levels],
            "instances": [c.instances_worst_case for c in counted.levels],
        },
        "representations": representations,
        "pictures": _pictures(model),
    }


def measure_representations(
    model: SymbolicModel, backend: BackendName, progress: Callable[[str], None] | None = None
) -> dict[str, dict[int, float]]:
    """Time a product at every level, in both representations: `measure_levels` by representation.

    Parameters
    ----------
    model : SymbolicModel
    backend : {"auto", "cpu", "gpu", "reference"}
    progress : callable, optional
        Called with a line of text for every level.

    Returns
    -------
    dict
        By representation, by level: seconds of a product.
    """
    return {
        name: measure_levels(matrix_held(model, backend, name), backend, progress, name)
        for name in REPRESENTATIONS
    }


def _representation(
    name: str, table: LevelTable, backend: str, held: dict[int, int], seconds: dict[int, float]
) -> Record:
    """Return a representation's part: bytes and times by level, and the two levels with their reasons."""
    levels = range(len(table))
    return {
        "name": name,
        "title": name.replace("-", " "),
        "bytes": [c.bytes_worst_case if name == "tasks" else c.row_type_bytes for c in table.levels],
        "held": [held.get(k) for k in levels],
        "predicted": [table.seconds(k, backend) for k in levels],
        "measured": [seconds.get(k) for k in levels],
        "row_types": [c.row_types for c in table.levels],
        "groups": [c.groups for c in table.levels],
        "min_memory": _chosen(lambda: least_held(table, backend, name, held)),
        "min_time": _chosen(lambda: least_time(table, backend, seconds)),
    }


def _chosen(choose: Callable[[], LevelChoice]) -> Record | None:
    """Return a choice as plain values; None where the backend can use no level."""
    try:
        choice = choose()
    except OptionError:
        return None
    return {"level": choice.level, "reason": choice.reason}


# ------------------------------------------------------------------ blocks


def _pictures(model: SymbolicModel) -> list[Record]:
    """Return the blocks of the matrix, or of the first layers of choices."""
    if not model.is_mdp:
        return list(_drawn("", model.transitions))
    layers = range(min(len(model.layers), _MOST_LAYERS))
    return [p for k in layers for p in _drawn(f"layer {k}", model.layer_transitions(k))]


def _drawn(name: str, matrix: OffsetMTBDD) -> Iterable[Record]:
    """Yield the blocks of one matrix as plain values; nothing for diagrams that are too large."""
    picture = block_picture(matrix)
    if picture is not None:
        yield _plain(name, picture)


def _plain(name: str, picture: BlockPicture) -> Record:
    return {
        "name": name,
        "shape": list(picture.shape),
        "grid": list(picture.grid),
        "cells": picture.cells.tolist(),
        "entries": picture.entries.tolist(),
        "levels": [
            {
                "shown": [[b.rows, b.columns, b.entries, b.paths] for b in level.shown],
                "kinds": "".join(map(str, level.kinds.tolist())),
                "outlines": None if level.outlines is None else level.outlines.tolist(),
            }
            for level in picture.levels
        ],
    }
