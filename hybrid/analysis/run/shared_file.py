"""A file that several processes write to at once."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mtbdd.base.communicator import Communicator

_PIECE = 1 << 24  # bytes that are read together


@contextlib.contextmanager
def failing_together(communicator: Communicator) -> Iterator[None]:
    """Let what the operating system refuses one process be refused to all.

    All processes come here at once, and ask each other nothing inside.

    Raises
    ------
    OSError
        That of the first process that has one; in all processes alike.
    """
    failure: OSError | None = None
    try:
        yield
    except OSError as error:
        failure = error
    told = None
    if failure is not None:
        where = "" if communicator.size == 1 else f" (process {communicator.rank} of {communicator.size})"
        told = f"{failure.errno or errno.EIO} {failure.strerror or failure}{where}"
    text = communicator.first_text(told)
    if text is not None:
        number, _, reason = text.partition(" ")
        raise OSError(int(number), reason) from failure


class SharedFile:
    """A file in a folder that all processes share, opened by each of them; what was in it is gone.

    Parameters
    ----------
    communicator : Communicator
    path : Path
        The same file for all processes; the first one makes it if there is none.

    Raises
    ------
    OSError
        Some process cannot write it; in all processes alike.
    """

    def __init__(self, communicator: Communicator, path: Path) -> None:
        self.communicator, self._path = communicator, path
        self._descriptor = -1
        try:
            with self.together():
                if communicator.rank == 0:
                    self._descriptor = os.open(
                        path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666
                    )
            with self.together():
                if communicator.rank:
                    self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> SharedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; what was written is safe after `to_disk` alone."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def together(self) -> contextlib.AbstractContextManager[None]:
        """See `failing_together`."""
        return failing_together(self.communicator)

    def put(self, place: int, data: Any) -> None:
        """Write bytes at a place, whatever is there."""
        left = memoryview(data).cast("B")
        while left.nbytes:
            done = os.pwrite(self._descriptor, left, place)
            left, place = left[done:], place + done

    def to_disk(self) -> None:
        """Wait until what this process has written is there for others to read."""
        os.fsync(self._descriptor)

    def pieces(self, begin: int, end: int) -> Iterator[bytes]:
        """Yield what all processes have written between two places, some at a time."""
        # Opened afresh: what a network's file system keeps of other processes' writes may be old.
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while begin < end:
                piece = os.pread(descriptor, min(_PIECE, end - begin), begin)
                if not piece:
                    raise OSError(
                        errno.EIO, "the file is shorter than what was written: is it shared by all?"
                    )
                yield piece
                begin += len(piece)
        finally:
            os.close(descriptor)


def to_disk(path: Path) -> None:
    """Wait until a file is on the disk, so that no crash leaves an empty one in the place of the old."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
