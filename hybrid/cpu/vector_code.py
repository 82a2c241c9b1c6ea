"""Machine-independent vector code for the inner loops of the CPU backend.

Numba has no vector types, and LLVM does not find the vectors in loops whose trip count is eight. So the
loops over slices and terms are written here directly in LLVM's intermediate language, with values of type
<8 x double>, which LLVM lowers to whatever the machine has: one AVX-512 register, two AVX ones, four NEON
ones.  Vectors that are multiplied, and products, may have single precision: their elements are widened when
they are read and rounded when they are written.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils as _untyped_cgutils
from numba.core import types
from numba.extending import intrinsic

cgutils: Any = _untyped_cgutils
_I1, _I32, _I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, 8)
_SINGLES = ir.VectorType(ir.FloatType(), 8)
_EIGHT = ir.Constant(_I64, 8)
_AHEAD = 16
"""Elements by which x is fetched ahead. A product reads some dozens of short streams of x at once, all by the
same instruction, and hardware does not see the streams behind it."""


def _multiply(members: int, checked: bool) -> Any:
    """Make the intrinsic that multiplies ``members`` groups of one row type at once.

    The intrinsic computes, for the slices q0 .. q1 of the row type and every member m, ``out[place[first +
    m] + 8 * q:][:8] = sum of the terms of pattern[first_slice + q]``, where a term t adds
    ``coefficients[vector[t]] * scale[m][slot[t]] * x[base[m][slot[t]] + 8 * q + shift[t]:][:8]``.
    ``base[m]`` and ``scale[m]`` are the ``slots`` numbers that begin at ``own + m * slots``; the factor
    scale is left out where ``scaled`` is zero. Index scalars are int64, arrays C-contiguous.

    Unless ``checked``, all eight elements of x must exist for every term, dead lanes included. A checked
    product reads zero for elements outside x, at the price of a masked load. A sum that is NaN once any
    product, dead lanes included, is not finite is kept in ``largest[16:24]``.  x and out may be float32.
    """

    @intrinsic
    def multiply(  # type: ignore[no-untyped-def]
        typingctx, out, place, first, x, base, scale, own, slots, scaled,
        pattern, first_slice, q0, q1, pattern_ptr, slot, shift, vector, coefficients, largest,
    ):  # fmt: skip
        signature = types.void(
            out, place, first, x, base, scale, own, slots, scaled,
            pattern, first_slice, q0, q1, pattern_ptr, slot, shift, vector, coefficients, largest,
        )  # fmt: skip

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            code = _Product(context, builder, sig, args, members, checked)
            is_scaled = builder.icmp_signed("!=", args[8], ir.Constant(args[8].type, 0))
            with builder.if_else(is_scaled) as (then, otherwise):
                with then:
                    code.emit(scaled=True)
                with otherwise:
                    code.emit(scaled=False)
            return context.get_dummy_value()

        return signature, generate

    return multiply


class _Product:
    """Emits the loops over slices and terms of one product."""

    def __init__(self, context: Any, builder: Any, sig: Any, args: Any, members: int, checked: bool) -> None:
        def array(i: int) -> Any:
            return context.make_array(sig.args[i])(context, builder, args[i])

        self.builder, self.members, self.checked = builder, members, checked
        self.out, self.place = array(0).data, array(1).data
        x = array(3)
        self.x, self.x_size = x.data, x.nitems
        self.base, self.scale, self.pattern = array(4).data, array(5).data, array(9).data
        self.pattern_ptr, self.slot, self.shift = array(13).data, array(14).data, array(15).data
        self.vector, self.coefficients = array(16).data, array(17).data
        self.finite_at = builder.gep(array(18).data, [ir.Constant(_I64, 16)])
        self.first, self.own, self.slots = args[2], args[6], args[7]
        self.first_slice, self.q0, self.q1 = args[10], args[11], args[12]
        # fmuladd fuses where the machine can and never falls back to a library call.
        self.fmuladd = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), "llvm.fmuladd.v8f64"
        )

    def emit(self, scaled: bool) -> None:
        b = self.builder
        begins = [b.add(self.own, b.mul(self.slots, ir.Constant(_I64, m))) for m in range(self.members)]
        bases = [b.gep(self.base, [begin]) for begin in begins]
        scales = [b.gep(self.scale, [begin]) for begin in begins] if scaled else []
        totals = [cgutils.alloca_once(b, _VECTOR) for _ in range(self.members)]
        finite = cgutils.alloca_once_value(b, _load(b, self.finite_at))
        one = ir.Constant(_I64, 1)
        with cgutils.for_range_slice(b, self.q0, self.q1, one, inc=True) as (q, _):
            local = b.mul(q, _EIGHT)
            which = b.sext(b.load(b.gep(self.pattern, [b.add(self.first_slice, q)])), _I64)
            begin = b.load(b.gep(self.pattern_ptr, [which]))
            end = b.load(b.gep(self.pattern_ptr, [b.add(which, one)]))
            for total in totals:
                b.store(ir.Constant(_VECTOR, [0.0] * 8), total)
            with cgutils.for_range_slice(b, begin, end, one, inc=True) as (t, _):
                self._term(t, local, bases, scales, totals)
            for m, total in enumerate(totals):
                row = b.load(b.gep(self.place, [b.add(self.first, ir.Constant(_I64, m))]))
                address = b.gep(self.out, [b.add(row, local)])
                value = b.load(total)
                _store(b, value, address)
                b.store(b.fadd(b.load(finite), b.fsub(value, value)), finite)
        _store(b, b.load(finite), self.finite_at)

    def _term(self, t: Any, local: Any, bases: list[Any], scales: list[Any], totals: list[Any]) -> None:
        b = self.builder
        number = b.sext(b.load(b.gep(self.slot, [t])), _I64)
        distance = b.add(b.sext(b.load(b.gep(self.shift, [t])), _I64), local)
        which = b.mul(b.sext(b.load(b.gep(self.vector, [t])), _I64), _EIGHT)
        weights = _load(b, b.gep(self.coefficients, [which]))
        for m, total in enumerate(totals):
            start = b.add(b.load(b.gep(bases[m], [number])), distance)
            if not self.checked:
                _emit_prefetch(b, b.gep(self.x, [b.add(start, ir.Constant(_I64, _AHEAD))]))
            elements = self._checked_load(start) if self.checked else _load(b, b.gep(self.x, [start]))
            factors = weights
            if scales:
                factors = b.fmul(weights, _splat(b, b.load(b.gep(scales[m], [number])), _VECTOR))
            b.store(b.call(self.fmuladd, [factors, elements, b.load(total)]), total)

    def _checked_load(self, start: Any) -> Any:
        b = self.builder
        lanes = ir.VectorType(_I64, 8)
        index = b.add(_splat(b, start, lanes), ir.Constant(lanes, list(range(8))))
        # One unsigned comparison finds indices below zero and beyond the end alike.
        inside = b.icmp_unsigned("<", index, _splat(b, self.x_size, lanes))
        place = b.gep(self.x, [start])
        kind, name, bytes_ = (_SINGLES, "f32", 4) if _has_singles(place) else (_VECTOR, "f64", 8)
        masked_load = cgutils.get_or_insert_function(
            b.module,
            ir.FunctionType(kind, [kind.as_pointer(), _I32, ir.VectorType(_I1, 8), kind]),
            f"llvm.masked.load.v8{name}.p0v8{name}",
        )
        nothing = ir.Constant(kind, [0.0] * 8)
        found = b.call(
            masked_load, [b.bitcast(place, kind.as_pointer()), ir.Constant(_I32, bytes_), inside, nothing]
        )
        return found if kind is _VECTOR else b.fpext(found, _VECTOR)


multiply_1 = _multiply(1, checked=False)
multiply_2 = _multiply(2, checked=False)
multiply_4 = _multiply(4, checked=False)
multiply_checked = _multiply(1, checked=True)


@intrinsic
def relax(typingctx, out, begin, count, x, b, has_b, diagonal, omega, largest):  # type: ignore[no-untyped-def]
    """Relax ``8 * count`` rows whose products lie in ``out[begin:]``, and note the greatest changes.

    Replaces out by ``(1 - omega) x + omega (b + out) / diagonal``. Keeps, lane by lane, the greatest
    absolute change in ``largest[0:8]``, the greatest change relative to the new value in ``largest[8:16]``,
    and in ``largest[16:24]`` a sum that is NaN once any new value is not finite. A relative change of 0 / 0
    counts as none.
    """
    signature = types.void(out, begin, types.int64, x, b, has_b, diagonal, omega, largest)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def pointer(i: int) -> Any:
            return context.make_array(sig.args[i])(context, builder, args[i]).data

        targets, old_values, rights, diagonals = (pointer(i) for i in (0, 3, 4, 6))
        places = [builder.gep(pointer(8), [ir.Constant(_I64, slot)]) for slot in (0, 8, 16)]
        # In registers while the loop lasts: in memory they might be what is written to.
        kept = [cgutils.alloca_once_value(builder, _load(builder, place)) for place in places]
        weight = _splat(builder, args[7], _VECTOR)
        rest = builder.fsub(_constant(1.0), weight)
        is_there = builder.icmp_signed("!=", args[5], ir.Constant(args[5].type, 0))
        absolute = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), "llvm.fabs.v8f64"
        )
        with cgutils.for_range(builder, args[2], intp=_I64) as loop:
            at = builder.add(args[1], builder.mul(loop.index, _EIGHT))
            place = builder.gep(targets, [at])
            product = _load(builder, place)
            old = _load(builder, builder.gep(old_values, [at]))
            total = cgutils.alloca_once(builder, _VECTOR)
            builder.store(product, total)
            with builder.if_then(is_there):
                builder.store(builder.fadd(product, _load(builder, builder.gep(rights, [at]))), total)
            solved = builder.fdiv(builder.load(total), _load(builder, builder.gep(diagonals, [at])))
            new = builder.fadd(builder.fmul(rest, old), builder.fmul(weight, solved))
            _store(builder, new, place)
            change = builder.call(absolute, [builder.fsub(new, old)])
            size = builder.call(absolute, [new])
            _keep_larger(builder, change, kept[0])
            # A division takes long, and few rows change by more than those before. Where change / size rounds
            # to more than what is kept, kept * size is less than the change, but for rounding and underflow.
            bound = builder.fadd(builder.fmul(change, _constant(1.0 + 2.0**-40)), _constant(1e-300))
            near = builder.fcmp_ordered("<=", builder.fmul(builder.load(kept[1]), size), bound)
            moved = builder.fcmp_ordered(">", change, _constant(0.0))
            lanes = builder.bitcast(builder.and_(near, moved), ir.IntType(8))
            some = builder.icmp_unsigned("!=", lanes, ir.Constant(ir.IntType(8), 0))
            with builder.if_then(some, likely=False):
                _keep_larger(builder, builder.fdiv(change, size), kept[1])
            builder.store(builder.fadd(builder.load(kept[2]), builder.fsub(new, new)), kept[2])
        for value, place in zip(kept, places, strict=True):
            _store(builder, builder.load(value), place)
        return context.get_dummy_value()

    return signature, generate


def _keep_larger(builder: Any, value: Any, kept: Any) -> None:
    before = builder.load(kept)
    # An ordered comparison is false for NaN, which leaves 0 / 0 out.
    larger = builder.fcmp_ordered(">", value, before)
    builder.store(builder.select(larger, value, before), kept)


@intrinsic
def fetch_add(typingctx, counter, amount):  # type: ignore[no-untyped-def]
    """Add ``amount`` to ``counter[0]`` (int64) atomically and return the number that was there before."""
    signature = types.int64(counter, types.int64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", data, args[1], "monotonic")

    return signature, generate


def _emit_prefetch(builder: Any, address: Any) -> None:
    byte = ir.IntType(8).as_pointer()
    code = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [byte, _I32, _I32, _I32]), "llvm.prefetch.p0i8"
    )
    for_reading, keep, data = ir.Constant(_I32, 0), ir.Constant(_I32, 3), ir.Constant(_I32, 1)
    builder.call(code, [builder.bitcast(address, byte), for_reading, keep, data])


def _has_singles(address: Any) -> bool:
    """Tell whether an address is one of an element of single precision."""
    return isinstance(address.type.pointee, ir.FloatType)


def _load(builder: Any, address: Any) -> Any:
    if _has_singles(address):
        return builder.fpext(builder.load(builder.bitcast(address, _SINGLES.as_pointer()), align=4), _VECTOR)
    return builder.load(builder.bitcast(address, _VECTOR.as_pointer()), align=8)


def _store(builder: Any, value: Any, address: Any) -> None:
    if _has_singles(address):
        value, kind, bytes_ = builder.fptrunc(value, _SINGLES), _SINGLES, 4
    else:
        kind, bytes_ = _VECTOR, 8
    builder.store(value, builder.bitcast(address, kind.as_pointer()), align=bytes_)


def _constant(value: float) -> Any:
    return ir.Constant(_VECTOR, [value] * 8)


def _splat(builder: Any, scalar: Any, kind: Any) -> Any:
    undefined = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(_I32, 8), [0] * 8))
