"""Cutting a text into tokens, and walking along them."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from typing import NoReturn

from mtbdd.language.errors import Fault, SyntaxFaultError, suggestion
from mtbdd.language.limits import current, raised
from mtbdd.language.sources import unknown_byte
from mtbdd.language.syntax import Position

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

    Parameters
    ----------
    text : str
        The source text.
    file : str
        Its name, for positions.

    Attributes
    ----------
    tokens : list of str
        Words, numbers, quoted names and signs; the last one is empty and stands for the end.
    index : int
        The token to read next.

    Raises
    ------
    SyntaxFaultError
        The text has more tokens than `Limits.tokens` allows, or bytes outside of comments that are no UTF-8.

    Notes
    -----
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
