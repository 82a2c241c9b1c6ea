"""What is told where a page of a file can be had no more: then the kernel ends the process, silently."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mtbdd.base.wording import option

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
    """Tell of a page that cannot be read from, or written to, a disk, before the process dies of it."""
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
