"""What processes that compile ahead have to make: records in a pipe, of which each process takes the next.

Some operations take ten times as long to compile as others, and which ones changes with CuPy's versions, so
that shares dealt out beforehand end far apart.  A pipe that all processes read is a queue without locks:
records are of one size, up to which a pipe keeps writes together, and a read takes one of them whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from gpu_kernels import array_operations
from gpu_kernels._loader import raw_kernel
from gpu_kernels.array_operations import LENGTHS, LONG, samples

Module = tuple[str, str, dict[str, int]]
"""A source of our own, a kernel of it, and the macros of a specialisation."""

Item = tuple[str, int] | Module
"""A module, or an operation: the name of its list in :mod:`gpu_kernels.array_operations` and its place;
on long vectors where the name ends in `ON_LONG`."""

ON_LONG = " on long vectors"

_BYTES = 512
"""Of a record; POSIX keeps writes of up to so many bytes together."""

_LONG_BYTES = 64 << 30
"""Free memory from which long vectors are tried: all processes together take less than half of it."""

_EXCLUSIVE = 1, 2, 3
"""Compute modes in which a second process is not welcome."""


class CompileQueue:
    """A queue of items that this process writes and others read.

    Attributes
    ----------
    reader : int
        Descriptor for the standard input of the others; to be closed here by `start` once they have it.
    """

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        # What does not fit is not compiled ahead; nobody waits for room.
        os.set_blocking(self._writer, False)

    def put(self, items: Iterable[Item]) -> None:
        """Put items at the end, those that there is room for."""
        for item in items:
            record = json.dumps(item, separators=(",", ":")).encode().ljust(_BYTES)
            if len(record) == _BYTES:
                with contextlib.suppress(OSError):
                    os.write(self._writer, record)

    def start(self) -> None:
        """Leave reading to the others."""
        os.close(self.reader)

    def close(self) -> None:
        """Tell the others that no more items come; they take those that are there."""
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1


def taken(reader: int) -> Iterator[Any]:
    """Yield items of a queue until none is left and no more come."""
    while record := os.read(reader, _BYTES):
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
