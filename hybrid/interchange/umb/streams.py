"""Bytes of a file that may be compressed: read in order, and written in order."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Protocol

from hybrid.errors import OptionError
from hybrid.interchange.faults import InterchangeError

COMPRESSIONS = ("gzip", "xz")
"""Names of what UMB files may be compressed with; None stands for no compression."""

_GZIP = b"\x1f\x8b\x08"
_XZ = b"\xfd7zXZ\x00"

_INPUT = 1 << 18
_BLOCK = 1 << 20

# What `xz -9` needs, times four.
_XZ_MEMORY = 1 << 28

# Neither method makes a byte into more than so many: deflate 1032, LZMA2 some 7000.
_GROWTH = {None: 1, "gzip": 1_040, "xz": 10_000}


class ByteSource:
    """The bytes of a file, decompressed, from its beginning to its end.

    Parameters
    ----------
    file : binary file
        Open for reading, at its beginning, seekable.
    name : str
        For messages.

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
        self._file = file
        self._name = name
        self.file_bytes = file.seek(0, 2)
        file.seek(0)
        start = file.read(6)
        file.seek(0)
        self.compression = "gzip" if start.startswith(_GZIP) else "xz" if start.startswith(_XZ) else None
        self.most_bytes = self.file_bytes * _GROWTH[self.compression] + 1024
        self._blocks = self._decompressed()
        self._block = memoryview(b"")
        self._position = 0

    def _decompressed(self) -> Iterator[bytes]:
        if self.compression == "gzip":
            return _gunzipped(self._file)
        if self.compression == "xz":
            return _unxzed(self._file)
        return iter(lambda: self._file.read(_BLOCK), b"")

    def _more(self) -> bool:
        """Get a further block; return whether there is one."""
        try:
            block = next(self._blocks, None)
        except (zlib.error, lzma.LZMAError, EOFError) as error:
            raise InterchangeError(
                f"{self._name}: byte {self._position} of the decompressed file: expected {self.compression} "
                f"data, got a fault ({error}); get the file again"
            ) from None
        self._block = memoryview(block or b"")
        return block is not None

    def read_into(self, target: memoryview, what: str) -> None:
        """Fill a buffer of bytes.

        Raises
        ------
        InterchangeError
            The file ends before, or is damaged.
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

        Raises
        ------
        InterchangeError
            More than `most` bytes are left, or the file is damaged.
        """
        left = len(self._block)
        while left <= most and self._more():
            left += len(self._block)
        if left > most:
            raise InterchangeError(
                f"{self._name}: expected at most {most} bytes after the end of the archive, got more; "
                "remove what follows the archive"
            )


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


class ByteSink(Protocol):
    """Takes bytes in order, compresses them and writes them."""

    def write(self, data: bytes | memoryview) -> None:
        """Take the next bytes."""
        ...

    def finish(self) -> None:
        """Write what is held back."""
        ...


class _Encoder(Protocol):
    def compress(self, data: bytes | memoryview, /) -> bytes: ...

    def flush(self) -> bytes: ...


class _CompressingSink:
    def __init__(self, file: BinaryIO, encoder: _Encoder) -> None:
        self._file = file
        self._encoder = encoder

    def write(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        for start in range(0, len(view), _BLOCK):
            self._file.write(self._encoder.compress(view[start : start + _BLOCK]))

    def finish(self) -> None:
        self._file.write(self._encoder.flush())


class _PlainSink:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(data)

    def finish(self) -> None:
        return


def compressing(file: BinaryIO, compression: str | None) -> ByteSink:
    """Return what compresses bytes on their way into a file.

    Parameters
    ----------
    file : binary file
        Open for writing.
    compression : str or None
        ``"gzip"`` (level 1), ``"xz"`` (preset 1) or None.

    Raises
    ------
    OptionError
        Another name.
    """
    if compression is None:
        return _PlainSink(file)
    if compression == "gzip":
        return _CompressingSink(file, zlib.compressobj(level=1, wbits=31))
    if compression == "xz":
        return _CompressingSink(file, lzma.LZMACompressor(format=lzma.FORMAT_XZ, preset=1))
    raise OptionError(
        f"compression {compression!r}: expected one of {', '.join(COMPRESSIONS)}, or None; choose one of them"
    )
