"""The work of a layout in the order of its rows, cut into chunks, for sweeps that use the newest values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.ragged import pointers
from hybrid.cpu.layout import CpuLayout

Int64Array = NDArray[np.int64]

_PIECE_SLICES = 32
_CHUNK_TERMS = 4096
"""Terms of a chunk, at least: some ten microseconds, beside which it costs little to take one."""

_CHUNKS = 512
_OTHERS = 32
"""Chunks for each that may be at work at once: what these do not see of one another is little."""

_GAP_TERMS = 1 / 4
"""Terms that a row without entries costs."""


@dataclass(frozen=True, eq=False)
class SweepSchedule:
    """Pieces of a layout's groups in the order of their rows.

    Attributes
    ----------
    chunk_ptr, chunk_row : ndarray, shape (chunks + 1,), int64
        First piece and first row of every chunk; together they have all rows.
    piece_group, piece_begin, piece_end : ndarray, shape (pieces,), int64
        See :func:`hybrid.cpu.sweep_kernels.sweep_chunks`.
    window : int
        Chunks that may be at work at once.
    terms : int
        Of a sweep, about.
    """

    chunk_ptr: Int64Array
    chunk_row: Int64Array
    piece_group: Int64Array
    piece_begin: Int64Array
    piece_end: Int64Array
    window: int
    terms: int

    def __len__(self) -> int:
        return len(self.chunk_ptr) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return 2 * self.chunk_ptr.nbytes + 3 * self.piece_group.nbytes


def schedule_sweep(layout: CpuLayout, n_rows: int, chunk_terms: int = _CHUNK_TERMS) -> SweepSchedule:
    """Cut a layout into chunks of consecutive rows.

    Parameters
    ----------
    layout : CpuLayout
    n_rows : int
        Rows of the matrix.
    chunk_terms : int
        Terms of a chunk, about, unless that makes too many.

    Notes
    -----
    The chunks do not depend on the number of threads.  Time: O(groups log groups + slices / 32).
    """
    table, row, kind = layout.table, layout.row, layout.row_type
    order = np.argsort(row, kind="stable")
    slices = np.diff(table.ptr)[kind[order]]
    parts = -(-slices // _PIECE_SLICES)
    owner = np.repeat(order, parts)
    begin = (np.arange(len(owner)) - np.repeat(pointers(np, parts)[:-1], parts)) * _PIECE_SLICES
    end = np.minimum(begin + _PIECE_SLICES, np.repeat(slices, parts))
    reaches_out = np.zeros(len(row), bool)
    reaches_out[layout.piece_group[layout.piece_count == 0]] = True
    terms = np.append(0, np.cumsum(table.terms_of_slices))
    first_slice = table.ptr[kind[owner]]
    cost = 2.0 * (end - begin) + terms[first_slice + end] - terms[first_slice + begin]
    at = row[owner] + 8 * begin
    group = owner + np.where(reaches_out[owner], len(row), 0)
    gaps = _cut_gaps(layout)
    if len(gaps[0]):
        # Gaps and groups alternate nowhere in particular: their rows tell their order.
        nothing = np.full(len(gaps[0]), -1)
        at, group = np.append(at, gaps[0]), np.append(group, nothing)
        begin, end = np.append(begin, gaps[0]), np.append(end, gaps[1])
        cost = np.append(cost, _GAP_TERMS * (gaps[1] - gaps[0]))
        by_row = np.argsort(at, kind="stable")
        at, group, begin, end, cost = at[by_row], group[by_row], begin[by_row], end[by_row], cost[by_row]
    total = np.append(0.0, np.cumsum(cost))
    chunks = int(min(max(total[-1] // chunk_terms, 1), _CHUNKS))
    cuts = np.searchsorted(total, np.linspace(0.0, total[-1], chunks + 1)[1:-1])
    ptr = np.unique(np.concatenate(([0], cuts, [len(at)]))).astype(np.int64)
    if len(ptr) == 1:
        ptr = np.zeros(2, np.int64)
    chunk_row = np.append(at[ptr[:-1]] if len(at) else 0, n_rows).astype(np.int64)
    return SweepSchedule(
        ptr, chunk_row, group.astype(np.int64), begin.astype(np.int64), end.astype(np.int64),
        max(1, (len(ptr) - 1) // _OTHERS), int(total[-1]),
    )  # fmt: skip


def _cut_gaps(layout: CpuLayout) -> tuple[Int64Array, Int64Array]:
    """Return the rows that no group covers, in ranges no longer than a piece."""
    longest = 8 * _PIECE_SLICES
    parts = -(-(layout.gap_end - layout.gap_begin) // longest)
    gap = np.repeat(np.arange(len(parts)), parts)
    within = np.arange(len(gap)) - np.repeat(pointers(np, parts)[:-1], parts)
    begin = layout.gap_begin[gap] + longest * within
    return begin, np.minimum(begin + longest, layout.gap_end[gap])
