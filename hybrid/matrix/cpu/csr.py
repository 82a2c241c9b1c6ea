"""A matrix in compressed sparse rows: what the explicit engine and the components of a system are held as.

It offers what the solvers ask of a matrix, so that methods are those of the hybrid matrix.  Methods that need
the rows themselves find them by `csr_of`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.reference import relax_in_place

if TYPE_CHECKING:
    # Compiled where it is used.
    from hybrid.matrix.cpu.csr_sweep import CsrSweep

Vector = NDArray[np.float64]


class CsrMatrix:
    """Products and relaxation steps of a SciPy CSR matrix.

    Parameters
    ----------
    csr : scipy.sparse.csr_matrix
        Of float64, without duplicate entries.

    Attributes
    ----------
    backend : str
        "cpu".
    level : None
        There is no injection level.
    spare_vectors : int
        Vectors that a product holds besides its operands: SciPy's result.
    """

    backend = "cpu"
    level = None
    spare_vectors = 1

    def __init__(self, csr: Any) -> None:
        self.csr = csr

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.csr.shape
        return int(rows), int(columns)

    @property
    def nbytes(self) -> int:
        """Bytes of the CSR arrays."""
        return int(self.csr.data.nbytes + self.csr.indices.nbytes + self.csr.indptr.nbytes)

    def multiply(self, x: Vector, out: Vector | None = None) -> Vector:
        """Return ``M x``, written to `out` if given."""
        with np.errstate(invalid="ignore", over="ignore"):
            product: Vector = self.csr @ x
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

    def sweeps(self) -> CsrSweep:
        """Return sweeps over the rows; see `hybrid.matrix.space.swept.RowSweeps`."""
        from hybrid.matrix.cpu.csr_sweep import CsrSweep

        return CsrSweep(self.csr)

    def row_sums(self) -> Vector:
        """Return the sums of the rows, shape (n_rows,)."""
        return self.multiply(np.ones(self.shape[1]))


def csr_of(matrix: object) -> CsrMatrix | None:
    """Return the compressed sparse rows on the host that a matrix is held in; None where it is not."""
    stored = getattr(matrix, "stored", matrix)
    return stored if isinstance(stored, CsrMatrix) else None
