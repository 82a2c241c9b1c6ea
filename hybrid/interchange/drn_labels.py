"""Labels of states in DRN files, and the values of variables in their comments."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.interchange.drn_lines import PickedSection
from hybrid.interchange.explicit_model import StateVariable
from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.text_heads import shown
from hybrid.interchange.text_rows import read_rows
from hybrid.interchange.text_words import Dictionary, distinct
from mtbdd.memory import free_memory_bytes

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]

_LABEL = re.compile(r'\s*(?:"([^"]+)"|([^\s"]+))(?=\s|"|$)')

_TRUE = re.compile(rb"(?<=[\[ ])([A-Za-z_]\w*)(?=[\t \]])")

_FALSE = re.compile(rb"(?<=[\[ ])!([A-Za-z_]\w*)(?=[\t \]])")

_NAME = re.compile(r"[A-Za-z_]\w*")


def read_state_labels(section: PickedSection, n_states: int) -> tuple[dict[str, Mask], Mask]:
    """Return the labels behind the numbers of states.

    Parameters
    ----------
    section : PickedSection
        A line a state; labels with blanks are in quotes.
    n_states : int

    Returns
    -------
    labels : dict of str to ndarray of bool, shape (n_states,)
        Without ``init``, in the order in which they come.
    initial : ndarray of bool, shape (n_states,)

    Raises
    ------
    InterchangeError
        Quotes that do not match, labels beyond the memory, or no ``init``.

    Notes
    -----
    Sets of labels that are equal are read once. Time: O(text + sets + labels * states).
    """
    data = np.frombuffer(section.data, dtype=np.uint8)
    ends = np.flatnonzero(data == 10)
    starts = np.append(0, ends[:-1] + 1)[: ends.size]
    codes, first = distinct(data, starts, ends)
    order = np.argsort(first, kind="stable")
    sets: dict[int, list[str]] = {}
    names: dict[str, int] = {}
    for code in order.tolist():
        k = int(first[code])
        sets[code] = _labels(section, k, data[int(starts[k]) : int(ends[k])].tobytes())
        for name in sets[code]:
            names.setdefault(name, len(names))
    # A column a label and a row a set would be as large as the labels are themselves, where all sets differ.
    needed, free = 2 * len(names) * n_states, free_memory_bytes() // 2
    if needed > free:
        raise InterchangeError(
            f"{section.place(0)}: labels that fit the memory expected, got {len(names)} of {n_states} "
            f"states, which need {needed} bytes of {free}; write fewer labels"
        )
    table = np.zeros((len(names), first.size), dtype=bool)
    for code, own in sets.items():
        table[[names[name] for name in own], code] = True
    masks = {name: table[k][codes] for name, k in names.items()}
    initial = masks.pop("init", None)
    if initial is None:
        raise InterchangeError(
            f"{section.place(0)}: a label 'init' of at least one state expected, got none; label the "
            "initial states"
        )
    return masks, initial


def _labels(section: PickedSection, line: int, text: bytes) -> list[str]:
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


def read_valuations(
    comments: PickedSection, state_lines: Numbers
) -> tuple[tuple[StateVariable, ...], dict[str, NDArray[Any]]]:
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
    """
    nothing: tuple[tuple[StateVariable, ...], dict[str, NDArray[Any]]] = (), {}
    own = np.isin(comments.lines, state_lines + 1)
    if int(own.sum()) != state_lines.size or not state_lines.size:
        return nothing
    lengths = np.diff(np.flatnonzero(np.frombuffer(comments.data, np.uint8) == 10), prepend=-1)
    text = np.frombuffer(comments.data, dtype=np.uint8)[np.repeat(own, lengths)].tobytes()
    text = text.replace(b"\t", b" ").replace(b"  ", b" ").replace(b"[ ", b"[").replace(b" ]", b"]")
    if text.count(b"//[") != state_lines.size or text.count(b"]\n") != state_lines.size:
        return nothing
    if text.count(b"=") != text.count(b"&") + state_lines.size:
        text = _TRUE.sub(rb"\1=true", _FALSE.sub(rb"\1=false", text))
    return _columns(comments.with_text(text), state_lines.size) or nothing


def _columns(
    section: PickedSection, n: int
) -> tuple[tuple[StateVariable, ...], dict[str, NDArray[Any]]] | None:
    """Return the variables of lines ``//[x=1 & y=2]``; None if the lines are not alike."""
    first = section.data[: section.data.index(b"\n")]
    names = [item.split(b"=")[0].strip().decode("utf-8") for item in first[3:-1].split(b"&")]
    if not all(_NAME.fullmatch(name) for name in names) or len(set(names)) < len(names):
        return None
    form = b"//[" + b" & ".join(b"=" for _ in names) + b"]\n"
    if section.data.translate(None, _WORDS) != form * n:
        return None
    data = np.frombuffer(section.data, dtype=np.uint8)
    equals = np.flatnonzero(data == ord("="))
    marks = np.flatnonzero((data == ord("[")) | (data == ord(" ")) | (data == ord("]")))
    before = marks[np.searchsorted(marks, equals) - 1] + 1
    after = marks[np.searchsorted(marks, equals)]
    dictionary = Dictionary()
    if (after == equals + 1).any() or (before == equals).any():
        return None
    if (dictionary.numbers(data, before, equals) != np.tile(np.arange(len(names)), n)).any():
        return None
    inside = np.zeros(data.size + 1, dtype=np.int8)
    inside[equals + 1] += 1
    inside[after + 1] -= 1
    # The mark behind a value separates it from the next one.
    values = data[np.cumsum(inside[:-1], dtype=np.int8).astype(bool)].tobytes().translate(_MARKS)
    values = values.replace(b"true", b"1").replace(b"false", b"0") if b"e" in values else values
    letters = data[equals + 1].reshape(n, len(names))
    truth = (letters == ord("t")) | (letters == ord("f"))
    logical = [bool(k) for k in truth[0]]
    if (truth != truth[:1]).any():
        return None
    try:
        rows = read_rows(section.with_text(values), "i", "value", comments=b"")
    except InterchangeError:
        return None
    table = rows.columns[0].reshape(n, len(names))
    variables, valuations = [], {}
    for k, name in enumerate(names):
        column = np.ascontiguousarray(table[:, k])
        if logical[k]:
            variables.append(StateVariable(name, 0, 1, True))
            valuations[name] = column.astype(bool)
        else:
            variables.append(StateVariable(name, int(column.min()), int(column.max())))
            valuations[name] = column
    return tuple(variables), valuations


_WORDS = bytes(c for c in range(256) if c not in b"/[]&= \n")

_MARKS = bytes.maketrans(b" ]", b"\n\n")
