"""Certificates' files: damaged ones end in a message that says what and where."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.base.errors import CertificateError
from hybrid.checking.certificates.archive import Certificate, PartVectors, read_certificate, write_certificate


def sample() -> Certificate:
    part = PartVectors(np.array([0.0, 0.25, 1.0]), np.array([0.0, 0.5, 1.0]), np.array([0.0, -1.0, 2.0]))
    states = np.array([0, 7, 2**40], np.int64)
    return Certificate("ab", {"N": "1/3"}, "P=? [ F x=1 ]", 0, "P=? [ F x=1 ]", {}, states, [part, part])


def rewritten(path: Path, **members: bytes | None) -> Path:
    """A copy with some members replaced, or left out; dots in names are written as double underscores."""
    changes = {name.replace("__", "."): data for name, data in members.items()}
    target = path.with_suffix(".changed")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in [*old.namelist(), *(n for n in changes if n not in old.namelist())]:
            data = changes.get(name, b"") if name in changes else old.read(name)
            if data is not None:
                new.writestr(name, data)
    return target


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def text(path: Path, **changes: Any) -> bytes:
    with zipfile.ZipFile(path) as archive:
        found = json.loads(archive.read("certificate.json"))
    return json.dumps({**found, **changes}).encode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "c"
    assert write_certificate(file, sample()) == file.stat().st_size
    return file


def test_what_is_written_is_read(path: Path) -> None:
    found, meant = read_certificate(path), sample()
    assert found.states.tolist() == meant.states.tolist()
    for name in ("digest", "constants", "properties", "index", "property", "property_constants"):
        assert getattr(found, name) == getattr(meant, name)
    assert len(found.parts) == 2
    for part, other in zip(found.parts, meant.parts, strict=True):
        assert part.bias is not None and other.bias is not None
        for one, two in ((part.lower, other.lower), (part.upper, other.upper), (part.bias, other.bias)):
            assert one.tobytes() == two.tobytes()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_every_cut_and_every_changed_byte_is_refused_or_harmless(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    damaged = tmp_path / "damaged"
    for length in range(0, len(data), 37):
        damaged.write_bytes(data[:length])
        with pytest.raises(CertificateError):
            read_certificate(damaged)
    refused = 0
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x41
        damaged.write_bytes(bytes(changed))
        try:
            read_certificate(damaged)
        except CertificateError:
            refused += 1
    assert refused > 0.7 * len(data)  # the rest are times and attributes of the archive


MEMBERS: list[tuple[dict[str, bytes | None], str]] = [
    ({"certificate__json": None}, "expected one member certificate.json, got 0"),
    ({"certificate__json": b"["}, "expected JSON"),
    ({"certificate__json": b"[]"}, "JSON object"),
    ({"certificate__json": b"[" * 100_000}, "expected JSON"),
    ({"certificate__json": b"\xff\xfe\x00"}, "expected JSON"),
    ({"certificate__json": b" " * (1 << 22) + b"{}"}, "expected up to"),
    ({"states__npy": None}, "one member states.npy"),
    ({"states__npy": b"no array at all, but about as long as one" * 4}, "expected a NumPy array"),
    ({"0__lower__npy": npy([1, 2, 3])}, "type <f8, got"),
    ({"0__lower__npy": npy(np.zeros((3, 1)))}, "shape"),
    ({"0__lower__npy": npy(np.zeros(4))}, "shape"),
    ({"0__upper__npy": npy(np.zeros(3, object))}, "type <f8"),
    ({"1__bias__npy": npy(np.zeros(3))[:-8]}, "bytes"),
    ({"1__bias__npy": b""}, "bytes"),
]


@pytest.mark.parametrize(("members", "message"), MEMBERS)
def test_members_that_are_not_what_they_should_be(
    members: dict[str, bytes | None], message: str, path: Path
) -> None:
    with pytest.raises(CertificateError, match=message):
        read_certificate(rewritten(path, **members))


TEXTS: list[tuple[dict[str, Any], str]] = [
    ({"format": "x"}, "format"),
    ({"version": 2}, "version 1, got 2"),
    ({"version": [1] * 1000}, "version"),
    ({"states": -1}, "'states'"),
    ({"states": 2.0}, "'states'"),
    ({"states": True}, "'states'"),
    ({"states": 2**40}, "'states'"),
    ({"states": 4}, "shape"),
    ({"states": 4000}, "expected 4000 numbers"),
    ({"index": None}, "'index'"),
    ({"digest": 5}, "'digest'"),
    ({"constants": {"N": 4}}, "'constants'"),
    ({"constants": []}, "'constants'"),
    ({"parts": {}}, "'parts'"),
    ({"parts": [1]}, "'parts'"),
    ({"parts": [{"bias": 1}]}, "'parts'"),
    ({"parts": [{"bias": False}] * 3}, "2.lower.npy"),
]


@pytest.mark.parametrize(("changes", "message"), TEXTS)
def test_texts_that_are_not_what_they_should_be(changes: dict[str, Any], message: str, path: Path) -> None:
    with pytest.raises(CertificateError, match=message):
        read_certificate(rewritten(path, certificate__json=text(path, **changes)))


def test_sizes_that_do_not_fit_are_refused_before_they_are_read(path: Path) -> None:
    changed = rewritten(path, certificate__json=text(path, states=2**31 - 1, parts=[{"bias": True}] * 1000))
    with pytest.raises(MemoryError, match="GB are free"):
        read_certificate(changed)


@pytest.mark.parametrize("name", ["missing", "."])
def test_files_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(CertificateError):
        read_certificate(tmp_path / name)


def test_a_failed_write_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def full(*arguments: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.lib.format.write_array", full)
    with pytest.raises(OSError, match="No space"):
        write_certificate(path, sample())
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]
