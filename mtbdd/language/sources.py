"""Reading a source file into text, with every way this can fail told as a fault."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from mtbdd.language.errors import Fault, SourceError, suggestion
from mtbdd.language.limits import current, raised
from mtbdd.language.syntax import Position

UNKNOWN_BYTE = re.compile("[\udc80-\udcff]")
"""What stands for a byte that is no UTF-8 in a text decoded with `surrogateescape`."""


class StandardInput(str):
    """The name of the text on standard input, to be given where the path of a text is expected.

    The text is read once, when it is first wanted.
    """

    def __new__(cls) -> StandardInput:
        """Return the name, ``<stdin>``."""
        return super().__new__(cls, "<stdin>")

    def __init__(self) -> None:
        self._data: bytes | None = None

    def read(self, most: int) -> bytes:
        """Return the text's bytes, `most` of them or fewer."""
        if self._data is None:
            if sys.stdin is None:
                raise OSError("standard input is closed")
            stream = getattr(sys.stdin, "buffer", None)
            self._data = sys.stdin.read(most).encode() if stream is None else stream.read(most)
        return self._data


def read_source(path: str | os.PathLike[str], what: str = "model") -> str:
    """Read a text file.

    Parameters
    ----------
    path : path-like
        The file, or a `StandardInput`.
    what : str
        What the file should hold, for messages.

    Returns
    -------
    str
        Its text, taken as UTF-8, without a byte-order mark.

    Raises
    ------
    SourceError
        If the file is missing, unreadable, a directory, larger than the limits allow, binary or empty.

    Notes
    -----
    No more of a file is read than the limits allow, so that one without an end is told, too.

    Bytes that are no UTF-8 are kept, as `os.fsdecode` does: comments may hold any, and what reads the text
    tells others with their place, see `unknown_byte`.
    """
    name = os.fspath(path)
    most = current().source_bytes
    expected = f"expected a {what} file"

    def fail(message: str) -> SourceError:
        return SourceError([Fault(Position(name, 1, 1), message)])

    try:
        data = _bytes_of(path, most + 1)
    except FileNotFoundError:
        near = near_file(name) or "; check the path"
        raise fail(f"{expected}, but there is no such file{near}") from None
    except IsADirectoryError:
        raise fail(f"{expected}, got a directory; name a file in it") from None
    except (OSError, ValueError) as error:
        # ValueError: a path with a null character.
        reason = getattr(error, "strerror", None) or str(error)
        raise fail(f"{expected}, but it cannot be read: {reason}") from None
    if len(data) > most and b"\0" not in data:
        raise fail(
            f"{expected} of at most {most} bytes, got a larger one; split it, or "
            f"{raised('source_bytes', _size(path))}"
        )
    if b"\0" in data:
        raise fail(f"{expected}, got a binary file (byte 0 at offset {data.index(0)}); give a text file")
    text = data.decode("utf-8-sig", "surrogateescape")
    if not text.strip():
        raise fail(f"{expected}, got an empty file; check the path")
    return text


def unknown_byte(text: str) -> tuple[int, str] | None:
    """Return where a byte first stands that is no UTF-8, and a message; None where there is none."""
    found = None if text.isascii() else UNKNOWN_BYTE.search(text)
    if found is None:
        return None
    byte = ord(found[0]) - 0xDC00
    return found.start(), f"expected a text in UTF-8, got the byte 0x{byte:02x}; write it in UTF-8"


def near_file(name: str) -> str:
    """Return `"; did you mean 'x'?"` for the file beside a misspelt one with the nearest name, or nothing."""
    folder, wanted = os.path.split(name)
    try:
        with os.scandir(folder or ".") as entries:
            found = suggestion(wanted, (entry.name for entry in entries if entry.is_file()))
    except (OSError, ValueError):
        return ""
    return found.replace("'", f"'{os.path.join(folder, '')}", 1) if folder else found


def _size(path: str | os.PathLike[str]) -> int:
    """Return the size of a regular file, 0 of other sources."""
    return 0 if isinstance(path, StandardInput) else Path(path).stat().st_size


def _bytes_of(path: str | os.PathLike[str], most: int) -> bytes:
    if isinstance(path, StandardInput):
        return path.read(most)
    with Path(path).open("rb") as file:
        return file.read(most)
