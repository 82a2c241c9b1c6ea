"""Compiled kernels of the CPU backend; Numba is imported by the modules of this package only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtbdd.base.lazy_loading import lazy_names

if TYPE_CHECKING:
    from hybrid.matrix.cpu.task_product import CpuTaskProduct

_HOMES = {"task_product": ("CpuTaskProduct",)}

__all__ = ["CpuTaskProduct"]

if not TYPE_CHECKING:  # type checkers have the imports above
    # On first use: Numba is imported with them.
    __getattr__ = lazy_names(__name__, _HOMES)
