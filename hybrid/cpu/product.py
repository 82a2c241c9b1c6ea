"""The CPU backend's product and relaxation step: the layout of a matrix joined to the compiled kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.cpu import kernels
from hybrid.cpu.layout import CpuLayout
from hybrid.cpu.many import multiply_in_blocks
from hybrid.cpu.threads import run_together, threads_for
from hybrid.reference import relax_in_place

Float64Array = NDArray[np.float64]


class CpuProduct:
    """Multiplies vectors by a matrix laid out for the CPU.

    Parameters
    ----------
    layout : CpuLayout
        The matrix.
    """

    def __init__(self, layout: CpuLayout) -> None:
        self.layout = layout
        table = layout.table
        self._matrix: tuple[Any, ...] = (
            layout.chunk_ptr,
            layout.piece_group,
            layout.piece_count,
            layout.piece_begin,
            layout.piece_end,
            layout.gap_begin,
            layout.gap_end,
            *layout.arguments,
        )
        per_type = np.diff(np.append(0, np.cumsum(table.terms_of_slices))[table.ptr])
        self._terms = int(per_type[layout.row_type].sum())
        self._nothing = np.zeros(0)

    @property
    def nbytes(self) -> int:
        """Bytes of the layout (MemR)."""
        return self.layout.nbytes

    @property
    def terms(self) -> int:
        """Terms of one product, over all slices of all groups."""
        return self._terms

    def multiply(self, x: Float64Array, out: Float64Array) -> None:
        """Write M x to ``out``; both contiguous float64 vectors that do not overlap."""
        changes = self._run(x, False, None, self._nothing, 1.0, out)
        if not math.isfinite(changes[:, 2].sum()):
            self._multiply_exactly(x, out)

    def multiply_many(self, x: Float64Array, out: Float64Array) -> None:
        """Write M X to ``out``; both contiguous in rows, shapes (n_columns, k) and (n_rows, k).

        A sweep over the matrix serves eight columns; each has the bits of its own `multiply`.
        """
        multiply_in_blocks(self._matrix, self._terms, self.multiply, x, out)

    def _multiply_exactly(self, x: Float64Array, out: Float64Array) -> None:
        # Zero coefficients have met infinite or undefined elements of x, or a result overflowed. This is
        # rare, so the kernel that leaves zero coefficients out is compiled only now.
        from hybrid.cpu.exact import exact_spmv

        arguments: tuple[Any, ...] = (*self.layout.arguments, x, out)
        exact: Any = exact_spmv
        exact(*arguments)

    def relax(
        self, x: Float64Array, b: Float64Array | None, diagonal: Float64Array, omega: float, out: Float64Array
    ) -> tuple[float, float]:
        """Write ``(1 - omega) x + omega (b + M x) / diagonal`` to ``out``.

        Returns
        -------
        tuple of float, float
            Greatest absolute change and greatest change relative to the new value.
        """
        changes = self._run(x, True, b, diagonal, omega, out)
        if math.isfinite(changes[:, 2].sum()):
            return float(changes[:, 0].max()), float(changes[:, 1].max())
        self._multiply_exactly(x, out)
        return relax_in_place(x, b, diagonal, omega, out)

    def _run(
        self,
        x: Float64Array,
        step: bool,
        b: Float64Array | None,
        diagonal: Float64Array,
        omega: float,
        out: Float64Array,
    ) -> Float64Array:
        threads = threads_for(self._terms + len(x) // 4)
        counter = np.zeros(1, np.int64)
        changes = np.zeros((threads, 3))
        has_b = b is not None
        right_side = b if b is not None else self._nothing

        multiply: Any = kernels.block_spmv

        def work(number: int) -> None:
            multiply(
                counter, *self._matrix, x, step, right_side, has_b, diagonal, omega, changes[number], out
            )

        run_together(work, threads)
        return changes
