"""The bytes of a symbolic file: a magic line, a checksum, a header in JSON, arrays that are compressed.

All numbers are little-endian. After the magic line stand the version (4 bytes), the lengths of the header
and of the compressed arrays (8 bytes each) and the SHA-256 of all that follows it, 32 bytes.  The arrays are
one LZMA stream: the values, the nodes per level, the roots, then the children and the numbering, split into
planes of bytes, lowest bytes first, because planes of equal significance compress well.  The else children
ascend within a level, so that their differences are stored; of the then children, the distance from the node.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.forest import Forest
from mtbdd.memory import require_memory
from mtbdd.value_nodes import MOST_NODES

MAGIC = b"symbolic model .dd\r\n\x1a\n"
"""Begins every file; the line break shows what a transfer as text has done to it."""

VERSION = 1

_FIXED = struct.Struct("<IQQ32s")
_MOST_HEADER = 1 << 26
_WORK = 1 << 26  # bytes that unpacking may take beside its result

Numbers = NDArray[np.int64]


def file_bytes(header: dict[str, Any], forest: Forest, numbering: Numbers | None) -> bytes:
    """Return a header and a forest as the bytes of a file.

    Parameters
    ----------
    header : dict
        What JSON can hold; the sizes of the arrays are added.
    forest : Forest
    numbering : ndarray of int64, shape (n,), or None
        The order of the states in their source.
    """
    sizes = {
        "values": forest.values.size,
        "bits": forest.levels.size,
        "nodes": forest.low.size,
        "roots": forest.roots.size,
        "numbering": None if numbering is None else numbering.size,
    }
    text = json.dumps(header | {"sizes": sizes}, allow_nan=False, separators=(",", ":")).encode()
    own = np.arange(forest.low.size, dtype=np.int64) + forest.values.size
    arrays = [
        forest.values.astype("<f8").tobytes(),
        forest.levels.astype("<i8").tobytes(),
        forest.roots.astype("<i8").tobytes(),
        _planes(np.diff(forest.low, prepend=0)),
        _planes(own - forest.high),
        b"" if numbering is None else _planes(np.diff(numbering, prepend=0)),
    ]
    data = lzma.compress(b"".join(arrays), format=lzma.FORMAT_XZ, check=lzma.CHECK_NONE)
    checksum = hashlib.sha256(text + data).digest()
    return MAGIC + _FIXED.pack(VERSION, len(text), len(data), checksum) + text + data


def file_parts(content: bytes) -> tuple[dict[str, Any], Forest, Numbers | None]:
    """Return the header, the forest and the numbering of a file; neither is checked further.

    Raises
    ------
    ValueError
        Not such a file, another version, cut short, damaged, or sizes that its arrays do not have.
    MemoryError
        The arrays do not fit into memory.
    """
    if not content.startswith(MAGIC):
        raise ValueError(
            "expected a symbolic model, which begins with 'symbolic model .dd', got something else"
        )
    place = len(MAGIC)
    if len(content) < place + _FIXED.size:
        raise ValueError("expected a whole file, got one that ends within its first lines; write it again")
    version, text_size, data_size, checksum = _FIXED.unpack_from(content, place)
    if version != VERSION:
        raise ValueError(
            f"expected version {VERSION}, got {version}; write the file with this program's version"
        )
    place += _FIXED.size
    if len(content) - place != text_size + data_size:
        raise ValueError(
            f"expected {text_size + data_size} bytes after the checksum, got {len(content) - place}; "
            "the file is cut short or damaged: copy or write it again"
        )
    if hashlib.sha256(memoryview(content)[place:]).digest() != checksum:
        raise ValueError("the checksum does not match: the file is damaged; copy or write it again")
    if text_size > _MOST_HEADER:
        raise ValueError(f"expected a header of at most {_MOST_HEADER} bytes, got {text_size}")
    header = _header(content[place : place + text_size])
    return header, *_arrays(header, memoryview(content)[place + text_size :])


class _HeaderError(ValueError):
    """A header that is JSON, but not one of ours."""


def _header(text: bytes) -> dict[str, Any]:
    """Return the JSON object of a header; no key is given twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise _HeaderError("the header has a key twice")
        return found

    def refused(name: str) -> Any:
        raise _HeaderError(f"the header has {name}, which is no number")

    try:
        header = json.loads(text.decode(), object_pairs_hook=once, parse_constant=refused)
    except RecursionError:
        raise ValueError("the header is nested too deeply") from None
    except _HeaderError:
        raise
    except ValueError as error:
        raise ValueError(f"the header cannot be read ({error}); write the file again") from None
    if not isinstance(header, dict):
        raise ValueError("expected a header that is an object")
    return header


def _arrays(header: dict[str, Any], data: memoryview) -> tuple[Forest, Numbers | None]:
    """Return the arrays of the sizes that a header names."""
    sizes = header.get("sizes")
    if not isinstance(sizes, dict):
        raise ValueError("expected the sizes of the arrays in the header")
    values, bits, nodes, roots = (_size(sizes, name) for name in ("values", "bits", "nodes", "roots"))
    numbering = None if sizes.get("numbering") is None else _size(sizes, "numbering")
    lengths = [8 * values, 8 * bits, 8 * roots, 4 * nodes, 4 * nodes, 4 * (numbering or 0)]
    total = sum(lengths)
    require_memory(
        8 * total + _WORK, f"a symbolic file of {nodes} nodes", "read it on a machine with more memory"
    )
    raw = _decompressed(data, total)
    cuts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    pieces = [raw[begin:end] for begin, end in zip(cuts, cuts[1:], strict=False)]
    own = np.arange(nodes, dtype=np.int64) + values
    forest = Forest(
        np.frombuffer(pieces[0], dtype="<f8").astype(np.float64),
        np.frombuffer(pieces[1], dtype="<i8").astype(np.int64),
        np.cumsum(_from_planes(pieces[3])),
        own - _from_planes(pieces[4]),
        np.frombuffer(pieces[2], dtype="<i8").astype(np.int64),
    )
    return forest, None if numbering is None else np.cumsum(_from_planes(pieces[5]))


def _size(sizes: dict[str, Any], name: str) -> int:
    """Return the size of an array."""
    size = sizes.get(name)
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MOST_NODES:
        raise ValueError(f"sizes: expected '{name}' from 0 to {MOST_NODES}, got {size!r}")
    return size


def _decompressed(data: memoryview, size: int) -> bytes:
    """Return a stream of a known size; nothing beyond it is unpacked."""
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_WORK)
    try:
        raw = unpacker.decompress(data, max_length=size + 1)
    except lzma.LZMAError as error:
        raise ValueError(
            f"the arrays cannot be unpacked ({error}): the file is damaged; write it again"
        ) from None
    if len(raw) == size and not unpacker.eof:  # what is left may be the stream's end, or more
        try:
            raw += unpacker.decompress(b"", max_length=1)
        except (lzma.LZMAError, EOFError) as error:
            raise ValueError(f"the arrays cannot be unpacked ({error}): the file is damaged") from None
    if len(raw) != size or not unpacker.eof or unpacker.unused_data:
        raise ValueError(f"expected arrays of {size} bytes, got {'more' if len(raw) > size else 'others'}")
    return raw


def _planes(numbers: Numbers) -> bytes:
    """Return numbers of 32 bits as four planes of bytes; differences may be negative."""
    return numbers.astype("<i4").view(np.uint8).reshape(-1, 4).T.tobytes()


def _from_planes(data: bytes) -> Numbers:
    """Return the numbers of four planes of bytes."""
    planes = np.frombuffer(data, dtype=np.uint8).reshape(4, -1)
    return np.ascontiguousarray(planes.T).view("<i4").reshape(-1).astype(np.int64)
