"""The lines of a DRN file by kind: numbers, names, labels, and values of variables in comments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.container import Bytes
from hybrid.models.interchange.explicit_model import Mask, Numbers, StateVariable
from hybrid.models.interchange.text.rows import Dictionary, Rows, distinct_words, read_rows
from hybrid.models.interchange.text.source import (
    Section,
    chunks,
    first_repeated,
    require_label_room,
    shown,
    split_initial,
)

_PLACEHOLDER = re.compile(rb"\$([^\s,\]]+)")
_NOT_FORM = bytes(c for c in range(256) if c not in b"\t :\n")
_TRANSITION = re.compile(rb"\s*([^\s:]+)\s*:\s*(\S+)\s*")


@dataclass(frozen=True, eq=False)
class DrnLines:
    """The lines of a body, by kind."""

    states: Section
    actions: Section
    transitions: Section
    comments: Section


@dataclass(frozen=True, eq=False)
class Heads:
    """Contents of the lines of states or actions."""

    rows: Rows  # numbers: of states the number, of CTMCs the exit rate, then rewards
    n_rewards: int
    rest: Section  # the lines' text behind the numbers: the labels of states
    words: Numbers  # int64, shape (n,); number of an action's name in `names`; -1 for none
    names: tuple[str, ...]


def split_lines(body: Section, placeholders: dict[bytes, bytes]) -> DrnLines:
    """Return the lines by what they begin with.

    Raises InterchangeError: a placeholder that the header does not have.
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

    def picked(mask: NDArray[np.bool_], replace: bool = True) -> Section:
        lines = np.flatnonzero(mask) + body.first
        text = data[np.repeat(mask, lengths)].tobytes()
        section = Section(body.source, text, body.first, lines)
        return _with_numbers(section, placeholders) if replace else section

    is_state, is_action = letters == ord("s"), letters == ord("a")
    is_comment, is_empty = letters == ord("/"), letters == 10
    return DrnLines(
        picked(is_state),
        picked(is_action),
        picked(~(is_state | is_action | is_comment | is_empty)),
        picked(is_comment, replace=False),
    )


def _with_numbers(section: Section, placeholders: dict[bytes, bytes]) -> Section:
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


def read_transition_lines(section: Section) -> Rows:
    """Return targets and values of the lines of transitions.

    Raises InterchangeError: another form than ``target : value``, an interval, or no finite number.
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


def read_heads(section: Section, keyword: bytes, n_numbers: int, n_rewards: int | None) -> Heads:
    """Return what stands in the lines of states or of actions.

    `keyword`: what the lines begin with, ``b"state"`` or ``b"action"``. `n_numbers`: numbers behind a state:
    its own, and of CTMCs the exit rate; 0 for actions, which have a name. `n_rewards`: numbers in brackets;
    None: as many as in the first line. Raises InterchangeError: another form than ``state 0 !rate [rewards]
    labels``, or ``action name [rewards]``.
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
        rows = Rows((), np.zeros(0, dtype=np.int32), (), section.source, 0, 0.0)
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


def _numbers(section: Section, text: bytes, n_numbers: int, n_rewards: int) -> Rows:
    """Return the numbers of lines such as ``0 !1.5 [0, 2]``."""
    if text.count(b",") == text.count(b", "):
        text = text.translate(None, b"![],")
    else:
        text = text.translate(bytes.maketrans(b"![],", b"    "))
    kinds = "i" * (n_numbers > 0) + "f" * (n_numbers > 1) + "f" * n_rewards
    return read_rows(section.with_text(text), kinds, "numbers of a state or an action", comments=b"")


def _brackets(
    section: Section, text: bytes, data: Bytes, middle: Numbers, ends: Numbers, n_rewards: int | None
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


def _require(section: Section, text: bytes, right: NDArray[np.bool_], ends: Numbers, what: str) -> None:
    """Refuse the first line that is not right."""
    if right.all():
        return
    row = int(np.argmin(right))
    start = int(ends[row - 1]) + 1 if row else 0
    line = text[start : int(ends[row])]
    raise InterchangeError(f"{section.place(row)}: {what} expected, got {shown(line)}; mend this line")


_LABEL = re.compile(r'\s*(?:"([^"]+)"|([^\s"]+))(?=\s|"|$)')


def read_state_labels(section: Section, n_states: int) -> tuple[dict[str, Mask], Mask]:
    """Return the labels behind the numbers of states.

    `section`: a line a state; labels with blanks are in quotes. Sets of labels that are equal are read once.
    Time: O(text + sets + labels * states). Returns `labels` (dict of str to ndarray of bool, shape
    (n_states,)): without ``init``, in the order in which they come. `initial`: ndarray of bool, shape
    (n_states,). Raises InterchangeError: quotes that do not match, labels beyond the memory, or no ``init``.
    """
    data = np.frombuffer(section.data, dtype=np.uint8)
    ends = np.flatnonzero(data == 10)
    starts = np.append(0, ends[:-1] + 1)[: ends.size]
    codes, first = distinct_words(data, starts, ends)
    order = np.argsort(first, kind="stable")
    sets: dict[int, list[str]] = {}
    names: dict[str, int] = {}
    for code in order.tolist():
        k = int(first[code])
        sets[code] = _labels(section, k, data[int(starts[k]) : int(ends[k])].tobytes())
        for name in sets[code]:
            names.setdefault(name, len(names))
    # A column a label and a row a set would be as large as the labels are themselves, where all sets differ.
    require_label_room(section.place(0), len(names), 2 * len(names) * n_states)
    table = np.zeros((len(names), first.size), dtype=bool)
    for code, own in sets.items():
        table[[names[name] for name in own], code] = True
    masks = {name: table[k][codes] for name, k in names.items()}
    return split_initial(section.place(0), masks)


def _labels(section: Section, line: int, text: bytes) -> list[str]:
    """Return the labels of a line."""
    found, end, written = [], 0, text.decode("utf-8").strip()
    while end < len(written):
        match = _LABEL.match(written, end)
        if match is None:
            raise InterchangeError(
                f"{section.place(line)}: labels with blanks between them, in quotes if need be, expected, "
                f"got {shown(text)}; mend this line"
            )
        found.append(match[1] or match[2])
        end = match.end()
    return found


Valuations = tuple[tuple[StateVariable, ...], dict[str, NDArray[Any]]]

# Names alone are booleans that are true, behind an exclamation mark such that are false.
_TRUE = re.compile(rb"(?<=[\[ ])([A-Za-z_]\w*+)(?=[ \]])")
_FALSE = re.compile(rb"(?<=[\[ ])!([A-Za-z_]\w*+)(?=[ \]])")
_NAME = re.compile(r"[A-Za-z_]\w*")
_COMMENT = re.compile(rb"//\s*\[([^\[\]]*)\]")
_ITEM = re.compile(rb"([A-Za-z_]\w*)\s*=\s*(-?\d{1,18}|true|false)|!?([A-Za-z_]\w*)")
_WORDS = bytes(c for c in range(256) if c not in b"/[]&= \n")
_MARKS = bytes.maketrans(b" ]", b"\n\n")


def read_valuations(comments: Section, state_lines: Numbers) -> Valuations:
    """Return the variables of comments such as ``//[x=1 & b=true]`` below all states.

    Comments are no part of the format: where they do not have whole numbers or booleans of the same variables
    below every state, there are no variables. Time: O(text). `state_lines`: ndarray of int64, shape
    (n_states,). Returns `variables`. `valuations`: dict of str to ndarray, shape (n_states,).
    """
    n = state_lines.size
    own = np.isin(comments.numbers, state_lines + 1)
    if int(own.sum()) != n or not n:
        return (), {}
    lengths = np.diff(np.flatnonzero(np.frombuffer(comments.data, np.uint8) == 10), prepend=-1)
    text = np.frombuffer(comments.data, dtype=np.uint8)[np.repeat(own, lengths)].tobytes()
    text = text.replace(b"\t", b" ").replace(b"  ", b" ").replace(b"[ ", b"[").replace(b" ]", b"]")
    if text.count(b"=") != text.count(b"&") + n:
        text = _TRUE.sub(rb"\1=true", _FALSE.sub(rb"\1=false", text))
    first = text[: text.index(b"\n")]
    names = [item.split(b"=")[0].strip().decode("utf-8") for item in first[3:-1].split(b"&")]
    if not all(_NAME.fullmatch(name) for name in names) or first_repeated(names) is not None:
        return (), {}
    logical: Mask | None = None
    tables = []
    for chunk in chunks(Section(comments.source, text)):
        found = _table(chunk, names)
        if found is None or (logical is not None and (found[1] != logical).any()):
            return (), {}
        tables.append(found[0])
        logical = found[1]
    return _variables(names, np.concatenate(tables), logical)


def unread_valuations(comments: Section, states: Section) -> str | None:
    """Return a warning about comments that seem to be valuations and were not read as such, None without any.

    Time: O(text), line by line.
    """
    found = dict(zip(comments.numbers.tolist(), comments.data.split(b"\n"), strict=False))
    seeming = next((n for n, line in found.items() if line.strip().startswith(b"//[")), None)
    if seeming is None:
        return None
    first: list[bytes] | None = None
    for row, number in enumerate((states.numbers + 1).tolist()):
        line = found.get(number, b"").strip()
        place = f"{comments.source}:{number}"
        if not line:
            return _unread(states.place(row), "none below this state")
        match = _COMMENT.fullmatch(line)
        names = [] if match is None else [_ITEM.fullmatch(item.strip()) for item in match[1].split(b"&")]
        if not names or None in names:
            return _unread(place, shown(line))
        own = [name[1] or name[3] for name in names if name is not None]
        if first is not None and own != first:
            return _unread(place, f"other variables, {shown(line)}")
        first = own
    return _unread(f"{comments.source}:{seeming}", "other kinds of values, or a variable twice")


def _unread(place: str, got: str) -> str:
    return (
        f"{place}: valuations in comments are passed over, so that there are no variables: whole numbers or "
        f"truth values of the same variables, '//[x=1 & b=true]', below every state expected, got {got}"
    )


def _table(section: Section, names: list[str]) -> tuple[Numbers, Mask] | None:
    """Return the values in lines ``//[x=1 & y=2]``, and which are booleans; None if lines are not alike."""
    n = section.n_lines
    form = b"//[" + b" & ".join(b"=" for _ in names) + b"]\n"
    if section.data.translate(None, _WORDS) != form * n:
        return None
    data = np.frombuffer(section.data, dtype=np.uint8)
    equals = np.flatnonzero(data == ord("="))
    marks = np.flatnonzero((data == ord("[")) | (data == ord(" ")) | (data == ord("]")))
    following = np.searchsorted(marks, equals)
    before, after = marks[following - 1] + 1, marks[following]
    if (after == equals + 1).any() or (before == equals).any():
        return None
    dictionary = Dictionary()
    numbers = dictionary.numbers(data, before, equals).reshape(n, len(names))
    if dictionary.names != tuple(names) or (numbers != np.arange(len(names))).any():
        return None
    letters = data[equals + 1].reshape(n, len(names))
    truth = (letters == ord("t")) | (letters == ord("f"))
    if (truth != truth[:1]).any():
        return None
    inside = np.zeros(data.size + 1, dtype=np.int8)
    inside[equals + 1] += 1
    inside[after + 1] -= 1
    # The mark behind a value separates it from the next one.
    values = data[np.cumsum(inside[:-1], dtype=np.int8).astype(bool)].tobytes().translate(_MARKS)
    if values.count(b"true") + values.count(b"false") != int(truth.sum()):
        return None
    values = values.replace(b"true", b"1").replace(b"false", b"0")
    try:
        rows = read_rows(Section(section.source, values), "i", "value", comments=b"")
    except InterchangeError:
        return None
    table = rows.columns[0].reshape(n, len(names))
    if ((table < 0) | (table > 1))[truth].any():
        return None
    return table, truth[0]


def _variables(names: list[str], table: Numbers, logical: Mask | None) -> Valuations:
    """Return the variables with their values."""
    valuations: dict[str, NDArray[Any]] = {}
    for k, name in enumerate(names):
        column = np.ascontiguousarray(table[:, k])
        valuations[name] = column.astype(bool) if logical is not None and logical[k] else column
    return tuple(StateVariable.of(*item) for item in valuations.items()), valuations
