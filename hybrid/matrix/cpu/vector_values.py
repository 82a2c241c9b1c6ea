"""Values of eight numbers in LLVM's intermediate language: how they are read, written and made.

Vectors in memory may have single precision: their elements are widened when they are read and rounded when
they are written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils as _untyped_cgutils

cgutils: Any = _untyped_cgutils
I32, I64 = ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(ir.DoubleType(), 8)
EIGHT = ir.Constant(I64, 8)
_SINGLES = ir.VectorType(ir.FloatType(), 8)
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
    if _has_singles(address):
        return builder.fpext(builder.load(builder.bitcast(address, _SINGLES.as_pointer()), align=4), VECTOR)
    return builder.load(builder.bitcast(address, VECTOR.as_pointer()), align=8)


def inside(builder: Any, start: Any, size: Any) -> Any:
    """Return which of eight indices, from one on, lie in an array of so many elements."""
    lanes = ir.VectorType(I64, 8)
    index = builder.add(splat(builder, start, lanes), ir.Constant(lanes, list(range(8))))
    # One unsigned comparison finds indices below zero and beyond the end alike.
    return builder.icmp_unsigned("<", index, splat(builder, size, lanes))


def load_some(builder: Any, address: Any, mask: Any) -> Any:
    """Return eight elements, zero where the mask has none."""
    kind, name, bytes_ = _kind(address)
    masked_load = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(kind, [kind.as_pointer(), I32, _MASK, kind]),
        f"llvm.masked.load.v8{name}.p0v8{name}",
    )
    nothing = ir.Constant(kind, [0.0] * 8)
    place = builder.bitcast(address, kind.as_pointer())
    found = builder.call(masked_load, [place, ir.Constant(I32, bytes_), mask, nothing])
    return found if kind is VECTOR else builder.fpext(found, VECTOR)


def store_some(builder: Any, value: Any, address: Any, mask: Any) -> None:
    """Write those of eight elements that the mask has."""
    kind, name, bytes_ = _kind(address)
    masked_store = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [kind, kind.as_pointer(), I32, _MASK]),
        f"llvm.masked.store.v8{name}.p0v8{name}",
    )
    if kind is not VECTOR:
        value = builder.fptrunc(value, kind)
    place = builder.bitcast(address, kind.as_pointer())
    builder.call(masked_store, [value, place, ir.Constant(I32, bytes_), mask])


def store_vector(builder: Any, value: Any, address: Any) -> None:
    """Write eight elements."""
    kind, _, bytes_ = _kind(address)
    if kind is not VECTOR:
        value = builder.fptrunc(value, kind)
    builder.store(value, builder.bitcast(address, kind.as_pointer()), align=bytes_)


def constant(value: float) -> Any:
    """Return eight times the same number."""
    return ir.Constant(VECTOR, [value] * 8)


def splat(builder: Any, scalar: Any, kind: Any) -> Any:
    """Return a vector of a type whose elements are all one scalar."""
    undefined = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(I32, 8), [0] * 8))


def _kind(address: Any) -> tuple[Any, str, int]:
    """Return type, its name and bytes of an element, of the vector at an address."""
    return (_SINGLES, "f32", 4) if _has_singles(address) else (VECTOR, "f64", 8)


def _has_singles(address: Any) -> bool:
    """Tell whether an address is one of an element of single precision."""
    return isinstance(address.type.pointee, ir.FloatType)
