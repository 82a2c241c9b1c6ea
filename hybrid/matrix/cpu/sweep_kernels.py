"""Compiled sweeps of Gauss-Seidel over the groups of a layout, in either direction, in parts.

Rows are cut into parts of about equal cost, which threads take.  A part sees the new values of its own rows
before, and of other parts the values that the sweep began with.  So a sweep is a linear map of what it began
with, whichever thread is faster: neighbouring rows mostly refer to one another, and of those few are cut
apart.
"""

# mypy: disable-error-code="call-arg, unreachable, var-annotated"
# An intrinsic takes one argument less than its definition and returns what its signature says.

from __future__ import annotations

from numba import types

from hybrid.matrix.cpu.sweep_code import sweep_slices, sweep_slices_checked
from hybrid.matrix.cpu.vector_code import fetch_add
from mtbdd.base.compiled import njit

_INTS, _INT32S, _DOUBLES = types.int64[::1], types.int32[::1], types.float64[::1]
_INPUT = types.Array(types.float64, 1, "C", readonly=True)


_SIGNATURE = types.void(
    *[_INTS] * 6, types.boolean,
    _INTS, _INTS, _INTS, _INTS, _DOUBLES, types.boolean,
    _INTS, _INTS, _INT32S, _INTS, _INT32S, _INT32S, _INT32S, types.float64[:, ::1],
    _INPUT, _INPUT, types.boolean, types.float64, _INPUT, types.float64, _DOUBLES,
)  # fmt: skip


# A division by zero is infinite, as in vector code.
@njit(_SIGNATURE, cache=True, nogil=True, boundscheck=False, error_model="numpy")
def sweep_parts(  # type: ignore[no-untyped-def]
    counter, part_ptr, piece_row, piece_group, piece_begin, piece_end, descending,
    row, row_type, slot_ptr, base, scale, scaled,
    rows, slice_ptr, pattern, pattern_ptr, slot, shift, vector, coefficients,
    x, b, has_b, less, diagonal, omega, out,
):  # fmt: skip
    """Sweep, taking parts until none is left; call it on every thread with the same arguments.

    Parameters
    ----------
    counter : ndarray, shape (1,), int64
        Zero before the first call; the part that comes next.
    part_ptr : ndarray, shape (parts + 1,), int64
        First piece of every part.
    piece_row : ndarray, shape (pieces + 1,), int64
        First row of every piece; together they have all rows.
    piece_group : ndarray, shape (pieces,), int64
        Group of a piece; less than zero where rows have no entries.  A group g whose terms may reach outside
        x is told as ``g + groups``.
    piece_begin, piece_end : ndarray, shape (pieces,), int64
        Its slices.
    descending : bool
        Whether the last rows come first.
    row, row_type, ..., coefficients
        As for :func:`hybrid.matrix.cpu.kernels.block_spmv`.
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
    n_groups = len(row)
    while True:
        part = fetch_add(counter, 1)
        if part >= len(part_ptr) - 1:
            break
        first, last = part_ptr[part], part_ptr[part + 1]
        for k in range(last - first):
            p = last - 1 - k if descending else first + k
            begin, end = piece_row[p], piece_row[p + 1]
            which = piece_group[p]
            if which < 0:
                for r in range(begin, end):
                    right = b[r] - less if has_b else -less
                    out[r] = (1.0 - omega) * x[r] + omega * (right / diagonal[r])
                continue
            # Eight elements that a term reads may reach into rows that come next.
            for r in range(begin, end):
                out[r] = x[r]
            new_begin, new_end = (begin, piece_row[last]) if descending else (piece_row[first], end)
            g = which if which < n_groups else which - n_groups
            kind = row_type[g]
            if which < n_groups:
                sweep_slices(
                    out, row[g], rows[kind], x, base, scale, slot_ptr[g], scaled, pattern, slice_ptr[kind],
                    piece_begin[p], piece_end[p], descending, pattern_ptr, slot, shift, vector, coefficients,
                    b, has_b, less, diagonal, omega, new_begin, new_end,
                )  # fmt: skip
            else:
                sweep_slices_checked(
                    out, row[g], rows[kind], x, base, scale, slot_ptr[g], scaled, pattern, slice_ptr[kind],
                    piece_begin[p], piece_end[p], descending, pattern_ptr, slot, shift, vector, coefficients,
                    b, has_b, less, diagonal, omega, new_begin, new_end,
                )  # fmt: skip
