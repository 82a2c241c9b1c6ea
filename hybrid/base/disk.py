"""Long arrays in files: a folder in which NumPy's arrays lie while a check lasts, and what goes wrong there.

Importing compiles, and needs Numba and Linux.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import logging
import mmap
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]

from hybrid.base.errors import DiskError, OptionError
from hybrid.base.units import bytes_text
from mtbdd.base.compiled import c_function, njit
from mtbdd.base.errors import option
from mtbdd.base.memory import Store, stored_in

# Memory for NumPy's arrays, compiled: short ones as ever, long ones in files that have no name.
#
# NumPy calls these functions in the place of ``malloc``, ``calloc``, ``realloc`` and ``free``, holding the
# interpreter's lock. A long array is a file of the folder, opened without a name (or unlinked at once where
# the file system cannot do that). All its blocks are reserved before it is mapped: a write to a mapped page
# without a block on the disk would kill the process. Pages belong to the file, so that the kernel may write
# them out and drop them. They are gone with the process, however it ends.
#
# The functions get the address of their state, an array of integers; the constants here are its places.

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
def _error(state):  # type: ignore[no-untyped-def]
    """Return C's ``errno``."""
    state[ERROR] = 0
    _copy(state.ctypes.data + 8 * ERROR, _errno(), 4)  # the low half of the word: machines here begin with it
    return state[ERROR]


@njit()
def _refused(state, step, number, size):  # type: ignore[no-untyped-def]
    """Note the failed step; return no address."""
    state[STEP], state[ERROR], state[SIZE] = step, number, size
    return 0


@njit()
def _row_of(state, address):  # type: ignore[no-untyped-def]
    """Return the row of the table that has an address; -1 if none has."""
    if address == 0 or address % state[PAGE] != 0:
        return -1
    for row in range(ROWS):
        if state[TABLE + 3 * row] == address:
            return row
    return -1


@njit()
def _free_row(state):  # type: ignore[no-untyped-def]
    """Return a row of the table that is free; -1 if none is."""
    for row in range(ROWS):
        if state[TABLE + 3 * row] == 0:
            return row
    return -1


@njit()
def note_lost(state, row):  # type: ignore[no-untyped-def]
    """Note why the disk lost pages of a file, if it did: such errors come when pages are written out."""
    if _written(state[TABLE + 3 * row + 2], 0, 1, _WAITING) != 0:
        number = _error(state)
        if number == _BAD or number == _FULL or number == _SPENT:
            state[LOST] = number


@njit()
def _taken(state, size):  # type: ignore[no-untyped-def]
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
def _released(state, row):  # type: ignore[no-untyped-def]
    """Give a file back; its pages that were not written out never are."""
    place = TABLE + 3 * row
    note_lost(state, row)
    _unmap(state[place], state[place + 1])
    _close(state[place + 2])
    state[HELD] -= state[place + 1]
    state[place], state[place + 1], state[place + 2] = 0, 0, 0


@njit()
def _found(state, address):  # type: ignore[no-untyped-def]
    """Return an address of memory; note a failure of the last step where there is none."""
    if address == 0:
        state[STEP] = 0
    return address


@c_function(_long(types.voidptr, _long))
def allocate(context, size):  # type: ignore[no-untyped-def]
    """``malloc``."""
    state = carray(context, (WORDS,), np.int64)
    return _found(state, _malloc(size)) if size < state[LEAST] else _taken(state, size)


@c_function(_long(types.voidptr, _long, _long))
def allocate_zeros(context, count, width):  # type: ignore[no-untyped-def]
    """``calloc``; new files have zeros alone."""
    state = carray(context, (WORDS,), np.int64)
    size = count * width
    return _found(state, _calloc(count, width)) if size < state[LEAST] else _taken(state, size)


@c_function(_long(types.voidptr, _long, _long))
def reallocate(context, address, size):  # type: ignore[no-untyped-def]
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
def release(context, address, size):  # type: ignore[no-untyped-def]
    """``free``."""
    state = carray(context, (WORDS,), np.int64)
    row = _row_of(state, address)
    if row < 0:
        _free(address)
    else:
        _released(state, row)


# NumPy's interface for other memory ([NEP 49]): functions of C in the place of ``malloc`` and ``free``.
#
# They hold for the thread that sets them, until it leaves the block; every array keeps those that it was made
# with.
#
# [NEP 49]: https://numpy.org/neps/nep-0049.html

_SET = 304
"""Place in NumPy's table of functions for extensions; places never change (NumPy 1.22 and later)."""

_CAPSULE = b"mem_handler"
_NAME = "hybrid disk"
"""Text that NumPy shows for arrays made here; ASCII, at most 126 characters."""

_VERSION = 1


class _Functions(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


class _Handler(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("functions", _Functions)]


class _Memory:
    """An allocator for NumPy: the compiled functions above with a state of its own.

    It has to outlive all arrays that are made with it, each of which refers to its capsule.
    """

    def __init__(self) -> None:
        self.state = np.zeros(WORDS, dtype=np.int64)
        self.names: tuple[ctypes.Array[ctypes.c_char], ...] = ()
        functions = allocate, allocate_zeros, reallocate, release
        addresses = (function.address for function in functions)
        self._handler = _Handler(_NAME.encode(), _VERSION, _Functions(self.state.ctypes.data, *addresses))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        self.capsule: Any = new(ctypes.addressof(self._handler), _CAPSULE, None)
        self._references = sys.getrefcount(self.capsule)

    @property
    def is_idle(self) -> bool:
        """Whether no array that it allocated is left, and no store uses it."""
        return sys.getrefcount(self.capsule) == self._references

    @contextmanager
    def used(self) -> Iterator[None]:
        """Have NumPy make all arrays of this thread so while the block lasts.

        Raises RuntimeError where NumPy does not take it.
        """
        module = _extension()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        table = ctypes.cast(pointer(module._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
        change = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET])
        before = change(self.capsule)
        try:
            if module.get_handler_name() != _NAME:
                raise RuntimeError("this version of NumPy takes no other memory")
            yield
        finally:
            change(before)


def _extension() -> Any:
    """Return NumPy's module in C, whose name is another one before NumPy 2."""
    try:
        return importlib.import_module("numpy._core._multiarray_umath")
    except ModuleNotFoundError:
        return importlib.import_module("numpy.core._multiarray_umath")


# The message where a page of a file cannot be read any more: the kernel would end the process silently.

_ACTION_BYTES = 1024
"""More than ``struct sigaction`` has anywhere."""

_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int)

_lock = threading.Lock()
_blocks = 0
_before: Any = None
_told: list[bytes] = []
"""Messages of the blocks that are entered, the last one's last."""


@contextmanager
def bus_errors_told(folder: str) -> Iterator[None]:
    """Report a page that a disk cannot read or write, before the process dies of it."""
    global _blocks, _before
    message = os.fsencode(
        f"a page of a file in {folder} cannot be read or written any more: the disk failed, or its room was "
        f"taken away; give {option('spill')} a folder on another disk\n"
    )
    with _lock:
        _blocks += 1
        _told.append(message)
        if _blocks == 1:
            _before = ctypes.create_string_buffer(_ACTION_BYTES)
            library = ctypes.CDLL(None)
            library.sigaction(signal.SIGBUS, None, _before)
            library.signal(signal.SIGBUS, _TELL)
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            _told.remove(message)
            if _blocks == 0:
                ctypes.CDLL(None).sigaction(signal.SIGBUS, _before, None)


def _tell(number: int) -> None:
    """Say what happened; the step that failed is then made again, and ends the process."""
    for message in _told[-1:]:
        os.write(2, message)
    ctypes.CDLL(None).signal(number, None)


_TELL = _HANDLER(_tell)


_log = logging.getLogger(__name__)

LEAST_BYTES = 1 << 20
"""Bytes from which on an array lies in a file."""

MOST_BYTES = 1 << 62
"""Bytes that the files may have together, even on a larger disk."""

_PATTERN = b"/.hybrid-XXXXXX\0"
_NEEDS_NAME = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)
"""Errors of file systems that offer no files without names (``O_TMPFILE``)."""

_IN_MEMORY = ("tmpfs", "ramfs")


_memories: list[_Memory] = []
"""All allocators, never freed: an array may outlive the check that made it."""


def _idle_memory() -> tuple[_Memory, object]:
    """Return an idle allocator and its capsule; it is not idle while somebody holds the capsule."""
    with _lock:
        for memory in _memories:
            if memory.is_idle:
                return memory, memory.capsule
        _memories.append(_Memory())
        return _memories[-1], _memories[-1].capsule


class FileStore(Store):
    """A folder for long arrays; see `mtbdd.base.memory.Store`.

    Arrays of `least` bytes, by default `LEAST_BYTES`, lie in files, which may have `most` bytes together, by
    default `MOST_BYTES`. Raises OptionError where no file can be made there.
    """

    def __init__(
        self, folder: str | os.PathLike[str], least: int | None = None, most: int | None = None
    ) -> None:
        self.folder = Path(folder).absolute()
        has_names = _needs_names(self.folder)
        self._memory, self._capsule = _idle_memory()
        self._state = self._memory.state
        path = os.fsencode(self.folder)
        pattern = path + _PATTERN
        self._memory.names = tuple(ctypes.create_string_buffer(text) for text in (path, pattern, pattern))
        own, names, name = (ctypes.addressof(text) for text in self._memory.names)
        self._state[:] = 0
        self._state[LEAST] = LEAST_BYTES if least is None else least
        self._state[MOST] = MOST_BYTES if most is None else most
        self._state[PAGE], self._state[FOLDER] = resource.getpagesize(), own
        if has_names:
            self._state[NAMES], self._state[NAME] = names, name
            self._state[LETTERS] = len(pattern)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Have long arrays of this thread lie here while the block lasts; those made stay until they go.

        Raises DiskError in the place of NumPy's `MemoryError` for an array that there was no room for here,
        and at the end, if the disk lost what was written.
        """
        with stored_in(self), bus_errors_told(str(self.folder)), self._memory.used():
            try:
                yield
            except MemoryError as error:
                found = None if isinstance(error, DiskError) else self.fault()
                if found is None:
                    raise
                raise found from error
        self.check()

    @property
    def held_bytes(self) -> int:
        """Bytes that the files have now."""
        return int(self._state[HELD])

    def free_bytes(self) -> int:
        """Return the bytes that further files may have."""
        found = os.statvfs(self.folder)
        left = int(self._state[MOST] - self._state[HELD])
        return max(0, min(found.f_bavail * found.f_frsize, left))

    def require(self, needed: int, what: str, advice: str) -> None:
        """Refuse arrays that the disk has no room for, before they are made; see `mtbdd.base.memory.Store`.

        No advice on less memory: a larger disk helps. Raises DiskError.
        """
        free = self.free_bytes()
        if needed > free:
            raise DiskError(
                f"{what} needs {bytes_text(needed)}, {bytes_text(free)} are free in {self.folder}: make "
                f"room there, give {option('spill')} another folder, or choose smaller constants"
            )

    def peak(self) -> int:
        """Return the bytes that the files had at most since this was last asked."""
        found = int(self._state[PEAK])
        self._state[PEAK] = self._state[HELD]
        return found

    def check(self) -> None:
        """Raise if the disk lost what was written to some file: elements read from it would be wrong.

        Raises DiskError.
        """
        state = self._state
        for row, address in enumerate(state[TABLE::3].tolist()):
            if address:
                note_lost(state, row)
        if state[LOST]:
            raise DiskError(
                f"{self.folder}: the disk did not keep what was written there "
                f"({os.strerror(int(state[LOST]))}), so that there is no answer; "
                f"give {option('spill')} a folder on another disk"
            )

    def fault(self) -> DiskError | None:
        """See `mtbdd.base.memory.Store.fault`."""
        step, number, size = (int(self._state[k]) for k in (STEP, ERROR, SIZE))
        asked, held = f"an array of {bytes_text(size)}", f"{bytes_text(self.held_bytes)} are held there"
        if step == RESERVING:
            return DiskError(
                f"{self.folder} has no room for {asked}: {os.strerror(number)}; {held}: make room, or give "
                f"{option('spill')} another folder"
            )
        if step == OPENING:
            return DiskError(
                f"{self.folder}: no file can be made there for {asked}: {os.strerror(number)}; {held}"
            )
        if step == MAPPING:
            return DiskError(
                f"{self.folder}: a file for {asked} cannot be mapped: {os.strerror(number)}; {held}: raise "
                "the limit of the address space (ulimit -v)"
            )
        if step == COUNTING:
            return DiskError(f"{self.folder}: there are too many files there for {asked}; {held}")
        return None


def _needs_names(folder: Path) -> bool:
    """Return whether files of a folder need names; refuse a folder in which none can be made."""
    try:
        if not folder.is_dir():
            raise OSError(errno.ENOTDIR, "it is no folder" if folder.exists() else "it is not there")
        try:
            os.close(os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600))
            needs_names = False
        except OSError as error:
            if error.errno not in _NEEDS_NAME:
                raise
            trial = folder / f".hybrid-{os.getpid()}"
            os.close(os.open(trial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            trial.unlink()
            needs_names = True
    except OSError as error:
        raise OptionError(
            f"{option('spill')}: no file can be made in {folder}: {error.strerror}; give a folder that is "
            "there, that you may write to, on a disk with room"
        ) from None
    kind = _kind_of(folder)
    if kind in _IN_MEMORY:
        _log.warning("%s lies in memory (%s): arrays there take as much of it as elsewhere", folder, kind)
    return needs_names


def _kind_of(folder: Path) -> str:
    """Return the file system that a folder lies on; nothing where the system gives none."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ""
    best, kind, real = -1, "", os.path.realpath(folder)
    for line in lines:
        mount, _, behind = line.partition(" - ")
        point = mount.split(" ")[4].encode().decode("unicode_escape")
        if len(point) >= best and (real == point or real.startswith(point.rstrip("/") + "/")):
            best, kind = len(point), behind.split(" ")[0]
    return kind
