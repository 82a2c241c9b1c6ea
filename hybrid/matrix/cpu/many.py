"""Products with several vectors at once on the CPU: columns in blocks of eight or four."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.operands import LINE, aligned_empty
from hybrid.matrix.cpu.arguments import Each, Fixed
from hybrid.matrix.cpu.pool import run_kernel
from hybrid.matrix.cpu.threads import threads_for

Float64Array = NDArray[np.float64]


def multiply_in_blocks(
    matrix: Fixed,
    terms: int,
    multiply: Callable[[Float64Array, Float64Array], None],
    x: Float64Array,
    out: Float64Array,
) -> None:
    """Write M X to ``out``, every column with the bits of the product with that column alone.

    Parameters
    ----------
    matrix : tuple
        The arguments of :func:`hybrid.matrix.cpu.kernels.block_spmv` that stand for the matrix.
    terms : int
        Terms of one product.
    multiply : callable
        The product with one vector.
    x, out : ndarray, shape (n_columns, k) and (n_rows, k), float64
        Contiguous in rows; they do not overlap.

    Notes
    -----
    Time: one sweep over the matrix for every eight columns. Memory: where k is neither 4 nor a multiple of 8,
    copies of at most eight columns of x and of out.
    """
    count = x.shape[1]
    whole = count % 8 == 0 or count == 4
    for first in range(0, count, 8):
        left = min(count - first, 8)
        if left < 3:
            for column in range(first, first + left):
                _one(multiply, x, out, column)
            continue
        width = 8 if left > 4 else 4
        if whole:
            bad = _block(matrix, terms, x, first, width, out)
        else:
            # Neighbours in memory, so that no line is read for other columns.
            own, result = aligned_empty(len(x), width), aligned_empty(len(out), width)
            own[:, :left], own[:, left:] = x[:, first : first + left], 0.0
            bad = _block(matrix, terms, own, 0, width, result)
            out[:, first : first + left] = result[:, :left]
        for column in np.flatnonzero(bad[:left]).tolist():
            # Zero coefficients have met infinite or undefined elements of x, or a result overflowed.
            _one(multiply, x, out, first + column)


def _one(
    multiply: Callable[[Float64Array, Float64Array], None], x: Float64Array, out: Float64Array, column: int
) -> None:
    result = np.empty(len(out))
    multiply(np.ascontiguousarray(x[:, column]), result)
    out[:, column] = result


def _block(
    matrix: Fixed, terms: int, x: Float64Array, column: int, width: int, out: Float64Array
) -> NDArray[np.bool_]:
    """Multiply eight or four columns; return those that are not finite, shape (8,)."""
    # Compiled only here, where it is first needed.
    from hybrid.matrix.cpu import many_kernels

    threads = threads_for(terms + len(x) // 4)
    counter, finite = np.zeros(1, np.int64), np.zeros((threads, 8))
    streamed = width == 8 and out.shape[1] % 8 == 0 and out.ctypes.data % LINE == 0
    kernel: Any = many_kernels.block_spmm

    run_kernel(kernel, threads, counter, matrix, x, column, width, streamed, Each(finite), out)
    bad: NDArray[np.bool_] = np.isnan(finite.sum(axis=0))
    return bad
