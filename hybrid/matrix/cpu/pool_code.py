"""Compiled code of the pool of threads: parts of a call are taken, run and awaited without the interpreter.

Threads meet in one array of integers, `control`. A call is published by its *ticket*: its number, the number
of its parts and that of the next part, in one word. To take a part is one addition, whose result shows
whether there was one.
"""

# mypy: disable-error-code="call-arg, unreachable, var-annotated"
# An intrinsic takes one argument less than its definition and returns what its signature says.

from __future__ import annotations

import os
import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as _untyped_cgutils
from numba.extending import intrinsic

from mtbdd.base.compiled import njit

cgutils: Any = _untyped_cgutils
TICKET, FINISHED, FAILED, LEAVE, ENTRY, WORDS, WIDTH, SIZE = 0, 16, 32, 48, 64, 65, 66, 80
"""Places in `control`; what different threads write lies in different lines of the caches."""

PARTS_BITS = 22
_PARTS = (1 << PARTS_BITS) - 1
MOST_PARTS = _PARTS - 1024
"""Every thread may ask for one more than there are."""

_CALLS = (1 << (62 - 2 * PARTS_BITS)) - 1

_CONTROL = types.int64[::1]
_PAUSE = {
    "x86_64": ("llvm.x86.sse2.pause", []),
    "AMD64": ("llvm.x86.sse2.pause", []),
    "aarch64": ("llvm.aarch64.hint", [1]),
    "arm64": ("llvm.aarch64.hint", [1]),
}.get(platform.machine())
"""Of the processor: the instruction that lets time pass, and its operands."""

_TURNS = 64
"""Polls, of about a tenth of a microsecond, after which a waiting thread yields to others."""

_PAUSES = 4
"""Between two checks: a thread that waits takes little from the one that shares its core."""


def _place(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.gep(context.make_array(sig.args[0])(context, builder, args[0]).data, [args[1]])


@intrinsic
def _load(typingctx, control, place):  # type: ignore[no-untyped-def]
    """Return an element as other threads have left it, with all that they wrote before."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load_atomic(_place(context, builder, sig, args), "acquire", 8)

    return types.int64(control, types.int64), generate


@intrinsic
def _store(typingctx, control, place, value):  # type: ignore[no-untyped-def]
    """Write an element after all that was written before."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _place(context, builder, sig, args), "release", 8)
        return context.get_dummy_value()

    return types.void(control, types.int64, types.int64), generate


@intrinsic
def _swap(typingctx, control, place, old, new):  # type: ignore[no-untyped-def]
    """Write `new` where `old` stands; return whether it stood there."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = _place(context, builder, sig, args)
        return builder.extract_value(builder.cmpxchg(place, args[2], args[3], "acq_rel", "acquire"), 1)

    return types.boolean(control, types.int64, types.int64, types.int64), generate


@intrinsic
def _add(typingctx, control, place, amount):  # type: ignore[no-untyped-def]
    """Add to an element, after all that was written before; return what it was."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _place(context, builder, sig, args), args[2], "acq_rel")

    return types.int64(control, types.int64, types.int64), generate


@intrinsic
def _pause(typingctx):  # type: ignore[no-untyped-def]
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
def _give_way(typingctx):  # type: ignore[no-untyped-def]
    """Let another thread run that waits for this core: it may be the one that this one waits for."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if hasattr(os, "sched_yield"):
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def _call(typingctx, entry, words):  # type: ignore[no-untyped-def]
    """Call an entry by its address; return its status."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(64).as_pointer()])
        entry = builder.inttoptr(args[0], kind.as_pointer())
        return builder.call(entry, [builder.inttoptr(args[1], ir.IntType(64).as_pointer())])

    return types.int32(types.int64, types.int64), generate


@njit(types.int64(_CONTROL), cache=True, nogil=True)
def _take_parts(control):  # type: ignore[no-untyped-def]
    """Run parts of the present call until all are taken; return how many this thread ran."""
    count = 0
    while True:
        ticket = _load(control, TICKET)
        part = ticket & _PARTS
        if part >= (ticket >> PARTS_BITS) & _PARTS:
            return count
        # Another call may have begun meanwhile: what counts is the ticket that the part was taken from.
        ticket = _add(control, TICKET, 1)
        part = ticket & _PARTS
        if part >= (ticket >> PARTS_BITS) & _PARTS:
            return count
        # That call cannot end before this part has, so that what follows is its own.
        words = _load(control, WORDS) + part * _load(control, WIDTH)
        if _call(_load(control, ENTRY), words) != 0:
            _store(control, FAILED, 1)
        _add(control, FINISHED, 1)
        count += 1


@njit(types.void(_CONTROL, types.int64), cache=True, nogil=True)
def serve(control, patience):  # type: ignore[no-untyped-def]
    """Run parts of calls, until none has come for so many turns or the pool wants its threads back."""
    idle = 0
    while idle < patience and _load(control, LEAVE) == 0:
        idle = 0 if _take_parts(control) > 0 else idle + 1
        _pause()
        if idle % _TURNS == 0:
            _give_way()


@njit(types.boolean(_CONTROL, types.int64), cache=True, nogil=True)
def finish(control, patience):  # type: ignore[no-untyped-def]
    """Wait so many turns for the parts that other threads have taken; return whether all are done."""
    parts = (_load(control, TICKET) >> PARTS_BITS) & _PARTS
    for turn in range(patience):
        if _load(control, FINISHED) == parts:
            return True
        _pause()
        if turn >= _TURNS:
            _give_way()
    return _load(control, FINISHED) == parts


@njit(types.void(_CONTROL), cache=True, nogil=True)
def cut_short(control):  # type: ignore[no-untyped-def]
    """Leave out the parts of the present call that no thread has taken."""
    while True:
        ticket = _load(control, TICKET)
        part = min(ticket & _PARTS, (ticket >> PARTS_BITS) & _PARTS)
        call = ticket >> (2 * PARTS_BITS)
        if _swap(control, TICKET, ticket, (call << (2 * PARTS_BITS)) | (part << PARTS_BITS) | part):
            return


@njit(types.boolean(*[types.int64] * 5, _CONTROL), cache=True, nogil=True)
def run_parts(entry, words, width, parts, patience, control):  # type: ignore[no-untyped-def]
    """Publish a call, run what other threads do not, and wait; return whether all parts are done.

    Parameters
    ----------
    entry, words : int
        Addresses of the entry, and of the words of the first part.
    width : int
        Bytes of a part's words.
    parts : int
        Less than `MOST_PARTS`.
    patience : int
        Turns to wait for other threads' parts.
    control : ndarray, shape (SIZE,), int64
        Of a pool in which no call is under way.
    """
    _store(control, ENTRY, entry)
    _store(control, WORDS, words)
    _store(control, WIDTH, width)
    _store(control, FINISHED, 0)
    _store(control, FAILED, 0)
    _store(control, LEAVE, 0)
    call = ((_load(control, TICKET) >> (2 * PARTS_BITS)) + 1) & _CALLS
    _store(control, TICKET, (call << (2 * PARTS_BITS)) | (parts << PARTS_BITS))
    _take_parts(control)
    return finish(control, patience)


@njit(types.void(_CONTROL), cache=True, nogil=True)
def call_back(control):  # type: ignore[no-untyped-def]
    """Make threads leave `serve`."""
    _store(control, LEAVE, 1)
