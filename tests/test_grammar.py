"""docs/grammar.md says what the parsers read: texts go both ways."""

from __future__ import annotations

import re

import numpy as np
import pytest

from hybrid.properties import parse_properties
from hybrid.properties.parser import _FILTER_SIGNS
from hybrid.properties.path_parser import COMPARISONS, PATH_BINARY, PATH_UNARY
from mtbdd.language import LanguageError, SyntaxFaultError, parse_model
from mtbdd.language.expression_parser import FUNCTIONS, PRECEDENCE
from mtbdd.language.parser import _MODEL_TYPES, _TYPES
from mtbdd.language.tokens import RESERVED
from tests.exploring import rounds
from tests.grammar import WORDS, Grammar, cut
from tests.source_tree import ROOT

GRAMMAR = Grammar()
EXAMPLES = ROOT / "examples"
# Kept by PRISM for what is refused here.
REFUSED = {
    *("clock", "endinvariant", "endobservables", "invariant", "observable", "observables", "of"),
    *("pomdp", "popta", "pta"),
}


def reads(rule: str, text: str) -> bool:
    """Whether the parser reads a text without a fault of syntax, and refuses nothing in it."""
    try:
        if rule == "model":
            parse_model(text)
            return True
        return all(found.error is None for found in parse_properties(text).properties)
    except SyntaxFaultError:
        return False
    except LanguageError:
        return True  # a name: the copy of a module that does not exist


def keeps_what_is_said_in_words(tokens: tuple[str, ...]) -> bool:
    """Whether a model has one type, one init and a module, quotes behind `rewards` are a name, and no weight
    begins with `true +` or `true &`."""
    types = sum(token in _MODEL_TYPES for token in tokens)
    begun = [pair for pair in zip(tokens, tokens[1:], tokens[2:], strict=False) if pair[0] == "rewards"]
    named = all(second[0] != '"' or third not in {*PRECEDENCE, "?", ":"} for _, second, third in begun)
    places = zip(tokens, tokens[1:], tokens[2:], strict=False)
    plain = not any(a in ("->", "+") and b == "true" and c in ("+", "&") for a, b, c in places)
    return named and plain and types <= 1 and tokens.count("endinit") <= 1 and "endmodule" in tokens


def test_the_page_names_the_words_that_are_kept() -> None:
    page = (ROOT / "docs/grammar.md").read_text(encoding="utf-8")
    listed = page[page.index("These words are kept") : page.index("- `QUOTED`")]
    assert set(re.findall(r"`(\w+)`", listed)) == RESERVED


def test_the_rules_have_every_word_and_sign_of_the_parsers() -> None:
    words = GRAMMAR.words()
    named = {word for word in words if word.isalpha()}
    free = {"HOA", "multi", "T", "Tmin", "Tmax", "discount", "Cdiscount", "quantile", "rew"}
    free |= {"LRA", "LRAmin", "LRAmax", "Smin", "Smax"}
    assert named - RESERVED == FUNCTIONS.keys() - RESERVED | free
    assert RESERVED - words == REFUSED
    assert words >= PRECEDENCE.keys() | COMPARISONS | PATH_UNARY | PATH_BINARY | _FILTER_SIGNS.keys()
    assert words >= _MODEL_TYPES.keys() | _TYPES.keys() | FUNCTIONS.keys()
    used = set(re.findall(r"'name', '(\w+)'", str(GRAMMAR.rules)))
    assert used - GRAMMAR.rules.keys() == WORDS
    assert GRAMMAR.rules.keys() - used == {"model", "properties"}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.pr*")), ids=lambda path: path.name)
def test_the_rules_read_the_examples(path) -> None:
    tokens = cut(path.read_text(encoding="utf-8"))
    rule = "model" if path.suffix == ".prism" else "properties"
    assert GRAMMAR.accepts(rule, tokens)
    assert not GRAMMAR.accepts(rule, (*tokens, ")"))


@pytest.mark.parametrize("rule", ["module", "rewards", "system", "constant", "property", "expression"])
def test_the_parsers_read_what_the_rules_make(rule: str, rng: np.random.Generator) -> None:
    before, after = {
        "module": ("", ""),
        "property": ("", ""),
        "expression": ("module m endmodule formula f = ", ";"),
    }.get(rule, ("module m endmodule ", ""))
    for _ in range(rounds(150)):
        text = before + " ".join(GRAMMAR.make(rule, rng)) + after
        if rule == "property" or keeps_what_is_said_in_words(cut(text)):
            assert reads("property" if rule == "property" else "model", text), text


@pytest.mark.parametrize("rule", ["model", "property"])
def test_both_refuse_alike(rule: str, rng: np.random.Generator) -> None:
    """Of texts changed by a token, the rules and the parsers read the same ones."""
    start = "model" if rule == "model" else "properties"
    signs = [*"()[]{}<>=!&|+-:?,;'", "->", "..", "true", "endmodule", "F", "U", "P", "min", "n0", "7", '"q"']
    read = refused = 0
    while read + refused < rounds(400):
        tokens = GRAMMAR.make(rule, rng, depth=8)
        if rule == "model":
            tokens += ["module", "m", "endmodule"]
        at = int(rng.integers(len(tokens)))
        kind = rng.integers(3)
        if kind == 0:
            del tokens[at]
        elif kind == 1:
            tokens.insert(at, str(rng.choice(signs)))
        elif at:
            tokens[at - 1], tokens[at] = tokens[at], tokens[at - 1]
        text = " ".join(tokens)
        whole = cut(text)
        if not whole or (rule == "model" and not keeps_what_is_said_in_words(whole)):
            continue
        expected = GRAMMAR.accepts(start, whole)
        assert reads(rule, text) == expected, f"the rules {'read' if expected else 'refuse'} it: {text}"
        read, refused = read + expected, refused + (not expected)
    assert min(read, refused) > 8
