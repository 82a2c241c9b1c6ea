"""Gauss-Seidel on the hybrid matrix: eight rows after the other, from the newest values, in either direction.

The rows of a slice, eight at most, are relaxed at once; all others of the same part see what was written
before them (:mod:`hybrid.matrix.cpu.sweep_kernels`).  Parker calls such sweeps, by blocks,
pseudo-Gauss-Seidel (D. Parker, Implementation of symbolic model checking for probabilistic systems, PhD
thesis, University of Birmingham 2002).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.matrix.cpu.arguments import Fixed
from hybrid.matrix.cpu.layout import CpuLayout, cuts_of_equal_cost
from hybrid.matrix.cpu.pool import run_kernel
from hybrid.matrix.cpu.sweep_kernels import sweep_parts
from hybrid.matrix.cpu.threads import thread_count

# The work of a layout in the order of its rows, cut into parts, for sweeps that use the newest values.

Int64Array = NDArray[np.int64]

_PIECE_SLICES = 32
"""Slices of a piece, at most: their old and new values lie in the cache."""

_PART_TERMS = 20_000
"""Terms that are worth a part, and a thread."""

_PARTS = 4
"""At most, whatever the number of threads, on which no result shall depend: the more parts, the more rows see
old values, and the more sweeps it takes."""

_MANY_TERMS = 4_000_000
"""Terms from which there are twice as many: a sweep takes so long then that many cores shall share it."""

_GAP_TERMS = 1 / 4
"""Terms that a row without entries costs."""


@dataclass(frozen=True, eq=False)
class SweepSchedule:
    """Pieces of a layout's groups in the order of their rows.

    Attributes
    ----------
    part_ptr : ndarray, shape (parts + 1,), int64
        First piece of every part.
    piece_row : ndarray, shape (pieces + 1,), int64
        First row of every piece; together they have all rows.
    piece_group, piece_begin, piece_end : ndarray, shape (pieces,), int64
        See :func:`hybrid.matrix.cpu.sweep_kernels.sweep_parts`.
    """

    part_ptr: Int64Array
    piece_row: Int64Array
    piece_group: Int64Array
    piece_begin: Int64Array
    piece_end: Int64Array

    def __len__(self) -> int:
        return len(self.part_ptr) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.part_ptr.nbytes + self.piece_row.nbytes + 3 * self.piece_group.nbytes


def schedule_sweep(
    layout: CpuLayout, n_rows: int, parts: int | None = None, sharing: int = 1
) -> SweepSchedule:
    """Cut a layout into parts of consecutive rows.

    Parameters
    ----------
    layout : CpuLayout
    n_rows : int
        Rows of the matrix.
    parts : int, optional
        By default as many as the work is worth.
    sharing : int
        Processes that have parts of the same matrix: all of them together have about as many as one would.

    Notes
    -----
    Time: O(groups log groups + slices / 32).
    """
    table, row, kind = layout.table, layout.row, layout.row_type
    order = np.argsort(row, kind="stable")
    slices = np.diff(table.ptr)[kind[order]]
    cuts = -(-slices // _PIECE_SLICES)
    owner = np.repeat(order, cuts)
    begin = (np.arange(len(owner)) - np.repeat(pointers(np, cuts)[:-1], cuts)) * _PIECE_SLICES
    end = np.minimum(begin + _PIECE_SLICES, np.repeat(slices, cuts))
    reaches_out = np.zeros(len(row), bool)
    reaches_out[layout.piece_group[layout.piece_count == 0]] = True
    terms = np.append(0, np.cumsum(table.terms_of_slices))
    first_slice = table.ptr[kind[owner]]
    # A slice costs about two terms besides its own.
    cost = 2.0 * (end - begin) + terms[first_slice + end] - terms[first_slice + begin]
    at = row[owner] + 8 * begin
    group = owner + np.where(reaches_out[owner], len(row), 0)
    gap_begin, gap_end = _cut_gaps(layout)
    if len(gap_begin):
        nothing, zero = np.full(len(gap_begin), -1), np.zeros(len(gap_begin), np.int64)
        at, group = np.append(at, gap_begin), np.append(group, nothing)
        begin, end = np.append(begin, zero), np.append(end, zero)
        cost = np.append(cost, _GAP_TERMS * (gap_end - gap_begin))
        by_row = np.argsort(at, kind="stable")
        at, group, begin, end, cost = at[by_row], group[by_row], begin[by_row], end[by_row], cost[by_row]
    done = np.cumsum(cost)
    total = float(done[-1]) if len(done) else 0.0
    inner = cuts_of_equal_cost(done, parts_for(total, sharing) if parts is None else parts)
    ptr = np.concatenate(([0], inner, [len(at)])).astype(np.int64)
    piece_row = np.append(at, n_rows).astype(np.int64)
    return SweepSchedule(ptr, piece_row, group.astype(np.int64), begin, end)


def parts_for(terms: float, sharing: int = 1) -> int:
    """Return the parts that so many terms, or entries, are worth in each of some processes."""
    most = 2 * _PARTS if terms * sharing >= _MANY_TERMS else _PARTS
    return int(min(max(terms // _PART_TERMS, 1), max(most // sharing, 1)))


def _cut_gaps(layout: CpuLayout) -> tuple[Int64Array, Int64Array]:
    """Return the rows that no group covers, in ranges no longer than a piece."""
    longest = 8 * _PIECE_SLICES
    cuts = -(-(layout.gap_end - layout.gap_begin) // longest)
    gap = np.repeat(np.arange(len(cuts)), cuts)
    within = np.arange(len(gap)) - np.repeat(pointers(np, cuts)[:-1], cuts)
    begin = layout.gap_begin[gap] + longest * within
    return begin, np.minimum(begin + longest, layout.gap_end[gap])


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
