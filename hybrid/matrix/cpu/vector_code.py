"""Machine-independent vector code for the inner loops of the CPU backend.

Numba has no vector types, and LLVM does not find the vectors in loops whose trip count is eight. So the
loops over slices and terms are written directly in LLVM's intermediate language, with values of type <8 x
double>. LLVM lowers these to the machine's registers: one of AVX-512, two of AVX, four of NEON.
"""

# mypy: disable-error-code="call-arg, unreachable"
# An intrinsic takes one argument less than its definition and returns what its signature says.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils as _untyped_cgutils
from numba.extending import intrinsic

from mtbdd.base.compiled import njit

# Values of eight numbers in LLVM's intermediate language: how they are read, written and made.

cgutils: Any = _untyped_cgutils
I32, I64 = ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(ir.DoubleType(), 8)
EIGHT = ir.Constant(I64, 8)
_MASK = ir.VectorType(ir.IntType(1), 8)


def truth(builder: Any, value: Any) -> Any:
    """Return a boolean as one bit."""
    return builder.icmp_signed("!=", value, ir.Constant(value.type, 0))


def emit_either(builder: Any, value: Any, emit: Callable[[bool], None]) -> None:
    """Emit code twice, for a boolean that is true and for one that is not: neither asks again."""
    with builder.if_else(truth(builder, value)) as (then, otherwise):
        with then:
            emit(True)
        with otherwise:
            emit(False)


def emit_case(builder: Any, value: Any, cases: Sequence[int], emit: Callable[[int], None]) -> None:
    """Emit code for each number that an integer may be; the last one stands for all others."""
    if len(cases) == 1:
        emit(cases[0])
        return
    is_first = builder.icmp_signed("==", value, ir.Constant(value.type, cases[0]))
    with builder.if_else(is_first) as (then, otherwise):
        with then:
            emit(cases[0])
        with otherwise:
            emit_case(builder, value, cases[1:], emit)


def prefetch(builder: Any, address: Any) -> None:
    """Emit a hint that an address will be read."""
    byte = ir.IntType(8).as_pointer()
    code = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [byte, I32, I32, I32]), "llvm.prefetch.p0i8"
    )
    for_reading, keep, data = ir.Constant(I32, 0), ir.Constant(I32, 3), ir.Constant(I32, 1)
    builder.call(code, [builder.bitcast(address, byte), for_reading, keep, data])


def load_vector(builder: Any, address: Any) -> Any:
    """Return eight elements."""
    return builder.load(builder.bitcast(address, VECTOR.as_pointer()), align=8)


def inside(builder: Any, start: Any, size: Any) -> Any:
    """Return which of eight indices, from one on, lie in an array of so many elements."""
    lanes = ir.VectorType(I64, 8)
    index = builder.add(splat(builder, start, lanes), ir.Constant(lanes, list(range(8))))
    # One unsigned comparison finds indices below zero and beyond the end alike.
    return builder.icmp_unsigned("<", index, splat(builder, size, lanes))


def load_some(builder: Any, address: Any, mask: Any) -> Any:
    """Return eight elements, zero where the mask has none."""
    masked_load = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(VECTOR, [VECTOR.as_pointer(), I32, _MASK, VECTOR]),
        "llvm.masked.load.v8f64.p0v8f64",
    )
    place = builder.bitcast(address, VECTOR.as_pointer())
    return builder.call(masked_load, [place, ir.Constant(I32, 8), mask, constant(0.0)])


def store_some(builder: Any, value: Any, address: Any, mask: Any) -> None:
    """Write those of eight elements that the mask has."""
    masked_store = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [VECTOR, VECTOR.as_pointer(), I32, _MASK]),
        "llvm.masked.store.v8f64.p0v8f64",
    )
    place = builder.bitcast(address, VECTOR.as_pointer())
    builder.call(masked_store, [value, place, ir.Constant(I32, 8), mask])


def store_vector(builder: Any, value: Any, address: Any) -> None:
    """Write eight elements."""
    builder.store(value, builder.bitcast(address, VECTOR.as_pointer()), align=8)


def constant(value: float) -> Any:
    """Return eight times the same number."""
    return ir.Constant(VECTOR, [value] * 8)


def splat(builder: Any, scalar: Any, kind: Any) -> Any:
    """Return a vector of a type whose elements are all one scalar."""
    undefined = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
    lanes = ir.Constant(ir.VectorType(I32, kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, undefined, lanes)


_AHEAD = 16
"""Elements by which x is fetched ahead. A product reads some dozens of short streams of x at once, all by the
same instruction, and hardware does not see the streams behind it."""


@intrinsic
def multiply_groups(  # type: ignore[no-untyped-def]
    typingctx, members, out, place, first, x, base, scale, own, slots, scaled,
    pattern, first_slice, q0, q1, pattern_ptr, slot, shift, vector, coefficients, largest,
):  # fmt: skip
    """Multiply some groups of one row type at once.

    Computes, for the slices q0 .. q1 of the row type and every member m, ``out[place[first + m] + 8 * q:][:8]
    = sum of the terms of pattern[first_slice + q]``, where a term t adds ``coefficients[vector[t]] *
    scale[m][slot[t]] * x[base[m][slot[t]] + 8 * q + shift[t]:][:8]``. ``base[m]`` and ``scale[m]`` are the
    ``slots`` numbers that begin at ``own + m * slots``; the factor scale is left out where ``scaled`` is
    zero. Index scalars are int64, arrays C-contiguous.

    There are 4, 2 or 1 ``members``, for whose terms all eight elements of x must exist, dead lanes included;
    0 stands for one group that reads zero for elements outside x, at the price of a masked load. A sum that
    is NaN once any product, dead lanes included, is not finite is kept in ``largest[16:24]``.  x and out may
    be float32.
    """
    signature = types.void(
        members, out, place, first, x, base, scale, own, slots, scaled,
        pattern, first_slice, q0, q1, pattern_ptr, slot, shift, vector, coefficients, largest,
    )  # fmt: skip

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def emit(count: int) -> None:
            code = _ProductOfGroups(context, builder, sig, args, max(count, 1), checked=count == 0)
            emit_either(builder, args[9], code.emit)

        emit_case(builder, args[0], (4, 2, 1, 0), emit)
        return context.get_dummy_value()

    return signature, generate


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
        self, builder: Any, matrix: Sequence[Any], first_slice: Any, elements: Callable[[Any], Any]
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


class _ProductOfGroups:
    """Emits the loops over slices and terms of one product."""

    def __init__(self, context: Any, builder: Any, sig: Any, args: Any, members: int, checked: bool) -> None:
        def array(i: int) -> Any:
            return context.make_array(sig.args[i])(context, builder, args[i])

        self.builder, self.members, self.checked = builder, members, checked
        self.out, self.place = array(1).data, array(2).data
        x = array(4)
        self.x, self.x_size = x.data, x.nitems
        self.finite_at = builder.gep(array(19).data, [ir.Constant(I64, 16)])
        self.first, self.own, self.slots = args[3], args[7], args[8]
        self.q0, self.q1 = args[12], args[13]
        matrix = [array(i).data for i in (5, 6, 10, 14, 15, 16, 17, 18)]
        self.terms = Terms(builder, matrix, args[11], self._elements)

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


@njit(cache=True, nogil=True, boundscheck=False)
def relax_rows(begin, end, x, b, has_b, diagonal, omega, largest, out):  # type: ignore[no-untyped-def]
    """Relax the rows begin .. end of ``out``, eight at a time as long as they last.

    Parameters
    ----------
    begin, end : int
        Rows of ``out`` that hold products.
    x, b, diagonal, omega
        As for :func:`hybrid.matrix.cpu.kernels.block_spmv`.
    largest : ndarray, shape (24,), float64
        Greatest changes, as `relax` keeps them.
    out : ndarray, shape (n_rows,), float64
    """
    count = (end - begin) >> 3
    if count > 0:
        relax(out, begin, count, x, b, has_b, diagonal, omega, largest)
    for at in range(begin + 8 * max(count, 0), end):
        total = out[at]
        if has_b:
            total += b[at]
        new = (1.0 - omega) * x[at] + omega * (total / diagonal[at])
        change = abs(new - x[at])
        out[at] = new
        largest[0] = max(largest[0], change)
        if change > 0.0:
            relative = change / abs(new) if new != 0.0 else np.inf
            largest[8] = max(largest[8], relative)
        largest[16] += new - new


@njit(cache=True, nogil=True, boundscheck=False)
def sum_up(largest, out_changes):  # type: ignore[no-untyped-def]
    """Write the greatest changes of eight lanes, and if all were finite, to ``out_changes``, shape (3,)."""
    # Loops compile in a fraction of the time that NumPy's functions take.
    greatest, relative, finite = largest[0], largest[8], 0.0
    for lane in range(8):
        greatest = max(greatest, largest[lane])
        relative = max(relative, largest[8 + lane])
        finite += largest[16 + lane]
    out_changes[0], out_changes[1], out_changes[2] = greatest, relative, finite
