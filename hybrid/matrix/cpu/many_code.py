"""Vector code for products with several vectors at once: a term of a slice meets eight whole rows of X.

X has its vectors side by side, so that one element of each of them is one run of memory. A term is read once
and used for all vectors, where products one by one read it again for each. The sums are those of
:mod:`hybrid.matrix.cpu.vector_code`, term by term in the same order, so that every column has the bits of the
product with that column alone.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as _untyped_cgutils
from numba.extending import intrinsic

from hybrid.matrix.cpu.vector_values import emit_either

cgutils: Any = _untyped_cgutils
_I32, _I64 = ir.IntType(32), ir.IntType(64)
_DOUBLE = ir.DoubleType()
_ROWS = 8  # of a slice


def _multiply(width: int, members: int, checked: bool = False, streamed: bool = False) -> Any:
    """Make the intrinsic that multiplies ``members`` groups of one row type by ``width`` columns of X.

    It computes, for the slices q0 .. q1 of the row type, every member m and every lane l,
    ``out[(place[first + m] + 8 * q + l) * out_stride + out_column:][:width] = sum of the terms of
    pattern[first_slice + q]``, where a term t adds ``coefficients[vector[t], l] * scale[s] *
    x[(base[s] + 8 * q + shift[t] + l) * stride + column:][:width]``, s being ``own + m * slots + slot[t]``;
    the factor scale is left out where ``scaled`` is zero.

    Unless ``checked``, all eight rows of X must exist for every term, dead lanes included; a checked product
    leaves rows outside X out. ``finite[j]`` becomes NaN once any sum of column j, dead lanes included, is not
    finite. If ``streamed``, results go past the caches; every row of `out` must then begin at a multiple of
    its bytes.
    """

    @intrinsic
    def multiply(  # type: ignore[no-untyped-def]
        typingctx, out, out_stride, out_column, place, first, x, x_rows, stride, column, base, scale, own,
        slots, scaled, pattern, first_slice, q0, q1, pattern_ptr, slot, shift, vector, coefficients, finite,
    ):  # fmt: skip
        signature = types.void(
            out, out_stride, out_column, place, first, x, x_rows, stride, column, base, scale, own, slots,
            scaled, pattern, first_slice, q0, q1, pattern_ptr, slot, shift, vector, coefficients, finite,
        )  # fmt: skip

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            code = _Product(context, builder, sig, args, width, members)
            code.checked, code.streamed = checked, streamed
            emit_either(builder, args[13], code.emit)
            return context.get_dummy_value()

        return signature, generate

    return multiply


class _Product:
    """Emits the loops over slices and terms of one product."""

    checked: bool
    streamed: bool

    def __init__(self, context: Any, builder: Any, sig: Any, args: Any, width: int, members: int) -> None:
        def data(i: int) -> Any:
            return context.make_array(sig.args[i])(context, builder, args[i]).data

        self.builder, self.width, self.members = builder, width, members
        self.kind = ir.VectorType(_DOUBLE, self.width)
        self.lanes = ir.VectorType(_DOUBLE, _ROWS)
        self.out, self.place, self.x = data(0), data(3), data(5)
        self.out_stride, self.out_column, self.first = args[1], args[2], args[4]
        self.x_rows, self.stride, self.column = args[6], args[7], args[8]
        self.base, self.scale, self.own, self.slots = data(9), data(10), args[11], args[12]
        self.pattern, self.first_slice, self.q0, self.q1 = data(14), args[15], args[16], args[17]
        self.pattern_ptr, self.slot, self.shift, self.vector = data(18), data(19), data(20), data(21)
        self.coefficients, self.finite_at = data(22), data(23)
        # fmuladd fuses where the machine can and never falls back to a library call.
        self.fmuladd = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(self.kind, [self.kind] * 3),
            f"llvm.fmuladd.v{self.width}f64",
        )

    def emit(self, scaled: bool) -> None:
        b, one = self.builder, ir.Constant(_I64, 1)
        begins = [b.add(self.own, b.mul(self.slots, ir.Constant(_I64, m))) for m in range(self.members)]
        bases = [b.gep(self.base, [begin]) for begin in begins]
        scales = [b.gep(self.scale, [begin]) for begin in begins] if scaled else []
        totals = [[cgutils.alloca_once(b, self.kind) for _ in range(_ROWS)] for _ in range(self.members)]
        finite = cgutils.alloca_once_value(b, self._load(self.finite_at))
        with cgutils.for_range_slice(b, self.q0, self.q1, one, inc=True) as (q, _):
            local = b.mul(q, ir.Constant(_I64, _ROWS))
            which = b.sext(b.load(b.gep(self.pattern, [b.add(self.first_slice, q)])), _I64)
            begin = b.load(b.gep(self.pattern_ptr, [which]))
            end = b.load(b.gep(self.pattern_ptr, [b.add(which, one)]))
            for own in totals:
                for total in own:
                    b.store(ir.Constant(self.kind, [0.0] * self.width), total)
            with cgutils.for_range_slice(b, begin, end, one, inc=True) as (t, _):
                self._term(t, local, bases, scales, totals)
            for m, own in enumerate(totals):
                row = b.add(b.load(b.gep(self.place, [b.add(self.first, ir.Constant(_I64, m))])), local)
                at = b.gep(self.out, [b.add(b.mul(row, self.out_stride), self.out_column)])
                for lane, total in enumerate(own):
                    value = b.load(total)
                    step = b.mul(self.out_stride, ir.Constant(_I64, lane))
                    self._store(value, b.gep(at, [step]), self.streamed)
                    b.store(b.fadd(b.load(finite), b.fsub(value, value)), finite)
        self._store(b.load(finite), self.finite_at)
        if self.streamed:
            # Such stores are not ordered before what tells other threads of them.
            b.fence("seq_cst")

    def _term(self, t: Any, local: Any, bases: list[Any], scales: list[Any], totals: list[Any]) -> None:
        b = self.builder
        number = b.sext(b.load(b.gep(self.slot, [t])), _I64)
        distance = b.add(b.sext(b.load(b.gep(self.shift, [t])), _I64), local)
        which = b.mul(b.sext(b.load(b.gep(self.vector, [t])), _I64), ir.Constant(_I64, _ROWS))
        coefficients = b.gep(self.coefficients, [which])
        for m, own in enumerate(totals):
            start = b.add(b.load(b.gep(bases[m], [number])), distance)
            at = b.gep(self.x, [b.add(b.mul(start, self.stride), self.column)])
            factors = None
            if scales:
                # All eight at once, as products one by one do it.
                plain = b.load(b.bitcast(coefficients, self.lanes.as_pointer()), align=8)
                factor = _splat(b, b.load(b.gep(scales[m], [number])), self.lanes, _ROWS)
                factors = b.fmul(plain, factor)
            for lane, total in enumerate(own):
                if self.checked:
                    row = b.add(start, ir.Constant(_I64, lane))
                    with b.if_then(b.icmp_unsigned("<", row, self.x_rows)):
                        self._add(at, lane, coefficients, factors, total)
                else:
                    self._add(at, lane, coefficients, factors, total)

    def _add(self, at: Any, lane: int, coefficients: Any, factors: Any, total: Any) -> None:
        """Add a row of X times the coefficient of a lane."""
        b, number = self.builder, ir.Constant(_I64, lane)
        if factors is None:
            weight = b.load(b.gep(coefficients, [number]))
        else:
            weight = b.extract_element(factors, ir.Constant(_I32, lane))
        row = self._load(b.gep(at, [b.mul(self.stride, number)]))
        b.store(b.call(self.fmuladd, [_splat(b, weight, self.kind, self.width), row, b.load(total)]), total)

    def _load(self, address: Any) -> Any:
        b = self.builder
        return b.load(b.bitcast(address, self.kind.as_pointer()), align=8)

    def _store(self, value: Any, address: Any, streamed: bool = False) -> None:
        b = self.builder
        align = 8 * self.width if streamed else 8
        stored = b.store(value, b.bitcast(address, self.kind.as_pointer()), align=align)
        if streamed:
            # A whole line at a time needs not be read before it is written.
            stored.set_metadata("nontemporal", b.module.add_metadata([ir.Constant(_I32, 1)]))


def _splat(builder: Any, scalar: Any, kind: Any, width: int) -> Any:
    undefined = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(_I32, width), [0] * width))


multiply_8 = _multiply(8, 1)
multiply_8_pair = _multiply(8, 2)
multiply_8_streamed = _multiply(8, 1, streamed=True)
multiply_8_pair_streamed = _multiply(8, 2, streamed=True)
multiply_8_checked = _multiply(8, 1, checked=True)
multiply_4 = _multiply(4, 1)
multiply_4_pair = _multiply(4, 2)
multiply_4_checked = _multiply(4, 1, checked=True)
