"""The CPU backend's product and relaxation step: the layout of a matrix joined to the compiled kernel."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.arriving import ArrivingVector
from hybrid.matrix.cpu import kernels
from hybrid.matrix.cpu.arguments import Fixed
from hybrid.matrix.cpu.layout import CpuLayout
from hybrid.matrix.cpu.many import multiply_in_blocks
from hybrid.matrix.cpu.staged_product import NO_STEP, Stage, StagedProduct, Vector
from hybrid.matrix.cpu.stages import Stages, cut_stages
from hybrid.matrix.cpu.threads import threads_for

Int64Array = NDArray[np.int64]
Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]


class CpuProduct(StagedProduct):
    """Multiplies vectors by a matrix laid out for the CPU.

    Parameters
    ----------
    layout : CpuLayout
        The matrix.
    """

    def __init__(self, layout: CpuLayout) -> None:
        self.layout = layout
        super().__init__(kernels.block_spmv, _stages(layout))
        self._terms = int(_terms(layout).sum())

    @property
    def nbytes(self) -> int:
        """Bytes of the layout (MemR)."""
        return self.layout.nbytes

    @property
    def stretches(self) -> Int64Array:
        """Ranges of own elements that have to be in the whole vector, shape (stretches, 2)."""
        return self.layout.stretches if self._stages.early else self.layout.stretches[:0]

    @property
    def terms(self) -> int:
        """Terms of one product, over all slices of all groups."""
        return self._terms

    def multiply(self, x: Float64Array, out: Float64Array) -> None:
        """Write M x to ``out``; both contiguous float64 vectors that do not overlap."""
        changes = self._run(NO_STEP, out, x, self._stages.all)
        if not math.isfinite(changes[:, 2].sum()):
            self._multiply_exactly(x, out)

    def multiply_single(self, x: Float32Array, out: Float32Array) -> None:
        """Write M x to ``out``, contiguous float32 vectors; sums have double precision.

        A zero coefficient times an element that is not finite is not a number.
        """
        from hybrid.matrix.cpu import single_kernels

        self._run(NO_STEP, out, x, self._stages.all, kernel=single_kernels.block_spmv)

    def multiply_meanwhile(self, x: ArrivingVector, out: Float64Array) -> None:
        """Write M x to ``out``, rows without late columns first; every row has the bits of `multiply`."""
        changes = self._stages.run(partial(self._run, NO_STEP, out), x)
        if not math.isfinite(changes[:, 2].sum()):
            self._multiply_exactly(x.received(), out)

    def multiply_many(self, x: Float64Array, out: Float64Array) -> None:
        """Write M X to ``out``; both contiguous in rows, shapes (n_columns, k) and (n_rows, k).

        A sweep over the matrix serves eight columns; each has the bits of its own `multiply`.
        """
        multiply_in_blocks(self._stages.all[0], self._terms, self.multiply, x, out)

    def _threads(self, x: Vector) -> int:
        return threads_for(self._terms + len(x) // 4)

    def _multiply_exactly(self, x: Float64Array, out: Float64Array) -> None:
        # Zero coefficients have met infinite or undefined elements of x, or a result overflowed. This is
        # rare, so the kernel that leaves zero coefficients out is compiled only now.
        from hybrid.matrix.cpu.exact import exact_spmv

        arguments: tuple[Any, ...] = (*self.layout.arguments, x, out)
        exact: Any = exact_spmv
        exact(*arguments)


def _terms(layout: CpuLayout) -> Int64Array:
    """Return the terms of every group, in the order of the layout."""
    table = layout.table
    per_type: Int64Array = np.diff(np.append(0, np.cumsum(table.terms_of_slices))[table.ptr])
    return per_type[layout.row_type]


def _stages(layout: CpuLayout) -> Stages[Stage]:
    """Return the chunks of a layout in stages; gaps read no columns and belong to the first early stage."""
    ptr, early, n_gaps = layout.chunk_ptr, layout.early_chunks, len(layout.gap_begin)

    def stage(begin: int, end: int, gaps: int) -> Stage:
        return Fixed(
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

    groups = int(layout.piece_group[ptr[early] :].min(initial=len(layout.row)))
    cuts = cut_stages(early, int(_terms(layout)[:groups].sum()) if early else 0)
    early_stages = [stage(a, b, 0 if a else n_gaps) for a, b in cuts]
    n_chunks = len(ptr) - 1
    late_stages = [stage(early, n_chunks, 0)] if early_stages and early < n_chunks else []
    return Stages([stage(0, n_chunks, n_gaps)], early_stages, late_stages)
