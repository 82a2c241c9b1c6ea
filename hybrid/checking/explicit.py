"""The explicit engine: the matrix as one SciPy CSR matrix, for comparison and for small models."""

from __future__ import annotations

import numpy as np

from hybrid.cpu.csr import CsrMatrix
from hybrid.injection.injected import inject_level
from mtbdd.offset import OffsetMTBDD

__all__ = ["ExplicitMatrix"]


class ExplicitMatrix(CsrMatrix):
    """A symbolic matrix written out.

    Parameters
    ----------
    symbolic : OffsetMTBDD
        The matrix; expanded level by level as the injection at its root.
    """

    def __init__(self, symbolic: OffsetMTBDD) -> None:
        from scipy.sparse import csr_matrix  # costs a fifth of a second, which most runs can do without

        self.symbolic = symbolic
        whole = inject_level(symbolic, 0)
        if whole.n_submatrices:
            part = whole.submatrix(0)
            entries = (part.value, (part.row, part.column))
            super().__init__(csr_matrix(entries, shape=symbolic.shape))
        else:
            super().__init__(csr_matrix(symbolic.shape, dtype=np.float64))
