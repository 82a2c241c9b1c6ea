"""Bytes of files, plain or compressed: read in order, and written through a spare file."""

from __future__ import annotations

import lzma
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hybrid.base.errors import InterchangeError, OptionError

COMPRESSIONS = ("gzip", "xz")
"""Names of what files may be compressed with; None stands for no compression."""

DAMAGE = (zlib.error, lzma.LZMAError, EOFError)
"""What reading the blocks of a damaged file raises."""

_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"

_INPUT = 1 << 18

_BLOCK = 1 << 20

_XZ_MEMORY = 1 << 28
"""Bytes that a decoder of .xz may take for its dictionary; the strongest preset of xz takes 65 MiB."""

# Neither method makes a byte into more than so many: deflate 1032, LZMA2 some 7000.
_GROWTH = {None: 1, "gzip": 1_040, "xz": 10_000}


def compression_of(file: BinaryIO) -> str | None:
    """Return what an open file is compressed with, by its first bytes."""
    start = file.read(len(_XZ))
    file.seek(0)
    return "gzip" if start.startswith(_GZIP) else "xz" if start == _XZ else None


def decompressed(file: BinaryIO) -> Iterator[bytes]:
    """Return the content of an open file in blocks of at most a megabyte, see `DAMAGE` for what may go wrong.

    Files may have several compressed parts, with zeros between them. Memory: some blocks, of .xz at most
    256 MiB for its dictionary.
    """
    compression = compression_of(file)
    if compression == "gzip":
        return _gunzipped(file)
    return _unxzed(file) if compression == "xz" else iter(lambda: file.read(_BLOCK), b"")


def _gunzipped(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a gzip file, of one member or more."""
    decoder = zlib.decompressobj(31)
    data = b""
    while True:
        data = data or file.read(_INPUT)
        if not data:
            raise EOFError("the compressed data end early")
        if block := decoder.decompress(data, _BLOCK):
            yield block
        data = decoder.unconsumed_tail
        if decoder.eof:
            data = _after_padding(file, decoder.unused_data)
            if not data:
                return
            decoder = zlib.decompressobj(31)


def _unxzed(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of an xz file, of one stream or more."""
    decoder = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
    data = file.read(_INPUT)
    while True:
        if not data and decoder.needs_input:
            raise EOFError("the compressed data end early")
        if block := decoder.decompress(data, _BLOCK):
            yield block
        if decoder.eof:
            data = _after_padding(file, decoder.unused_data)
            if not data:
                return
            decoder = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        else:
            data = file.read(_INPUT) if decoder.needs_input else b""


def _after_padding(file: BinaryIO, data: bytes) -> bytes:
    """Return the first bytes behind zeros that pad the file; none at its end."""
    data = data.lstrip(b"\0")
    while not data and (more := file.read(_INPUT)):
        data = more.lstrip(b"\0")
    return data


class ByteSource:
    """The bytes of a file, decompressed, from its beginning to its end.

    `file`: open for reading, at its beginning, seekable. `name`: for messages.

    Attributes
    ----------
    compression : str or None
        Found from the first bytes.
    file_bytes : int
        The size of the file as it is.
    most_bytes : int
        No more than so many bytes come out.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._name = name
        self.file_bytes = file.seek(0, 2)
        file.seek(0)
        self.compression = compression_of(file)
        self.most_bytes = self.file_bytes * _GROWTH[self.compression] + 1024
        self._blocks = decompressed(file)
        self._block = memoryview(b"")
        self._position = 0

    def _more(self) -> bool:
        """Get a further block; return whether there is one."""
        try:
            block = next(self._blocks, None)
        except DAMAGE as error:
            raise InterchangeError(
                f"{self._name}: byte {self._position} of the decompressed file: expected {self.compression} "
                f"data, got a fault ({error}); get the file again"
            ) from None
        self._block = memoryview(block or b"")
        return block is not None

    def read_into(self, target: memoryview, what: str) -> None:
        """Fill a buffer of bytes.

        Raises InterchangeError: the file ends before, or is damaged.
        """
        done = 0
        while done < len(target):
            if not self._block and not self._more():
                raise InterchangeError(
                    f"{self._name}: {what}: expected {len(target)} bytes, got {done}, where the file ends; "
                    "get the whole file"
                )
            count = min(len(target) - done, len(self._block))
            target[done : done + count] = self._block[:count]
            self._block = self._block[count:]
            self._position += count
            done += count

    def read(self, count: int, what: str) -> bytes:
        """Return the next `count` bytes, of which there should be few."""
        found = bytearray(count)
        self.read_into(memoryview(found), what)
        return bytes(found)

    def skip(self, count: int, what: str) -> None:
        """Pass over bytes."""
        while count > 0:
            if not self._block and not self._more():
                raise InterchangeError(
                    f"{self._name}: {what}: expected {count} more bytes, got the file's end; "
                    "get the whole file"
                )
            step = min(count, len(self._block))
            self._block = self._block[step:]
            self._position += step
            count -= step

    def finish(self, most: int) -> None:
        """Read what is left, so that checksums at the end are compared.

        Raises InterchangeError: more than `most` bytes are left, or the file is damaged.
        """
        left = len(self._block)
        while left <= most and self._more():
            left += len(self._block)
        if left > most:
            raise InterchangeError(
                f"{self._name}: expected at most {most} bytes after the end of the archive, got more; "
                "remove what follows the archive"
            )


class ByteSink:
    """Takes bytes in order, compresses them and writes them.

    Raises OptionError: another compression.

    Parameters
    ----------
    file : binary file
        Open for writing.
    compression : {"gzip", "xz", None}
    effort : int
        Level of gzip, preset of xz.
    """

    def __init__(self, file: BinaryIO, compression: str | None, effort: int = 1) -> None:
        self._file = file
        self._encoder: zlib._Compress | lzma.LZMACompressor | None = None
        if compression == "gzip":
            # Without a name and a time equal models give equal files.
            self._encoder = zlib.compressobj(level=effort, wbits=31)
        elif compression == "xz":
            self._encoder = lzma.LZMACompressor(format=lzma.FORMAT_XZ, preset=effort)
        elif compression is not None:
            raise OptionError(
                f"compression {compression!r}: expected one of {', '.join(COMPRESSIONS)}, or None; choose "
                "one of them"
            )

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes."""
        if self._encoder is None:
            self._file.write(data)
            return
        view = memoryview(data)
        for start in range(0, len(view), _BLOCK):
            self._file.write(self._encoder.compress(view[start : start + _BLOCK]))

    def finish(self) -> None:
        """Write what is held back; nothing may be written afterwards."""
        if self._encoder is not None:
            self._file.write(self._encoder.flush())
            self._encoder = None


@contextmanager
def written(
    path: str | os.PathLike[str], compression: str | None = None, effort: int = 1
) -> Iterator[ByteSink]:
    """Open a file for writing.

    `path`: an old file is replaced once the new one is whole, which gets its mode; a device or a pipe is
    written to. `compression`, `effort`: see `ByteSink`. Raises OSError: the file cannot be written.
    """
    target = Path(path)
    place = target.with_name(f".{target.name}.{os.getpid()}.part")
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        place = target
    try:
        with open(place, "wb") as file:
            sink = ByteSink(file, compression, effort)
            yield sink
            sink.finish()
        if place != target:
            if mode is not None:
                place.chmod(stat.S_IMODE(mode))
            os.replace(place, target)
    finally:
        if place != target:
            place.unlink(missing_ok=True)
