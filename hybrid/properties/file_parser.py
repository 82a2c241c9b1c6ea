"""Property files and single properties: from text to the property tree."""

from __future__ import annotations

import os

from hybrid.properties.parser import PropertyParser
from hybrid.properties.tree import Properties, Property
from mtbdd.language.errors import Fault, LanguageError, SyntaxFaultError
from mtbdd.language.sources import read_source
from mtbdd.language.syntax import Literal

_DECLARATIONS = ("const", "rate", "prob", "formula", "label")
_OPERATORS = ("P", "Pmin", "Pmax", "S", "R", "Rmin", "Rmax")


class _FileParser(PropertyParser):
    """Reads a text of properties and declarations.

    Parameters
    ----------
    text, file : str
    keep_faults : bool
        See `parse_properties`.
    """

    def __init__(self, text: str, file: str, keep_faults: bool = False) -> None:
        super().__init__(text, file)
        self.keep_faults = keep_faults
        self._lost: list[Fault] = []  # of declarations: there is no property to tell them

    def properties(self) -> Properties:
        """Read the whole file."""
        constants, formulas, labels, properties = [], [], [], []
        while not self.at(""):
            token, first = self.tokens[self.index], self.index
            try:
                if token in ("const", "rate", "prob"):
                    constants.append(self.plain(self.constant))
                elif token == "formula":
                    formulas.append(self.plain(self.formula))
                elif token == "label":
                    labels.append(self.plain(self.label))
                elif token == ";":
                    self.index += 1
                else:
                    properties.append(self.property())
            except (SyntaxFaultError, RecursionError) as caught:
                if not self.keep_faults:
                    raise
                error = caught if isinstance(caught, SyntaxFaultError) else self.too_deep()
                self._depth, self.operators, self.paths, self.calls = 0, True, False, True
                self.ends_at_bars = False
                if token in _DECLARATIONS:
                    self._lost.extend(error.faults)
                    self._recover(first)
                else:
                    properties.append(self._faulty(first, error))
        if self._lost:
            faults = [fault for p in properties if p.error is not None for fault in p.error.faults]
            raise LanguageError([*self._lost, *faults])
        if not (properties or constants or formulas or labels):
            self.fail_expected("a property", 'write one like P=? [ F "done" ]')
        return Properties(self.file, tuple(constants), tuple(formulas), tuple(labels), tuple(properties))

    # ------------------------------------------------------------------ after a fault

    def _faulty(self, first: int, error: SyntaxFaultError) -> Property:
        """Return the property that begins with a token and has a fault, and step behind it."""
        self.index = first
        name = None
        if self.peek() == ":" and self.tokens[first][:1] == '"':
            name = self.tokens[first].strip('"')
            first += 2
        position = self.position(min(first, len(self.tokens) - 1))
        self._recover(first)
        text = self.source(first, self.index) if self.index > first else ""
        self.take(";")
        return Property(name, Literal(position, True), text, position, error)

    def _recover(self, first: int) -> None:
        """Step to the semicolon behind a token, or to the line that begins a property or a declaration."""
        self.index = first
        line = self.position().line
        while not (self.at("") or self.at(";")):
            self.index += 1
            place = self.position()
            if place.column == 1 and place.line > line and self._begins():
                return

    def _begins(self) -> bool:
        """Return whether the next token, at the beginning of a line, begins something new for sure."""
        token = self.tokens[self.index]
        if token in _DECLARATIONS or token in _OPERATORS or token == "filter":
            return True
        return token[:1] == '"' and self.peek() == ":"


def parse_properties(text: str, file: str = "<properties>", keep_faults: bool = False) -> Properties:
    """Read a properties file, or a single property.

    Parameters
    ----------
    text : str
        Properties, each ended by an optional semicolon, and declarations of constants, formulas and labels.
    file : str
        Name of the text, for positions.
    keep_faults : bool
        Leave a property that does not follow the grammar in the result, with its `error` set, instead of
        raising.  Reading goes on behind the next semicolon, or at the next line that begins with an operator,
        a declaration or a name and a colon.

    Returns
    -------
    Properties
        Names are not looked up, types are not checked; `hybrid.properties.resolve.resolve_properties`
        does this.

    Raises
    ------
    SyntaxFaultError
        At the first place that does not follow the grammar.
    LanguageError
        If faults are kept: with those of declarations and of properties, if a declaration has any.

    Notes
    -----
    As in PRISM a property extends as far as it can: one beginning with `-` needs a semicolon before it.
    Time: O(length of the text).
    """
    parser = _FileParser(text, file, keep_faults)
    return parser.run(parser.properties)


def load_properties(path: str | os.PathLike[str], keep_faults: bool = False) -> Properties:
    """Read a properties file.

    Parameters
    ----------
    path : path-like
        A text file, UTF-8.
    keep_faults : bool
        As for `parse_properties`.

    Returns
    -------
    Properties
        As from `parse_properties`.

    Raises
    ------
    SourceError
        If the file cannot be read as text.
    LanguageError
        As from `parse_properties`.
    """
    return parse_properties(read_source(path, "properties"), os.fspath(path), keep_faults)
