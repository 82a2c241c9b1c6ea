"""Gauss-Seidel on the hybrid matrix: eight rows after the other, from the newest values, in either direction.

The rows of a slice, eight at most, are relaxed at once; all others of the same part see what was written
before them (:mod:`hybrid.matrix.cpu.sweep_kernels`).  Parker calls such sweeps, by blocks,
pseudo-Gauss-Seidel (D. Parker, Implementation of symbolic model checking for probabilistic systems, PhD
thesis, University of Birmingham 2002).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.cpu.arguments import Fixed
from hybrid.matrix.cpu.layout import CpuLayout
from hybrid.matrix.cpu.pool import run_kernel
from hybrid.matrix.cpu.sweep_kernels import sweep_parts
from hybrid.matrix.cpu.sweep_schedule import SweepSchedule, schedule_sweep
from hybrid.matrix.cpu.threads import thread_count

Float64Array = NDArray[np.float64]

_NOTHING = np.zeros(0)


class RowSweep:
    """Sweeps of a matrix laid out for the CPU.

    Parameters
    ----------
    layout : CpuLayout
        A matrix without diagonal.
        It may have columns behind those of its rows, whose elements are never new.
    n_rows : int
        Its rows.
    schedule : SweepSchedule, optional
        By default that of `schedule_sweep`.

    Notes
    -----
    Not to be called from several threads at once.
    """

    def __init__(self, layout: CpuLayout, n_rows: int, schedule: SweepSchedule | None = None) -> None:
        found = schedule_sweep(layout, n_rows) if schedule is None else schedule
        self.schedule = found
        parts, *pieces = (
            found.part_ptr,
            found.piece_row,
            found.piece_group,
            found.piece_begin,
            found.piece_end,
        )
        self._pieces, self._matrix = Fixed((parts, *pieces)), Fixed(layout.arguments)
        self._counter = np.zeros(1, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of the schedule, beside those of the layout."""
        return self.schedule.nbytes

    def sweep(
        self,
        x: Float64Array,
        b: Float64Array | None,
        diagonal: Float64Array,
        out: Float64Array,
        less: float = 0.0,
        omega: float = 1.0,
        descending: bool = False,
    ) -> None:
        """Write ``(1 - omega) x + omega (b - less + M z) / diagonal``, with the newest values z, to ``out``.

        Parameters
        ----------
        x : ndarray, shape (columns,), float64
        diagonal : ndarray, shape (n,), float64
        b : ndarray, shape (n,), float64, or None
            None is zero.
        out : ndarray, shape (n,), float64
            No part of x.
        less : float
            Taken from every element of b.
        omega : float
            Relaxation weight.
        descending : bool
            Whether the last rows come first.

        Notes
        -----
        Time: O(terms), on as many threads as there are parts, at most.  The result does not depend on their
        number.  Zero coefficients meet elements that are no numbers.
        """
        self._counter[0] = 0
        right = _NOTHING if b is None else b
        run_kernel(
            sweep_parts, min(thread_count(), len(self.schedule)), self._counter, self._pieces, descending,
            self._matrix, x, right, b is not None, less, diagonal, omega, out,
        )  # fmt: skip
