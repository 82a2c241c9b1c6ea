"""The lines of a DRN file by kind, and the numbers, names and labels in them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.text.heads import shown
from hybrid.interchange.text.rows import Rows, read_rows
from hybrid.interchange.text.source import Section
from hybrid.interchange.text.words import Dictionary

Numbers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_PLACEHOLDER = re.compile(rb"\$([^\s,\]]+)")

_NOT_FORM = bytes(c for c in range(256) if c not in b"\t :\n")

_TRANSITION = re.compile(rb"\s*([^\s:]+)\s*:\s*(\S+)\s*")


@dataclass(frozen=True)
class PickedSection(Section):
    """Lines of one kind.

    Attributes
    ----------
    lines : ndarray of int64
        Number of every line in the file, from 1.
    """

    lines: Numbers = None  # type: ignore[assignment]

    def place(self, line: int) -> str:
        """Return where a line stands, counted from 0 in this section."""
        return f"{self.source}:{self.lines[line]}"

    def with_text(self, data: bytes) -> PickedSection:
        """Return other text in the place of the lines."""
        return PickedSection(self.source, data, self.first, self.lines)


@dataclass(frozen=True, eq=False)
class DrnLines:
    """The lines of a body, by kind."""

    states: PickedSection
    actions: PickedSection
    transitions: PickedSection
    comments: PickedSection


@dataclass(frozen=True, eq=False)
class Heads:
    """What stands in lines of states or actions.

    Attributes
    ----------
    rows : Rows
        Numbers: of states the number, of CTMCs the exit rate, then rewards.
    n_rewards : int
    rest : Section
        The lines' text behind the numbers: the labels of states.
    words : ndarray of int64, shape (n,)
        Number of an action's name in `names`; -1 for none.
    names : tuple of str
    """

    rows: Rows
    n_rewards: int
    rest: PickedSection
    words: Numbers
    names: tuple[str, ...]


def split_lines(body: Section, placeholders: dict[bytes, bytes]) -> DrnLines:
    """Return the lines by what they begin with.

    Raises
    ------
    InterchangeError
        A placeholder that the header does not have.
    """
    data = np.frombuffer(body.data, dtype=np.uint8)
    ends = np.flatnonzero(data == 10)
    starts = np.append(0, ends[:-1] + 1)[: ends.size]
    at = starts.copy()
    live = np.flatnonzero((data[at] == 32) | (data[at] == 9))
    while live.size:
        at[live] += 1
        live = live[(data[at[live]] == 32) | (data[at[live]] == 9)]
    letters = data[at]
    lengths = ends + 1 - starts

    def picked(mask: NDArray[np.bool_], replace: bool = True) -> PickedSection:
        lines = np.flatnonzero(mask) + body.first
        text = data[np.repeat(mask, lengths)].tobytes()
        section = PickedSection(body.source, text, body.first, lines)
        return _with_numbers(section, placeholders) if replace else section

    is_state, is_action = letters == ord("s"), letters == ord("a")
    is_comment, is_empty = letters == ord("/"), letters == 10
    return DrnLines(
        picked(is_state),
        picked(is_action),
        picked(~(is_state | is_action | is_comment | is_empty)),
        picked(is_comment, replace=False),
    )


def _with_numbers(section: PickedSection, placeholders: dict[bytes, bytes]) -> PickedSection:
    """Return lines with numbers in the place of placeholders."""
    if not placeholders or b"$" not in section.data:
        return section

    def number(match: re.Match[bytes]) -> bytes:
        value = placeholders.get(match[1])
        if value is None:
            raise InterchangeError(
                f"{section.place_of(match.start())}: a placeholder of the header expected, got "
                f"{shown(match[0])}; define it below '@placeholders'"
            )
        return value

    return section.with_text(_PLACEHOLDER.sub(number, section.data))


def read_transition_lines(section: PickedSection) -> Rows:
    """Return targets and values of the lines of transitions.

    Raises
    ------
    InterchangeError
        Another form than ``target : value``, an interval, or no finite number.
    """
    text = section.data
    n = section.n_lines
    if b"[" in text:
        place = section.place_of(text.index(b"["))
        raise InterchangeError(f"{place}: a number expected, got an interval; intervals are not offered")
    if text.translate(None, _NOT_FORM) == b"\t\t : \n" * n and text.startswith(b"\t\t"):
        text = text.replace(b"\t\t", b"").replace(b" : ", b" ")
    else:
        found = []
        for number, line in enumerate(text.split(b"\n")[:n]):
            match = _TRANSITION.fullmatch(line)
            if match is None:
                raise InterchangeError(
                    f"{section.place(number)}: a transition as 'target : value', or a line 'state ...' or "
                    f"'action ...' expected, got {shown(line)}; mend this line"
                )
            found.append(match[1] + b" " + match[2] + b"\n")
        text = b"".join(found)
    return read_rows(section.with_text(text), "if", "target, value", comments=b"")


def read_heads(section: PickedSection, keyword: bytes, n_numbers: int, n_rewards: int | None) -> Heads:
    """Return what stands in the lines of states or of actions.

    Parameters
    ----------
    section : PickedSection
    keyword : bytes
        What the lines begin with, ``b"state"`` or ``b"action"``.
    n_numbers : int
        Numbers behind a state: its own, and of CTMCs the exit rate; 0 for actions, which have a name.
    n_rewards : int or None
        Numbers in brackets; None: as many as in the first line.

    Raises
    ------
    InterchangeError
        Another form than ``state 0 !rate [rewards] labels``, or ``action name [rewards]``.
    """
    text = _with_single_blanks(section.data)
    data = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(data == 10)
    starts = np.append(0, ends[:-1] + 1)[: ends.size]
    gaps = np.flatnonzero((data == 32) | (data == 10))
    # The keyword, then the numbers of a state or the name of an action.
    n_words = 1 + max(1, n_numbers)
    before = np.searchsorted(gaps, starts)
    last = np.minimum(before + n_words - 1, gaps.size - 1)
    wrong = gaps[last] > ends
    padded = np.append(data, np.zeros(len(keyword), np.uint8))
    for k, letter in enumerate(keyword + b" "):
        wrong |= padded[starts + k] != letter
    if n_numbers == 2:
        wrong |= padded[gaps[np.minimum(before + 1, gaps.size - 1)] + 1] != ord("!")
    _require(section, text, ~wrong, ends, f"'{_form(keyword, n_numbers)}'")
    middle = gaps[last]
    stops, n_rewards = _brackets(section, text, data, middle, ends, n_rewards)
    dictionary = Dictionary()
    words = np.full(ends.size, -1, dtype=np.int64)
    begin = starts + len(keyword) + 1
    if not n_numbers:
        words = dictionary.numbers(data, begin, middle)
        begin = np.minimum(middle + 1, stops)
    if n_numbers or n_rewards:
        rows = _numbers(section, _between(data, begin, stops, ends), n_numbers, n_rewards)
    else:
        rows = Rows((), np.zeros(0, dtype=np.int32), (), None, 0.0)
    rest = section.with_text(_between(data, stops, ends, ends))
    return Heads(rows, n_rewards, rest, words, dictionary.names)


def _with_single_blanks(text: bytes) -> bytes:
    """Return lines without blanks around them, and with one between words."""
    if b"\t" in text:
        text = text.replace(b"\n\t", b"\n").removeprefix(b"\t")
    if any(odd in text for odd in (b"\t", b"  ", b" \n", b"\n ")) or text.startswith(b" "):
        return b"\n".join(b" ".join(line.split()) for line in text.split(b"\n"))
    return text


def _between(data: Bytes, starts: Numbers, stops: Numbers, ends: Numbers) -> bytes:
    """Return what stands between two positions of every line, with newlines."""
    marks = np.zeros(data.size + 1, dtype=np.int8)
    marks[starts] += 1
    marks[stops] -= 1
    inside = np.cumsum(marks[:-1], dtype=np.int8).astype(bool)
    inside[ends] = True
    kept: bytes = data[inside].tobytes()
    return kept


def _numbers(section: PickedSection, text: bytes, n_numbers: int, n_rewards: int) -> Rows:
    """Return the numbers of lines such as ``0 !1.5 [0, 2]``."""
    if text.count(b",") == text.count(b", "):
        text = text.translate(None, b"![],")
    else:
        text = text.translate(bytes.maketrans(b"![],", b"    "))
    kinds = "i" * (n_numbers > 0) + "f" * (n_numbers > 1) + "f" * n_rewards
    return read_rows(section.with_text(text), kinds, "numbers of a state or an action", comments=b"")


def _brackets(
    section: PickedSection, text: bytes, data: Bytes, middle: Numbers, ends: Numbers, n_rewards: int | None
) -> tuple[Numbers, int]:
    """Return where the numbers of every line end, and how many are in brackets."""
    following = data[np.minimum(middle + 1, data.size - 1)]
    opened = (middle < ends) & (following == ord("["))
    if n_rewards is None:
        first = text[: int(ends[0])] if ends.size else b""
        own = first[first.find(b"[") :].partition(b"]")[0] if ends.size and opened[0] else b""
        n_rewards = own.count(b",") + 1 if own else 0
    if not n_rewards:
        _require(section, text, ~opened, ends, "no rewards in brackets, because the first line has none,")
        return middle, 0
    closing = np.append(np.flatnonzero(data == ord("]")), data.size)
    stops = closing[np.searchsorted(closing, middle)] + 1
    commas = np.flatnonzero(data == ord(","))
    count = np.searchsorted(commas, stops) - np.searchsorted(commas, middle) + 1
    _require(
        section,
        text,
        opened & (stops <= ends) & (count == n_rewards),
        ends,
        f"rewards as '[...]' of {n_rewards} reward structures, as many as in the first line,",
    )
    return stops, n_rewards


def _form(keyword: bytes, n_numbers: int) -> str:
    return f"{keyword.decode()} " + {0: "name", 1: "number", 2: "number !rate"}[n_numbers]


def _require(section: PickedSection, text: bytes, right: NDArray[np.bool_], ends: Numbers, what: str) -> None:
    """Refuse the first line that is not right."""
    if right.all():
        return
    row = int(np.argmin(right))
    start = int(ends[row - 1]) + 1 if row else 0
    line = text[start : int(ends[row])]
    raise InterchangeError(f"{section.place(row)}: {what} expected, got {shown(line)}; mend this line")
