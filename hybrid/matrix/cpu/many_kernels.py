"""Compiled products of the CPU backend with eight or four vectors at once; compiled on first use.

The work is cut as in :mod:`hybrid.matrix.cpu.kernels`: threads take chunks from a shared counter. Each row is
written by one thread, and the result does not depend on the number of threads.
"""

# mypy: disable-error-code="call-arg, unreachable, var-annotated"
# An intrinsic takes one argument less than its definition and returns what its signature says.

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils as _untyped_cgutils
from numba.extending import intrinsic

from hybrid.matrix.cpu.vector_code import I32, I64, VECTOR, emit_case, emit_either, fetch_add, splat
from mtbdd.base.compiled import njit

# Vector code for products with several vectors at once: a term of a slice meets eight whole rows of X.
#
# X has its vectors side by side, so that one element of each of them is one run of memory. A term is read
# once and used for all vectors, where products one by one read it again for each. The sums are those of
# :mod:`hybrid.matrix.cpu.vector_code`, term by term in the same order, so that every column has the bits of
# the product with that column alone.

cgutils: Any = _untyped_cgutils
_ROWS = 8  # of a slice


@intrinsic
def _multiply(  # type: ignore[no-untyped-def]
    typingctx, width, members, streamed, out, out_stride, out_column, place, first, x, x_rows, stride, column,
    base, scale, own, slots, scaled, pattern, first_slice, q0, q1, pattern_ptr, slot, shift, vector,
    coefficients, finite,
):  # fmt: skip
    """Multiply some groups of one row type by ``width`` columns of X, 8 or 4.

    Computes, for the slices q0 .. q1 of the row type, every member m and every lane l,
    ``out[(place[first + m] + 8 * q + l) * out_stride + out_column:][:width] = sum of the terms of
    pattern[first_slice + q]``, where a term t adds ``coefficients[vector[t], l] * scale[s] *
    x[(base[s] + 8 * q + shift[t] + l) * stride + column:][:width]``, s being ``own + m * slots + slot[t]``;
    the factor scale is left out where ``scaled`` is zero.

    There are 2 or 1 ``members``, for whose terms all eight rows of X must exist, dead lanes included; 0
    stands for one group that leaves rows outside X out. ``finite[j]`` becomes NaN once any sum of column j,
    dead lanes included, is not finite. If ``streamed``, results of 8 columns go past the caches; every row of
    `out` must then begin at a multiple of its bytes.
    """
    signature = types.void(
        width, members, streamed, out, out_stride, out_column, place, first, x, x_rows, stride, column,
        base, scale, own, slots, scaled, pattern, first_slice, q0, q1, pattern_ptr, slot, shift, vector,
        coefficients, finite,
    )  # fmt: skip

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def emit(width: int, members: int, streamed: bool) -> None:
            code = _ProductWithVectors(context, builder, sig, args, width, max(members, 1))
            code.checked, code.streamed = members == 0, streamed
            emit_either(builder, args[16], code.emit)

        def emit_members(width: int, members: int) -> None:
            if width == 8 and members > 0:
                emit_either(builder, args[2], partial(emit, width, members))
            else:
                emit(width, members, False)

        def emit_width(width: int) -> None:
            emit_case(builder, args[1], (2, 1, 0), partial(emit_members, width))

        emit_case(builder, args[0], (8, 4), emit_width)
        return context.get_dummy_value()

    return signature, generate


class _ProductWithVectors:
    """Emits the loops over slices and terms of one product."""

    checked: bool
    streamed: bool

    def __init__(self, context: Any, builder: Any, sig: Any, args: Any, width: int, members: int) -> None:
        def data(i: int) -> Any:
            return context.make_array(sig.args[i])(context, builder, args[i]).data

        self.builder, self.width, self.members = builder, width, members
        self.kind = ir.VectorType(ir.DoubleType(), self.width)
        self.out, self.place, self.x = data(3), data(6), data(8)
        self.out_stride, self.out_column, self.first = args[4], args[5], args[7]
        self.x_rows, self.stride, self.column = args[9], args[10], args[11]
        self.base, self.scale, self.own, self.slots = data(12), data(13), args[14], args[15]
        self.pattern, self.first_slice, self.q0, self.q1 = data(17), args[18], args[19], args[20]
        self.pattern_ptr, self.slot, self.shift, self.vector = data(21), data(22), data(23), data(24)
        self.coefficients, self.finite_at = data(25), data(26)
        # fmuladd fuses where the machine can and never falls back to a library call.
        self.fmuladd = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(self.kind, [self.kind] * 3), f"llvm.fmuladd.v{self.width}f64"
        )

    def emit(self, scaled: bool) -> None:
        b, one = self.builder, ir.Constant(I64, 1)
        begins = [b.add(self.own, b.mul(self.slots, ir.Constant(I64, m))) for m in range(self.members)]
        bases = [b.gep(self.base, [begin]) for begin in begins]
        scales = [b.gep(self.scale, [begin]) for begin in begins] if scaled else []
        totals = [[cgutils.alloca_once(b, self.kind) for _ in range(_ROWS)] for _ in range(self.members)]
        finite = cgutils.alloca_once_value(b, self._load(self.finite_at))
        with cgutils.for_range_slice(b, self.q0, self.q1, one, inc=True) as (q, _):
            local = b.mul(q, ir.Constant(I64, _ROWS))
            which = b.sext(b.load(b.gep(self.pattern, [b.add(self.first_slice, q)])), I64)
            begin = b.load(b.gep(self.pattern_ptr, [which]))
            end = b.load(b.gep(self.pattern_ptr, [b.add(which, one)]))
            for own in totals:
                for total in own:
                    b.store(ir.Constant(self.kind, [0.0] * self.width), total)
            with cgutils.for_range_slice(b, begin, end, one, inc=True) as (t, _):
                self._term(t, local, bases, scales, totals)
            for m, own in enumerate(totals):
                row = b.add(b.load(b.gep(self.place, [b.add(self.first, ir.Constant(I64, m))])), local)
                at = b.gep(self.out, [b.add(b.mul(row, self.out_stride), self.out_column)])
                for lane, total in enumerate(own):
                    value = b.load(total)
                    step = b.mul(self.out_stride, ir.Constant(I64, lane))
                    self._store(value, b.gep(at, [step]), self.streamed)
                    b.store(b.fadd(b.load(finite), b.fsub(value, value)), finite)
        self._store(b.load(finite), self.finite_at)
        if self.streamed:
            # Such stores are not ordered before the signal to other threads.
            b.fence("seq_cst")

    def _term(self, t: Any, local: Any, bases: list[Any], scales: list[Any], totals: list[Any]) -> None:
        b = self.builder
        number = b.sext(b.load(b.gep(self.slot, [t])), I64)
        distance = b.add(b.sext(b.load(b.gep(self.shift, [t])), I64), local)
        which = b.mul(b.sext(b.load(b.gep(self.vector, [t])), I64), ir.Constant(I64, _ROWS))
        coefficients = b.gep(self.coefficients, [which])
        for m, own in enumerate(totals):
            start = b.add(b.load(b.gep(bases[m], [number])), distance)
            at = b.gep(self.x, [b.add(b.mul(start, self.stride), self.column)])
            factors = None
            if scales:
                # All eight at once, as products one by one do it.
                plain = b.load(b.bitcast(coefficients, VECTOR.as_pointer()), align=8)
                factor = splat(b, b.load(b.gep(scales[m], [number])), VECTOR)
                factors = b.fmul(plain, factor)
            for lane, total in enumerate(own):
                if self.checked:
                    row = b.add(start, ir.Constant(I64, lane))
                    with b.if_then(b.icmp_unsigned("<", row, self.x_rows)):
                        self._add(at, lane, coefficients, factors, total)
                else:
                    self._add(at, lane, coefficients, factors, total)

    def _add(self, at: Any, lane: int, coefficients: Any, factors: Any, total: Any) -> None:
        """Add a row of X times the coefficient of a lane."""
        b, number = self.builder, ir.Constant(I64, lane)
        if factors is None:
            weight = b.load(b.gep(coefficients, [number]))
        else:
            weight = b.extract_element(factors, ir.Constant(I32, lane))
        row = self._load(b.gep(at, [b.mul(self.stride, number)]))
        b.store(b.call(self.fmuladd, [splat(b, weight, self.kind), row, b.load(total)]), total)

    def _load(self, address: Any) -> Any:
        b = self.builder
        return b.load(b.bitcast(address, self.kind.as_pointer()), align=8)

    def _store(self, value: Any, address: Any, streamed: bool = False) -> None:
        b = self.builder
        align = 8 * self.width if streamed else 8
        stored = b.store(value, b.bitcast(address, self.kind.as_pointer()), align=align)
        if streamed:
            # A whole line at a time needs not be read before it is written.
            stored.set_metadata("nontemporal", b.module.add_metadata([ir.Constant(I32, 1)]))


@njit(cache=True, nogil=True, boundscheck=False)
def _run_terms(  # type: ignore[no-untyped-def]
    width, members, streamed, out, out_stride, out_column, place, first, x, column, base, scale, own, slots,
    scaled, pattern, first_slice, begin, end, pattern_ptr, slot, shift, vector, coefficients, finite,
):  # fmt: skip
    """Multiply slices begin .. end of one or two groups; 0 members: one group near the border of X."""
    _multiply(
        width, members, streamed, out, out_stride, out_column, place, first, x, x.shape[0], x.shape[1],
        column, base, scale, own, slots, scaled, pattern, first_slice, begin, end, pattern_ptr, slot, shift,
        vector, coefficients, finite,
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
