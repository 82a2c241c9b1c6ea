"""The line of a text that a fault is in, with a caret under the column.

The first line of a message stays `file:line:column: message`, on which programs rely; records of answers have
it alone.
"""

from __future__ import annotations

import argparse
import re
import unicodedata

from mtbdd.language.errors import LanguageError
from mtbdd.language.sources import read_source

_WIDTH = 100
"""Characters of a line that are shown."""

_TAB = 4


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
        return "\n".join(lines)

    def _excerpt(self, name: str, line: int, column: int, message: str) -> list[str]:
        lines = self._text(name).split("\n")
        if not 0 < line <= len(lines) or not 0 < column <= len(lines[line - 1]) + 1:
            return []
        text = lines[line - 1].rstrip("\r")
        # What is said of a whole file has its beginning as the place.
        if (line, column) == (1, 1) and f"'{_first_word(text)}'" not in message:
            return []
        shown, before = _cells(text, column - 1)
        number = f"{line:>5}"
        return [f"{number} | {shown}", f"{' ' * len(number)} | {' ' * before}^"] if shown.strip() else []

    def _text(self, name: str) -> str:
        if name not in self._texts:
            try:
                self._texts[name] = read_source(self._files[name])
            except LanguageError:
                self._texts[name] = ""
        return self._texts[name]


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
