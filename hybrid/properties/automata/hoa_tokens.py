"""The words of a text in the Hanoi omega-automata format."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NoReturn

from hybrid.base.errors import InterchangeError
from mtbdd.language.sources import unknown_byte

_WORD = re.compile(
    r"""(?P<space>\s+) | (?P<comment>/\*) | (?P<section>--(?:BODY|END|ABORT)--)
    | (?P<header>[A-Za-z_][A-Za-z0-9_-]*:) | (?P<alias>@[A-Za-z0-9_-]+) | (?P<version>v1\.1\b)
    | (?P<name>[A-Za-z_][A-Za-z0-9_-]*)
    | (?P<number>[0-9]+) | (?P<string>"(?:[^"\\]|\\.)*") | (?P<sign>[!&|()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")
_LONGEST = 9  # digits of a number


class HoaTokens:
    """The words of a text, one after another.

    Attributes
    ----------
    kind : str
        Of the word that is next: "section", "header", "alias", "version", "name", "number", "string", "sign",
        or "end".
    text : str
        The word itself; of a string what stands between its quotes.

    Raises
    ------
    InterchangeError
        From all methods: the text does not go on as it should.
    """

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._lines = [0, *(m.end() for m in re.finditer("\n", text))]
        self._source = text
        self._place = self._start = 0
        self.kind = self.text = ""
        self.advance()

    def advance(self) -> str:
        """Go to the next word; return the one that was next."""
        before = self.text
        while True:
            self._start = self._place
            if self._place == len(self._source):
                self.kind, self.text = "end", ""
                return before
            found = _WORD.match(self._source, self._place)
            unknown = unknown_byte(self._source[self._place] if found is None else found.group())
            if unknown is not None:
                self._start += unknown[0]
                raise self._fault(unknown[1])
            if found is None:
                raise self._fault(f"expected a word of the HOA format, got {self._source[self._place]!r}")
            self._place = found.end()
            self.kind, self.text = str(found.lastgroup), found.group()
            if self.kind == "comment":
                self._skip_comment()
            elif self.kind != "space":
                break
        if self.kind == "string":
            self.text = re.sub(r"\\(.)", r"\1", self.text[1:-1], flags=re.DOTALL)
        return before

    def _skip_comment(self) -> None:
        depth = 1
        while depth:
            found = _COMMENT.search(self._source, self._place)
            if found is None:
                raise self._fault("expected '*/' to close the comment, got the end of the text")
            self._place = found.end()
            depth += 1 if found.group() == "/*" else -1

    def at(self, text: str) -> bool:
        """Return whether a sign or section is next."""
        return self.text == text and self.kind in ("sign", "section", "header")

    def take(self, text: str) -> bool:
        """Step over a sign or section if it is next."""
        if not self.at(text):
            return False
        self.advance()
        return True

    def expect(self, text: str) -> None:
        """Step over a sign or section."""
        if not self.take(text):
            self.fail(f"expected '{text}', got {self.shown()}")

    def number(self, what: str, below: int | None = None) -> int:
        """Read a number."""
        if self.kind != "number" or len(self.text) > _LONGEST:
            self.fail(f"expected {what}, a number, got {self.shown()}")
        if below is not None and int(self.text) >= below:
            self.fail(f"expected {what} below {below}, got {self.text}")
        return int(self.advance())

    def string(self, what: str) -> str:
        """Read a text in double quotes."""
        if self.kind != "string":
            self.fail(f"expected {what} in double quotes, got {self.shown()}")
        return self.advance()

    def shown(self) -> str:
        """Return the next word for a message."""
        if self.kind == "end":
            return "the end of the text"
        return repr(self.text if len(self.text) <= 40 else self.text[:37] + "...")

    def fail(self, message: str) -> NoReturn:
        """Raise an error at the next word."""
        raise self._fault(message)

    def _fault(self, message: str) -> InterchangeError:
        line = bisect_right(self._lines, self._start)
        column = self._start - self._lines[line - 1] + 1
        return InterchangeError(f"{self._file}:{line}:{column}: {message}")
