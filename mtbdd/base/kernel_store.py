"""Files of compiled functions: written whole, and read only if whole and out of reach of other users.

A file is a digest and a payload. The payload is unpickled and run by whoever reads it, so the digest guards
against files cut by a crash or a full disk, and `mtbdd.base.private_folder` against files of other users.
Whatever goes wrong, callers compile: a store gives nothing, keeps nothing, and says so once.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import time
from pathlib import Path

from mtbdd.base.private_folder import is_private_file, private_folder

_log = logging.getLogger(__name__)

_MAGIC = b"hybrid kernel 1\n"
_DIGEST_BYTES = 32
_STALE_SECONDS = 3600
"""Age from which an unfinished file is taken for what a killed process left."""

_told = False
"""Whether this process has told that functions cannot be kept."""


def kernel_folder(chosen: str = "") -> Path:
    """Return where compiled functions belong; the folder need not exist.

    Parameters
    ----------
    chosen : str
        What NUMBA_CACHE_DIR says; without it the folder of the user's caches is taken.

    Raises
    ------
    OSError
        There is no home directory.
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

    Parameters
    ----------
    chosen : str
        See :func:`kernel_folder`.
    sources : str
        Folder of the source files, so that two checkouts do not remove each other's files.
    """

    def __init__(self, chosen: str, sources: str) -> None:
        self._chosen, self._sources = chosen, sources

    @functools.cached_property
    def folder(self) -> Path | None:
        """The folder, made if need be; None, once told why, if there is none that can be trusted."""
        where = hashlib.sha256(os.path.abspath(self._sources).encode()).hexdigest()[:16]
        name = f"{Path(self._sources).name}-{where}"
        try:
            return private_folder(kernel_folder(self._chosen) / name)
        except OSError as error:
            _tell(_reason(error))
            return None

    @functools.cached_property
    def is_first(self) -> bool:
        """Whether no function of any folder of source files was kept when this was first asked."""
        return self.folder is not None and not any(self.folder.parent.glob("*/*.nbc"))

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
        if found[:head] == _MAGIC + hashlib.sha256(payload).digest():
            return payload
        self.drop(function, version)
        return None

    def drop(self, function: str, version: str) -> None:
        """Remove a payload that turned out not to be usable."""
        if self.folder is not None:
            _remove(self.folder / _file_name(function, version))

    def write(self, function: str, version: str, payload: bytes) -> None:
        """Keep a payload under a name and a version, and remove those of the name's other source texts.

        Parameters
        ----------
        function : str
            Name of the function, with its module.
        version : str
            Digest of its source text, a dash, and a digest of what else its code depends on.
        payload : bytes
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
                file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
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
    """Warn, once a process, that functions are compiled anew by every process."""
    global _told
    if _told:
        return
    _told = True
    _log.warning(
        "compiled functions cannot be kept, so that every run compiles them again (%s); set NUMBA_CACHE_DIR "
        "to a folder that only this user can write to",
        reason,
    )
