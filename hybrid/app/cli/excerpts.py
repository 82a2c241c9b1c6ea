"""The line of a text that a fault is in, with a caret under the column.

The first line of a message stays `file:line:column: message`, on which programs rely; records of answers have
it alone.
"""

from __future__ import annotations

import argparse
import gzip
import re
import unicodedata
import zlib
from pathlib import Path

from mtbdd.language.errors import LanguageError
from mtbdd.language.sources import read_source

_WIDTH = 100
"""Characters of a line that are shown."""

_TAB = 4

_LINE_ALONE = re.compile(r"(.+?):([0-9]{1,12}): ")
"""How messages about files of states and transitions begin: they tell no column."""

_GOT = re.compile(r", got '([^']+)'")

_LONGEST, _FARTHEST = 1 << 16, 10_000_000
"""Bytes of a line, and lines of a file, beyond which no line is shown."""


class Excerpts:
    """Adds excerpts of the texts that a command line names to messages about them.

    Parameters
    ----------
    options : Namespace
        Of a command; `model`, `property`, `const` and `formula` are looked at, where there are such.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        names = ("model", "property", "const", "formula")
        given = {name: getattr(options, name, None) or "" for name in names}
        self._texts = {
            "<property>": given["property"],
            "<constants>": given["const"],
            "<formula>": given["formula"],
        }
        self._files = {str(path): path for path in (given["model"], given["property"]) if path}
        known = "|".join(map(re.escape, sorted({*self._files, *self._texts}, key=len, reverse=True)))
        self._place = re.compile(rf"(?<!\S)({known}):([0-9]+):([0-9]+): ")

    def added(self, message: str) -> str:
        """Return a message with an excerpt below every line that tells a place in one of the texts."""
        lines = []
        for line in message.split("\n"):
            lines.append(line)
            found = self._place.search(line)
            if found is not None:
                indent = " " * (len(line) - len(line.lstrip()))
                excerpt = self._excerpt(found[1], int(found[2]), int(found[3]), line[found.end() :])
                lines += [indent + text for text in excerpt]
            elif (alone := _LINE_ALONE.match(line)) is not None:
                lines += _excerpt_of_file(alone[1], int(alone[2]), line[alone.end() :])
        return "\n".join(lines)

    def _excerpt(self, name: str, line: int, column: int, message: str) -> list[str]:
        lines = self._text(name).split("\n")
        if not 0 < line <= len(lines) or not 0 < column <= len(lines[line - 1]) + 1:
            return []
        text = lines[line - 1].rstrip("\r")
        # What is said of a whole file has its beginning as the place.
        if (line, column) == (1, 1) and f"'{_first_word(text)}'" not in message:
            return []
        return _drawn(text, line, column - 1)

    def _text(self, name: str) -> str:
        if name not in self._texts:
            try:
                self._texts[name] = read_source(self._files[name])
            except LanguageError:
                self._texts[name] = ""
        return self._texts[name]


def _excerpt_of_file(path: str, number: int, message: str) -> list[str]:
    """Return the excerpt of a file of which a line is told, and what was got where."""
    text = _line_of(path, number)
    if text is None:
        return []
    got = _GOT.match(message[message.rfind(", got ") :]) if ", got " in message else None
    places = [m.start() for m in re.finditer(rf"(?<!\w){re.escape(got[1])}(?!\w)", text)] if got else []
    return _drawn(text, number, places[0] if len(places) == 1 else None)


def _line_of(path: str, number: int) -> str | None:
    """Return a line of a file, which may be compressed; None if it is no text or too far down."""
    if not 0 < number <= _FARTHEST:
        return None
    try:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
            for _ in range(number):
                line = file.readline(_LONGEST)
                if len(line) == _LONGEST:
                    return None
        text = line.decode()
    except (OSError, EOFError, ValueError, zlib.error):
        return None
    return None if "\0" in text else text.rstrip("\r\n")


def _drawn(text: str, number: int, offset: int | None) -> list[str]:
    """Return a line with its number, and a caret below a character of it."""
    shown, before = _cells(text, offset or 0)
    if not shown.strip():
        return []
    head = f"{number:>5}"
    lines = [f"{head} | {shown}"]
    return lines if offset is None else [*lines, f"{' ' * len(head)} | {' ' * before}^"]


def _first_word(text: str) -> str:
    found = re.match(r'\w+|"[^"]*"|.', text)
    return found[0] if found else ""


def _cells(text: str, offset: int) -> tuple[str, int]:
    """Return a line as it is shown, and the columns before a character of it.

    Tabs become blanks, characters that a terminal obeys become question marks, and of a long line what
    surrounds the character is left.
    """
    head = tail = ""
    if len(text) > _WIDTH:
        begin = max(0, min(offset - _WIDTH // 2, len(text) - _WIDTH))
        head, tail = "..." if begin else "", "..." if begin + _WIDTH < len(text) else ""
        text, offset = text[begin : begin + _WIDTH], offset - begin
    cells, columns, before = [], 0, 0
    for position, character in enumerate(text):
        if position == offset:
            before = columns
        if character == "\t":
            cell = " " * (_TAB - columns % _TAB)
            columns += len(cell)
        elif not character.isprintable():
            cell = "?"
            columns += 1
        else:
            cell = character
            wide = unicodedata.east_asian_width(character) in "WF"
            columns += 0 if unicodedata.combining(character) else 2 if wide else 1
        cells.append(cell)
    if offset >= len(text):
        before = columns
    return head + "".join(cells).rstrip() + tail, len(head) + before
