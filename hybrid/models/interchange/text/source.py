"""Text files of models: sections of whole lines, their first lines, and the places of all lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.container import DAMAGE, decompressed
from hybrid.models.interchange.explicit_model import Mask, Numbers, Places
from mtbdd.base.memory import free_memory_bytes
from mtbdd.language.syntax import ModelType
from mtbdd.language.tokens import UNKNOWN_BYTE

_SHARE = 8
"""A text may have an eighth of the free memory: its arrays and what lies between need the rest."""

SMALL = 1 << 26
"""Bytes that are allocated without a check of the memory, which takes a millisecond."""

CHUNK = 1 << 24
"""Bytes of text that are processed together."""

_CONTROLS = bytes(c for c in range(32) if c not in b"\t\n") + b"\x7f"
_DIGITS = re.compile(rb"\d{1,18}")

_STATE_BYTES = 64
"""Bytes that a state's arrays take at least, with room to work."""

_EMPTY_STATES = 1_000_000
"""States without transitions that a file may count beyond twice its lines."""

_COMMENT = re.compile(r'[ \t]*(//|#[^"]*\Z)')
"""Lines whose text is no data: comments without a name in quotes."""


MODEL_TYPES = {kind.value.upper(): kind for kind in (ModelType.DTMC, ModelType.CTMC, ModelType.MDP)}
"""Kinds of models by the names that texts give them."""

NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
"""Names of variables, labels and actions in PRISM's files."""


@dataclass(frozen=True, eq=False)
class Section:
    """Whole lines of a file."""

    source: str  # the file's name
    data: bytes  # every line ends with a newline; empty for no lines
    first: int = 1  # number of the first line in the file, from 1
    # int64, shape (n_lines,); number of every line in the file; None where they follow each other
    lines: Numbers | None = None

    def place(self, line: int) -> str:
        """Return where a line stands, counted from 0 in this section."""
        return f"{self.source}:{self.first + line if self.lines is None else self.lines[line]}"

    def place_of(self, position: int) -> str:
        """Return where a byte stands."""
        return self.place(self.data.count(b"\n", 0, position))

    @property
    def n_lines(self) -> int:
        """Number of lines."""
        return self.data.count(b"\n")

    @property
    def numbers(self) -> Numbers:
        """Number of every line in the file, shape (n_lines,)."""
        if self.lines is None:
            return np.arange(self.first, self.first + self.n_lines, dtype=np.int64)
        return self.lines

    def with_text(self, data: bytes) -> Section:
        """Return other text in the place of the same lines."""
        return replace(self, data=data)


def require(
    right: Mask, place: Callable[[int], str], expected: str, got: NDArray[Any], advice: str = "mend this line"
) -> None:
    """Refuse the first of some lines that is not right.

    `right`: ndarray of bool, shape (n,). `place`: returns where line k stands. `got` (ndarray, shape (n,)):
    what the lines have.
    """
    if not right.all():
        k = int(np.argmin(right))
        raise InterchangeError(f"{place(k)}: {expected} expected, got {got[k]}; {advice}")


def read_section(path: str | Path, limit: int | None = None) -> Section:
    """Return a file's text, uncompressed.

    `path`: compression is recognised by the file's first bytes: gzip, xz, or none. `limit`: bytes of the
    uncompressed text at most; an eighth of the free memory by default. Returns Section: UTF-8 without byte
    order mark, lines end with a newline (a carriage return before it is dropped), and there are no control
    characters but tabs. Time: O(size). Memory: twice the uncompressed size at most. Raises InterchangeError:
    the file is cut, too large, empty, or no text. Raises OSError: it cannot be read.
    """
    source = str(path)
    blocks: list[bytes] = []
    size = 0
    try:
        with open(path, "rb") as file:
            for block in decompressed(file):
                size += len(block)
                if limit is None and size > SMALL:
                    limit = free_memory_bytes() // _SHARE
                if limit is not None and size > limit:
                    raise InterchangeError(
                        f"{source}: a text of at most {limit} bytes expected (an eighth of the free memory), "
                        "got more; free memory or make the model smaller"
                    )
                blocks.append(block)
    except DAMAGE as error:
        line = 1 + sum(block.count(b"\n") for block in blocks)
        raise InterchangeError(
            f"{source}:{line}: a whole compressed file expected, got one that ends or breaks here "
            f"({error}); compress it again"
        ) from None
    data = b"".join(blocks)
    blocks.clear()
    return _checked(source, data)


def chunks(section: Section) -> Iterator[Section]:
    """Yield whole lines, some megabytes at a time.

    Raises InterchangeError: a line that is longer.
    """
    data, start, first = section.data, 0, 0
    while start < len(data):
        end = min(start + CHUNK, len(data))
        if end < len(data):
            end = data.index(b"\n", end - 1) + 1
        if end - start > 4 * CHUNK:
            raise InterchangeError(
                f"{section.place(first)}: lines of at most {3 * CHUNK} bytes expected, got a longer one here "
                "or below; write shorter lines"
            )
        part = data[start:end]
        last = first + part.count(b"\n")
        lines = None if section.lines is None else section.lines[first:last]
        yield Section(section.source, part, section.first + first, lines)
        start, first = end, last


def _checked(source: str, data: bytes) -> Section:
    """Return text with one kind of line ends, after its bytes have been examined."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if not data or data.isspace():
        raise InterchangeError(f"{source}:1: a model expected, got an empty file; write it again")
    if not data.endswith(b"\n"):
        data += b"\n"
    whole = Section(source, data)
    if not data.isascii():
        whole = Section(source, data := _in_utf8(whole))
    if len(data.translate(None, _CONTROLS)) != len(data):
        position = min(k for k in (data.find(bytes([c])) for c in _CONTROLS) if k >= 0)
        raise InterchangeError(
            f"{whole.place_of(position)}: text expected, got the control character {data[position]:#04x}; "
            "give a text file"
        )
    return whole


def _in_utf8(section: Section) -> bytes:
    """Return the bytes of a text, question marks in the place of those in comments that are no UTF-8."""
    text = section.data.decode("utf-8", "surrogateescape")
    for found in UNKNOWN_BYTE.finditer(text):
        begin = text.rfind("\n", 0, found.start()) + 1
        if not _COMMENT.match(text, begin, text.index("\n", begin)):
            raise InterchangeError(
                f"{section.place(text.count(chr(10), 0, begin))}: UTF-8 expected, got the byte "
                f"0x{ord(found[0]) - 0xDC00:02x}; convert the file to UTF-8"
            )
    return UNKNOWN_BYTE.sub("?", text).encode("utf-8")


@dataclass(frozen=True)
class Head:
    """The lines before a table."""

    comments: tuple[str, ...]  # lines that begin with ``#``, without it
    line: bytes  # the first other line, without its newline
    place: str  # where it stands
    body: Section  # what follows


def read_head(section: Section, what: str) -> Head:
    """Return a section's comments, first line and rest.

    `what`: what the first line must be, for the message. Raises InterchangeError: there is no such line.
    """
    data, comments = section.data, []
    start, number = 0, 0
    while start < len(data):
        end = data.index(b"\n", start)
        line = data[start:end].strip()
        if line.startswith(b"#"):
            comments.append(line[1:].decode("utf-8").strip())
        elif line:
            rest = data[end + 1 :]
            if rest.endswith(b"\n\n"):
                # PRISM ends a table with an empty line, which would be no row.
                rest = rest.rstrip(b"\n")
                rest += b"\n" if rest else b""
            elif rest == b"\n":
                rest = b""
            body = Section(section.source, rest, section.first + number + 1)
            return Head(tuple(comments), line, section.place(number), body)
        start, number = end + 1, number + 1
    raise InterchangeError(
        f"{section.place(max(0, number - 1))}: {what} expected, got the end of the file; write the file again"
    )


def read_counts(head: Head, fields: tuple[str, ...]) -> tuple[int, ...]:
    """Return the whole numbers of a head's line.

    `fields`: the forms that are allowed, such as ``"states transitions"``. Raises InterchangeError: other
    fields, or something that is no whole number below 10^18.
    """
    tokens = head.line.split()
    if len(tokens) not in {len(form.split()) for form in fields} or not all(
        _DIGITS.fullmatch(token) for token in tokens
    ):
        raise InterchangeError(
            f"{head.place}: counts ({' or '.join(repr(form) for form in fields)}) expected, "
            f"got {shown(head.line)}; mend this line"
        )
    return tuple(int(token) for token in tokens)


def require_room(place: str, n_states: int, n_lines: int) -> None:
    """Refuse a number of states that the file's size or the memory does not bear out.

    `place`: where the number stands. `n_lines`: lines that could describe them.
    """
    if n_states < 1:
        raise InterchangeError(f"{place}: at least one state expected, got 0; mend the count")
    if n_states > 2 * n_lines + _EMPTY_STATES:
        raise InterchangeError(
            f"{place}: a number of states that fits the {n_lines} lines below expected, got {n_states}; "
            "mend the count"
        )
    needed = n_states * _STATE_BYTES
    if needed > SMALL and needed > (free := free_memory_bytes()):
        raise InterchangeError(
            f"{place}: a number of states that fits the memory expected, got {n_states}, which need "
            f"{needed} bytes of {free} that are free; free memory or make the model smaller"
        )


def require_count(head: Head, counted: int, found: int, what: str) -> None:
    """Refuse a count that is not that of the lines."""
    if counted != found:
        raise InterchangeError(
            f"{head.place}: {counted} {what}, as this line says, expected, got {found}; "
            "mend the count or add what is missing"
        )


def require_label_room(place: str, n_labels: int, needed: int) -> None:
    """Refuse labels whose sets of states do not fit into memory."""
    if needed > SMALL and needed > (free := free_memory_bytes() // 2):
        raise InterchangeError(
            f"{place}: labels that fit the memory expected, got {n_labels}, which need {needed} bytes of "
            f"{free}; write fewer labels"
        )


def split_initial(place: str, masks: dict[str, Mask]) -> tuple[dict[str, Mask], Mask]:
    """Return labels without ``init``, and its states.

    Raises InterchangeError: there is no ``init``, or no state has it.
    """
    initial = masks.pop("init", None)
    if initial is None or not initial.any():
        raise InterchangeError(
            f"{place}: a label 'init' of at least one state expected, got none; label the initial states"
        )
    return masks, initial


def shown(token: bytes) -> str:
    """Return bytes of a text for a message."""
    text = token.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")


def first_repeated(names: Sequence[str]) -> str | None:
    """Return the first name that was there before, None if all differ."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


@dataclass(frozen=True, eq=False, kw_only=True)
class TextPlaces(Places):
    """Lines of states, choices and transitions, made from few arrays and only when asked."""

    # int64; line of entry 0 where entries stand one below the other, else the lines of all entries
    entries: int | Numbers
    row_starts: Numbers  # int64, shape (n_choices + 1,)
    choice_starts: Numbers | None  # int64, shape (n_states + 1,)
    # choices and states: int64; lines of choices and states that have lines of their own; else the line of
    # their first entry is named
    choices: Numbers | None = None
    states: Numbers | None = None
    fallback: int = 1  # line for parts that have none: that of the counts

    def state(self, number: int) -> str:
        """Return where a state stands, or its first transition."""
        if self.states is not None:
            return f"{self.source}:{self.states[number]}"
        if self.choice_starts is None:
            return self.choice(number)
        first, end = (int(k) for k in self.choice_starts[number : number + 2])
        return self.choice(first) if first < end else f"{self.source}:{self.fallback}"

    def choice(self, number: int) -> str:
        """Return where a choice stands, or its first transition."""
        if self.choices is not None:
            return f"{self.source}:{self.choices[number]}"
        first, end = (int(k) for k in self.row_starts[number : number + 2])
        return self.entry(first) if first < end else f"{self.source}:{self.fallback}"

    def entry(self, number: int) -> str:
        """Return where a transition stands."""
        line = self.entries + number if isinstance(self.entries, int) else self.entries[number]
        return f"{self.source}:{line}"
