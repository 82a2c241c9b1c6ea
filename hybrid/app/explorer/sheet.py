"""Data of the explorer's page about one model, as plain JSON values: its levels in both representations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hybrid.app.explorer.blocks import BlockPicture, block_picture
from hybrid.app.explorer.measure import measure_levels
from hybrid.app.explorer.report import least_held, least_time, levels_of, matrix_held, weigh_levels
from hybrid.base.check_options import REPRESENTATIONS
from hybrid.base.errors import OptionError
from hybrid.base.option_types import BackendName
from hybrid.matrix.backends import Backend
from hybrid.matrix.levels.curve import base_memory_bytes
from hybrid.matrix.levels.table import LevelChoice, LevelTable
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import keeps_text
from mtbdd.offset.offset import OffsetMTBDD

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
