"""Compressed streams of several parts, with padding, and archives whose members are long."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.models.interchange import InterchangeError
from hybrid.models.interchange.container import (
    ByteSink,
    ByteSource,
    TarSink,
    TarSource,
    decompressed,
    written,
)
from hybrid.models.interchange.umb.values import probabilities_and_exits, rates_of_products

PARTS = [b"a" * 3_000_000, b"", bytes(range(256)) * 20_000]


def all_of(data: bytes) -> bytes:
    source = ByteSource(io.BytesIO(data), "x")
    found = source.read(sum(map(len, PARTS)), "all")
    source.finish(0)
    return found


@pytest.mark.parametrize(
    ("data", "compression"),
    [
        (b"".join(PARTS), None),
        (b"".join(gzip.compress(part) for part in PARTS) + bytes(700), "gzip"),
        (b"".join(lzma.compress(part) + bytes(8) for part in PARTS), "xz"),
    ],
    ids=["plain", "gzip", "xz"],
)
def test_streams_of_several_parts(data: bytes, compression: str | None) -> None:
    assert ByteSource(io.BytesIO(data), "x").compression == compression
    assert all_of(data) == b"".join(PARTS)
    with pytest.raises(InterchangeError, match="expected 9120001 bytes|expected 8120001 bytes"):
        ByteSource(io.BytesIO(data), "x").read(sum(map(len, PARTS)) + 1, "all")


def test_no_stream_grows_more_than_is_assumed() -> None:
    zeros = bytes(8_000_000)
    for data in (gzip.compress(zeros, 9), lzma.compress(zeros, preset=9)):
        assert ByteSource(io.BytesIO(data), "x").most_bytes >= len(zeros)


@pytest.mark.parametrize("compression", [None, "gzip", "xz"])
def test_archives_are_read_by_another_implementation(compression: str | None) -> None:
    file = io.BytesIO()
    sink = TarSink(ByteSink(file, compression))
    numbers = np.arange(400_000, dtype="<u8")
    sink.add("a/b.bin", [numbers[::2], b"xyz"])
    sink.add("empty.bin", [])
    sink.finish()
    file.seek(0)
    with tarfile.open(fileobj=file) as archive:
        assert archive.getnames() == ["a/b.bin", "empty.bin"]
        assert archive.extractfile("a/b.bin").read() == numbers[::2].tobytes() + b"xyz"  # type: ignore[union-attr]
    file.seek(0)
    source = TarSource(ByteSource(file, "x"), "x")
    assert [(member.name, bytes(source.content())[-3:]) for member in source.members()] == [
        ("a/b.bin", b"xyz"),
        ("empty.bin", b""),
    ]


@pytest.mark.parametrize("compression", [None, "gzip", "xz"])
def test_files_are_written_whole_or_not_at_all(compression: str | None, tmp_path: Path) -> None:
    path = tmp_path / "m"
    with written(path, compression) as sink:
        sink.write(PARTS[2])
    path.chmod(0o600)
    first = path.read_bytes()
    assert b"".join(decompressed(io.BytesIO(first))) == PARTS[2]
    with pytest.raises(ValueError, match="stopped"), written(path, compression) as sink:
        sink.write(PARTS[0])
        raise ValueError("stopped")
    assert path.read_bytes() == first
    with written(path, compression) as sink:
        sink.write(b"x")
    assert b"".join(decompressed(io.BytesIO(path.read_bytes()))) == b"x"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_long_names_in_all_forms(form: int) -> None:
    name = "annotations/" + "x" * 90 + "/" + "y" * 90
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        info = tarfile.TarInfo(name)
        info.size = 600
        archive.addfile(info, io.BytesIO(b"z" * 600))
    file.seek(0)
    source = TarSource(ByteSource(file, "x"), "x")
    assert [(member.name, member.size) for member in source.members()] == [(name, 600)]


# ------------------------------------------------------------------ exit rates

rate = st.floats(1e-290, 1e290) | st.floats(0.001, 1000.0) | st.just(0.0)


@given(st.lists(st.lists(rate, max_size=6), min_size=1, max_size=8))
def test_lemma_quotients_give_rates_back_within_a_unit(rows: list[list[float]]) -> None:
    rates = np.array([value for row in rows for value in row])
    starts = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    probabilities, exits, wrong = probabilities_and_exits(rates, starts)
    unit = Fraction(1, 2**53)
    for number, row in enumerate(rows):
        own = probabilities[starts[number] : starts[number + 1]].tolist()
        products = [Fraction(p) * Fraction(float(exits[number])) for p in own]
        good = all(abs(p - Fraction(r)) <= Fraction(r) * unit for p, r in zip(products, row, strict=True))
        # A quotient below the normal doubles is told.
        assert good or (wrong is not None and wrong <= number)
        assert abs(Fraction(float(exits[number])) - sum(map(Fraction, row))) <= 80 * unit * sum(
            map(Fraction, row)
        )
    again = probabilities.copy()
    _, below = rates_of_products(again, exits, starts)
    if wrong is None and below is None:
        assert np.all(np.abs(again - rates) <= np.spacing(rates))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1e300)), min_size=1, max_size=30))
def test_lemma_exact_products_are_exact(pairs: list[tuple[float, float]]) -> None:
    """A product that counts as exact is; whole numbers of few digits do count."""
    for p, e in pairs:
        values = np.array([p])
        is_exact, wrong = rates_of_products(values, np.array([e]), np.array([0, 1]))
        if is_exact:
            assert Fraction(float(values[0])) == Fraction(p) * Fraction(e)
        if wrong is not None:
            assert 0 < Fraction(p) * Fraction(e) < Fraction(2) ** -1021
    values = np.array([0.25, 0.75, 0.0])
    assert rates_of_products(values, np.array([12.0]), np.array([0, 3])) == (True, None)
    assert values.tolist() == [3.0, 9.0, 0.0]


def test_products_that_lose_little_are_not_exact() -> None:
    """The last bits of two halves' product, and a product whose error underflows."""
    near = 1.0 + 2.0**-30
    for left, right in ((0.5 * near, near), (2.0**-510 * near, 2.0**-510 * near)):
        values = np.array([left])
        assert rates_of_products(values, np.array([right]), np.array([0, 1])) == (False, None)
        assert Fraction(float(values[0])) != Fraction(left) * Fraction(right)


# lemma: underflow
def test_products_and_rates_without_digits_are_told() -> None:
    """Below the normal doubles, or a quotient that vanishes."""
    for left, right in ((1e-300, 1e-10), (1e-300, 1e-300)):
        assert rates_of_products(np.array([left]), np.array([right]), np.array([0, 1]))[1] == 0
    assert rates_of_products(np.array([0.0]), np.array([2.0]), np.array([0, 1])) == (True, None)
    for rates in ([1e-310], [1e-290, 1e290], [1e-290, 1e20]):
        found = probabilities_and_exits(np.array(rates), np.array([0, len(rates)]))
        assert found[2] == 0
