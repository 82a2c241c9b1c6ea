"""The certificate's file: a zip archive of one JSON text and plain NumPy arrays.

Nothing in it is executed or unpickled, and nothing is read before its size is known to be what the text
promises.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import CertificateError

Vector = NDArray[np.float64]

FORMAT, VERSION = "hybrid certificate", 1
_TEXT = "certificate.json"
_LARGEST_TEXT = 1 << 22
_LARGEST_HEADER = 4096
_MOST_STATES = (1 << 31) - 1
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass
class PartVectors:
    """The vectors of one operator, in the order of the listed states."""

    lower: Vector
    upper: Vector
    bias: Vector | None = None


@dataclass
class Certificate:
    """The contents of a certificate.

    `digest` is that of the model's text and constants; `constants` are those that its text leaves open, as
    exact numbers. `properties` is the text that holds the property, with its declarations, `index`
    says which of its properties, and `property` is the property itself. `states`, int64, has the numbers of
    the states, ascending, and `parts` the vectors of every operator, inner ones first.
    """

    digest: str
    constants: dict[str, str]
    properties: str
    index: int
    property: str
    property_constants: dict[str, str]
    states: NDArray[np.int64]
    parts: list[PartVectors] = field(default_factory=list)


def digest(text: str, constants: Mapping[str, str]) -> str:
    """Return the SHA-256 of a model's text and constants, in hexadecimal."""
    whole = json.dumps([text, sorted(constants.items())], ensure_ascii=True)
    return hashlib.sha256(whole.encode("ascii")).hexdigest()


# ------------------------------------------------------------------ writing


def write_certificate(path: str | os.PathLike[str], certificate: Certificate) -> int:
    """Write a certificate, whole or not at all, and return the file's size in bytes; may raise OSError."""
    text = {
        "format": FORMAT,
        "version": VERSION,
        "digest": certificate.digest,
        "constants": certificate.constants,
        "properties": certificate.properties,
        "index": certificate.index,
        "property": certificate.property,
        "property_constants": certificate.property_constants,
        "states": int(certificate.states.size),
        "parts": [{"bias": part.bias is not None} for part in certificate.parts],
    }
    target = Path(path)
    spare = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with zipfile.ZipFile(spare, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            archive.writestr(zipfile.ZipInfo(_TEXT, _EPOCH), json.dumps(text, indent=1))
            gaps = np.diff(certificate.states, prepend=np.int64(0))
            _add(archive, "states.npy", gaps.astype("<i8"))
            for number, part in enumerate(certificate.parts):
                for name, vector in _vectors(part):
                    _add(archive, f"{number}.{name}.npy", vector.astype("<f8"))
        os.replace(spare, target)
    finally:
        spare.unlink(missing_ok=True)
    return target.stat().st_size


def _vectors(part: PartVectors) -> list[tuple[str, Vector]]:
    pairs = [("lower", part.lower), ("upper", part.upper)]
    return pairs if part.bias is None else [*pairs, ("bias", part.bias)]


def _add(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w", force_zip64=True) as member:
        np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


# ------------------------------------------------------------------ reading


def read_certificate(path: str | os.PathLike[str]) -> Certificate:
    """Read a certificate.

    Raises CertificateError where the file is none, or a damaged one: the message says what was expected
    where; and MemoryError where its vectors do not fit the memory that is free.
    """
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive)
    except FileNotFoundError:
        raise CertificateError(f"{name}: there is no such file") from None
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError) as error:
        raise CertificateError(
            f"{name}: expected a certificate (a zip archive), got a damaged or other file: {error}"
        ) from None
    except CertificateError as error:
        raise CertificateError(f"{name}: {error}") from None
    except RuntimeError as error:  # encrypted members
        raise CertificateError(f"{name}: expected a plain zip archive: {error}") from None
    except OSError as error:
        raise CertificateError(f"{name}: cannot be read: {error.strerror or error}") from None


def _read(archive: zipfile.ZipFile) -> Certificate:
    """Read an open archive."""
    text = _text(archive)
    if text.get("format") != FORMAT:
        raise CertificateError(
            f"{_TEXT}: expected the format {FORMAT!r}, got {str(text.get('format'))[:40]!r}"
        )
    if text.get("version") != VERSION:
        raise CertificateError(
            f"{_TEXT}: expected version {VERSION}, got {str(text.get('version'))[:40]}; make it again"
        )
    count, parts = _whole(text, "states", _MOST_STATES), text.get("parts")
    if not isinstance(parts, list) or not all(
        isinstance(p, dict) and type(p.get("bias")) is bool for p in parts
    ):
        raise CertificateError(f"{_TEXT}: 'parts' is not a list of operators")
    names = ["states.npy"]
    for number, part in enumerate(parts):
        names += [f"{number}.{n}.npy" for n in ("lower", "upper", *(("bias",) if part["bias"] else ()))]
    _check_room(8 * count * (len(names) + 6))
    gaps = _array(archive, "states.npy", "<i8", count)
    states = np.cumsum(gaps)
    vectors = {name: _array(archive, name, "<f8", count) for name in names[1:]}
    return Certificate(
        _string(text, "digest"),
        _strings(text, "constants"),
        _string(text, "properties"),
        _whole(text, "index", 1 << 20),
        _string(text, "property"),
        _strings(text, "property_constants"),
        states,
        [
            PartVectors(vectors[f"{k}.lower.npy"], vectors[f"{k}.upper.npy"], vectors.get(f"{k}.bias.npy"))
            for k in range(len(parts))
        ],
    )


def _text(archive: zipfile.ZipFile) -> dict[str, Any]:
    """Return the JSON text."""
    member = _member(archive, _TEXT)
    if member.file_size > _LARGEST_TEXT:
        raise CertificateError(f"{_TEXT}: expected up to {_LARGEST_TEXT} bytes, got {member.file_size}")
    with archive.open(member) as file:
        data = file.read(_LARGEST_TEXT + 1)
    try:
        text = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"{_TEXT}: expected JSON: {str(error)[:80]}") from None
    if not isinstance(text, dict):
        raise CertificateError(f"{_TEXT}: expected a JSON object")
    return text


def _member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    found = [info for info in archive.infolist() if info.filename == name]
    if len(found) != 1:
        raise CertificateError(f"expected one member {name}, got {len(found)}")
    return found[0]


def _array(archive: zipfile.ZipFile, name: str, dtype: str, count: int) -> NDArray[Any]:
    """Return one array, whose header must have the expected type and shape."""
    member = _member(archive, name)
    if not 0 <= member.file_size - 8 * count <= _LARGEST_HEADER:
        raise CertificateError(
            f"{name}: expected {count} numbers of 8 bytes and a header, got {member.file_size} bytes"
        )
    with archive.open(member) as file:
        data = file.read(member.file_size + 1)
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        if version != (1, 0):
            raise ValueError(f"version {version}")
        shape, fortran, found = np.lib.format.read_array_header_1_0(stream, max_header_size=_LARGEST_HEADER)
    except (ValueError, SyntaxError, TypeError, RecursionError, tokenize.TokenError) as error:
        raise CertificateError(f"{name}: expected a NumPy array: {str(error)[:80]}") from None
    if shape != (count,) or found != np.dtype(dtype) or fortran:
        raise CertificateError(
            f"{name}: expected shape ({count},) and type {dtype}, got {shape} and {found.str}"
        )
    body = data[stream.tell() :]
    if len(body) != 8 * count:
        raise CertificateError(f"{name}: expected {8 * count} bytes behind the header, got {len(body)}")
    return np.frombuffer(body, dtype)


def _check_room(size: int) -> None:
    """Refuse vectors that do not fit the free memory."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return
    if size > free:
        raise MemoryError(
            f"the certificate's vectors take {size / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free"
        )


def _whole(text: Mapping[str, Any], key: str, most: int) -> int:
    value = text.get(key)
    if type(value) is not int or not 0 <= value <= most:
        raise CertificateError(f"{_TEXT}: expected a whole number from 0 to {most} as {key!r}")
    return value


def _string(text: Mapping[str, Any], key: str) -> str:
    value = text.get(key)
    if not isinstance(value, str):
        raise CertificateError(f"{_TEXT}: expected a text as {key!r}")
    return value


def _strings(text: Mapping[str, Any], key: str) -> dict[str, str]:
    value = text.get(key)
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise CertificateError(f"{_TEXT}: expected an object of texts as {key!r}")
    return value
