"""What a matrix is turned into on a backend: the representation's interface, its making, its sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid.levels.curve import LevelCurve

__all__ = ["MatrixStatistics", "Product", "is_scaled", "represent"]

Float64Array = NDArray[np.float64]


class Product(Protocol):
    """What a backend offers to the operator."""

    @property
    def nbytes(self) -> int:
        """Bytes of the representation (MemR)."""

    def multiply(self, x: Float64Array, out: Float64Array) -> None:
        """Write M x to ``out``."""

    def relax(
        self, x: Float64Array, b: Float64Array | None, diagonal: Float64Array, omega: float, out: Float64Array
    ) -> tuple[float, float]:
        """Write a relaxation step to ``out`` and return the greatest absolute and relative change."""


@dataclass(frozen=True)
class MatrixStatistics:
    """Sizes of a matrix and of its representation.

    Attributes
    ----------
    n_rows, n_columns, nonzeros, terminals, mtbdd_nodes : int
        Sizes of the matrix and of its diagram.
    level, backend, level_reason, backend_reason
        What was chosen and why.
    representation_memory_bytes : int
        MemR of the representation that the backend uses.
    scaled : bool
        Whether blocks are shared up to a scale (cpu and gpu backends).
    """

    n_rows: int
    n_columns: int
    nonzeros: int
    terminals: int
    mtbdd_nodes: int
    level: int
    level_reason: str
    backend: str
    backend_reason: str
    representation_memory_bytes: int
    scaled: bool


def represent(curve: LevelCurve, level: int, backend: str) -> Product:
    """Build the representation of a level from its row types.

    Parameters
    ----------
    curve : LevelCurve
        The matrix with its row types.
    level : int
    backend : {"cpu", "gpu"}

    Raises
    ------
    MemoryError
        If a device has no room.
    ValueError
        If the level has too many row types.
    """
    if backend == "gpu":
        from hybrid.gpu.build import build_product

        return build_product(curve, level)
    from hybrid.cpu.layout import build_cpu_layout
    from hybrid.cpu.product import CpuProduct

    layout = build_cpu_layout(curve.scaled if curve[level].scaled else curve.plain, level)
    if layout is None:
        # Sharing up to a scale would cost accuracy here.
        layout = build_cpu_layout(curve.plain, level)
    if layout is None:
        raise RuntimeError("classes of equal blocks are exact, yet were refused as inexact")
    return CpuProduct(layout)


def is_scaled(curve: LevelCurve, level: int, backend: str) -> bool:
    """Tell whether a backend shares blocks up to a scale at a level."""
    if backend == "gpu":
        from hybrid.gpu.cost import types_of_level

        return types_of_level(curve, level).classes.scaled
    return backend == "cpu" and curve[level].scaled
