"""A matrix in compressed sparse rows: what the explicit engine and the components of a system are held as.

It offers what the solvers ask of a matrix, so that methods are those of the hybrid matrix.  Methods that need
the rows themselves find them by `csr_of`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.reference import relax_in_place
from mtbdd.base.records import Record

if TYPE_CHECKING:
    # Compiled where it is used.
    from hybrid.matrix.cpu.sweep import CsrSweep


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
        from hybrid.matrix.cpu.sweep import CsrSweep

        return CsrSweep(self.csr)

    def row_sums(self) -> Vector:
        """Return the sums of the rows, shape (n_rows,)."""
        return self.multiply(np.ones(self.shape[1]))


def csr_of(matrix: object) -> CsrMatrix | None:
    """Return the compressed sparse rows on the host that a matrix is held in; None where it is not."""
    stored = getattr(matrix, "stored", matrix)
    return stored if isinstance(stored, CsrMatrix) else None


# Strongly connected components of a sparse matrix, in the order in which a system of equations is solved.

Int64Array = NDArray[np.int64]

_MAX_DEPTH = 200  # every level of components costs some set-up and a share of epsilon
_MAX_SHARE = 0.8  # of all rows in one component: beyond it there is too little to gain


class Components(Record, eq=False):
    """Rows in the order of their solution: for every level, single rows first, then larger components.

    Attributes
    ----------
    single, joined : ndarray, shape (rows of each kind,), int64
        Rows that are components of their own, each after those it refers to; rows of larger components.
    single_ptr, joined_ptr : ndarray, shape (levels + 1,), int64
        Rows of each level.  A level refers to single rows up to its own and to larger components below it.
    component : ndarray, shape (rows of larger components,), int64
        Which one each row of `joined` belongs to, any number.
    largest : int
        Rows of the largest component.
    depth : int
        Levels that have larger components.
    """

    single: Int64Array
    single_ptr: Int64Array
    joined: Int64Array
    joined_ptr: Int64Array
    component: Int64Array
    largest: int
    depth: int

    @property
    def pay(self) -> bool:
        """Whether solving them one after another promises to be quicker than all at once."""
        rows = self.single.size + self.joined.size
        return rows > 0 and self.depth <= _MAX_DEPTH and self.largest <= max(1, _MAX_SHARE * rows)


def find_components(matrix: CsrMatrix, iterated: NDArray[np.bool_] | None = None) -> Components:
    """Return the strongly connected components of a square matrix, in order of solution.

    Parameters
    ----------
    matrix : CsrMatrix
        An entry on its diagonal makes no component.
    iterated : ndarray, shape (n,), bool, optional
        Rows that count as larger components although they may be alone.

    Notes
    -----
    Time: O(rows log rows + non-zeros).
    """
    from scipy.sparse.csgraph import connected_components

    from hybrid.matrix.cpu.graph_kernels import component_levels

    csr = matrix.csr
    count, label = connected_components(csr, directed=True, connection="strong")
    members = np.argsort(label, kind="stable").astype(np.int64)
    sizes = np.bincount(label, minlength=count)
    members_ptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    heavy = sizes > 1
    if iterated is not None:
        heavy[label[iterated]] = True
    level, order = component_levels(csr.indptr, csr.indices, label, members_ptr, members, heavy)
    levels = int(level.max(initial=-1)) + 1
    alone = order[~heavy[order]]
    alone = alone[np.argsort(level[alone], kind="stable")]
    single = members[members_ptr[alone]]
    joined = np.flatnonzero(heavy[label])
    joined_level = level[label[joined]]
    by_level = np.argsort(joined_level, kind="stable")
    bounds = np.arange(levels + 1)
    return Components(
        single=single,
        single_ptr=np.searchsorted(level[alone], bounds).astype(np.int64),
        joined=joined[by_level].astype(np.int64),
        joined_ptr=np.searchsorted(joined_level[by_level], bounds).astype(np.int64),
        component=label[joined[by_level]].astype(np.int64),
        largest=int(sizes.max(initial=0)),
        depth=int(np.unique(joined_level).size),
    )
