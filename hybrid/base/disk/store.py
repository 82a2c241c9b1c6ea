"""A folder in which NumPy's long arrays lie while a check lasts: its room, and what goes wrong there."""

from __future__ import annotations

import ctypes
import errno
import importlib
import logging
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

from hybrid.base.disk import kernels
from hybrid.base.errors import DiskError, OptionError
from hybrid.base.units import bytes_text
from mtbdd.base.errors import option
from mtbdd.base.memory import Store, stored_in

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
    """An allocator for NumPy: functions of `hybrid.base.disk.kernels` with a state of its own.

    It has to outlive all arrays that are made with it, each of which refers to its capsule.
    """

    def __init__(self) -> None:
        self.state = np.zeros(kernels.WORDS, dtype=np.int64)
        self.names: tuple[ctypes.Array[ctypes.c_char], ...] = ()
        functions = kernels.allocate, kernels.allocate_zeros, kernels.reallocate, kernels.release
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
        self._state[kernels.LEAST] = LEAST_BYTES if least is None else least
        self._state[kernels.MOST] = MOST_BYTES if most is None else most
        self._state[kernels.PAGE], self._state[kernels.FOLDER] = resource.getpagesize(), own
        if has_names:
            self._state[kernels.NAMES], self._state[kernels.NAME] = names, name
            self._state[kernels.LETTERS] = len(pattern)

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
        return int(self._state[kernels.HELD])

    def free_bytes(self) -> int:
        """Return the bytes that further files may have."""
        found = os.statvfs(self.folder)
        left = int(self._state[kernels.MOST] - self._state[kernels.HELD])
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
        found = int(self._state[kernels.PEAK])
        self._state[kernels.PEAK] = self._state[kernels.HELD]
        return found

    def check(self) -> None:
        """Raise if the disk lost what was written to some file: elements read from it would be wrong.

        Raises DiskError.
        """
        state = self._state
        for row, address in enumerate(state[kernels.TABLE :: 3].tolist()):
            if address:
                kernels.note_lost(state, row)
        if state[kernels.LOST]:
            raise DiskError(
                f"{self.folder}: the disk did not keep what was written there "
                f"({os.strerror(int(state[kernels.LOST]))}), so that there is no answer; "
                f"give {option('spill')} a folder on another disk"
            )

    def fault(self) -> DiskError | None:
        """See `mtbdd.base.memory.Store.fault`."""
        step, number, size = (int(self._state[k]) for k in (kernels.STEP, kernels.ERROR, kernels.SIZE))
        asked, held = f"an array of {bytes_text(size)}", f"{bytes_text(self.held_bytes)} are held there"
        if step == kernels.RESERVING:
            return DiskError(
                f"{self.folder} has no room for {asked}: {os.strerror(number)}; {held}: make room, or give "
                f"{option('spill')} another folder"
            )
        if step == kernels.OPENING:
            return DiskError(
                f"{self.folder}: no file can be made there for {asked}: {os.strerror(number)}; {held}"
            )
        if step == kernels.MAPPING:
            return DiskError(
                f"{self.folder}: a file for {asked} cannot be mapped: {os.strerror(number)}; {held}: raise "
                "the limit of the address space (ulimit -v)"
            )
        if step == kernels.COUNTING:
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
