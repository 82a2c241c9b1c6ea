"""The explicit engine: the matrix as one SciPy CSR matrix, for comparison and for small models.

It offers what the solvers ask of a matrix, so that methods and answers are those of the hybrid engine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.injection.injected import inject_level
from hybrid.reference import relax_in_place
from mtbdd.offset import OffsetMTBDD

__all__ = ["ExplicitMatrix"]

Vector = NDArray[np.float64]


class ExplicitMatrix:
    """A symbolic matrix written out.

    Parameters
    ----------
    symbolic : OffsetMTBDD
        The matrix; expanded level by level as the injection at its root.

    Attributes
    ----------
    backend : str
        "cpu".
    level : None
        There is no injection level.
    """

    backend = "cpu"
    level = None

    def __init__(self, symbolic: OffsetMTBDD) -> None:
        from scipy.sparse import csr_matrix  # costs a fifth of a second, which most runs can do without

        self.symbolic = symbolic
        whole = inject_level(symbolic, 0)
        if whole.n_submatrices:
            part = whole.submatrix(0)
            entries = (part.value, (part.row, part.column))
            self._matrix: Any = csr_matrix(entries, shape=symbolic.shape)
        else:
            self._matrix = csr_matrix(symbolic.shape, dtype=np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.symbolic.shape

    @property
    def nbytes(self) -> int:
        """Bytes of the CSR arrays."""
        matrix = self._matrix
        return int(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes)

    def multiply(self, x: Vector, out: Vector | None = None) -> Vector:
        """Return ``M x``, written to `out` if given."""
        with np.errstate(invalid="ignore", over="ignore"):
            product: Vector = self._matrix @ x
        if out is None:
            return product
        out[:] = product
        return out

    def jacobi_step(
        self, x: Vector, out: Vector, b: Vector | None, diagonal: Vector, omega: float
    ) -> tuple[float, float]:
        """Write ``(1 - omega) x + omega (M x + b) / diagonal`` to `out`; return greatest differences."""
        self.multiply(x, out)
        return relax_in_place(x, b, diagonal, omega, out)

    def row_sums(self) -> Vector:
        """Return the sums of the rows, shape (n_rows,)."""
        return self.multiply(np.ones(self.shape[1]))
