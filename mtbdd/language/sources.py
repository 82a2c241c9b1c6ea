"""Reading a source file into text, with every way this can fail told as a fault."""

from __future__ import annotations

import os
from pathlib import Path

from mtbdd.language.errors import Fault, SourceError
from mtbdd.language.limits import current
from mtbdd.language.syntax import Position


def read_source(path: str | os.PathLike[str], what: str = "model") -> str:
    """Read a text file.

    Parameters
    ----------
    path : path-like
        The file.
    what : str
        What the file should hold, for messages.

    Returns
    -------
    str
        Its text, without a byte-order mark.

    Raises
    ------
    SourceError
        If the file is missing, unreadable, a directory, larger than the limits allow, binary, not UTF-8 or
        empty.

    Notes
    -----
    No more of a file is read than the limits allow, so that one without an end is told, too.
    """
    name = os.fspath(path)
    most = current().source_bytes
    expected = f"expected a {what} file"

    def fail(message: str) -> SourceError:
        return SourceError([Fault(Position(name, 1, 1), message)])

    try:
        with Path(name).open("rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise fail(f"{expected}, but there is no such file; check the path") from None
    except IsADirectoryError:
        raise fail(f"{expected}, got a directory; name a file in it") from None
    except (OSError, ValueError) as error:
        # ValueError: a path with a null character.
        reason = getattr(error, "strerror", None) or str(error)
        raise fail(f"{expected}, but it cannot be read: {reason}") from None
    if len(data) > most and b"\0" not in data:
        raise fail(
            f"{expected} of at most {most} bytes, got a larger one; split it, or raise the limit "
            "'source_bytes'"
        )
    if b"\0" in data:
        raise fail(f"{expected}, got a binary file (byte 0 at offset {data.index(0)}); give a text file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fail(
            f"{expected} in UTF-8, got byte 0x{data[error.start]:02x} at offset {error.start}; "
            "save the file as UTF-8"
        ) from None
    if not text.strip():
        raise fail(f"{expected}, got an empty file; check the path")
    return text
