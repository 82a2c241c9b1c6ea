"""Values of variables in the comments of DRN files."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.interchange.drn.lines import PickedSection
from hybrid.interchange.explicit_model import StateVariable
from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.text.heads import first_repeated, shown
from hybrid.interchange.text.rows import read_rows
from hybrid.interchange.text.source import Section, chunks
from hybrid.interchange.text.words import Dictionary

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Valuations = tuple[tuple[StateVariable, ...], dict[str, NDArray[Any]]]

# Names alone are booleans that are true, behind an exclamation mark such that are false.
_TRUE = re.compile(rb"(?<=[\[ ])([A-Za-z_]\w*+)(?=[ \]])")

_FALSE = re.compile(rb"(?<=[\[ ])!([A-Za-z_]\w*+)(?=[ \]])")

_NAME = re.compile(r"[A-Za-z_]\w*")

_COMMENT = re.compile(rb"//\s*\[([^\[\]]*)\]")

_ITEM = re.compile(rb"([A-Za-z_]\w*)\s*=\s*(-?\d{1,18}|true|false)|!?([A-Za-z_]\w*)")

_WORDS = bytes(c for c in range(256) if c not in b"/[]&= \n")

_MARKS = bytes.maketrans(b" ]", b"\n\n")


def read_valuations(comments: PickedSection, state_lines: Numbers) -> Valuations:
    """Return the variables that comments such as ``//[x=1 & b=true]`` below all states tell.

    Comments are no part of the format: where they do not tell whole numbers or booleans of the same variables
    below every state, there are no variables.

    Parameters
    ----------
    comments : PickedSection
    state_lines : ndarray of int64, shape (n_states,)

    Returns
    -------
    variables : tuple of StateVariable
    valuations : dict of str to ndarray, shape (n_states,)

    Notes
    -----
    Time: O(text).
    """
    n = state_lines.size
    own = np.isin(comments.lines, state_lines + 1)
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


def unread_valuations(comments: PickedSection, states: PickedSection) -> str | None:
    """Return a warning about comments that seem to be valuations and were not read as such, None without any.

    Notes
    -----
    Time: O(text), line by line.
    """
    found = dict(zip(comments.lines.tolist(), comments.data.split(b"\n"), strict=False))
    seeming = next((n for n, line in found.items() if line.strip().startswith(b"//[")), None)
    if seeming is None:
        return None
    first: list[bytes] | None = None
    for row, number in enumerate((states.lines + 1).tolist()):
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
    variables = []
    valuations: dict[str, NDArray[Any]] = {}
    for k, name in enumerate(names):
        column = np.ascontiguousarray(table[:, k])
        if logical is not None and logical[k]:
            variables.append(StateVariable(name, 0, 1, True))
            valuations[name] = column.astype(bool)
        else:
            variables.append(StateVariable(name, int(column.min()), int(column.max())))
            valuations[name] = column
    return tuple(variables), valuations
