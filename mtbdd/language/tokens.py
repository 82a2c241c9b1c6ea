"""Cutting a text into tokens, and walking along them."""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import NoReturn

from mtbdd.language.errors import Fault, SourceError, SyntaxFaultError, suggestion
from mtbdd.language.limits import current, raised
from mtbdd.language.syntax import Position

# Reading a source file into text, with every failure reported as a fault.

UNKNOWN_BYTE = re.compile("[\udc80-\udcff]")
"""Pattern of a byte that is no UTF-8 in a text decoded with `surrogateescape`."""


class StandardInput(str):
    """The name of the text on standard input, to be given where the path of a text is expected.

    The text is read once, when it is first wanted.
    """

    def __new__(cls) -> StandardInput:
        """Return the name, ``<stdin>``."""
        return super().__new__(cls, "<stdin>")

    def __init__(self) -> None:
        self._data: bytes | None = None

    def read(self, most: int) -> bytes:
        """Return the text's bytes, `most` of them or fewer."""
        if self._data is None:
            if sys.stdin is None:
                raise OSError("standard input is closed")
            stream = getattr(sys.stdin, "buffer", None)
            self._data = sys.stdin.read(most).encode() if stream is None else stream.read(most)
        return self._data


def read_source(path: str | os.PathLike[str], what: str = "model") -> str:
    """Read a text file.

    `path`: the file, or a `StandardInput`. `what`: what the file should hold, for messages. Returns str: its
    text, taken as UTF-8, without a byte-order mark. Raises SourceError: if the file is missing, unreadable, a
    directory, larger than the limits allow, binary or empty.

    No more of a file is read than the limits allow, so that one without an end is reported, too.

    Bytes that are no UTF-8 are kept, as `os.fsdecode` does: comments may hold any, and the parser reports
    others with their place, see `unknown_byte`.
    """
    name = os.fspath(path)
    most = current().source_bytes
    expected = f"expected a {what} file"

    def fail(message: str) -> SourceError:
        return SourceError([Fault(Position(name, 1, 1), message)])

    try:
        data = _bytes_of(path, most + 1)
    except FileNotFoundError:
        near = near_file(name) or "; check the path"
        raise fail(f"{expected}, but there is no such file{near}") from None
    except IsADirectoryError:
        raise fail(f"{expected}, got a directory; name a file in it") from None
    except (OSError, ValueError) as error:
        # ValueError: a path with a null character.
        reason = getattr(error, "strerror", None) or str(error)
        raise fail(f"{expected}, but it cannot be read: {reason}") from None
    if len(data) > most and b"\0" not in data:
        raise fail(
            f"{expected} of at most {most} bytes, got a larger one; split it, or "
            f"{raised('source_bytes', _size(path))}"
        )
    if b"\0" in data:
        raise fail(f"{expected}, got a binary file (byte 0 at offset {data.index(0)}); give a text file")
    text = data.decode("utf-8-sig", "surrogateescape")
    if not text.strip():
        raise fail(f"{expected}, got an empty file; check the path")
    return text


def unknown_byte(text: str) -> tuple[int, str] | None:
    """Return where a byte first stands that is no UTF-8, and a message; None where there is none."""
    found = None if text.isascii() else UNKNOWN_BYTE.search(text)
    if found is None:
        return None
    byte = ord(found[0]) - 0xDC00
    return found.start(), f"expected a text in UTF-8, got the byte 0x{byte:02x}; write it in UTF-8"


def near_file(name: str) -> str:
    """Return `"; did you mean 'x'?"` for the file beside a misspelt one with the nearest name, or nothing."""
    folder, wanted = os.path.split(name)
    try:
        with os.scandir(folder or ".") as entries:
            found = suggestion(wanted, (entry.name for entry in entries if entry.is_file()))
    except (OSError, ValueError):
        return ""
    return found.replace("'", f"'{os.path.join(folder, '')}", 1) if folder else found


def _size(path: str | os.PathLike[str]) -> int:
    """Return the size of a regular file, 0 of other sources."""
    return 0 if isinstance(path, StandardInput) else Path(path).stat().st_size


def _bytes_of(path: str | os.PathLike[str], most: int) -> bytes:
    if isinstance(path, StandardInput):
        return path.read(most)
    with Path(path).open("rb") as file:
        return file.read(most)


# The words that PRISM keeps for itself; a name must not be one of them.
RESERVED = frozenset(
    """A bool clock const ctmc C double dtmc E endinit endinvariant endmodule endobservables endrewards
    endsystem false formula filter func F global G init invariant I int label max mdp min module X
    nondeterministic observable observables of Pmax Pmin P pomdp popta probabilistic prob pta rate
    rewards Rmax Rmin R S stochastic system true U W""".split()
)

# The pieces cover the text without gaps, so that lengths add up to offsets.  A number never ends in a dot:
# `0..5` is three tokens.
_PIECE = re.compile(
    r"""[ \t\r\n\f\v]+ | //[^\n]* | [A-Za-z_][A-Za-z0-9_]* | [0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?
    | "[^"\n]*" | <=> | -> | => | <= | >= | != | \.\. | .""",
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SINGLE = frozenset("()[]{}<>=!&|+-*/^?:;,'.\"")


class TokenReader:
    """The tokens of a text and a place among them; the base of the parsers.

    `text`: the source text. `file`: its name, for positions. `tokens`: words, numbers, quoted names and
    signs; the last one is empty and stands for the end. `index`: the token to read next. Raises
    SyntaxFaultError: the text has more tokens than `Limits.tokens` allows, or bytes outside of comments that
    are no UTF-8.

    Time: O(length of the text).
    """

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        pieces = _PIECE.findall(text)
        tokens = []
        offsets = []
        for piece, offset in zip(pieces, accumulate(map(len, pieces), initial=0), strict=False):
            if not (piece.isspace() or piece.startswith("//")):
                tokens.append(piece)
                offsets.append(offset)
        # The end is reported just behind the last token, not behind trailing comments.
        offsets.append(offsets[-1] + len(tokens[-1]) if tokens else 0)
        tokens.append("")
        self.tokens: list[str] = tokens
        self.index = 0
        self._offsets = offsets
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        most = current().tokens
        if len(tokens) - 1 > most:
            message = f"expected a text of at most {most} words, numbers and signs, got {len(tokens) - 1}"
            self.fail(f"{message}; {raised('tokens', len(tokens) - 1)}", most)

        if unknown_byte(text) is not None:
            self._refuse_unknown_bytes()

    def _refuse_unknown_bytes(self) -> None:
        """Raise a syntax fault at the first byte of a token that is no UTF-8; comments may hold any."""
        for token, offset in zip(self.tokens, self._offsets, strict=True):
            unknown = unknown_byte(token)
            if unknown is not None:
                raise SyntaxFaultError([Fault(self._place(offset + unknown[0]), unknown[1])])

    # ------------------------------------------------------------------ places

    def position(self, index: int | None = None) -> Position:
        """Return the place of a token, by default of the next one."""
        return self._place(self._offsets[self.index if index is None else index])

    def _place(self, offset: int) -> Position:
        """Return the line and column of a character."""
        line = bisect_right(self._lines, offset)
        return Position(self.file, line, offset - self._lines[line - 1] + 1)

    def source(self, first: int, last: int) -> str:
        """Return the text from token `first` to before token `last`, on one line, without comments."""
        begin, end = self._offsets[first], self._offsets[last - 1] + len(self.tokens[last - 1])
        pieces = _PIECE.findall(self.text, begin, end)
        return "".join(" " if piece.isspace() or piece.startswith("//") else piece for piece in pieces)

    # ------------------------------------------------------------------ faults

    def fail(self, message: str, index: int | None = None) -> NoReturn:
        """Raise a syntax fault at a token, by default at the next one."""
        raise SyntaxFaultError([Fault(self.position(index), message)])

    def describe(self, index: int | None = None) -> str:
        """Return a token for a message: in quotes, or what it stands for."""
        token = self.tokens[self.index if index is None else index]
        if not token:
            return "the end of the text"
        if token == '"':
            return 'a quote (") that is not closed on its line'
        if token == "'":
            return "an apostrophe (')"
        if len(token) == 1 and token not in _SINGLE and not token.isascii():
            return f"the character {token!r} (U+{ord(token):04X}), which has no meaning here"
        if len(token) == 1 and token not in _SINGLE and not (token.isalnum() or token == "_"):
            return f"the character {token!r}, which has no meaning here"
        return f"'{token[:40]}'"

    def fail_expected(self, expected: str, advice: str = "") -> NoReturn:
        """Raise a syntax fault at the next token: this was expected, that came."""
        self.fail(f"expected {expected}, got {self.describe()}" + (f"; {advice}" if advice else ""))

    # ------------------------------------------------------------------ steps

    def at(self, token: str) -> bool:
        """Return whether the next token is this one."""
        return self.tokens[self.index] == token

    def peek(self, ahead: int = 1) -> str:
        """Return a token ahead, the empty one behind the end."""
        index = self.index + ahead
        return self.tokens[index] if index < len(self.tokens) else ""

    def take(self, token: str) -> bool:
        """Step over the next token if it is this one; return whether it was."""
        if self.tokens[self.index] == token:
            self.index += 1
            return True
        return False

    def expect(self, token: str, where: str, advice: str = "") -> None:
        """Step over a token that must come now."""
        if self.tokens[self.index] != token:
            self.fail_expected(f"'{token}' {where}", advice)
        self.index += 1

    def at_name(self) -> bool:
        """Return whether the next token is a word that may be a name."""
        token = self.tokens[self.index]
        return token.isidentifier() and token.isascii() and token not in RESERVED

    def name(self, what: str) -> str:
        """Step over a name and return it."""
        token = self.tokens[self.index]
        if not self.at_name():
            if token in RESERVED:
                self.fail(f"expected {what}, got '{token}', a reserved word; choose another name")
            self.fail_expected(what)
        self.index += 1
        return token

    def quoted_name(self, what: str) -> str:
        """Step over a name in double quotes and return it without them and without blanks around it."""
        name = self._quoted(what)
        if not _NAME.fullmatch(name):
            self.fail(
                f"expected {what} made of letters, digits and _ (no digit first), got {self.describe()}"
            )
        self.index += 1
        return name

    def quoted_reference(self, what: str) -> str:
        """Step over what stands for something by its name, which may be any text: files name things so."""
        name = self._quoted(what)
        if not name or not name.isprintable():
            self.fail(f"expected {what} in double quotes, got {self.describe()}")
        self.index += 1
        return name

    def _quoted(self, what: str) -> str:
        """Return what stands in the double quotes that must come next, without blanks around it."""
        token = self.tokens[self.index]
        if len(token) < 2 or token[0] != '"':
            self.fail_expected(f'{what} in double quotes, like "name"')
        return token[1:-1].strip()

    def spelling(self, words: list[str]) -> str:
        """Return a hint if the next token looks like one of these words misspelt."""
        token = self.tokens[self.index]
        return suggestion(token, words) if token.isidentifier() else ""
