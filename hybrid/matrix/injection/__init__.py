"""Injection of a level: row types, groups and slices; or submatrices, instances and tasks as published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtbdd.base.lazy_loading import lazy_names

if TYPE_CHECKING:
    from hybrid.matrix.injection.injected import (
        InjectedMatrix,
        Instance,
        Task,
        TaskList,
        cut_tasks,
        inject_level,
    )
    from hybrid.matrix.injection.submatrices import CooBlocks, Submatrix

_HOMES = {
    "injected": ("InjectedMatrix", "Instance", "Task", "TaskList", "cut_tasks", "inject_level"),
    "submatrices": ("CooBlocks", "Submatrix"),
}

__all__ = [
    "CooBlocks", "InjectedMatrix", "Instance", "Submatrix", "Task", "TaskList", "cut_tasks", "inject_level",
]  # fmt: skip

if not TYPE_CHECKING:  # type checkers have the imports above
    # On first use: row types are found without what tasks need.
    __getattr__ = lazy_names(__name__, _HOMES)
