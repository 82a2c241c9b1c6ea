"""Compiled sweeps of Gauss-Seidel over compressed sparse rows, row by row, in either direction."""

from __future__ import annotations

from mtbdd.base.compiled import njit


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
