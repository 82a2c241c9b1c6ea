"""Compiled kernels of the CPU backend; Numba is imported by the modules of this package only."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybrid.cpu.task_product import CpuTaskProduct

_HOMES = {
    "CpuTaskProduct": "task_product",
}

__all__ = [
    "CpuTaskProduct",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that Numba is imported with it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hybrid.cpu' has no attribute {name!r}")
    value = getattr(import_module(f"hybrid.cpu.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
