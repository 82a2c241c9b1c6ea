"""A path formula alone, as `hybrid automaton` takes it."""

from __future__ import annotations

from hybrid.properties.parser import PropertyParser
from mtbdd.language.errors import LanguageError
from mtbdd.language.syntax import Expression


def parse_path(text: str, file: str = "<formula>") -> Expression:
    """Read a path formula.

    Parameters
    ----------
    text : str
    file : str
        Name of the text, for positions.

    Returns
    -------
    Expression
        Names are not looked up, types are not checked.

    Raises
    ------
    LanguageError
        The text is no path formula, or uses what is not supported.
    """
    parser = PropertyParser(text, file)
    found = parser.run(parser.path)
    if not parser.at(""):
        parser.fail_expected("the end of the formula")
    if parser.refusals:
        raise LanguageError(parser.refusals)
    return found
