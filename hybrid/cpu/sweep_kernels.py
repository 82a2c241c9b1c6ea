"""Compiled sweeps of Gauss-Seidel over the groups of a layout, in either direction, on several threads.

Rows are cut into chunks of about equal cost, which threads take in the order of the sweep.  A chunk sees the
new values of its own rows before, and those of all chunks but the *window - 1* just before it, which other
threads may be at work on: instead of theirs it sees the values that the sweep began with.  So what a sweep
computes does not depend on threads, nor on how fast they are, and is a linear map of what it began with.
"""

from __future__ import annotations

from typing import Any

from numba import types

from hybrid.cpu.atomics import TURNS, atomic_load, atomic_store, give_way, pause
from hybrid.cpu.sweep_code import sweep_slices, sweep_slices_checked
from hybrid.cpu.vector_code import fetch_add
from mtbdd.compiled import njit

_INTS, _INT32S, _DOUBLES = types.int64[::1], types.int32[::1], types.float64[::1]
_INPUT = types.Array(types.float64, 1, "C", readonly=True)


def signature(x: types.Type, out: types.Type) -> Any:
    """Return the signature of `sweep_chunks` for vectors of these types."""
    return types.void(
        _INTS, _INTS, types.int64, types.int64, types.boolean, *[_INTS] * 5,
        _INTS, _INTS, _INTS, _INTS, _DOUBLES, types.boolean,
        _INTS, _INTS, _INT32S, _INTS, _INT32S, _INT32S, _INT32S, types.float64[:, ::1],
        x, _INPUT, types.boolean, types.float64, _INPUT, types.float64, out,
    )  # fmt: skip


@njit(cache=True, nogil=True, boundscheck=False)
def _await(done, turn, window, number):  # type: ignore[no-untyped-def]
    """Wait until all chunks are done that this turn has to see."""
    # What came before these was done when the turn `window` before this one began.
    for before in range(max(0, turn - 2 * window + 1), turn - window + 1):
        turns = 0
        while atomic_load(done, before) != number:
            pause()
            turns += 1
            if turns == TURNS:
                turns = 0
                give_way()


# A division by zero is infinite, as in vector code: a thread that raised would be waited for by others.
@njit(signature(_INPUT, _DOUBLES), cache=True, nogil=True, boundscheck=False, error_model="numpy")
def sweep_chunks(  # type: ignore[no-untyped-def]
    counter, done, number, window, descending, chunk_ptr, chunk_row, piece_group, piece_begin, piece_end,
    row, row_type, slot_ptr, base, scale, scaled,
    rows, slice_ptr, pattern, pattern_ptr, slot, shift, vector, coefficients,
    x, b, has_b, less, diagonal, omega, out,
):  # fmt: skip
    """Sweep, taking chunks until none is left; call it on every thread with the same arguments.

    Parameters
    ----------
    counter : ndarray, shape (1,), int64
        Zero before the first call; the turn that comes next.
    done : ndarray, shape (chunks,), int64
        Of every turn, the number of the last sweep that it was done in.
    number : int64
        Of this sweep.
    window : int64
        How many chunks may be at work at once; at least 1.
    descending : bool
        Whether the last rows come first.
    chunk_ptr, chunk_row : ndarray, shape (chunks + 1,), int64
        First piece and first row of every chunk.
    piece_group : ndarray, shape (pieces,), int64
        Group of a piece; less than zero where one row after the other has no entries.  A group g whose terms
        may reach outside x is told as ``g + groups``.
    piece_begin, piece_end : ndarray, shape (pieces,), int64
        Its slices, or rows where there is no group.
    row, row_type, ..., coefficients
        As for :func:`hybrid.cpu.kernels.block_spmv`.
    x : ndarray, shape (n,), float64
        What the sweep begins with; not changed.
    b, diagonal : ndarray, shape (n,), float64
        b is read if `has_b`.
    less : float64
        Taken from every element of b.
    omega : float64
        Relaxation weight.
    out : ndarray, shape (n,), float64
        Written: ``(1 - omega) x + omega (M z + b - less) / diagonal`` with the newest values z.
    """
    n_groups, n_chunks, n = len(row), len(chunk_ptr) - 1, len(out)
    while True:
        turn = fetch_add(counter, 1)
        if turn >= n_chunks:
            break
        _await(done, turn, window, number)
        c = n_chunks - 1 - turn if descending else turn
        near_begin, near_end = chunk_row[c], chunk_row[c + 1]
        for r in range(near_begin, near_end):
            out[r] = x[r]
        if descending:
            done_begin, done_end = chunk_row[min(c + window, n_chunks)], n
        else:
            done_begin, done_end = 0, chunk_row[max(c - window + 1, 0)]
        if window == 1:
            # Both lie side by side: what reaches from one into the other is new as well.
            near_begin, near_end = min(near_begin, done_begin), max(near_end, done_end)
        first, count = chunk_ptr[c], chunk_ptr[c + 1] - chunk_ptr[c]
        for k in range(count):
            p = first + count - 1 - k if descending else first + k
            which = piece_group[p]
            if which < 0:
                for r in range(piece_begin[p], piece_end[p]):
                    right = b[r] - less if has_b else -less
                    out[r] = (1.0 - omega) * out[r] + omega * (right / diagonal[r])
                continue
            g = which if which < n_groups else which - n_groups
            kind = row_type[g]
            if which < n_groups:
                sweep_slices(
                    out, row[g], rows[kind], x, base, scale, slot_ptr[g], scaled, pattern, slice_ptr[kind],
                    piece_begin[p], piece_end[p], descending, pattern_ptr, slot, shift, vector, coefficients,
                    b, has_b, less, diagonal, omega, near_begin, near_end, done_begin, done_end,
                )  # fmt: skip
            else:
                sweep_slices_checked(
                    out, row[g], rows[kind], x, base, scale, slot_ptr[g], scaled, pattern, slice_ptr[kind],
                    piece_begin[p], piece_end[p], descending, pattern_ptr, slot, shift, vector, coefficients,
                    b, has_b, less, diagonal, omega, near_begin, near_end, done_begin, done_end,
                )  # fmt: skip
        atomic_store(done, turn, number)
