"""Compiled substitution over compressed sparse rows, and the order of their components."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.cpu.arguments import Each, Fixed
from hybrid.matrix.cpu.layout import cuts_of_equal_cost
from hybrid.matrix.cpu.pool import run_kernel
from hybrid.matrix.cpu.sweep import parts_for
from hybrid.matrix.cpu.threads import thread_count
from mtbdd.base.compiled import njit

# Gauss-Seidel on compressed sparse rows: row after row, from the newest values, in either direction.

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


@njit(cache=True, nogil=True)
def substitute_csr(  # type: ignore[no-untyped-def]
    rows, indptr, indices, data, least, most, low, high, underflow, tiny, upper_bound, lower, upper
):
    """Solve rows whose successors are solved, one after the other, between bounds.

    Parameters
    ----------
    rows : ndarray, shape (k,), int64
        In an order in which every row comes after those it refers to.
    indptr, indices, data : ndarray
        M in CSR, shape (n, n).
    least, most : ndarray, shape (n,), float64
        Bounds on the right-hand side.
    low, high : ndarray, shape (n,), float64
        The diagonal scaled up and down by the rounding error of a row.
    underflow : float64
        Bound on what underflow adds to a row's value.
    tiny : float64
        Positive values below it may have lost digits to underflow: their bounds are 0 and `tiny`.
    upper_bound : float64
        A bound on all values known beforehand, or infinity.
    lower, upper : ndarray, shape (n,), float64
        Bounds of the rows solved; those of `rows` are written.
    """
    for k in range(len(rows)):
        i = rows[k]
        below = least[i]
        above = most[i]
        positive = above > 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            below += data[e] * lower[j]
            above += data[e] * upper[j]
            positive = positive or upper[j] > 0.0
        below /= low[i]
        above /= high[i]
        if positive:
            below = max(below - underflow, 0.0)
            above += underflow
            if above < tiny:
                below, above = 0.0, tiny
        lower[i] = below
        upper[i] = min(above, upper_bound)


@njit(cache=True, nogil=True)
def component_levels(indptr, indices, label, members_ptr, members, heavy):  # type: ignore[no-untyped-def]
    """Return, for each strongly connected component, its level: 0 has no heavy component below it.

    Parameters
    ----------
    indptr, indices : ndarray
        The pattern of M in CSR, shape (n, n).
    label : ndarray, shape (n,), int32
        Component of every row.
    members_ptr, members : ndarray, int64
        Rows of component c are ``members[members_ptr[c]:members_ptr[c + 1]]``.
    heavy : ndarray, shape (components,), bool
        Components of several rows.

    Returns
    -------
    level : ndarray, shape (components,), int64
        The greatest number of heavy components on a path that leaves the component, its own not counted.
    order : ndarray, shape (components,), int64
        Components, each after all that it refers to.
    """
    n = len(heavy)
    level = np.zeros(n, np.int64)
    order = np.empty(n, np.int64)
    # Depth-first, with the stack in arrays; a component is done when all those below it are.
    state = np.zeros(n, np.int8)
    stack = np.empty(n, np.int64)
    row_at = np.empty(n, np.int64)
    entry_at = np.empty(n, np.int64)
    count = 0
    for root in range(n):
        if state[root] != 0:
            continue
        top = 0
        stack[0] = root
        state[root] = 1
        row_at[root] = members_ptr[root]
        entry_at[root] = indptr[members[members_ptr[root]]]
        while top >= 0:
            c = stack[top]
            pushed = False
            while row_at[c] < members_ptr[c + 1]:
                i = members[row_at[c]]
                while entry_at[c] < indptr[i + 1]:
                    other = label[indices[entry_at[c]]]
                    if other == c:
                        entry_at[c] += 1
                        continue
                    if state[other] == 0:
                        state[other] = 1
                        row_at[other] = members_ptr[other]
                        entry_at[other] = indptr[members[members_ptr[other]]]
                        top += 1
                        stack[top] = other
                        pushed = True
                        break
                    # The entry is looked at again once the component below is done.
                    level[c] = max(level[c], level[other] + (1 if heavy[other] else 0))
                    entry_at[c] += 1
                if pushed:
                    break
                row_at[c] += 1
                if row_at[c] < members_ptr[c + 1]:
                    entry_at[c] = indptr[members[row_at[c]]]
            if not pushed:
                order[count] = c
                count += 1
                top -= 1
    return level, order
