"""The first lines of PRISM's explicit files: comments, counts, and the room that counts ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.text.source import SMALL, Section
from mtbdd.memory import free_memory_bytes

_DIGITS = re.compile(rb"\d{1,18}")

_STATE_BYTES = 64
"""Bytes that a state's arrays take at least, with room to work."""

_EMPTY_STATES = 1_000_000
"""States without transitions that a file may count beyond twice its lines."""


@dataclass(frozen=True)
class Head:
    """What stands before a table.

    Attributes
    ----------
    comments : tuple of str
        Lines that begin with ``#``, without it.
    line : bytes
        The first other line, without its newline.
    number : int
        Line of it, from 0 in the section.
    body : Section
        What follows.
    """

    comments: tuple[str, ...]
    line: bytes
    number: int
    body: Section


def read_head(section: Section, what: str) -> Head:
    """Return a section's comments, first line and rest.

    Parameters
    ----------
    section : Section
    what : str
        What the first line must be, for the message.

    Raises
    ------
    InterchangeError
        There is no such line.
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
            return Head(tuple(comments), line, number, body)
        start, number = end + 1, number + 1
    raise InterchangeError(
        f"{section.place(max(0, number - 1))}: {what} expected, got the end of the file; write the file again"
    )


def read_counts(section: Section, head: Head, fields: tuple[str, ...]) -> tuple[int, ...]:
    """Return the whole numbers of a head's line.

    Parameters
    ----------
    section : Section
    head : Head
    fields : tuple of str
        The forms that are allowed, such as ``"states transitions"``.

    Raises
    ------
    InterchangeError
        Other fields, or something that is no whole number below 10^18.
    """
    tokens = head.line.split()
    if len(tokens) not in {len(form.split()) for form in fields} or not all(
        _DIGITS.fullmatch(token) for token in tokens
    ):
        raise InterchangeError(
            f"{section.place(head.number)}: counts ({' or '.join(repr(form) for form in fields)}) expected, "
            f"got {shown(head.line)}; mend this line"
        )
    return tuple(int(token) for token in tokens)


def require_room(place: str, n_states: int, n_lines: int) -> None:
    """Refuse a number of states that the file's size or the memory does not bear out.

    Parameters
    ----------
    place : str
        Where the number stands.
    n_states : int
    n_lines : int
        Lines that could describe them.

    Raises
    ------
    InterchangeError
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


def require_count(section: Section, head: Head, counted: int, found: int, what: str) -> None:
    """Refuse a count that is not that of the lines.

    Raises
    ------
    InterchangeError
    """
    if counted != found:
        raise InterchangeError(
            f"{section.place(head.number)}: {counted} {what}, as this line says, expected, got {found}; "
            "mend the count or add what is missing"
        )


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
