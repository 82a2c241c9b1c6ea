"""Sizes of a matrix and of its representation, and the choices behind them."""

from __future__ import annotations

from dataclasses import dataclass


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
        Whether blocks are shared up to a scale (row types on cpu and gpu).
    representation : str
        One of `hybrid.base.representations.REPRESENTATIONS`.
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
    representation: str = "row-types"
