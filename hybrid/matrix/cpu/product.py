"""The CPU backend's product and relaxation step: the layout of a matrix joined to the compiled kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.operands import LINE, aligned_empty
from hybrid.matrix.cpu import kernels
from hybrid.matrix.cpu.arguments import PerPart, SharedArguments
from hybrid.matrix.cpu.layout import CpuLayout
from hybrid.matrix.cpu.pool import run_kernel
from hybrid.matrix.cpu.staged_product import Stage, StagedProduct, Stages, Vector, is_stage
from hybrid.matrix.cpu.threads import threads_for

Float64Array = NDArray[np.float64]
Int64Array = NDArray[np.int64]


class CpuProduct(StagedProduct):
    """Multiplies vectors by a matrix laid out for the CPU.

    Parameters
    ----------
    layout : CpuLayout
        The matrix.
    """

    def __init__(self, layout: CpuLayout) -> None:
        self.layout = layout
        super().__init__(kernels.block_spmv, _stages(layout), layout.stretches)
        self._terms = int(_terms(layout).sum())

    @property
    def nbytes(self) -> int:
        """Bytes of the layout (MemR)."""
        return self.layout.nbytes

    @property
    def terms(self) -> int:
        """Terms of one product, over all slices of all groups."""
        return self._terms

    def multiply_many(self, x: Float64Array, out: Float64Array) -> None:
        """Write M X to ``out``; both contiguous in rows, shapes (n_columns, k) and (n_rows, k).

        Columns are taken in blocks of eight or four; each has the bits of its own `multiply`.

        Notes
        -----
        Time: one sweep over the matrix for every eight columns. Memory: where k is neither 4 nor a multiple
        of 8, copies of at most eight columns of x and of out.
        """
        count = x.shape[1]
        whole = count % 8 == 0 or count == 4
        for first in range(0, count, 8):
            left = min(count - first, 8)
            if left < 3:
                for column in range(first, first + left):
                    self._multiply_column(x, out, column)
                continue
            width = 8 if left > 4 else 4
            if whole:
                bad = self._multiply_block(x, first, width, out)
            else:
                # Neighbours in memory, so that no line is read for other columns.
                own, result = aligned_empty(len(x), width), aligned_empty(len(out), width)
                own[:, :left], own[:, left:] = x[:, first : first + left], 0.0
                bad = self._multiply_block(own, 0, width, result)
                out[:, first : first + left] = result[:, :left]
            for column in np.flatnonzero(bad[:left]).tolist():
                # Zero coefficients have met infinite or undefined elements of x, or a result overflowed.
                self._multiply_column(x, out, first + column)

    def _multiply_column(self, x: Float64Array, out: Float64Array, column: int) -> None:
        result = np.empty(len(out))
        self.multiply(np.ascontiguousarray(x[:, column]), result)
        out[:, column] = result

    def _multiply_block(
        self, x: Float64Array, column: int, width: int, out: Float64Array
    ) -> NDArray[np.bool_]:
        """Multiply eight or four columns; return those that are not finite, shape (8,)."""
        # Compiled only here, where it is first needed.
        from hybrid.matrix.cpu import many_kernels

        threads = threads_for(self._terms + len(x) // 4)
        counter, finite = np.zeros(1, np.int64), np.zeros((threads, 8))
        streamed = width == 8 and out.shape[1] % 8 == 0 and out.ctypes.data % LINE == 0
        kernel: Any = many_kernels.block_spmm

        run_kernel(
            kernel, threads, counter, self._stages.all, x, column, width, streamed, PerPart(finite), out
        )
        bad: NDArray[np.bool_] = np.isnan(finite.sum(axis=0))
        return bad

    def _threads(self, x: Vector) -> int:
        return threads_for(self._terms + len(x) // 4)

    def _multiply_exactly(self, x: Float64Array, out: Float64Array) -> None:
        # Zero coefficients have met infinite or undefined elements of x, or a result overflowed. This is
        # rare, so the kernel that leaves zero coefficients out is compiled only now.
        arguments: tuple[Any, ...] = (*self.layout.arguments, x, out)
        exact: Any = kernels.exact_spmv
        exact(*arguments)


def _terms(layout: CpuLayout) -> Int64Array:
    """Return the terms of every group, in the order of the layout."""
    table = layout.table
    per_type: Int64Array = np.diff(np.append(0, np.cumsum(table.terms_of_slices))[table.ptr])
    return per_type[layout.row_type]


def _stages(layout: CpuLayout) -> Stages:
    """Return the chunks of a layout in stages; gaps read no columns and belong to the interior rows."""
    ptr, interior, n_gaps = layout.chunk_ptr, layout.interior_chunks, len(layout.gap_begin)

    def stage(begin: int, end: int, gaps: int) -> Stage:
        return SharedArguments(
            (
                ptr[begin : end + 1],
                layout.piece_group,
                layout.piece_count,
                layout.piece_begin,
                layout.piece_end,
                layout.gap_begin[:gaps],
                layout.gap_end[:gaps],
                *layout.arguments,
            )
        )

    groups = int(layout.piece_group[ptr[interior] :].min(initial=len(layout.row)))
    terms = int(_terms(layout)[:groups].sum()) if interior else 0
    n_chunks = len(ptr) - 1
    both = stage(0, n_chunks, n_gaps)
    if not is_stage(terms):
        return Stages(both)
    return Stages(
        both, stage(0, interior, n_gaps), stage(interior, n_chunks, 0) if interior < n_chunks else None
    )
