"""Blocks of consecutive rows: a layout's work in the order of the rows, for sweeps that go block by block.

A sweep uses the newest values of earlier blocks, so that its pieces must be those of one block after another
(pseudo-Gauss-Seidel: D. Parker, Implementation of symbolic model checking for probabilistic systems, PhD
thesis, University of Birmingham 2002, chapter on the hybrid engine).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.ragged import pointers
from hybrid.cpu.layout import WINDOW_ROWS, CpuLayout

Int64Array = NDArray[np.int64]

_BLOCKS = 64
_LEAST_ROWS = 64


@dataclass(frozen=True, eq=False)
class BlockSchedule:
    """Pieces and gaps of a layout, block by block.

    Attributes
    ----------
    start : ndarray, shape (blocks + 1,), int64
        Block i writes the rows ``start[i] .. start[i + 1]``.
    piece_ptr, gap_ptr : ndarray, shape (blocks + 1,), int64
        Pieces and gaps of every block.
    piece_group, piece_count, piece_begin, piece_end : ndarray, shape (pieces,), int64
        As in :class:`hybrid.cpu.layout.CpuLayout`, whose groups they refer to.
    gap_begin, gap_end : ndarray, shape (gaps,), int64
        Rows that no group covers, in their order.
    piece_terms : ndarray, shape (pieces,), int64
        Terms of every piece, over all its groups.
    """

    start: Int64Array
    piece_ptr: Int64Array
    gap_ptr: Int64Array
    piece_group: Int64Array
    piece_count: Int64Array
    piece_begin: Int64Array
    piece_end: Int64Array
    gap_begin: Int64Array
    gap_end: Int64Array
    piece_terms: Int64Array

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        pieces = 5 * self.piece_group.nbytes
        return pieces + 3 * self.start.nbytes + self.gap_begin.nbytes + self.gap_end.nbytes


def block_rows_for(n_rows: int) -> int:
    """Return the rows of a block: a power of two that makes some 64 blocks, small enough for the cache."""
    wanted = max(n_rows // _BLOCKS, _LEAST_ROWS)
    return min(1 << (wanted.bit_length() - 1), WINDOW_ROWS)


def schedule_blocks(layout: CpuLayout, n_rows: int, block_rows: int) -> BlockSchedule:
    """Cut a layout into blocks of about `block_rows` rows.

    Parameters
    ----------
    layout : CpuLayout
    n_rows : int
        Rows of the matrix.
    block_rows : int
        A power of two from 8 to `hybrid.cpu.layout.WINDOW_ROWS`; blocks end where groups
        end, unless a group is larger than a block.

    Raises
    ------
    ValueError
        `block_rows` is no such power.

    Notes
    -----
    Time: O(groups + slices / block).  Within a window the groups of one type lie side by side in the order
    of their rows, hence also within a block.
    """
    if not 8 <= block_rows <= WINDOW_ROWS or block_rows & (block_rows - 1):
        raise ValueError(
            f"block_rows: expected a power of two from 8 to {WINDOW_ROWS}, got {block_rows}; "
            "block_rows_for(n_rows) gives a good one"
        )
    row, kind, table = layout.row, layout.row_type, layout.table
    rows = table.rows[kind]
    safe = np.ones(len(row), bool)
    safe[layout.piece_group[layout.piece_count == 0]] = False
    first, count = _batches(row // block_rows, kind, safe & (rows <= block_rows))
    count = np.where(safe[first], count, 0)
    # Groups larger than a block are cut at multiples of its slices.
    slices = -(-rows[first] // 8)
    per_piece = block_rows // 8
    parts = -(-slices // per_piece)
    batch = np.repeat(np.arange(len(first)), parts)
    begin = (np.arange(len(batch)) - np.repeat(pointers(np, parts)[:-1], parts)) * per_piece
    end = np.minimum(begin + per_piece, slices[batch])
    at = row[first[batch]] + 8 * begin
    order = np.argsort(at // block_rows, kind="stable")
    batch, begin, end, at = batch[order], begin[order], end[order], at[order]
    _, piece_first = np.unique(at // block_rows, return_index=True)
    piece_ptr = np.append(piece_first, len(at)).astype(np.int64)
    if len(at):
        start = np.append(np.minimum.reduceat(at, piece_first), n_rows).astype(np.int64)
        start[0] = 0
    else:
        piece_ptr, start = np.zeros(2, np.int64), np.array([0, n_rows], np.int64)
    by_row = np.argsort(layout.gap_begin, kind="stable")
    gap_begin, gap_end = layout.gap_begin[by_row], layout.gap_end[by_row]
    terms = np.append(0, np.cumsum(table.terms_of_slices))
    group, members = first[batch], count[batch]
    slice_at = table.ptr[kind[group]]
    return BlockSchedule(
        start=start,
        piece_ptr=piece_ptr,
        gap_ptr=np.searchsorted(gap_begin, start).astype(np.int64),
        piece_group=group,
        piece_count=members,
        piece_begin=begin,
        piece_end=end,
        gap_begin=gap_begin,
        gap_end=gap_end,
        piece_terms=np.maximum(members, 1) * (terms[slice_at + end] - terms[slice_at + begin]),
    )


def _batches(block: Int64Array, kind: Int64Array, joins: NDArray[np.bool_]) -> tuple[Int64Array, Int64Array]:
    """First group and size (4, 2 or 1) of the neighbours of one block and type to multiply together."""
    size = len(block)
    new = np.ones(size, bool)
    new[1:] = (kind[1:] != kind[:-1]) | (block[1:] != block[:-1]) | ~(joins[1:] & joins[:-1])
    starts = np.flatnonzero(new)
    length = np.diff(np.append(starts, size))
    run = np.cumsum(new) - 1
    position = np.arange(size) - starts[run]
    rest = length[run] % 4
    behind = position - (length[run] - rest)
    is_first = np.where(behind < 0, position % 4 == 0, (behind == 0) | ((behind == 2) & (rest == 3)))
    count = np.where(behind < 0, 4, np.where((behind == 0) & (rest >= 2), 2, 1))
    first = np.flatnonzero(is_first)
    return first, count[first]
