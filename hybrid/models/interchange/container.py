"""Containers of binary files: archives in the tar format, texts of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.streams import ByteSink, ByteSource

Bytes = NDArray[np.uint8]

_RECORD = 512

# Bytes of an extended header: names, and times that nobody reads.
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
            name, size, kind = self._header(header)
            self._current, self._left, self._padding = name, size, -size % _RECORD
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

    def _header(self, header: bytes) -> tuple[str, int, bytes]:
        """Return the name, the size and the type in a header."""
        self._current = "a header of the archive"
        magic = header[257:263]
        if magic[:5] != b"ustar":
            raise InterchangeError(
                f"{self._name}: expected a UMB file (a tar archive, plain or compressed with gzip or xz), "
                f"got {header[:8]!r}...; give a file in that format"
            )
        stated = _number(header[148:156])
        if stated != sum(header) - sum(header[148:156]) + 8 * 32:
            raise self._fault("a header that fits its checksum", "another one")
        name = header[:100].split(b"\0")[0]
        if magic == b"ustar\0" and (prefix := header[345:500].split(b"\0")[0]):
            name = prefix + b"/" + name
        self._current = name.decode("utf-8", "replace")
        size = _number(header[124:136])
        if size is None:
            raise self._fault("a size", repr(header[124:136]))
        return self._current, size, header[156:157]

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


def _number(field: bytes) -> int | None:
    """Return a number of a header, octal or in base 256; None if it is none."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    text = field.strip(b" \0")
    if not all(c in b"01234567" for c in text):
        return None
    return int(text or b"0", 8)


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
        header = bytearray(_RECORD)
        header[: len(name)] = name.encode("ascii")
        header[100:108] = b"0000644\0"
        header[108:116] = header[116:124] = b"0000000\0"
        # Twelve octal digits do for 8 GiB; beyond that GNU's base 256, which all readers know.
        header[124:136] = b"%011o\0" % size if size < 8**11 else b"\x80" + size.to_bytes(11, "big")
        header[136:148] = b"00000000000\0"
        header[148:156] = b" " * 8
        header[156:157] = b"0"
        header[257:265] = b"ustar\x0000"
        header[148:156] = b"%06o\0 " % sum(header)
        self._sink.write(bytes(header))
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
