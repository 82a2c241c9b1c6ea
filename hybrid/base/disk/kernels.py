"""Memory for NumPy's arrays, compiled: short ones as ever, long ones in files that have no name.

NumPy calls these functions in the place of ``malloc``, ``calloc``, ``realloc`` and ``free``, holding the
interpreter's lock. A long array is a file of the folder, opened without a name (or unlinked at once where the
file system cannot do that). All its blocks are reserved before it is mapped: a write to a mapped page without
a block on the disk would kill the process. Pages belong to the file, so that the kernel may write them out
and drop them. They are gone with the process, however it ends.

The functions get the address of their state, an array of integers; the constants here are its places.
Importing compiles, and needs Numba and Linux.
"""

# mypy: disable-error-code="no-untyped-def, attr-defined, no-any-return"
# Numba's decorators carry no types, and it gives functions of C theirs.

from __future__ import annotations

import errno
import mmap
import os
from typing import Any

import numpy as np
from numba import carray, types

from mtbdd.base.compiled import c_function, njit

LEAST, MOST, HELD, PEAK, PAGE, FOLDER, NAMES, LETTERS, NAME, STEP, ERROR, SIZE, LOST = range(13)
"""Places of the state: arrays of `LEAST` bytes lie in files, of `MOST` bytes in all; how many they have now
and had at most; the size of a page; the folder's name in memory; a pattern of names in memory, its length,
and room for one, or zeros; which `STEP` failed, why, and for how many bytes; why the disk lost what was
written, or zero."""

TABLE, ROWS = 16, 1 << 12
"""Table of the files: address, length and number of each, zeros where there is none."""

WORDS = TABLE + 3 * ROWS
"""Integers of the state."""

OPENING, RESERVING, MAPPING, COUNTING = 1, 2, 3, 4
"""Values of `STEP`; `COUNTING`: there are too many files."""

_FULL, _AGAIN = errno.ENOSPC, errno.EINTR
_BAD, _SPENT = errno.EIO, errno.EDQUOT
_MANY, _ALL = errno.EMFILE, errno.ENFILE
_FEW = 64  # times `LEAST`: arrays that memory holds where no further file can be opened
_NAMELESS = os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_TMPFILE", 0)
_NAMED = os.O_CLOEXEC
_READ_WRITE, _SHARED = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED
_WAITING = 1  # SYNC_FILE_RANGE_WAIT_BEFORE: begins no writing, and shows what went wrong with any before

_int: Any = types.int32
_long: Any = types.int64


def _of_c(name: str, signature: Any) -> Any:
    """Return a function of C's library, which every process has."""
    return types.ExternalFunction(name, signature)


_malloc = _of_c("malloc", _long(_long))
_calloc = _of_c("calloc", _long(_long, _long))
_realloc = _of_c("realloc", _long(_long, _long))
_free = _of_c("free", types.void(_long))
_usable = _of_c("malloc_usable_size", _long(_long))
_copy = _of_c("memcpy", _long(_long, _long, _long))
_errno = _of_c("__errno_location", _long())
_open = _of_c("open", _int(_long, _int, _int))
_open_named = _of_c("mkostemp", _int(_long, _int))
_unlink = _of_c("unlink", _int(_long))
_close = _of_c("close", _int(_int))
_reserve = _of_c("posix_fallocate", _int(_int, _long, _long))
_map = _of_c("mmap", _long(_long, _long, _int, _int, _int, _long))
_unmap = _of_c("munmap", _int(_long, _long))
_written = _of_c("sync_file_range", _int(_int, _long, _long, _int))


@njit()
def _error(state):
    """Return C's ``errno``."""
    state[ERROR] = 0
    _copy(state.ctypes.data + 8 * ERROR, _errno(), 4)  # the low half of the word: machines here begin with it
    return state[ERROR]


@njit()
def _refused(state, step, number, size):
    """Note the failed step; return no address."""
    state[STEP], state[ERROR], state[SIZE] = step, number, size
    return 0


@njit()
def _row_of(state, address):
    """Return the row of the table that has an address; -1 if none has."""
    if address == 0 or address % state[PAGE] != 0:
        return -1
    for row in range(ROWS):
        if state[TABLE + 3 * row] == address:
            return row
    return -1


@njit()
def _free_row(state):
    """Return a row of the table that is free; -1 if none is."""
    for row in range(ROWS):
        if state[TABLE + 3 * row] == 0:
            return row
    return -1


@njit()
def note_lost(state, row):
    """Note why the disk lost pages of a file, if it did: such errors come when pages are written out."""
    if _written(state[TABLE + 3 * row + 2], 0, 1, _WAITING) != 0:
        number = _error(state)
        if number == _BAD or number == _FULL or number == _SPENT:
            state[LOST] = number


@njit()
def _taken(state, size):
    """Return the address of a file of zeros that is mapped; 0 if there is no room for it.

    Where no further file can be opened, arrays not much longer than `LEAST` go into memory.
    """
    length = (size + state[PAGE] - 1) // state[PAGE] * state[PAGE]
    if length > state[MOST] - state[HELD]:
        return _refused(state, RESERVING, _FULL, size)
    row = _free_row(state)
    if row < 0:
        return _calloc(1, size) if size < _FEW * state[LEAST] else _refused(state, COUNTING, 0, size)
    if state[NAMES] != 0:
        _copy(state[NAME], state[NAMES], state[LETTERS])
        file = _open_named(state[NAME], _NAMED)
        if file >= 0:
            _unlink(state[NAME])
    else:
        file = _open(state[FOLDER], _NAMELESS, 0o600)
    if file < 0:
        number = _error(state)
        if (number == _MANY or number == _ALL) and size < _FEW * state[LEAST]:
            return _calloc(1, size)
        return _refused(state, OPENING, number, size)
    number = _reserve(file, 0, length)
    while number == _AGAIN:
        number = _reserve(file, 0, length)
    if number != 0:
        _close(file)
        return _refused(state, RESERVING, number, size)
    address = _map(0, length, _READ_WRITE, _SHARED, file, 0)
    if address == -1:
        number = _error(state)
        _close(file)
        return _refused(state, MAPPING, number, size)
    place = TABLE + 3 * row
    state[place], state[place + 1], state[place + 2] = address, length, file
    state[HELD] += length
    state[PEAK] = max(state[PEAK], state[HELD])
    return address


@njit()
def _released(state, row):
    """Give a file back; its pages that were not written out never are."""
    place = TABLE + 3 * row
    note_lost(state, row)
    _unmap(state[place], state[place + 1])
    _close(state[place + 2])
    state[HELD] -= state[place + 1]
    state[place], state[place + 1], state[place + 2] = 0, 0, 0


@njit()
def _found(state, address):
    """Return an address of memory; note a failure of the last step where there is none."""
    if address == 0:
        state[STEP] = 0
    return address


@c_function(_long(types.voidptr, _long))
def allocate(context, size):
    """``malloc``."""
    state = carray(context, (WORDS,), np.int64)
    return _found(state, _malloc(size)) if size < state[LEAST] else _taken(state, size)


@c_function(_long(types.voidptr, _long, _long))
def allocate_zeros(context, count, width):
    """``calloc``; new files have zeros alone."""
    state = carray(context, (WORDS,), np.int64)
    size = count * width
    return _found(state, _calloc(count, width)) if size < state[LEAST] else _taken(state, size)


@c_function(_long(types.voidptr, _long, _long))
def reallocate(context, address, size):
    """``realloc``."""
    state = carray(context, (WORDS,), np.int64)
    row = _row_of(state, address)
    if row < 0 and size < state[LEAST]:
        return _found(state, _realloc(address, size))
    found = _found(state, _malloc(size)) if size < state[LEAST] else _taken(state, size)
    if found == 0 or address == 0:
        return found
    _copy(found, address, min(size, _usable(address) if row < 0 else state[TABLE + 3 * row + 1]))
    if row < 0:
        _free(address)
    else:
        _released(state, row)
    return found


@c_function(types.void(types.voidptr, _long, _long))
def release(context, address, size):
    """``free``."""
    state = carray(context, (WORDS,), np.int64)
    row = _row_of(state, address)
    if row < 0:
        _free(address)
    else:
        _released(state, row)
