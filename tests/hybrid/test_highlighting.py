"""The lexer of PRISM text: the parser's words and signs, no character left over."""

from __future__ import annotations

import tomllib

import pytest
from pygments.token import Comment, Error, Keyword, Name, String, Token, Whitespace

from hybrid.app.highlighting import (
    DECLARATIONS,
    FUNCTIONS,
    MODEL_TYPES,
    OPERATORS,
    TEMPORAL,
    TYPES,
    PrismLexer,
)
from mtbdd.language.expression_parser import FUNCTIONS as PARSED_FUNCTIONS
from mtbdd.language.parser import _MODEL_TYPES, _UNSUPPORTED_TYPES
from mtbdd.language.tokens import RESERVED, TokenReader
from tests.source_tree import ROOT

TEXTS = sorted([*(ROOT / "examples").glob("*.prism"), *(ROOT / "examples").glob("*.props")])


def coloured(text: str) -> list[tuple[object, str]]:
    return [
        (kind, value)
        for kind, value in PrismLexer(stripnl=False, ensurenl=False).get_tokens(text)
        if kind not in Whitespace and kind not in Comment
    ]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_examples_are_cut_as_the_parser_cuts_them(path) -> None:
    text = path.read_text(encoding="utf-8")
    found = coloured(text)
    assert not [value for kind, value in found if kind in Error]
    assert [value for _, value in found] == TokenReader(text, path.name).tokens[:-1]


def test_every_word_of_the_language_has_its_colour() -> None:
    words = {*DECLARATIONS, *MODEL_TYPES, *TYPES, *FUNCTIONS, *OPERATORS, *TEMPORAL, "true", "false"}
    assert RESERVED <= words
    assert words - RESERVED <= {*PARSED_FUNCTIONS, *_UNSUPPORTED_TYPES, "init"}
    assert {*_MODEL_TYPES, *_UNSUPPORTED_TYPES} <= {*MODEL_TYPES}
    for word in RESERVED - {"min", "max", "func"}:
        ((kind, _),) = coloured(word)
        assert kind in Keyword or kind is Token.Operator.Word, word


def test_words_are_coloured_by_what_they_are() -> None:
    kinds = {
        value: kind for kind, value in coloured('dtmc\nmodule m\n x : [0..2]; [go] mod(x,2)>1e-3 -> "a"')
    }
    assert kinds["dtmc"] is Keyword.Type
    assert kinds["module"] is Keyword.Declaration
    assert kinds["m"] is Name.Class
    assert kinds["x"] is Name
    assert kinds["go"] is Name.Label
    assert kinds["mod"] is Name.Builtin
    assert kinds["1e-3"] is Token.Number.Float
    assert kinds['"a"'] is String.Double
    # A variable may be called as a kind of model that is refused, or as a function.
    assert [kind for kind, _ in coloured("ma = mod")] == [Name, Token.Operator, Name]


@pytest.mark.parametrize("text", ["x # y", 'label "open', "a @ b", "x = ä"])
def test_what_the_parser_refuses_is_an_error_token(text: str) -> None:
    assert any(kind in Error for kind, _ in coloured(text))


def test_pygments_finds_the_lexer_by_its_name() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    (name,) = PrismLexer.aliases
    assert declared["pygments.lexers"] == {name: f"{PrismLexer.__module__}:{PrismLexer.__name__}"}
