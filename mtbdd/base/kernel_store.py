"""Files of compiled functions: written whole, and read only if whole and out of reach of other users.

A file is a digest and a payload. The payload is unpickled and run by its reader. So the digest guards against
files cut by a crash or a full disk, and `private_folder` against files of other users. On any error callers
compile: the store returns and keeps nothing, and warns once. Importing needs no other package, so that a
start may ask whether it is the first.
"""

from __future__ import annotations

import functools
import logging
import os
import stat
import time
from pathlib import Path

# Folders for files that are run when they are read: only folders that no other user can write to.
#
# Caches hold compiled code. A file there runs code as the user who reads it, so owner and
# permissions of a folder, and of every folder above it, are examined before anything is read.

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def private_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder, unless it is there, into which only this user and root can write.

    `path`: absolute; missing folders above it are made as well, with mode 0700. Returns Path: without
    symbolic links. Raises OSError: if the folder cannot be made. PermissionError if others could put files
    there: it belongs to somebody else, its group or others may write to it, or this holds of a folder above
    it that is not sticky as ``/tmp`` is. A group without other members, named like the user, is no other.
    """
    if not os.path.isabs(path):
        raise OSError(f"{os.fspath(path)} is no absolute path")
    folder = Path(os.path.realpath(path))
    above = [*reversed(folder.parents), folder]
    for each in above:
        try:
            found = os.lstat(each)
        except FileNotFoundError:
            # Another process may make it at the same moment.
            each.mkdir(mode=0o700, exist_ok=True)
            found = os.lstat(each)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(f"{each} is no folder")
        is_last = each == folder
        if found.st_uid not in (os.geteuid(), 0):
            raise PermissionError(f"{each} belongs to user {found.st_uid}, not to this one ({os.geteuid()})")
        if _others_may_write(found) and (is_last or not found.st_mode & stat.S_ISVTX):
            raise PermissionError(f"others may write to {each} (mode {stat.S_IMODE(found.st_mode):04o})")
    return folder


def is_private_file(descriptor: int) -> bool:
    """Return whether an open file is a plain one of this user or root that others may not write to."""
    found = os.fstat(descriptor)
    return stat.S_ISREG(found.st_mode) and found.st_uid in (os.geteuid(), 0) and not _others_may_write(found)


def _others_may_write(found: os.stat_result) -> bool:
    """Return whether the mode lets others write; a group of this user alone does not count."""
    if not found.st_mode & _OTHERS:
        return False
    return bool(found.st_mode & stat.S_IWOTH) or not _is_own_group(found.st_gid)


def _is_own_group(gid: int) -> bool:
    """Return whether a group is private to this user: primary, of the same name, without other members."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return user.pw_gid == gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


_log = logging.getLogger(__name__)

_MAGIC = b"hybrid kernel 1\n"
_DIGEST_BYTES = 32
_STALE_SECONDS = 3600
"""Age from which an unfinished file is taken for what a killed process left."""

_told = False
"""Whether this process has warned that functions cannot be stored."""


def kernel_folder(chosen: str = "") -> Path:
    """Return where compiled functions belong; the folder need not exist.

    `chosen`: what NUMBA_CACHE_DIR says; without it the folder of the user's caches is taken. Raises OSError:
    there is no home directory.
    """
    if chosen:
        return Path(chosen).absolute()
    caches = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(caches):
        caches = os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(caches):
        raise OSError("there is no home directory")
    return Path(caches) / "hybrid-model-checker"


@functools.cache
def store_of(chosen: str, sources: str) -> KernelStore:
    """Return the store of a folder of source files, the same one for all who ask."""
    return KernelStore(chosen, sources)


class KernelStore:
    """Payloads by name, in a folder of their own for every folder of source files.

    `chosen`: see :func:`kernel_folder`. `sources`: folder of the source files, so that two checkouts do not
    remove each other's files.
    """

    def __init__(self, chosen: str, sources: str) -> None:
        self._chosen, self._sources = chosen, sources

    @functools.cached_property
    def folder(self) -> Path | None:
        """The folder, made if need be; None, with a warning once, if there is none that can be trusted."""
        where = _digest(os.path.abspath(self._sources).encode()).hex()[:16]
        name = f"{Path(self._sources).name}-{where}"
        try:
            return private_folder(kernel_folder(self._chosen) / name)
        except OSError as error:
            _tell(_reason(error))
            return None

    @functools.cached_property
    def is_first(self) -> bool:
        """Whether no function of any folder of source files was kept when this was first asked."""
        try:
            if any(kernel_folder(self._chosen).glob("*/*.nbc")):
                return False
        except OSError:
            return False
        return self.folder is not None

    def read(self, function: str, version: str) -> bytes | None:
        """Return the payload kept under a name and a version; None if there is none.

        A file that is not whole is removed.
        """
        if self.folder is None:
            return None
        path = self.folder / _file_name(function, version)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        with open(descriptor, "rb") as file:
            if not is_private_file(descriptor):
                _log.info("%s could have been written by others and is left alone", path)
                return None
            try:
                found = file.read()
            except OSError:
                return None
        head = len(_MAGIC) + _DIGEST_BYTES
        payload = found[head:]
        if found[:head] == _MAGIC + _digest(payload):
            return payload
        self.drop(function, version)
        return None

    def drop(self, function: str, version: str) -> None:
        """Remove a payload that turned out not to be usable."""
        if self.folder is not None:
            _remove(self.folder / _file_name(function, version))

    def write(self, function: str, version: str, payload: bytes) -> None:
        """Keep a payload under a name and a version, and remove those of the name's other source texts.

        `function`: name of the function, with its module. `version`: digest of its source text, a dash, and a
        digest of what else its code depends on.
        """
        if self.folder is None:
            return
        name = _file_name(function, version)
        unfinished = self.folder / f"{name}.{os.getpid()}.tmp"
        try:
            descriptor = os.open(
                unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
            with open(descriptor, "wb") as file:
                file.write(_MAGIC + _digest(payload) + payload)
            unfinished.replace(self.folder / name)
            self._prune(function, name)
        except OSError as error:
            _remove(unfinished)
            _tell(_reason(error))
            # The next functions would fail as this one did; those that are there can still be read.
            self.write = _write_nothing  # type: ignore[method-assign]

    def _prune(self, function: str, name: str) -> None:
        """Remove the function's files of other source texts, and what killed processes left."""
        assert self.folder is not None
        current = name.split("-")[1]
        for path in self.folder.glob(f"{function}-*"):
            if path.suffix == ".tmp":
                if _age(path) > _STALE_SECONDS:
                    _remove(path)
            elif path.name.split("-")[1] != current:
                _remove(path)


def _digest(payload: bytes) -> bytes:
    """Return the SHA-256 digest."""
    import hashlib  # OpenSSL, which a start does without

    return hashlib.sha256(payload).digest()


def _write_nothing(function: str, version: str, payload: bytes) -> None:
    """Take the place of `KernelStore.write` where nothing can be written."""


def _file_name(function: str, version: str) -> str:
    return f"{function}-{version}.nbc"


def _age(path: Path) -> float:
    """Return how many seconds ago a file was written to; 0 if another process has just given it its name."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        pass


def _reason(error: OSError) -> str:
    """Return what went wrong, with the file if the system names one."""
    if error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"


def _tell(reason: str) -> None:
    """Warn, once a process, that functions are compiled again by every process."""
    global _told
    if _told:
        return
    _told = True
    _log.warning(
        "compiled functions cannot be kept, so that every run compiles them again (%s); set NUMBA_CACHE_DIR "
        "to a folder that only this user can write to",
        reason,
    )
