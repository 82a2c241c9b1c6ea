"""Lines of numbers, and of numbers with a last word, read with array operations."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.container import Bytes
from hybrid.models.interchange.explicit_model import Numbers
from hybrid.models.interchange.text.source import Section, chunks, require, shown

_WIDTH = 8
_MASKS = np.array([(1 << (8 * k)) - 1 for k in range(_WIDTH + 1)], dtype=np.uint64)


class Dictionary:
    """Words with numbers, in the order in which they were met."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The words by number."""
        return tuple(self._known)

    def numbers(self, data: Bytes, starts: Numbers, stops: Numbers) -> Numbers:
        """Return the numbers of words, new ones for new words.

        `starts`, `stops` (ndarray of int64, shape (n,)): word k is ``data[starts[k]:stops[k]]``, UTF-8.
        """
        codes, first = distinct_words(data, starts, stops)
        found = np.empty(first.size, dtype=np.int64)
        for code in np.argsort(first, kind="stable").tolist():
            k = int(first[code])
            word = data[int(starts[k]) : int(stops[k])].tobytes().decode("utf-8")
            found[code] = self._known.setdefault(word, len(self._known))
        return found[codes]


def distinct_words(data: Bytes, starts: Numbers, stops: Numbers) -> tuple[Numbers, Numbers]:
    """Return which words are equal.

    Eight bytes of all words are compared together. Time: O(n log n) for every eight bytes of the longest.
    `starts`, `stops`: ndarray of int64, shape (n,). Returns `codes` (ndarray of int64, shape (n,)): equal for
    equal words, from 0 without gaps. `first` (ndarray of int64, shape (n_codes,)): where each code is met
    first.
    """
    n = starts.size
    codes = np.zeros(n, dtype=np.int64)
    if not n:
        return codes, codes
    lengths = stops - starts
    # Words of different lengths differ, so that zeros after a word need no thought.
    _, codes = _numbered(lengths)
    padded = np.concatenate([data, np.zeros(_WIDTH, np.uint8)])
    for offset in range(0, int(lengths.max()), _WIDTH):
        live = np.flatnonzero(lengths > offset)
        at = starts[live] + offset
        taken = np.minimum(lengths[live] - offset, _WIDTH)
        parts = _eight_bytes(padded, at) & _MASKS[taken]
        n_parts, part_codes = _numbered(parts)
        n_codes = int(codes.max()) + 1
        # Codes stay below n, as do those of the parts: their product fits as long as n does.
        joined = codes * (n_parts + 1)
        joined[live] += part_codes + 1
        if n_codes * (n_parts + 1) >= 1 << 62:
            raise MemoryError(f"{n} words are too many to compare")
        _, codes = _numbered(joined)
    first = np.full(int(codes.max()) + 1, n, dtype=np.int64)
    np.minimum.at(first, codes, np.arange(n))
    return codes, first


def _eight_bytes(padded: Bytes, at: Numbers) -> NDArray[np.uint64]:
    """Return eight bytes from every position on as one number."""
    windows: NDArray[np.uint64] = np.ndarray(
        (padded.size - _WIDTH + 1,), dtype="<u8", buffer=padded, strides=(1,)
    )
    return windows[at].astype(np.uint64)


def _numbered(values: NDArray[Any]) -> tuple[int, Numbers]:
    """Return how many values there are, and the rank of each."""
    known = np.unique(values)
    return known.size, np.searchsorted(known, values).astype(np.int64)


def ragged(starts: Numbers, lengths: Numbers) -> Numbers:
    """Return the positions ``starts[k] .. starts[k] + lengths[k]`` of all k, one after the other."""
    total = int(lengths.sum())
    before = np.cumsum(lengths) - lengths
    positions: Numbers = np.arange(total, dtype=np.int64) + np.repeat(starts - before, lengths)
    return positions


def blanked(data: Bytes, starts: Numbers, stops: Numbers) -> Bytes:
    """Return a copy of a text with spaces in the place of words."""
    copy = data.copy()
    copy[ragged(starts, stops - starts)] = 32
    return copy


# Words that only end in a fraction are none; possessive repetitions keep the search linear.
_FRACTION = re.compile(rb"(?<!\S)([+-]?\d++)/(\d++)(?=\s)")
_TYPES = {"i": np.int64, "f": np.float64}


@dataclass(frozen=True, eq=False)
class Rows:
    """A table."""

    columns: tuple[NDArray[Any], ...]  # shape (n,); int64 for whole numbers, float64 for others; finite
    words: NDArray[np.int32]  # int32, shape (n,); number of the last word in `names`, -1 where there is none
    names: tuple[str, ...]
    source: str
    # int64, shape (n,); line of every row in the file; the first one where rows follow each other
    lines: int | Numbers
    units: float  # 1 if a number was a fraction that is no double and was rounded to the nearest, else 0

    def place(self, row: int) -> str:
        """Return where a row stands."""
        line = self.lines + row if isinstance(self.lines, int) else self.lines[row]
        return f"{self.source}:{line}"


def read_rows(
    section: Section, kinds: str, fields: str, *, word: bool = False, comments: bytes = b"#"
) -> Rows:
    """Read a table.

    Raises InterchangeError: a line with more or fewer fields, or something that is no number, or not finite.
    Time: some 0.4 microseconds a line. Memory: the columns, and 16 MB of text with its arrays. `kinds`: a
    letter a column: ``i`` for a whole number, ``f`` for a number. `fields`: names of the columns, for
    messages. `word`: whether a word may follow the numbers. `comments`: what lines that are passed over begin
    with; empty lines are passed over, too.
    """
    dtype = np.dtype([(f"f{k}", _TYPES[kind]) for k, kind in enumerate(kinds)])
    dictionary = Dictionary()
    # Every row is a line, so that there is room for all of them.
    columns = tuple(np.empty(section.n_lines, dtype=_TYPES[kind]) for kind in kinds)
    words = np.empty(section.n_lines, dtype=np.int32)
    lines: list[Numbers] = []
    units, total, plain = 0.0, 0, section.lines is None
    for chunk in chunks(section):
        rows = _canonical(chunk, comments)
        n = rows.n_lines
        if plain and rows.lines is not None:
            # Up to here rows were lines.
            lines.append(section.first + np.arange(total, dtype=np.int64))
            plain = False
        if not plain:
            lines.append(rows.numbers)
        if n:
            end = total + n
            rows, words[total:end] = _without_words(rows, len(kinds), fields, word, dictionary)
            rows, inexact = _without_fractions(rows)
            # lemma: entry-units
            units = max(units, inexact)
            table = _parsed(rows, dtype, fields)
            for k, column in enumerate(columns):
                column[total:end] = table[f"f{k}"]
            total = end
    return Rows(
        tuple(column[:total] for column in columns),
        words[:total],
        dictionary.names,
        section.source,
        section.first if plain else np.concatenate([np.zeros(0, dtype=np.int64), *lines]),
        units,
    )


def require_below(rows: Rows, column: int, what: str, limit: int, advice: str = "mend this line") -> None:
    """Refuse numbers in a column of whole numbers that are not from 0 to below a limit."""
    numbers = rows.columns[column]
    right = (numbers >= 0) & (numbers < limit)
    require(right, rows.place, f"a {what} from 0 to {limit - 1}", numbers, advice)


def require_not_negative(rows: Rows) -> None:
    """Refuse negative numbers in the last column."""
    values = rows.columns[-1]
    require(values >= 0, rows.place, "a number that is not negative", values)


def _canonical(chunk: Section, comments: bytes) -> Section:
    """Return the lines that are rows, with single spaces between fields."""
    text = chunk.data
    if b"\t" in text:
        text = text.replace(b"\t", b" ")
    if (
        (not comments or comments not in text)
        and b"  " not in text
        and b" \n" not in text
        and b"\n " not in text
        and b"\n\n" not in text
        and text[:1] not in (b"\n", b" ")
    ):
        return chunk.with_text(text)
    split = [b" ".join(line.split()) for line in text.split(b"\n")]
    kept = [k for k, line in enumerate(split) if line and not (comments and line.startswith(comments))]
    data = b"".join(split[k] + b"\n" for k in kept)
    return Section(chunk.source, data, chunk.first, chunk.numbers[np.array(kept, dtype=np.int64)])


def _without_words(
    rows: Section, n_fields: int, fields: str, word: bool, dictionary: Dictionary
) -> tuple[Section, Numbers]:
    """Return the text without last words, and their numbers in the dictionary."""
    data = np.frombuffer(rows.data, dtype=np.uint8)
    ends = np.flatnonzero((data == 32) | (data == 10))
    last = np.flatnonzero(data[ends] == 10)
    counts = np.diff(last, prepend=-1)
    longer = counts == n_fields + 1
    wrong = counts != n_fields
    if word:
        wrong &= ~longer
    if wrong.any():
        row = int(np.argmax(wrong))
        also = ", and perhaps a name" if word else ""
        raise InterchangeError(
            f"{rows.place(row)}: {n_fields} fields ({fields}{also}) expected, got {counts[row]}; mend this "
            "line"
        )
    words = np.full(last.size, -1, dtype=np.int64)
    own = np.flatnonzero(longer)
    if not own.size:
        return rows, words
    starts, stops = ends[last[own] - 1] + 1, ends[last[own]]
    words[own] = dictionary.numbers(data, starts, stops)
    return rows.with_text(blanked(data, starts, stops).tobytes()), words


def _without_fractions(rows: Section) -> tuple[Section, float]:
    """Return the text with fractions as the nearest doubles, and 1 if one of them is no double, else 0."""
    if b"/" not in rows.data:
        return rows, 0.0
    known: dict[bytes, bytes] = {}
    inexact = False

    def double(match: re.Match[bytes]) -> bytes:
        nonlocal inexact
        written = match.group()
        if written not in known:
            try:
                exact = Fraction(int(match.group(1)), int(match.group(2)))
                nearest = float(exact)
            except (ValueError, ZeroDivisionError, OverflowError):
                raise InterchangeError(
                    f"{rows.place_of(match.start())}: a fraction expected, got {shown(written)}; write a "
                    "denominator other than 0, and a value that a double can hold"
                ) from None
            inexact = inexact or exact != Fraction(nearest)
            known[written] = repr(nearest).encode()
        return known[written]

    return rows.with_text(_FRACTION.sub(double, rows.data)), float(inexact)


def _parsed(rows: Section, dtype: np.dtype[Any], fields: str) -> NDArray[Any]:
    """Return the numbers of a text whose lines have as many fields as the type."""
    table = _loaded(rows.data, dtype)
    if table is None:
        row, line = _first_fault(rows.data, dtype)
        raise InterchangeError(f"{rows.place(row)}: {_reason(line, dtype, fields)}; mend this line")
    for name in dtype.names or ():
        if dtype[name].kind == "f" and not np.isfinite(table[name]).all():
            row = int(np.argmin(np.isfinite(table[name])))
            raise InterchangeError(
                f"{rows.place(row)}: finite numbers expected, got {table[name][row]}; mend this line"
            )
    return table


def _loaded(text: bytes, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Return the numbers of a text, None if there is something else in it."""
    try:
        # NumPy's reader takes decimals to the next double and whole numbers as they are.
        table = np.loadtxt(io.BytesIO(text), dtype=dtype, comments=None, ndmin=1, encoding="latin1")
    except (ValueError, OverflowError, DeprecationWarning):
        return None
    return table if len(table) == text.count(b"\n") else None


def _first_fault(text: bytes, dtype: np.dtype[Any]) -> tuple[int, bytes]:
    """Return the row of the first fault, found by halving."""
    row = 0
    while (n := text.count(b"\n")) > 1:
        middle = text.index(b"\n", len(text) // 2 - 1) + 1
        if middle == len(text):
            middle = text.rindex(b"\n", 0, len(text) - 1) + 1
        first, second = text[:middle], text[middle:]
        if _loaded(first, dtype) is None:
            text = first
        else:
            row += n - second.count(b"\n")
            text = second
    return row, text


def _reason(line: bytes, dtype: np.dtype[Any], fields: str) -> str:
    """Return the fault in a line of numbers."""
    tokens: Sequence[bytes] = line.split()
    kinds = [dtype[name].kind for name in dtype.names or ()]
    for token, kind in zip(tokens, kinds, strict=False):
        if _loaded(token + b"\n", np.dtype([("f0", np.int64 if kind == "i" else np.float64)])) is None:
            if token.startswith(b"["):
                return f"a number expected, got the interval {shown(token)}: intervals are not offered"
            what = "a whole number below 2^63" if kind == "i" else "a number"
            return f"{what} ({fields}) expected, got {shown(token)}"
    return f"numbers ({fields}) expected, got {shown(line)}"
