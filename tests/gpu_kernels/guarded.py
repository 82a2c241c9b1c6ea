"""Places for the arguments of emulated kernels, between pages that nobody may touch."""

from __future__ import annotations

import ctypes
import mmap
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

PAGE = mmap.PAGESIZE
# Larger places are given back at once, so that little is kept.
KEPT_BYTES = 1 << 24

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)

_free: dict[int, list[int]] = defaultdict(list)


def _reserve(pages: int) -> int:
    """Return the address of so many pages with a forbidden page before and after them."""
    if _free[pages]:
        return _free[pages].pop()
    whole = (pages + 2) * PAGE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    begin = _libc.mmap(None, whole, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if begin in (None, ctypes.c_void_p(-1).value):
        raise MemoryError(f"no room for {whole} bytes of an emulated kernel's argument")
    for forbidden in (begin, begin + whole - PAGE):
        assert _libc.mprotect(forbidden, PAGE, 0) == 0
    return int(begin) + PAGE


def _release(begin: int, pages: int) -> None:
    if pages * PAGE <= KEPT_BYTES:
        _free[pages].append(begin)
    else:
        _libc.munmap(begin - PAGE, (pages + 2) * PAGE)


@dataclass(frozen=True)
class Place:
    """Bytes that may be touched: ``address`` up to ``address + nbytes``."""

    address: int
    nbytes: int


class _Loan:
    """A place that ends (or else begins) at a forbidden page; the bytes next to it have all bits set."""

    def __init__(self, nbytes: int, at_end: bool) -> None:
        self.pages = 1 << max(0, -(-nbytes // PAGE) - 1).bit_length()
        self.begin = _reserve(self.pages)
        room = self.pages * PAGE
        slack = min(PAGE, room - nbytes)
        self.address = self.begin + room - nbytes if at_end else self.begin
        ctypes.memset(self.address - slack if at_end else self.address + nbytes, 0xFF, slack)

    def end(self) -> None:
        _release(self.begin, self.pages)


@contextmanager
def guarded_copies(
    arrays: list[np.ndarray], scratch: int, at_end: bool
) -> Iterator[tuple[list[Place], Place]]:
    """Lend a copy of every array, and ``scratch`` bytes; what was written is copied back.

    Arrays that overlap keep their distance in one place. All places end at a forbidden page, or begin at one.

    Raises
    ------
    AssertionError
        If an array that is not writeable was changed.
    """
    spans: list[list[int]] = []
    begins = [a.__array_interface__["data"][0] for a in arrays]
    for begin, end in sorted((b, b + a.nbytes) for b, a in zip(begins, arrays, strict=True)):
        if spans and begin < spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end)
        else:
            spans.append([begin, end])
    loans = [_Loan(end - begin, at_end) for begin, end in spans]
    shared = _Loan(scratch, at_end)
    try:
        for (begin, end), loan in zip(spans, loans, strict=True):
            ctypes.memmove(loan.address, begin, end - begin)
        places = []
        for first, array in zip(begins, arrays, strict=True):
            span, loan = next(
                (s, own)
                for s, own in zip(spans, loans, strict=True)
                if s[0] <= first and first + array.nbytes <= s[1]
            )
            places.append(Place(loan.address + first - span[0], array.nbytes))
        yield places, Place(shared.address, scratch)
        fixed = {b for b, a in zip(begins, arrays, strict=True) if not a.flags.writeable}
        for (begin, end), loan in zip(spans, loans, strict=True):
            if begin not in fixed:
                ctypes.memmove(begin, loan.address, end - begin)
            else:
                before, after = (ctypes.string_at(at, end - begin) for at in (begin, loan.address))
                assert before == after, "a kernel has changed an array that is read only"
    finally:
        for loan in (*loans, shared):
            loan.end()


def nearest(places: list[Place], address: int) -> tuple[int, str] | None:
    """Return which place an access was meant for, and how far beyond it went; None if no place is near."""
    near = []
    for i, place in enumerate(places):
        after, before = address - place.address - place.nbytes, place.address - address
        if after >= 0:
            near.append((after, i, f"{after} bytes after the end"))
        elif before > 0:
            near.append((before, i, f"{before} bytes before the begin"))
    # An access that leaps over the forbidden page is noticed only where nothing else happens to lie.
    return min(near)[1:] if near and min(near)[0] < 2 * PAGE else None
