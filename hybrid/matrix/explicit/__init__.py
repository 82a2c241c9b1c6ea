"""Explicit matrices: extracted from diagrams, reordered, measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_kernels.runtime.csr import CsrArrays
from mtbdd.base.lazy_loading import lazy_names

if TYPE_CHECKING:
    from hybrid.matrix.explicit.density import (
        Reordering,
        StructureMeasures,
        bfs_order,
        density_of_diagram,
        density_of_rows,
        frontier_order,
        measure_structure,
    )
    from hybrid.matrix.explicit.extract import ExplicitSizes, explicit_matrix, explicit_sizes
    from hybrid.matrix.explicit.operators import ExplicitOperator, FunctionOperator

_HOMES = {
    "density": ("Reordering", "StructureMeasures", "bfs_order", "density_of_diagram", "density_of_rows",
        "frontier_order", "measure_structure"),
    "extract": ("ExplicitSizes", "explicit_matrix", "explicit_sizes"),
    "operators": ("ExplicitOperator", "FunctionOperator"),
}  # fmt: skip

__all__ = [
    "CsrArrays", "ExplicitOperator", "ExplicitSizes", "FunctionOperator", "Reordering", "StructureMeasures",
    "bfs_order", "density_of_diagram", "density_of_rows", "explicit_matrix", "explicit_sizes",
    "frontier_order", "measure_structure",
]  # fmt: skip

_GONE = {
    "PartTimes": "nothing in the package streams a matrix in parts any more",
    "RowPartition": "cut a matrix with `CsrArrays.rows(begin, end)`",
    "StreamedOperator": "use hybrid.inject for a matrix that does not fit written out, or `ExplicitOperator`",
}
"""Names of the release before."""

if not TYPE_CHECKING:  # type checkers have the imports above
    # On first use: a check of a chain does not load every format.
    __getattr__ = lazy_names(__name__, _HOMES, gone=_GONE)
