"""Parts of the text formats: words that are equal, numbers as text, and sizes that are refused."""

from __future__ import annotations

import gzip
import lzma
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.models.interchange import InterchangeError
from hybrid.models.interchange.text.rows import Dictionary, distinct_words, read_rows
from hybrid.models.interchange.text.source import Section, chunks, read_section
from hybrid.models.interchange.text.writing import decimals, text_of_rows, whole_numbers, write_text

_WORDS = st.lists(st.binary(max_size=20) | st.sampled_from([b"a" * k for k in range(20)]), max_size=30)


def placed(words: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    stops = np.cumsum([len(word) for word in words], dtype=np.int64)
    starts = stops - np.array([len(word) for word in words], dtype=np.int64)
    return np.frombuffer(b"".join(words), dtype=np.uint8), starts, stops


@given(_WORDS)
def test_words_have_one_code_exactly_if_they_are_equal(words: list[bytes]) -> None:
    codes, first = distinct_words(*placed(words))
    assert len(codes) == len(words)
    assert len(first) == len(set(words))
    by_word: dict[bytes, int] = {}
    for k, (word, code) in enumerate(zip(words, codes.tolist(), strict=True)):
        assert by_word.setdefault(word, code) == code
        assert words[int(first[code])] == word and int(first[code]) <= k


def test_words_are_numbered_as_they_are_met_over_several_texts() -> None:
    dictionary = Dictionary()
    assert dictionary.numbers(*placed([b"b", b"a", b"b"])).tolist() == [0, 1, 0]
    assert dictionary.numbers(*placed([b"a", "ä".encode(), b"b"])).tolist() == [1, 2, 0]
    assert dictionary.names == ("b", "a", "ä")


@given(st.lists(st.integers(-(2**63) + 1, 2**63 - 1), min_size=1, max_size=20))
def test_whole_numbers_are_written_as_python_does(numbers: list[int]) -> None:
    cells = whole_numbers(np.array(numbers, dtype=np.int64))
    assert text_of_rows(len(numbers), [cells, b"\n"]).decode().split() == [str(number) for number in numbers]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20), st.integers(1, 9))
def test_decimals_read_as_the_same_doubles(numbers: list[float], times: int) -> None:
    values = np.array(numbers * times)
    text = text_of_rows(values.size, [decimals(values), b"\n"])
    (read,) = read_rows(Section("t", text), "f", "value").columns
    assert (read.view(np.int64) == values.view(np.int64)).all()
    assert [float(word) for word in text.split()] == values.tolist()


def test_rows_pass_over_comments_and_keep_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.models.interchange.text.source.CHUNK", 8)
    section = Section("t", b"1 2 a\n# x\n\n 3  4\n5 6 bb\n7 8 a\n", first=10)
    rows = read_rows(section, "if", "one, two", word=True)
    assert [column.tolist() for column in rows.columns] == [[1, 3, 5, 7], [2.0, 4.0, 6.0, 8.0]]
    assert rows.words.tolist() == [0, -1, 1, 0] and rows.names == ("a", "bb")
    assert [rows.place(k) for k in range(4)] == ["t:10", "t:13", "t:14", "t:15"]
    assert b"".join(chunk.data for chunk in chunks(section)) == section.data


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_texts_are_written_whole_or_not_at_all(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    write_text(path, [b"one\n", b"two\n"])
    assert read_section(path).data == b"one\ntwo\n"
    first = path.read_bytes()

    def broken() -> list[bytes]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        write_text(path, (block for block in [b"three\n", *broken()]))
    assert path.read_bytes() == first
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_texts_of_several_compressed_parts_are_read_whole(tmp_path: Path) -> None:
    for pack in (gzip.compress, lzma.compress):
        (tmp_path / "t").write_bytes(pack(b"one\n") + pack(b"two\n"))
        assert read_section(tmp_path / "t").data == b"one\ntwo\n"


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_texts_beyond_a_limit_are_refused_before_they_are_whole(tmp_path: Path, pack) -> None:
    (tmp_path / "bomb").write_bytes(pack(bytes(20_000_000)))
    assert (tmp_path / "bomb").stat().st_size < 100_000
    with pytest.raises(InterchangeError, match="a text of at most 1000000 bytes expected"):
        read_section(tmp_path / "bomb", limit=1_000_000)


def test_texts_that_ask_for_much_memory_to_unpack_are_refused(tmp_path: Path) -> None:
    greedy = bytearray(lzma.compress(b"x\n", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 16}]))
    # The dictionary's size stands in the block header, which has a checksum of its own.
    at = greedy.index(bytes([0x21, 0x01]), 12) + 2
    greedy[at] = 36
    header = 12
    length = 4 * (greedy[header] + 1)
    checksum = zlib.crc32(bytes(greedy[header : header + length - 4]))
    greedy[header + length - 4 : header + length] = checksum.to_bytes(4, "little")
    (tmp_path / "t").write_bytes(bytes(greedy))
    with pytest.raises(InterchangeError, match="Memory usage limit"):
        read_section(tmp_path / "t")


@pytest.mark.parametrize(
    "text", [b"1 1/3\n2 1/2\n3 0.25\n", b"1 1/2\n2 1/4\n3 1/3\n", b"1 1/2\n2 1/3\n3 1/4\n"]
)
def test_rows_of_several_parts_are_off_as_the_worst(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.models.interchange.text.source.CHUNK", 6)
    assert read_rows(Section("t", text), "if", "one, two").units == 1.0
