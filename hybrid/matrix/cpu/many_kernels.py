"""Compiled products of the CPU backend with eight or four vectors at once; compiled on first use.

The work is cut as in :mod:`hybrid.matrix.cpu.kernels`: threads take chunks from a shared counter, each row is
written by one thread, and the result does not depend on the number of threads.
"""

# mypy: disable-error-code="call-arg, unreachable, var-annotated"
# An intrinsic takes one argument less than its definition and returns what its signature says.

from __future__ import annotations

import numpy as np
from numba import types

from hybrid.matrix.cpu.many_code import (
    multiply_4,
    multiply_4_checked,
    multiply_4_pair,
    multiply_8,
    multiply_8_checked,
    multiply_8_pair,
    multiply_8_pair_streamed,
    multiply_8_streamed,
)
from hybrid.matrix.cpu.vector_code import fetch_add
from mtbdd.base.compiled import njit


@njit(cache=True, nogil=True, boundscheck=False)
def _run_terms(  # type: ignore[no-untyped-def]
    width, members, streamed, out, out_stride, out_column, place, first, x, column, base, scale, own, slots,
    scaled, pattern, first_slice, begin, end, pattern_ptr, slot, shift, vector, coefficients, finite,
):  # fmt: skip
    """Multiply slices begin .. end of one or two groups; 0 members: one group near the border of X."""
    x_rows, stride = x.shape[0], x.shape[1]
    if width == 8 and members == 2 and streamed:
        multiply_8_pair_streamed(
            out, out_stride, out_column, place, first, x, x_rows, stride, column, base, scale, own, slots,
            scaled, pattern, first_slice, begin, end, pattern_ptr, slot, shift, vector, coefficients, finite,
        )  # fmt: skip
    elif width == 8 and members == 1 and streamed:
        multiply_8_streamed(
            out, out_stride, out_column, place, first, x, x_rows, stride, column, base, scale, own, slots,
            scaled, pattern, first_slice, begin, end, pattern_ptr, slot, shift, vector, coefficients, finite,
        )  # fmt: skip
    elif width == 8 and members == 2:
        multiply_8_pair(
            out, out_stride, out_column, place, first, x, x_rows, stride, column, base, scale, own, slots,
            scaled, pattern, first_slice, begin, end, pattern_ptr, slot, shift, vector, coefficients, finite,
        )  # fmt: skip
    elif width == 8 and members == 1:
        multiply_8(
            out, out_stride, out_column, place, first, x, x_rows, stride, column, base, scale, own, slots,
            scaled, pattern, first_slice, begin, end, pattern_ptr, slot, shift, vector, coefficients, finite,
        )  # fmt: skip
    elif width == 8:
        multiply_8_checked(
            out, out_stride, out_column, place, first, x, x_rows, stride, column, base, scale, own, slots,
            scaled, pattern, first_slice, begin, end, pattern_ptr, slot, shift, vector, coefficients, finite,
        )  # fmt: skip
    elif members == 2:
        multiply_4_pair(
            out, out_stride, out_column, place, first, x, x_rows, stride, column, base, scale, own, slots,
            scaled, pattern, first_slice, begin, end, pattern_ptr, slot, shift, vector, coefficients, finite,
        )  # fmt: skip
    elif members == 1:
        multiply_4(
            out, out_stride, out_column, place, first, x, x_rows, stride, column, base, scale, own, slots,
            scaled, pattern, first_slice, begin, end, pattern_ptr, slot, shift, vector, coefficients, finite,
        )  # fmt: skip
    else:
        multiply_4_checked(
            out, out_stride, out_column, place, first, x, x_rows, stride, column, base, scale, own, slots,
            scaled, pattern, first_slice, begin, end, pattern_ptr, slot, shift, vector, coefficients, finite,
        )  # fmt: skip


_INTS, _INT32S, _DOUBLES = types.int64[::1], types.int32[::1], types.float64[::1]
_SIGNATURE = types.void(
    *[_INTS] * 12, _DOUBLES, types.boolean,
    _INTS, _INTS, _INT32S, _INTS, _INT32S, _INT32S, _INT32S, types.float64[:, ::1],
    types.Array(types.float64, 2, "C", readonly=True), types.int64, types.int64, types.boolean, _DOUBLES,
    types.float64[:, ::1],
)  # fmt: skip
"""One specialisation serves all callers, read-only vectors included."""


@njit(_SIGNATURE, cache=True, nogil=True, boundscheck=False)
def block_spmm(  # type: ignore[no-untyped-def]
    counter, chunk_ptr, piece_group, piece_count, piece_begin, piece_end, gap_begin, gap_end,
    row, row_type, slot_ptr, base, scale, scaled,
    rows, slice_ptr, pattern, pattern_ptr, slot, shift, vector, coefficients,
    x, column, width, streamed, finite, out,
):  # fmt: skip
    """Multiply some columns, taking chunks until none is left; call it on all threads alike.

    Parameters
    ----------
    counter ... coefficients
        As for :func:`hybrid.matrix.cpu.kernels.block_spmv`.
    x : ndarray, shape (n_columns, k), float64
        The vectors, side by side.
    column : int
        First column of x and of `out` that is served.
    width : int
        Columns to serve, 8 or 4.
    streamed : bool
        Whether results of 8 columns go past the caches; every row of `out` then begins at a multiple of 64
        bytes.
    finite : ndarray, shape (8,), float64
        Zeros; each thread's own. NaN afterwards where a result of that column is not finite, or a dead lane
        was not.
    out : ndarray, shape (n_rows, k), float64
        The result.
    """
    tail = np.empty((8, 8))
    tail_place = np.zeros(1, np.int64)
    n_chunks, stride = len(chunk_ptr) - 1, x.shape[1]
    while True:
        chunk = fetch_add(counter, 1)
        if chunk >= n_chunks:
            break
        for p in range(chunk_ptr[chunk], chunk_ptr[chunk + 1]):
            kind = row_type[piece_group[p]]
            begin, end = piece_begin[p], piece_end[p]
            n_rows, first_slice = rows[kind], slice_ptr[kind]
            full = min(end, n_rows >> 3)
            real = max(piece_count[p], 1)
            together = min(piece_count[p], 2)
            for m in range(0, real, max(together, 1)):
                first = piece_group[p] + m
                own = slot_ptr[first]
                slots = slot_ptr[first + 1] - own
                _run_terms(width, together, streamed, out, stride, column, row, first, x, column, base, scale,
                          own, slots, scaled, pattern, first_slice, begin, full, pattern_ptr, slot, shift,
                          vector, coefficients, finite)  # fmt: skip
            if full == end:
                continue
            # The last slice is not full: its dead lanes belong to other groups and must not be written.
            tail_place[0] = -8 * full
            for m in range(real):
                first = piece_group[p] + m
                own = slot_ptr[first]
                slots = slot_ptr[first + 1] - own
                _run_terms(width, min(piece_count[p], 1), False, tail, 8, 0, tail_place, 0, x, column, base,
                          scale, own, slots, scaled, pattern, first_slice, full, end, pattern_ptr, slot,
                          shift, vector, coefficients, finite)  # fmt: skip
                at = row[first] + 8 * full
                for lane in range(n_rows - 8 * full):
                    for k in range(width):
                        out[at + lane, column + k] = tail[lane, k]
        for g in range(chunk, len(gap_begin), n_chunks):
            out[gap_begin[g] : gap_end[g], column : column + width] = 0.0
