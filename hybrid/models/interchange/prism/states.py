"""PRISM's tables of states and labels: files ``.sta`` and ``.lab``, or sections of a file ``.pexp``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.explicit_model import Mask, Numbers, StateVariable
from hybrid.models.interchange.text.rows import Rows, read_rows
from hybrid.models.interchange.text.source import (
    NAME,
    Section,
    chunks,
    first_repeated,
    read_head,
    require,
    require_label_room,
    shown,
    split_initial,
)

_LABEL = re.compile(rb'\s*(\d+)="([^"]*)"')

# Other programs write more behind a state, such as its labels.
_LINE = re.compile(rb"(\d+)[ \t]*+:[ \t]*+\(([^()]*)\)(?:[ \t].*)?")

_VALUE = re.compile(rb"-?\d+|true|false")

# Possessive repetitions keep the search linear.
_LABEL_LINE = re.compile(rb"(\d{1,18})[ \t]*+:((?:[ \t]*+\d{1,18}+(?![^ \t]))*+)[ \t]*")

_SPACES = bytes.maketrans(b":,", b"  ")

_NEWLINES = bytes.maketrans(b" ", b"\n")


@dataclass(frozen=True, eq=False)
class StateTable:
    """Variables and their values; the attributes are those of `ExplicitModel`."""

    variables: tuple[StateVariable, ...]
    valuations: dict[str, NDArray[Any]]


def read_states(section: Section, n_states: int) -> StateTable:
    """Read a table of states.

    Parameters
    ----------
    section : Section
    n_states : int
        Of the transitions.

    Returns
    -------
    StateTable
        A variable is boolean if its values are written ``true`` and ``false``; an integer ranges over what
        the table has.

    Raises
    ------
    InterchangeError
        Not every state once, or a line with other values than its neighbours.
    """
    head = read_head(section, "a line '(variable,...)'")
    line = head.line.strip()
    inside = line.removeprefix(b"(").removesuffix(b")").decode("utf-8").strip()
    names = [name.strip() for name in inside.split(",")]
    place = head.place
    if line[:1] != b"(" or line[-1:] != b")" or not all(NAME.fullmatch(name) for name in names):
        raise InterchangeError(f"{place}: variables as '(x,y)' expected, got {shown(line)}; mend this line")
    if (twice := first_repeated(names)) is not None:
        raise InterchangeError(f"{place}: every variable once expected, got {twice!r} twice; rename one")
    body = _with_whole_lines(head.body, len(names))
    logical: list[bool] | None = None
    for chunk in chunks(body):
        logical = _booleans(chunk, len(names), logical)
    logical = logical or [False] * len(names)
    data = _with_digits(body.data) if any(logical) else body.data
    data = data.translate(_SPACES, b"()")
    rows = read_rows(body.with_text(data), "i" * (1 + len(names)), ", ".join(["state", *names]))
    order = _every_state_once(body, rows, n_states)
    variables, valuations = [], {}
    for name, values, is_bool in zip(names, rows.columns[1:], logical, strict=True):
        own = values if order is None else values[order]
        if is_bool:
            variables.append(StateVariable(name, 0, 1, True))
            valuations[name] = own.astype(bool)
        else:
            variables.append(StateVariable(name, int(own.min()), int(own.max())))
            valuations[name] = own
    return StateTable(tuple(variables), valuations)


def _with_whole_lines(body: Section, n_variables: int) -> Section:
    """Return the section without comments and odd blanks, after brackets and commas have been looked at."""
    data = body.data
    pattern = b":(" + b"," * (n_variables - 1) + b")\n"
    kept = data.translate(None, b"0123456789-aeflrstu")
    if kept == pattern * (len(kept) // len(pattern)) and not any(
        odd in data for odd in (b"(,", b",,", b",)", b"()", b"\n:")
    ):
        if not data.startswith(b":"):
            return body
    # Some line is odd: blanks and comments may be, the rest is a fault.
    lines = []
    for number, line in enumerate(data.split(b"\n")):
        bare = line.strip()
        if not bare or bare.startswith(b"#"):
            lines.append(b"")
            continue
        match = _LINE.fullmatch(bare)
        values = [] if match is None else [value.strip() for value in match[2].split(b",")]
        if match is None or len(values) != n_variables or not all(map(_VALUE.fullmatch, values)):
            raise InterchangeError(
                f"{body.place(number)}: a state as 'number:(values)' with {n_variables} values, whole "
                f"numbers, 'true' or 'false', expected, got {shown(bare)}; mend this line"
            )
        lines.append(match[1] + b":(" + b",".join(values) + b")")
    return body.with_text(b"\n".join(lines))


def _with_digits(data: bytes) -> bytes:
    """Return lines with 1 and 0 for the values ``true`` and ``false``; parts of other words stay."""
    for word, letter, digit in ((b"true", b"T", b"1"), (b"false", b"F", b"0")):
        data = data.replace(b"," + word, b"," + letter).replace(b"(" + word, b"(" + letter)
        data = data.replace(letter + b",", digit + b",").replace(letter + b")", digit + b")")
    return data


def _booleans(chunk: Section, n_variables: int, before: list[bool] | None) -> list[bool] | None:
    """Return which variables are booleans; refuse columns that are only sometimes."""
    data = np.frombuffer(chunk.data.translate(_SPACES, b"()"), dtype=np.uint8)
    inside = data > 32
    starts = np.flatnonzero(inside & ~np.append(False, inside[:-1]))
    if not starts.size:
        return before
    # Every line has a number and then the values.
    letters = data[starts].reshape(-1, n_variables + 1)[:, 1:]
    logical = (letters == ord("t")) | (letters == ord("f"))
    expected = logical[0] if before is None else np.array(before)
    mixed = logical != expected
    if mixed.any():
        row, column = (int(k) for k in np.argwhere(mixed)[0])
        line = int(np.count_nonzero(data[: starts[row * (n_variables + 1)]] == 10))
        raise InterchangeError(
            f"{chunk.place(line)}: value {column + 1} as in the first state ('true' and 'false', or whole "
            "numbers) "
            "expected, got the other kind; mend this line"
        )
    return [bool(k) for k in expected]


def _every_state_once(body: Section, rows: Rows, n_states: int) -> Numbers | None:
    """Return the rows by state, None if they are in order."""
    states = rows.columns[0]
    if states.size == n_states and (states == np.arange(n_states)).all():
        return None
    wrong = (states < 0) | (states >= n_states)
    if not wrong.any():
        order = np.argsort(states, kind="stable")
        wrong[order[1:]] = states[order[1:]] == states[order[:-1]]
    advice = "mend this line, or give the states of the same model"
    require(~wrong, rows.place, f"every state from 0 to {n_states - 1} once", states, advice)
    if states.size != n_states:
        raise InterchangeError(
            f"{body.place(max(0, body.n_lines - 1))}: {n_states} states expected, got {states.size}; give "
            "the states of the same model"
        )
    return order


def read_labels(section: Section, n_states: int) -> tuple[dict[str, Mask], Mask]:
    """Read a table of labels.

    Parameters
    ----------
    section : Section
    n_states : int
        Of the transitions.

    Returns
    -------
    labels : dict of str to ndarray of bool, shape (n_states,)
        Without ``init``.
    initial : ndarray of bool, shape (n_states,)

    Raises
    ------
    InterchangeError
        Numbers of states or labels that do not exist, names twice, or no ``init``.
    """
    head = read_head(section, "a line '0=\"init\" ...'")
    place = head.place
    names = _label_names(place, head.line)
    require_label_room(place, len(names), len(names) * n_states)
    masks = {name: np.zeros(n_states, dtype=bool) for name in names}
    for chunk in chunks(head.body):
        states, numbers = _label_pairs(chunk, n_states, len(names))
        order = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[order], np.arange(len(names) + 1))
        for k in np.unique(numbers).tolist():
            masks[names[k]][states[order[ends[k] : ends[k + 1]]]] = True
    return split_initial(place, masks)


def _label_names(place: str, line: bytes) -> list[str]:
    """Return the names in the first line."""
    names: dict[str, None] = {}
    line, end = line.rstrip(), 0
    while end < len(line):
        match = _LABEL.match(line, end)
        n = len(names)
        if match is None or match[1] != str(n).encode() or not match[2]:
            raise InterchangeError(
                f"{place}: label {n} as '{n}=\"name\"' expected, got {shown(line[end:])}; number the "
                "labels from 0 "
                "without gaps"
            )
        name = match[2].decode("utf-8")
        if name in names:
            raise InterchangeError(f"{place}: every label once expected, got {name!r} twice; rename one")
        names[name] = None
        end = match.end()
    return list(names)


def _label_pairs(body: Section, n_states: int, n_labels: int) -> tuple[Numbers, Numbers]:
    """Return states and numbers of labels, a pair for every label of a state."""
    text = _numbers_alone(body)
    data = np.frombuffer(text, dtype=np.uint8)
    digit = data > 32
    starts = np.flatnonzero(digit & ~np.append(False, digit[:-1]))
    line_of = np.searchsorted(np.flatnonzero(data == 10), starts)
    leads = np.append(True, np.diff(line_of) != 0)[: line_of.size]
    # Every number on a line of its own is a table again.
    one_a_line = body.with_text(text.translate(_NEWLINES))
    numbers = read_rows(one_a_line, "i", "state or label", comments=b"").columns[0]
    limits = np.where(leads, n_states, n_labels)
    wrong = numbers >= limits
    if wrong.any():
        k = int(np.argmax(wrong))
        what = "state" if leads[k] else "label"
        raise InterchangeError(
            f"{body.place(int(line_of[k]))}: a {what} from 0 to {limits[k] - 1} expected, got {numbers[k]}; "
            "mend this line"
        )
    states = numbers[leads][np.cumsum(leads) - 1]
    return states[~leads], numbers[~leads]


def _numbers_alone(body: Section) -> bytes:
    """Return the lines without colons and comments, after their form has been looked at."""
    data = body.data
    if data.translate(None, b"0123456789 ") == b":\n" * body.n_lines and not any(
        odd in data for odd in (b"  ", b" \n", b"\n ", b" :", b"\n:")
    ):
        text = np.frombuffer(data, dtype=np.uint8)
        ends = np.flatnonzero((text == 32) | (text == 10))
        firsts = ends[np.append(True, text[ends[:-1]] == 10)[: ends.size]]
        if (text[firsts - 1] == ord(":")).all() and data[:1] not in (b":", b" "):
            return data.translate(None, b":")
    found = []
    for number, line in enumerate(data.split(b"\n")[: body.n_lines]):
        bare = line.strip()
        if not bare or bare.startswith(b"#"):
            found.append(b"\n")
            continue
        match = _LABEL_LINE.fullmatch(bare)
        if match is None:
            raise InterchangeError(
                f"{body.place(number)}: a state and its labels as '5: 0 2' expected, got {shown(bare)}; "
                "mend this line"
            )
        found.append(b" ".join([match[1], *match[2].split()]) + b"\n")
    return b"".join(found)
