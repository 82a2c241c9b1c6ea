"""Pseudo-Gauss-Seidel on the hybrid matrix: block after block, from the newest values of those before it.

Within a block all rows are relaxed at once, by the kernel of the products (D. Parker's PhD thesis, 2002).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.cpu.arguments import Each, Fixed
from hybrid.cpu.blocks import block_rows_for, schedule_blocks
from hybrid.cpu.kernels import block_spmv
from hybrid.cpu.layout import CpuLayout
from hybrid.cpu.pool import run_kernel
from hybrid.cpu.threads import thread_count
from mtbdd.compiled import njit

Float64Array = NDArray[np.float64]

_THREADED_TERMS = 60_000
"""Terms of a block below which waking other threads for it costs more than it saves."""

_CHUNKS = 16


@njit(cache=True, nogil=True, boundscheck=False)
def _sweep(  # type: ignore[no-untyped-def]
    start, piece_ptr, gap_ptr, piece_group, piece_count, piece_begin, piece_end, gap_begin, gap_end,
    row, row_type, slot_ptr, base, scale, scaled,
    rows, slice_ptr, pattern, pattern_ptr, slot, shift, vector, coefficients,
    x, b, has_b, diagonal, omega, out, out_changes,
):  # fmt: skip
    """Relax x in place, block by block on one thread; `out` holds a block's new values for the while.

    Parameters are those of :class:`hybrid.cpu.blocks.BlockSchedule` and
    :func:`hybrid.cpu.kernels.block_spmv`.
    """
    counter = np.zeros(1, np.int64)
    changes = np.zeros(3)
    for k in range(len(start) - 1):
        counter[0] = 0
        block_spmv(
            counter, piece_ptr[k:k + 2], piece_group, piece_count, piece_begin, piece_end,
            gap_begin[gap_ptr[k]:gap_ptr[k + 1]], gap_end[gap_ptr[k]:gap_ptr[k + 1]],
            row, row_type, slot_ptr, base, scale, scaled,
            rows, slice_ptr, pattern, pattern_ptr, slot, shift, vector, coefficients,
            x, True, b, has_b, diagonal, omega, changes, out,
        )  # fmt: skip
        out_changes[0] = max(out_changes[0], changes[0])
        out_changes[1] = max(out_changes[1], changes[1])
        out_changes[2] += changes[2]
        for i in range(start[k], start[k + 1]):
            x[i] = out[i]


class BlockSweep:
    """Sweeps of a matrix laid out for the CPU.

    Parameters
    ----------
    layout : CpuLayout
        A square matrix without diagonal.
    n_rows : int
        Its rows.
    block_rows : int, optional
        Rows of a block; default `block_rows_for(n_rows)`.
    """

    def __init__(self, layout: CpuLayout, n_rows: int, block_rows: int | None = None) -> None:
        self.schedule = schedule_blocks(layout, n_rows, block_rows or block_rows_for(n_rows))
        self._pieces: tuple[Any, ...] = (
            self.schedule.piece_group,
            self.schedule.piece_count,
            self.schedule.piece_begin,
            self.schedule.piece_end,
        )
        self._matrix = layout.arguments
        self._out = np.empty(n_rows)
        self._chunks = self._chunk_pointers()
        # A sweep through no block, so that no compilation hides in the iterations' time.
        none = np.zeros(0)
        self._serial(self.schedule.start[:1], none, (none, False, none, 1.0))

    @property
    def nbytes(self) -> int:
        """Bytes of the schedule, beside those of the layout."""
        return self.schedule.nbytes

    def gauss_seidel_step(
        self, x: Float64Array, b: Float64Array | None, diagonal: Float64Array, omega: float
    ) -> tuple[float, float]:
        """Relax x in place, ``(1 - omega) x + omega (b + M x) / diagonal``, block by block.

        Returns
        -------
        tuple of float, float
            Greatest absolute change, infinite once values are no finite numbers, and greatest change relative
            to the new value.
        """
        right = np.zeros(0) if b is None else b
        operands = (right, b is not None, diagonal, omega)
        if thread_count() > 1 and self._chunks is not None:
            changes = self._threaded(x, operands, self._chunks)
        else:
            changes = self._serial(self.schedule.start, x, operands)
        if not math.isfinite(float(changes[2])):
            return math.inf, math.inf
        return float(changes[0]), float(changes[1])

    def _serial(self, start: NDArray[np.int64], x: Float64Array, operands: tuple[Any, ...]) -> Float64Array:
        """Sweep through the blocks that `start` delimits on this thread."""
        s, sweep, changes = self.schedule, _compiled(_sweep), np.zeros(3)
        sweep(start, s.piece_ptr, s.gap_ptr, *self._pieces, s.gap_begin, s.gap_end, *self._matrix, x,
              *operands, self._out, changes)  # fmt: skip
        return changes

    def _threaded(
        self, x: Float64Array, operands: tuple[Any, ...], chunks: list[NDArray[np.int64]]
    ) -> Float64Array:
        """Sweep with all threads on one block after the other."""
        s, threads, multiply = self.schedule, thread_count(), _compiled(block_spmv)
        matrix = Fixed(self._matrix)
        result = np.zeros(3)
        for k, chunk_ptr in enumerate(chunks):
            gaps = slice(int(s.gap_ptr[k]), int(s.gap_ptr[k + 1]))
            counter, changes = np.zeros(1, np.int64), np.zeros((threads, 3))
            pieces = (chunk_ptr, *self._pieces, s.gap_begin[gaps], s.gap_end[gaps])
            run_kernel(
                multiply, threads, counter, *pieces, matrix, x, True, *operands, Each(changes), self._out
            )
            result[:2] = np.maximum(result[:2], changes[:, :2].max(axis=0))
            result[2] += changes[:, 2].sum()
            rows = slice(int(s.start[k]), int(s.start[k + 1]))
            x[rows] = self._out[rows]
        return result

    def _chunk_pointers(self) -> list[NDArray[np.int64]] | None:
        """Cut every block into chunks of about equal cost for the threads; None if blocks are too small."""
        s = self.schedule
        if int(s.piece_terms.sum()) < _THREADED_TERMS * len(s):
            return None
        found = []
        for k in range(len(s)):
            begin, end = int(s.piece_ptr[k]), int(s.piece_ptr[k + 1])
            cost = np.cumsum(s.piece_terms[begin:end] + 1)
            cuts = np.searchsorted(cost, np.linspace(0, cost[-1], _CHUNKS + 1)[1:-1])
            found.append(np.unique(np.concatenate(([begin], begin + cuts, [end]))).astype(np.int64))
        return found


def _compiled(function: Any) -> Any:
    """Return a compiled function as an untyped callable."""
    return function
