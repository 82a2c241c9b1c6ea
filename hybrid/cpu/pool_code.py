"""Compiled code of the pool of threads: parts of a call are taken, run and awaited without the interpreter.

Threads meet in one array of integers, `control`.  A call is published by its *ticket*: the number of the
call, how many parts it has and which part comes next, in one word, so that to take a part is one
addition, whose result tells whether there was one.
"""

# mypy: disable-error-code="call-arg, unreachable, var-annotated"
# An intrinsic takes one argument less than its definition and returns what its signature says.

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils as _untyped_cgutils
from numba.core import types
from numba.extending import intrinsic

from hybrid.cpu.atomics import TURNS, atomic_add, atomic_load, atomic_store, atomic_swap, give_way, pause
from mtbdd.compiled import njit

cgutils: Any = _untyped_cgutils
TICKET, FINISHED, FAILED, LEAVE, ENTRY, WORDS, WIDTH, SIZE = 0, 16, 32, 48, 64, 65, 66, 80
"""Places in `control`; what different threads write lies in different lines of the caches."""

PARTS_BITS = 22
_PARTS = (1 << PARTS_BITS) - 1
MOST_PARTS = _PARTS - 1024
"""Every thread may ask for one more than there are."""

_CALLS = (1 << (62 - 2 * PARTS_BITS)) - 1

_CONTROL = types.int64[::1]


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
        ticket = atomic_load(control, TICKET)
        part = ticket & _PARTS
        if part >= (ticket >> PARTS_BITS) & _PARTS:
            return count
        # Another call may have begun meanwhile: what counts is the ticket that the part was taken from.
        ticket = atomic_add(control, TICKET, 1)
        part = ticket & _PARTS
        if part >= (ticket >> PARTS_BITS) & _PARTS:
            return count
        # That call cannot end before this part has, so that what follows is its own.
        words = atomic_load(control, WORDS) + part * atomic_load(control, WIDTH)
        if _call(atomic_load(control, ENTRY), words) != 0:
            atomic_store(control, FAILED, 1)
        atomic_add(control, FINISHED, 1)
        count += 1


@njit(types.void(_CONTROL, types.int64), cache=True, nogil=True)
def serve(control, patience):  # type: ignore[no-untyped-def]
    """Run parts of calls, until none has come for so many turns or the pool wants its threads back."""
    idle = 0
    while idle < patience and atomic_load(control, LEAVE) == 0:
        idle = 0 if _take_parts(control) > 0 else idle + 1
        pause()
        if idle % TURNS == 0:
            give_way()


@njit(types.boolean(_CONTROL, types.int64), cache=True, nogil=True)
def finish(control, patience):  # type: ignore[no-untyped-def]
    """Wait so many turns for the parts that other threads have taken; return whether all are done."""
    parts = (atomic_load(control, TICKET) >> PARTS_BITS) & _PARTS
    for turn in range(patience):
        if atomic_load(control, FINISHED) == parts:
            return True
        pause()
        if turn >= TURNS:
            give_way()
    return atomic_load(control, FINISHED) == parts


@njit(types.void(_CONTROL), cache=True, nogil=True)
def cut_short(control):  # type: ignore[no-untyped-def]
    """Leave out the parts of the present call that no thread has taken."""
    while True:
        ticket = atomic_load(control, TICKET)
        part = min(ticket & _PARTS, (ticket >> PARTS_BITS) & _PARTS)
        call = ticket >> (2 * PARTS_BITS)
        if atomic_swap(control, TICKET, ticket, (call << (2 * PARTS_BITS)) | (part << PARTS_BITS) | part):
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
    atomic_store(control, ENTRY, entry)
    atomic_store(control, WORDS, words)
    atomic_store(control, WIDTH, width)
    atomic_store(control, FINISHED, 0)
    atomic_store(control, FAILED, 0)
    atomic_store(control, LEAVE, 0)
    call = ((atomic_load(control, TICKET) >> (2 * PARTS_BITS)) + 1) & _CALLS
    atomic_store(control, TICKET, (call << (2 * PARTS_BITS)) | (parts << PARTS_BITS))
    _take_parts(control)
    return finish(control, patience)


@njit(types.void(_CONTROL), cache=True, nogil=True)
def call_back(control):  # type: ignore[no-untyped-def]
    """Make threads leave `serve`."""
    atomic_store(control, LEAVE, 1)
