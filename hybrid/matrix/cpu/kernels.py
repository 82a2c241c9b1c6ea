"""Compiled products of the CPU backend.

One kernel does it all: plain products and relaxation steps, with and without scales. Work is cut into chunks
of about equal cost, and every thread takes the next chunk from a shared counter until none is left. So a slow
or busy core delays nothing but its own last chunk. Each row is written by one thread: there are no atomic
additions, and the result does not depend on the number of threads.
"""

# mypy: disable-error-code="call-arg, unreachable, var-annotated"
# An intrinsic takes one argument less than its definition and returns what its signature says.

from __future__ import annotations

import numpy as np
from numba import types

from hybrid.matrix.cpu.vector_code import fetch_add, multiply_groups, relax_rows, sum_up
from mtbdd.base.compiled import njit

# The product for vectors with infinite or undefined elements: zero coefficients are left out, one by one.


@njit(cache=True, nogil=True)
def exact_spmv(  # type: ignore[no-untyped-def]
    row, row_type, slot_ptr, base, scale, scaled,
    rows, slice_ptr, pattern, pattern_ptr, slot, shift, vector, coefficients, x, out,
):  # fmt: skip
    """Write M x to ``out``, multiplying stored entries only, so that 0 * inf never arises.

    Parameters are those of :func:`hybrid.matrix.cpu.kernels.block_spmv`. One thread, one entry at a time.
    """
    out[:] = 0.0
    for g in range(len(row)):
        kind, own = row_type[g], slot_ptr[g]
        for q in range(slice_ptr[kind + 1] - slice_ptr[kind]):
            which = pattern[slice_ptr[kind] + q]
            for lane in range(min(8, rows[kind] - 8 * q)):
                total = 0.0
                for t in range(pattern_ptr[which], pattern_ptr[which + 1]):
                    weight = coefficients[vector[t], lane]
                    if weight != 0.0:
                        if scaled:
                            weight *= scale[own + slot[t]]
                        total += weight * x[np.int64(base[own + slot[t]]) + 8 * q + shift[t] + lane]
                out[row[g] + 8 * q + lane] = total


@njit(cache=True, nogil=True, boundscheck=False)
def _multiply(  # type: ignore[no-untyped-def]
    members, out, place, first, x, base, scale, own, slots, scaled, pattern, first_slice,
    begin, end, pattern_ptr, slot, shift, vector, coefficients, largest,
):  # fmt: skip
    """Multiply slices begin .. end of ``members`` groups; 0 stands for one group near the border of x."""
    multiply_groups(members, out, place, first, x, base, scale, own, slots, scaled, pattern, first_slice,
                    begin, end, pattern_ptr, slot, shift, vector, coefficients, largest)  # fmt: skip


_INTS, _INT32S, _DOUBLES = types.int64[::1], types.int32[::1], types.float64[::1]
_INPUT = types.Array(types.float64, 1, "C", readonly=True)
_SIGNATURE = types.void(
    *[_INTS] * 12, _DOUBLES, types.boolean,
    _INTS, _INTS, _INT32S, _INTS, _INT32S, _INT32S, _INT32S, types.float64[:, ::1],
    _INPUT, types.boolean, _INPUT, types.boolean, _INPUT, types.float64, _DOUBLES, _DOUBLES,
)  # fmt: skip


# One specialisation serves all callers, read-only vectors included.
@njit(_SIGNATURE, cache=True, nogil=True, boundscheck=False)
def block_spmv(  # type: ignore[no-untyped-def]
    counter, chunk_ptr, piece_group, piece_count, piece_begin, piece_end, gap_begin, gap_end,
    row, row_type, slot_ptr, base, scale, scaled,
    rows, slice_ptr, pattern, pattern_ptr, slot, shift, vector, coefficients,
    x, step, b, has_b, diagonal, omega, out_changes, out,
):  # fmt: skip
    """Multiply, taking chunks until none is left; call it on every thread with the same arguments.

    Parameters
    ----------
    counter : ndarray, shape (1,), int64
        Zero before the first call; the chunk that comes next.
    chunk_ptr : ndarray, shape (chunks + 1,), int64
        Pieces of each chunk.
    piece_group, piece_count, piece_begin, piece_end : ndarray, shape (pieces,), int64
        A piece is the slices begin .. end of ``count`` groups of one row type which follow each other in
        the group arrays. A count of 1 or 2 or 4; 0 stands for one group whose terms may reach outside x.
    gap_begin, gap_end : ndarray, shape (gaps,), int64
        Ranges of rows that no group covers; chunk c takes gaps c, c + chunks, ...
    row, row_type : ndarray, shape (groups,), int64
        First row and row type of every group.
    slot_ptr : ndarray, shape (groups + 1,), int64
        First slot of every group.
    base, scale : ndarray, shape (slots,), int64 and float64
        Column base and factor of every slot; ``scale`` is not read unless ``scaled``.
    rows, slice_ptr, pattern, pattern_ptr, slot, shift, vector, coefficients
        The slices of the row types, as in :class:`hybrid.matrix.injection.slices.SliceTable`.
    x : ndarray, shape (n_columns,), float64
        The vector.
    step : bool
        Whether to relax: ``out = (1 - omega) x + omega (b + M x) / diagonal``, else ``out = M x``.
    b, diagonal : ndarray, shape (n_rows,), float64
        Read if ``step`` (b only if ``has_b``).
    omega : float64
        Relaxation weight.
    out_changes : ndarray, shape (3,), float64
        Written by each thread into its own: greatest absolute and greatest relative change (if ``step``), and
        a number that is NaN if some product or new value is not finite. Then zero coefficients may have met
        infinite elements of x, and the result must be recomputed without them.
    out : ndarray, shape (n_rows,), float64
        The result.
    """
    largest = np.empty(24)  # and a loop: NumPy's functions take longer to compile
    for lane in range(24):
        largest[lane] = 0.0
    tail = np.empty(32)
    tail_place = np.empty(4, np.int64)
    n_chunks = len(chunk_ptr) - 1
    while True:
        chunk = fetch_add(counter, 1)
        if chunk >= n_chunks:
            break
        for p in range(chunk_ptr[chunk], chunk_ptr[chunk + 1]):
            first, members = piece_group[p], piece_count[p]
            kind = row_type[first]
            begin, end = piece_begin[p], piece_end[p]
            n_rows = rows[kind]
            full = min(end, n_rows >> 3)
            own = slot_ptr[first]
            slots = slot_ptr[first + 1] - own
            first_slice = slice_ptr[kind]
            _multiply(members, out, row, first, x, base, scale, own, slots, scaled, pattern, first_slice,
                      begin, full, pattern_ptr, slot, shift, vector, coefficients, largest)  # fmt: skip
            real = max(members, 1)
            if full < end:
                # The last slice is not full: its dead lanes belong to other groups and must not be written.
                for m in range(4):
                    tail_place[m] = 8 * (m - full)
                _multiply(members, tail, tail_place, 0, x, base, scale, own, slots, scaled, pattern,
                          first_slice, full, end, pattern_ptr, slot, shift, vector, coefficients,
                          largest)  # fmt: skip
                for m in range(real):
                    at = row[first + m] + 8 * full
                    for lane in range(n_rows - 8 * full):
                        out[at + lane] = tail[8 * m + lane]
            if step:
                for m in range(real):
                    at = row[first + m]
                    relax_rows(at + 8 * begin, at + min(8 * end, n_rows),
                               x, b, has_b, diagonal, omega, largest, out)  # fmt: skip
        for g in range(chunk, len(gap_begin), n_chunks):
            for r in range(gap_begin[g], gap_end[g]):
                out[r] = 0.0
            if step:
                relax_rows(gap_begin[g], gap_end[g], x, b, has_b, diagonal, omega, largest, out)
    sum_up(largest, out_changes)
