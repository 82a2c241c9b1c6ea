"""Bytes of files, plain or compressed, and what they hold: archives in the tar format, texts of JSON."""

from __future__ import annotations

import json
import lzma
import math
import os
import stat
import tarfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError, OptionError

COMPRESSIONS = ("gzip", "xz")
"""Names of what files may be compressed with; None stands for no compression."""

DAMAGE = (zlib.error, lzma.LZMAError, EOFError)
"""Exceptions from reading the blocks of a damaged file."""

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

    `file`: open for reading, at its beginning, seekable. `name`: for messages. `compression`: found from the
    first bytes. `file_bytes`: the size of the file as it is. `most_bytes`: no more than so many bytes come
    out.
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

    Raises OptionError: another compression. `file`: open for writing. `compression`: {"gzip", "xz", None}.
    `effort`: level of gzip, preset of xz.
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


Bytes = NDArray[np.uint8]
_RECORD = 512

# Bytes of an extended header: names, and times that are not read.
_LONGEST_HEADER = 1 << 20

# Archives are padded to whole blocks, of 10240 bytes as a rule.
_LONGEST_PADDING = 1 << 20


@dataclass(frozen=True)
class TarMember:
    """A regular file in an archive: its name without ``./``, and its size in bytes."""

    name: str
    size: int


class TarSource:
    """The members of an archive, in order.

    `name`: for messages.
    """

    def __init__(self, source: ByteSource, name: str) -> None:
        self._source = source
        self._name = name
        self._left = 0
        self._padding = 0
        self._current = ""

    def members(self) -> Iterator[TarMember]:
        """Yield every regular file; its content is passed over unless `content` takes it before the next.

        Raises InterchangeError: no archive, a damaged or a truncated one, or members that are neither files
        nor folders.
        """
        named: str | None = None
        sized: int | None = None
        while True:
            self._source.skip(self._left + self._padding, self._current)
            self._left = self._padding = 0
            header = self._source.read(_RECORD, "the archive's end")
            if not any(header):
                break
            found = self._header(header)
            name, size, kind = found.name, found.size, found.type
            self._left, self._padding = size, -size % _RECORD
            if kind in b"xL":
                extra = self._extension(kind, size)
                named, sized = extra.get("path", named), _size_of(extra.get("size"), sized)
                continue
            if kind == b"g":
                if size > _LONGEST_HEADER:
                    raise self._fault(f"at most {_LONGEST_HEADER} bytes of a header", f"{size}")
                continue
            if named is not None:
                name = named
            if sized is not None:
                self._left, self._padding = sized, -sized % _RECORD
            named = sized = None
            name = self._checked(name)
            self._current = name
            if kind in b"0\x00":
                yield TarMember(name, self._left)
            elif kind != b"5":
                raise self._fault("a file or a folder", f"a member of type {kind!r}")
        self._source.finish(_LONGEST_PADDING)

    def content(self) -> Bytes:
        """Return the bytes of the current member, which the caller has found not to be too many."""
        found: Bytes = np.empty(self._left, dtype=np.uint8)
        self._source.read_into(memoryview(found), self._current)  # type: ignore[arg-type]
        self._left = 0
        return found

    def _fault(self, expected: str, came: str) -> InterchangeError:
        return InterchangeError(
            f"{self._name}: {self._current[:200]!r}: expected {expected}, got {came}; write the archive again"
        )

    def _header(self, header: bytes) -> tarfile.TarInfo:
        """Return what a header says: name, size and type."""
        self._current = "a header of the archive"
        if header[257:262] != b"ustar":
            raise InterchangeError(
                f"{self._name}: expected a UMB file (a tar archive, plain or compressed with gzip or xz), "
                f"got {header[:8]!r}...; give a file in that format"
            )
        try:
            found = tarfile.TarInfo.frombuf(header, "utf-8", "replace")
        except tarfile.HeaderError as error:
            raise self._fault("a header with numbers that fit its checksum", str(error)) from None
        self._current = found.name
        if found.size < 0:
            raise self._fault("a size", str(found.size))
        return found

    def _extension(self, kind: bytes, size: int) -> dict[str, str]:
        """Return what a header says of the member that follows it: its name, its size."""
        if size > _LONGEST_HEADER:
            raise self._fault(f"at most {_LONGEST_HEADER} bytes of a header", f"{size}")
        data = bytes(self.content())
        if kind == b"L":
            return {"path": data.split(b"\0")[0].decode("utf-8", "replace")}
        found = {}
        while data:
            length, _, _ = data.partition(b" ")
            count = int(length) if length.isdigit() and len(length) < 8 else 0
            record = data[len(length) + 1 : count]
            key, equals, value = record.removesuffix(b"\n").partition(b"=")
            if count > len(data) or not equals or not record.endswith(b"\n"):
                raise self._fault("records of an extended header", repr(data[:40]))
            found[key.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
            data = data[count:]
        if "size" in found and _size_of(found["size"], None) is None:
            raise self._fault("a size", repr(found["size"]))
        return found

    def _checked(self, name: str) -> str:
        """Return a name without ``./`` in front and ``/`` behind, if it stays inside the archive."""
        while name.startswith("./"):
            name = name[2:]
        parts = name.rstrip("/").split("/") if name else []
        if name.startswith("/") or any(part in ("", "..", ".") for part in parts) or "\\" in name:
            raise self._fault("the name of a file inside the archive", f"{name[:200]!r}")
        return "/".join(parts)


def _size_of(text: str | None, otherwise: int | None) -> int | None:
    return (
        int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 20 else otherwise
    )


class TarSink:
    """An archive that is written: regular files with names of at most 100 bytes."""

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink

    def add(self, name: str, parts: Sequence[bytes | NDArray[Any]]) -> None:
        """Write a file whose content is that of the parts, one after the other."""
        views = [_as_bytes(part) for part in parts]
        size = sum(len(view) for view in views)
        info = tarfile.TarInfo(name)
        info.size = size
        # Octal digits do for 8 GiB; beyond that GNU's base 256, which all readers know.
        is_long = size >= 8**11
        self._sink.write(info.tobuf(tarfile.GNU_FORMAT) if is_long else info.tobuf(tarfile.USTAR_FORMAT))
        for view in views:
            self._sink.write(view)
        self._sink.write(bytes(-size % _RECORD))

    def finish(self) -> None:
        """Write the archive's end."""
        self._sink.write(bytes(2 * _RECORD))
        self._sink.finish()


def _as_bytes(part: bytes | NDArray[Any]) -> memoryview:
    if isinstance(part, bytes):
        return memoryview(part)
    return memoryview(np.ascontiguousarray(part).reshape(-1).view(np.uint8))  # type: ignore[arg-type]


class JsonValue:
    """A value with its place in a text.

    `value`: as `json.loads` returns it. `place`: file, member, and the keys that lead to the value.
    """

    def __init__(self, value: Any, place: str) -> None:
        self.value = value
        self.place = place

    def fault(self, expected: str, advice: str = "correct it") -> InterchangeError:
        """Return the error that another value was expected here."""
        return InterchangeError(f"{self.place}: expected {expected}, got {_shown(self.value)}; {advice}")

    def entry(self, key: str) -> JsonValue:
        """Return an entry that must be there."""
        found = self.optional(key)
        if found is None:
            raise InterchangeError(f"{self.place}: expected an entry {key!r}, got none; add it")
        return found

    def optional(self, key: str) -> JsonValue | None:
        """Return an entry, or None where it is missing or null."""
        if not isinstance(self.value, dict):
            raise self.fault("an object")
        return JsonValue(self.value.get(key), f"{self.place}.{key}").unless_null()

    def unless_null(self) -> JsonValue | None:
        """Return the value itself, None where it is null."""
        return None if self.value is None else self

    def entries(self) -> list[tuple[str, JsonValue]]:
        """Return all entries of an object."""
        if not isinstance(self.value, dict):
            raise self.fault("an object")
        return [(key, JsonValue(value, f"{self.place}.{key[:80]}")) for key, value in self.value.items()]

    def elements(self, length: int | None = None) -> list[JsonValue]:
        """Return the elements of an array, which must be of the length that is given."""
        if not isinstance(self.value, list) or length not in (None, len(self.value)):
            raise self.fault("an array" if length is None else f"an array of {length}")
        return [JsonValue(value, f"{self.place}[{k}]") for k, value in enumerate(self.value)]

    def text(self, longest: int | None = None) -> str:
        """Return a string; with a length at most so long, not empty and without control characters."""
        value = self.value
        if not isinstance(value, str):
            raise self.fault("a string")
        if longest is not None and not (value.isprintable() and 0 < len(value) <= longest):
            raise self.fault(f"a name of at most {longest} characters")
        return value

    def name(self, among: Collection[str]) -> str:
        """Return a string that is one of some."""
        if not isinstance(self.value, str) or self.value not in among:
            raise self.fault(f"one of {', '.join(sorted(among))}")
        return self.value

    def flag(self) -> bool:
        """Return a truth value."""
        if not isinstance(self.value, bool):
            raise self.fault("true or false")
        return self.value

    def integer(self, low: int, high: int, what: str | None = None) -> int:
        """Return an integer from `low` to `high`, in messages `what`."""
        value = self.value
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.fault(what or f"an integer from {low} to {high}")
        return value

    def number(self) -> bool | int | float:
        """Return a finite number or a truth value."""
        value = self.value
        if isinstance(value, float) and math.isfinite(value):
            return value
        if not isinstance(value, int):
            raise self.fault("a number")
        if abs(value) >= 1 << 1000:
            raise self.fault("a smaller number")
        return value


def parsed_json(data: bytes, place: str) -> JsonValue:
    """Return the value that a text of JSON in UTF-8 has.

    Raises InterchangeError: no such text, one with a key twice, or one nested too deep.
    """
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_without_repetition, parse_constant=_no_constant
        )
    except RecursionError:
        raise InterchangeError(
            f"{place}: expected a JSON text, got one with too many brackets inside each other; write it again"
        ) from None
    except ValueError as error:
        raise InterchangeError(
            f"{place}: expected a JSON text in UTF-8, got another one ({error}); write it again"
        ) from None
    return JsonValue(value, place)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice[:80]!r} stands twice in an object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    text = repr(value) if not isinstance(value, int) or abs(value) < 1 << 200 else "a longer integer"
    return text if len(text) <= 80 else f"{text[:77]}..."
