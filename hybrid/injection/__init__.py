"""Injection of a level: row types, groups and slices; or submatrices, instances and tasks as published."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybrid.injection.injected import InjectedMatrix, Instance, inject_level
    from hybrid.injection.submatrices import CooBlocks, Submatrix
    from hybrid.injection.tasks import Task, TaskList, cut_tasks

_HOMES = {
    "CooBlocks": "submatrices",
    "InjectedMatrix": "injected",
    "Instance": "injected",
    "Submatrix": "submatrices",
    "Task": "tasks",
    "TaskList": "tasks",
    "cut_tasks": "tasks",
    "inject_level": "injected",
}

__all__ = [
    "CooBlocks",
    "InjectedMatrix",
    "Instance",
    "Submatrix",
    "Task",
    "TaskList",
    "cut_tasks",
    "inject_level",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that row types are found without what tasks need."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hybrid.injection' has no attribute {name!r}")
    value = getattr(import_module(f"hybrid.injection.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
