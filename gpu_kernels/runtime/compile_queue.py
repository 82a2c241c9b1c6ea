"""The queue of processes that compile ahead: records in a pipe, of which each process takes the next.

Some operations take ten times as long to compile as others, and which ones changes with CuPy's versions. So
shares dealt out beforehand end far apart. A pipe that all processes read is a queue without locks. Records
are of one size, up to which a pipe keeps writes together, and a read takes one of them whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from gpu_kernels.runtime import array_operations
from gpu_kernels.runtime._loader import raw_kernel
from gpu_kernels.runtime.array_operations import (
    CODING,
    LAYOUT,
    LENGTHS,
    LONG,
    MODULES,
    NUMBERS,
    PARTS,
    VECTORS,
    samples,
)

Work = Literal["solutions", "layouts"]

Module = tuple[str, str, dict[str, int]]
"""A source of our own, a kernel of it, and the macros of a specialisation."""

Item = tuple[str, int] | Module
"""A module, or an operation: its list in :mod:`gpu_kernels.runtime.array_operations` and its place;
on long vectors where the name ends in `ON_LONG`."""

ON_LONG = " on long vectors"

_BYTES = 512
"""Of a record; POSIX keeps writes of up to so many bytes together."""

_IDLE_SECONDS = 2.0
"""A process that finds nothing to do for so long ends, and leaves the card's memory to others."""

_LONG_BYTES = 64 << 30
"""Free memory from which long vectors are tried: all processes together take less than half of it."""

_EXCLUSIVE = 1, 2, 3
"""Compute modes in which a second process is not welcome."""


def items_of(work: Work) -> Iterator[Item]:
    """Yield the items that some work needs, those that take longest first."""
    if work == "solutions":
        yield from _operations("CODING", len(CODING))
        yield from MODULES
        yield from _operations("VECTORS", len(VECTORS))
        yield from _operations("NUMBERS", len(NUMBERS))
    else:
        yield from _operations("LAYOUT", len(LAYOUT))
        # Vectors may be long where layouts are large.
        yield from _operations(f"VECTORS{ON_LONG}", len(VECTORS))
        yield from _operations(f"PARTS{ON_LONG}", len(PARTS))


def _operations(kind: str, count: int) -> Iterator[Item]:
    return ((kind, number) for number in range(count))


class CompileQueue:
    """A queue of items that this process writes and others read.

    Attributes
    ----------
    reader : int
        Descriptor for the standard input of the others. It stays open here as well until `close`, so that
        there is a reader, and no signal, where all of them have ended.

    Raises
    ------
    OSError
        There are no descriptors left.
    """

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        # Kernels that do not fit are not compiled ahead, and no thread waits for room or for a record that
        # is taken.
        os.set_blocking(self._writer, False)
        os.set_blocking(self.reader, False)

    def put(self, items: Iterable[Item]) -> bool:
        """Put items at the end, as far as there is room; return whether all are there."""
        found = True
        for item in items:
            record = json.dumps(item, separators=(",", ":"), default=int).encode().ljust(_BYTES)
            try:
                found &= len(record) == _BYTES and os.write(self._writer, record) == _BYTES
            except OSError:
                found = False
        return found

    def end(self) -> None:
        """Signal to the other processes that no more items come; they take those that are there."""
        end, self._writer = self._writer, -1
        _close(end)

    def is_empty(self) -> bool:
        """Return whether the others have taken all items; reads one, which is lost, where they have not."""
        try:
            return not os.read(self.reader, _BYTES)
        except OSError:
            return True

    def close(self) -> None:
        """Give the descriptors back; items that were not taken are lost, unless a reader is still at work."""
        self.end()
        end, self.reader = self.reader, -1
        _close(end)


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        with contextlib.suppress(OSError):
            os.close(descriptor)


def taken(reader: int) -> Iterator[Any]:
    """Yield items of a queue until none is left and no more come, or none has come for a while."""
    while True:
        try:
            record = os.read(reader, _BYTES)
        except BlockingIOError:
            if not select.select([reader], [], [], _IDLE_SECONDS)[0]:
                return
            continue
        if not record:
            return
        yield tuple(json.loads(record))


def make(items: Iterable[Any]) -> int:
    """Make what items stand for on the first card, so that CuPy's cache on disk has its kernels.

    Returns
    -------
    int
        An exit status: 0 also where the card is kept for one process.
    """
    import cupy

    mode = cupy.cuda.runtime.deviceGetAttribute(cupy.cuda.runtime.cudaDevAttrComputeMode, 0)
    if mode in _EXCLUSIVE:
        return 0
    arrays = [samples(cupy, length) for length in LENGTHS]
    long: Any = None
    for item in items:
        if len(item) == 3:
            source, name, special = item
            raw_kernel(0, source, name, tuple(sorted(special.items())))
            continue
        kind, number = item
        operation = getattr(array_operations, kind.removesuffix(ON_LONG))[number]
        if not kind.endswith(ON_LONG):
            for own in arrays:
                operation(cupy, own)
        elif long is not None or cupy.cuda.runtime.memGetInfo()[0] > _LONG_BYTES:
            long = long or samples(cupy, LENGTHS[0])
            long.f = cupy.ones(LONG) if len(long.f) < LONG else long.f
            operation(cupy, long)
    cupy.cuda.get_current_stream().synchronize()
    return 0


if __name__ == "__main__":
    sys.exit(make(taken(0)))
