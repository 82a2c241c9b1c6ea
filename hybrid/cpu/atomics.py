"""Elements of an array by which threads tell one another what they have done, in compiled code."""

# mypy: disable-error-code="call-arg, unreachable"
# An intrinsic takes one argument less than its definition and returns what its signature says.

from __future__ import annotations

import os
import platform
from typing import Any

from llvmlite import ir
from numba.core import cgutils as _untyped_cgutils
from numba.core import types
from numba.extending import intrinsic

cgutils: Any = _untyped_cgutils
_PAUSE = {
    "x86_64": ("llvm.x86.sse2.pause", []),
    "AMD64": ("llvm.x86.sse2.pause", []),
    "aarch64": ("llvm.aarch64.hint", [1]),
    "arm64": ("llvm.aarch64.hint", [1]),
}.get(platform.machine())
"""Of the processor: the instruction that lets time pass, and its operands."""

TURNS = 64
"""Looks, of a tenth of a microsecond or so, after which a thread that waits gives way to others."""

_PAUSES = 4
"""Between two looks: a thread that waits takes little from the one that shares its core."""


def _place(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.gep(context.make_array(sig.args[0])(context, builder, args[0]).data, [args[1]])


@intrinsic
def atomic_load(typingctx, control, place):  # type: ignore[no-untyped-def]
    """Return an element as other threads have left it, with all that they wrote before."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load_atomic(_place(context, builder, sig, args), "acquire", 8)

    return types.int64(control, types.int64), generate


@intrinsic
def atomic_store(typingctx, control, place, value):  # type: ignore[no-untyped-def]
    """Write an element after all that was written before."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _place(context, builder, sig, args), "release", 8)
        return context.get_dummy_value()

    return types.void(control, types.int64, types.int64), generate


@intrinsic
def atomic_swap(typingctx, control, place, old, new):  # type: ignore[no-untyped-def]
    """Write `new` where `old` stands; return whether it stood there."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = _place(context, builder, sig, args)
        return builder.extract_value(builder.cmpxchg(place, args[2], args[3], "acq_rel", "acquire"), 1)

    return types.boolean(control, types.int64, types.int64, types.int64), generate


@intrinsic
def atomic_add(typingctx, control, place, amount):  # type: ignore[no-untyped-def]
    """Add to an element, after all that was written before; return what it was."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _place(context, builder, sig, args), args[2], "acq_rel")

    return types.int64(control, types.int64, types.int64), generate


@intrinsic
def pause(typingctx):  # type: ignore[no-untyped-def]
    """Wait for a tenth of a microsecond or so in a way that leaves the core to its other thread."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if _PAUSE:
            name, operands = _PAUSE
            kind = ir.FunctionType(ir.VoidType(), [ir.IntType(32)] * len(operands))
            instruction = cgutils.get_or_insert_function(builder.module, kind, name)
            for _ in range(_PAUSES):
                builder.call(instruction, [ir.Constant(ir.IntType(32), value) for value in operands])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def give_way(typingctx):  # type: ignore[no-untyped-def]
    """Let another thread run that waits for this core: it may be the one that this one waits for."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if hasattr(os, "sched_yield"):
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate
