"""The second half of a relaxation step on the CPU: rows whose products are there, relaxed and compared."""

# mypy: disable-error-code="call-arg, unreachable"
# An intrinsic takes one argument less than its definition and returns what its signature says.

from __future__ import annotations

import numpy as np

from hybrid.matrix.cpu.vector_code import relax
from mtbdd.base.compiled import njit


@njit(cache=True, nogil=True, boundscheck=False)
def relax_rows(begin, end, x, b, has_b, diagonal, omega, largest, out):  # type: ignore[no-untyped-def]
    """Relax the rows begin .. end of ``out``, eight at a time as long as they last.

    Parameters
    ----------
    begin, end : int
        Rows of ``out`` that hold products.
    x, b, diagonal, omega
        As for :func:`hybrid.matrix.cpu.kernels.block_spmv`.
    largest : ndarray, shape (24,), float64
        Greatest changes, as :func:`hybrid.matrix.cpu.vector_code.relax` keeps them.
    out : ndarray, shape (n_rows,), float64
    """
    count = (end - begin) >> 3
    if count > 0:
        relax(out, begin, count, x, b, has_b, diagonal, omega, largest)
    for at in range(begin + 8 * max(count, 0), end):
        total = out[at]
        if has_b:
            total += b[at]
        new = (1.0 - omega) * x[at] + omega * (total / diagonal[at])
        change = abs(new - x[at])
        out[at] = new
        largest[0] = max(largest[0], change)
        if change > 0.0:
            relative = change / abs(new) if new != 0.0 else np.inf
            largest[8] = max(largest[8], relative)
        largest[16] += new - new


@njit(cache=True, nogil=True, boundscheck=False)
def sum_up(largest, out_changes):  # type: ignore[no-untyped-def]
    """Write the greatest changes of eight lanes, and if all were finite, to ``out_changes``, shape (3,)."""
    # Loops compile in a fraction of the time that NumPy's functions take.
    greatest, relative, finite = largest[0], largest[8], 0.0
    for lane in range(8):
        greatest = max(greatest, largest[lane])
        relative = max(relative, largest[8 + lane])
        finite += largest[16 + lane]
    out_changes[0], out_changes[1], out_changes[2] = greatest, relative, finite
