"""Gauss-Seidel on compressed sparse rows: row after row, from the newest values, in either direction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.cpu.arguments import Each, Fixed
from hybrid.matrix.cpu.layout import cuts_of_equal_cost
from hybrid.matrix.cpu.pool import run_kernel
from hybrid.matrix.cpu.sweep_schedule import parts_for
from hybrid.matrix.cpu.threads import thread_count
from mtbdd.base.compiled import njit

# Compiled sweeps of Gauss-Seidel over compressed sparse rows, row by row, in either direction.


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def sweep_rows(  # type: ignore[no-untyped-def]
    begin, end, indptr, indices, data, descending, x, b, has_b, less, diagonal, omega, out
):
    """Sweep over a part of the rows: others are seen as the sweep began with them.

    Parameters
    ----------
    begin, end : int64
        Rows of the part.
    indptr, indices, data : ndarray
        M in CSR, shape (n, n), without diagonal.
    descending, x, b, has_b, less, diagonal, omega, out
        As for :func:`hybrid.matrix.cpu.sweep_kernels.sweep_parts`; of `out` the rows of the part are written.
    """
    for k in range(end - begin):
        i = end - 1 - k if descending else begin + k
        new_begin, new_end = (i + 1, end) if descending else (begin, i)
        total = b[i] - less if has_b else -less
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            total += data[e] * (out[j] if new_begin <= j < new_end else x[j])
        out[i] = (1.0 - omega) * x[i] + omega * (total / diagonal[i])


Vector = NDArray[np.float64]

_NOTHING = np.zeros(0)


class CsrSweep:
    """Sweeps of a matrix in compressed sparse rows.

    Parameters
    ----------
    csr : scipy.sparse.csr_matrix
        Square, of float64, without diagonal.
    parts : int, optional
        Parts of the rows; by default as many as the work is worth.
    """

    def __init__(self, csr: Any, parts: int | None = None) -> None:
        count = parts_for(csr.nnz) if parts is None else parts
        cost = csr.indptr.astype(np.int64) + np.arange(len(csr.indptr))
        inner = cuts_of_equal_cost(cost, count)
        self.cuts = np.concatenate(([0], inner, [len(cost) - 1])).astype(np.int64)
        self._rows = Each(self.cuts[:-1]), Each(self.cuts[1:])
        self._matrix = Fixed((csr.indptr, csr.indices, csr.data))
        # Of no row, so that no compilation hides in the iterations' time.
        nothing = _NOTHING, _NOTHING, False, 0.0, _NOTHING, 1.0, _NOTHING
        sweep_rows(0, 0, *self._matrix.arguments, False, *nothing)

    def sweep(
        self,
        x: Vector,
        b: Vector | None,
        diagonal: Vector,
        out: Vector,
        less: float = 0.0,
        omega: float = 1.0,
        descending: bool = False,
    ) -> None:
        """See `hybrid.matrix.cpu.sweep.RowSweep.sweep`; here every row sees the newest values of its part."""
        right = _NOTHING if b is None else b
        parts = len(self.cuts) - 1
        run_kernel(
            sweep_rows, min(thread_count(), parts), *self._rows, self._matrix, descending, x, right,
            b is not None, less, diagonal, omega, out, parts=parts,
        )  # fmt: skip
