"""Machine-independent vector code for the inner loops of the CPU backend.

Numba has no vector types, and LLVM does not find the vectors in loops whose trip count is eight. So the
loops over slices and terms are written here directly in LLVM's intermediate language, with values of type
<8 x double>, which LLVM lowers to whatever the machine has: one AVX-512 register, two AVX ones, four NEON
ones.  Vectors that are multiplied, and products, may have single precision: their elements are widened when
they are read and rounded when they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as _untyped_cgutils
from numba.extending import intrinsic

from hybrid.matrix.cpu.vector_values import (
    EIGHT,
    I64,
    VECTOR,
    constant,
    emit_either,
    inside,
    load_some,
    load_vector,
    prefetch,
    splat,
    store_vector,
    truth,
)

cgutils: Any = _untyped_cgutils
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
            emit_either(builder, args[8], code.emit)
            return context.get_dummy_value()

        return signature, generate

    return multiply


class Terms:
    """Emits the sums of a slice's terms.

    Parameters
    ----------
    builder : IRBuilder
    matrix : sequence
        Addresses of the first elements of base, scale, pattern, pattern_ptr, slot, shift, vector and
        coefficients.
    first_slice : value
        Number of the row type's first slice.
    elements : callable
        Emits what reads eight elements of the vector that is multiplied, from an index on.
    """

    def __init__(
        self,
        builder: Any,
        matrix: Sequence[Any],
        first_slice: Any,
        elements: Callable[[Any], Any],
    ) -> None:
        self._builder, self._first_slice, self._elements = builder, first_slice, elements
        self._base, self._scale, self._pattern, self._pattern_ptr, *rest = matrix
        self._slot, self._shift, self._vector, self._coefficients = rest
        # fmuladd fuses where the machine can and never falls back to a library call.
        self._fmuladd = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(VECTOR, [VECTOR] * 3), "llvm.fmuladd.v8f64"
        )

    def members(self, begins: list[Any], scaled: bool) -> tuple[list[Any], list[Any], list[Any]]:
        """Return addresses of the bases and factors of groups, given their first slots, and of the sums."""
        b = self._builder
        bases = [b.gep(self._base, [begin]) for begin in begins]
        scales = [b.gep(self._scale, [begin]) for begin in begins] if scaled else []
        return bases, scales, [cgutils.alloca_once(b, VECTOR) for _ in begins]

    def add_up(self, q: Any, bases: list[Any], scales: list[Any], totals: list[Any]) -> None:
        """Leave the sums of slice q."""
        b, one = self._builder, ir.Constant(I64, 1)
        local = b.mul(q, EIGHT)
        which = b.sext(b.load(b.gep(self._pattern, [b.add(self._first_slice, q)])), I64)
        begin = b.load(b.gep(self._pattern_ptr, [which]))
        end = b.load(b.gep(self._pattern_ptr, [b.add(which, one)]))
        for total in totals:
            b.store(ir.Constant(VECTOR, [0.0] * 8), total)
        with cgutils.for_range_slice(b, begin, end, one, inc=True) as (t, _):
            self._term(t, local, bases, scales, totals)

    def _term(self, t: Any, local: Any, bases: list[Any], scales: list[Any], totals: list[Any]) -> None:
        b = self._builder
        number = b.sext(b.load(b.gep(self._slot, [t])), I64)
        distance = b.add(b.sext(b.load(b.gep(self._shift, [t])), I64), local)
        which = b.mul(b.sext(b.load(b.gep(self._vector, [t])), I64), EIGHT)
        weights = load_vector(b, b.gep(self._coefficients, [which]))
        for m, total in enumerate(totals):
            elements = self._elements(b.add(b.load(b.gep(bases[m], [number])), distance))
            factors = weights
            if scales:
                factors = b.fmul(weights, splat(b, b.load(b.gep(scales[m], [number])), VECTOR))
            b.store(b.call(self._fmuladd, [factors, elements, b.load(total)]), total)


class _Product:
    """Emits the loops over slices and terms of one product."""

    def __init__(self, context: Any, builder: Any, sig: Any, args: Any, members: int, checked: bool) -> None:
        def array(i: int) -> Any:
            return context.make_array(sig.args[i])(context, builder, args[i])

        self.builder, self.members, self.checked = builder, members, checked
        self.out, self.place = array(0).data, array(1).data
        x = array(3)
        self.x, self.x_size = x.data, x.nitems
        self.finite_at = builder.gep(array(18).data, [ir.Constant(I64, 16)])
        self.first, self.own, self.slots = args[2], args[6], args[7]
        self.q0, self.q1 = args[11], args[12]
        matrix = [array(i).data for i in (4, 5, 9, 13, 14, 15, 16, 17)]
        self.terms = Terms(builder, matrix, args[10], self._elements)

    def emit(self, scaled: bool) -> None:
        b = self.builder
        begins = [b.add(self.own, b.mul(self.slots, ir.Constant(I64, m))) for m in range(self.members)]
        bases, scales, totals = self.terms.members(begins, scaled)
        finite = cgutils.alloca_once_value(b, load_vector(b, self.finite_at))
        with cgutils.for_range_slice(b, self.q0, self.q1, ir.Constant(I64, 1), inc=True) as (q, _):
            self.terms.add_up(q, bases, scales, totals)
            for m, total in enumerate(totals):
                row = b.load(b.gep(self.place, [b.add(self.first, ir.Constant(I64, m))]))
                value = b.load(total)
                store_vector(b, value, b.gep(self.out, [b.add(row, b.mul(q, EIGHT))]))
                b.store(b.fadd(b.load(finite), b.fsub(value, value)), finite)
        store_vector(b, b.load(finite), self.finite_at)

    def _elements(self, start: Any) -> Any:
        b, place = self.builder, self.builder.gep(self.x, [start])
        if self.checked:
            return load_some(b, place, inside(b, start, self.x_size))
        prefetch(b, b.gep(self.x, [b.add(start, ir.Constant(I64, _AHEAD))]))
        return load_vector(b, place)


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
        places = [builder.gep(pointer(8), [ir.Constant(I64, slot)]) for slot in (0, 8, 16)]
        # In registers while the loop lasts: in memory they might be what is written to.
        kept = [cgutils.alloca_once_value(builder, load_vector(builder, place)) for place in places]
        weight = splat(builder, args[7], VECTOR)
        rest = builder.fsub(constant(1.0), weight)
        is_there = truth(builder, args[5])
        absolute = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(VECTOR, [VECTOR]), "llvm.fabs.v8f64"
        )
        with cgutils.for_range(builder, args[2], intp=I64) as loop:
            at = builder.add(args[1], builder.mul(loop.index, EIGHT))
            place = builder.gep(targets, [at])
            product = load_vector(builder, place)
            old = load_vector(builder, builder.gep(old_values, [at]))
            total = cgutils.alloca_once(builder, VECTOR)
            builder.store(product, total)
            with builder.if_then(is_there):
                builder.store(builder.fadd(product, load_vector(builder, builder.gep(rights, [at]))), total)
            solved = builder.fdiv(builder.load(total), load_vector(builder, builder.gep(diagonals, [at])))
            new = builder.fadd(builder.fmul(rest, old), builder.fmul(weight, solved))
            store_vector(builder, new, place)
            change = builder.call(absolute, [builder.fsub(new, old)])
            size = builder.call(absolute, [new])
            _keep_larger(builder, change, kept[0])
            # A division takes long, and few rows change by more than those before. Where change / size rounds
            # to more than what is kept, kept * size is less than the change, but for rounding and underflow.
            bound = builder.fadd(builder.fmul(change, constant(1.0 + 2.0**-40)), constant(1e-300))
            near = builder.fcmp_ordered("<=", builder.fmul(builder.load(kept[1]), size), bound)
            moved = builder.fcmp_ordered(">", change, constant(0.0))
            lanes = builder.bitcast(builder.and_(near, moved), ir.IntType(8))
            some = builder.icmp_unsigned("!=", lanes, ir.Constant(ir.IntType(8), 0))
            with builder.if_then(some, likely=False):
                _keep_larger(builder, builder.fdiv(change, size), kept[1])
            builder.store(builder.fadd(builder.load(kept[2]), builder.fsub(new, new)), kept[2])
        for value, place in zip(kept, places, strict=True):
            store_vector(builder, builder.load(value), place)
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
