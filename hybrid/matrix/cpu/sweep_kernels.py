"""Compiled sweeps of Gauss-Seidel over the groups of a layout, in either direction, in parts.

Rows are cut into parts of about equal cost, which threads take.  A part sees the new values of its own rows
before, and of other parts the values that the sweep began with.  So a sweep is a linear map of what it began
with, whichever thread is faster: neighbouring rows mostly refer to one another, and of those few are cut
apart.
"""

# mypy: disable-error-code="call-arg, unreachable, var-annotated"
# An intrinsic takes one argument less than its definition and returns what its signature says.

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as _untyped_cgutils
from numba.extending import intrinsic

from hybrid.matrix.cpu.vector_code import (
    EIGHT,
    I64,
    VECTOR,
    Terms,
    constant,
    emit_either,
    fetch_add,
    inside,
    load_some,
    load_vector,
    splat,
    store_some,
    store_vector,
    truth,
)
from mtbdd.base.compiled import njit

# Vector code for sweeps: eight rows are relaxed at once, from the newest values that they may see.
#
# The terms are those of products (:mod:`hybrid.matrix.cpu.vector_code`).  Each one decides from which of two
# vectors it reads its eight elements: from the one that is being written, where that is known to hold what
# this slice is to see, or else from the one that the sweep began with.

cgutils: Any = _untyped_cgutils


def _sweep(checked: bool) -> Any:
    """Make the intrinsic that relaxes slices of one group, one after the other.

    It relaxes the slices q0 .. q1 of the row type, the last one first if ``descending``, and writes rows
    ``row + 8 q``, ``n_rows`` of the group in all: ``out = (1 - omega) x + omega (sum + b - less) /
    diagonal``, where the sum is that of the terms (see `_multiply` of the vector code), b is left
    out unless ``has_b``, and a term reads out if its eight elements lie in the rows ``new_begin .. new_end``,
    x otherwise.

    Unless ``checked``, all eight elements must exist for every term, dead lanes included.
    """

    @intrinsic
    def sweep(  # type: ignore[no-untyped-def]
        typingctx, out, row, n_rows, x, base, scale, own, scaled, pattern, first_slice, q0, q1, descending,
        pattern_ptr, slot, shift, vector, coefficients, b, has_b, less, diagonal, omega,
        new_begin, new_end,
    ):  # fmt: skip
        signature = types.void(
            out, row, n_rows, x, base, scale, own, scaled, pattern, first_slice, q0, q1, descending,
            pattern_ptr, slot, shift, vector, coefficients, b, has_b, less, diagonal, omega,
            new_begin, new_end,
        )  # fmt: skip

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            code = _SweptSlices(context, builder, sig, args, checked)
            emit_either(builder, args[7], code.emit)
            return context.get_dummy_value()

        return signature, generate

    return sweep


class _SweptSlices:
    """Emits the loop over the slices of a group."""

    def __init__(self, context: Any, builder: Any, sig: Any, args: Any, checked: bool) -> None:
        def array(i: int) -> Any:
            return context.make_array(sig.args[i])(context, builder, args[i])

        self._builder, self._checked = builder, checked
        x = array(3)
        self._out, self._x, self._size = array(0).data, x.data, x.nitems
        self._row, self._n_rows, self._own = args[1], args[2], args[6]
        self._q0, self._q1, self._descending = args[10], args[11], truth(builder, args[12])
        self._b, self._has_b, self._diagonal = array(18).data, truth(builder, args[19]), array(21).data
        self._less, self._omega = splat(builder, args[20], VECTOR), splat(builder, args[22], VECTOR)
        self._rest = builder.fsub(constant(1.0), self._omega)
        self._new_begin, self._new_end = args[23:25]
        matrix = [array(i).data for i in (4, 5, 8, 13, 14, 15, 16, 17)]
        self._terms = Terms(builder, matrix, args[9], self._elements)

    def emit(self, scaled: bool) -> None:
        b, one = self._builder, ir.Constant(I64, 1)
        bases, scales, totals = self._terms.members([self._own], scaled)
        count = b.sub(self._q1, self._q0)
        last = b.sub(self._q1, one)
        with cgutils.for_range(b, count, intp=I64) as loop:
            up, down = b.add(self._q0, loop.index), b.sub(last, loop.index)
            q = b.select(self._descending, down, up)
            self._terms.add_up(q, bases, scales, totals)
            local = b.mul(q, EIGHT)
            left = b.sub(self._n_rows, local)
            at, total = b.add(self._row, local), b.load(totals[0])
            is_full = b.icmp_signed(">=", left, EIGHT)
            with b.if_else(is_full, likely=True) as (then, otherwise):
                with then:
                    self._relax(at, total, None)
                with otherwise:
                    # The dead lanes of the last slice belong to other groups and must not be written.
                    self._relax(at, total, inside(b, ir.Constant(I64, 0), left))

    def _relax(self, at: Any, total: Any, mask: Any) -> None:
        b = self._builder

        def load(address: Any) -> Any:
            return load_vector(b, address) if mask is None else load_some(b, address, mask)

        right = cgutils.alloca_once_value(b, b.fsub(total, self._less))
        with b.if_then(self._has_b):
            b.store(b.fadd(b.load(right), load(b.gep(self._b, [at]))), right)
        solved = b.fdiv(b.load(right), load(b.gep(self._diagonal, [at])))
        place = b.gep(self._out, [at])
        old = load(b.gep(self._x, [at]))
        new = b.fadd(b.fmul(self._rest, old), b.fmul(self._omega, solved))
        if mask is None:
            store_vector(b, new, place)
        else:
            store_some(b, new, place, mask)

    def _elements(self, start: Any) -> Any:
        b = self._builder
        begins = b.icmp_signed(">=", start, self._new_begin)
        is_new = b.and_(begins, b.icmp_signed("<=", b.add(start, EIGHT), self._new_end))
        place = b.gep(b.select(is_new, self._out, self._x), [start])
        if self._checked:
            return load_some(b, place, inside(b, start, self._size))
        return load_vector(b, place)


sweep_slices = _sweep(checked=False)
sweep_slices_checked = _sweep(checked=True)


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
