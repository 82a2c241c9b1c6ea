"""The site as a reader walks it: the front page, its links, the glossary."""

from __future__ import annotations

from collections import Counter

from tests.pages import glossary
from tests.source_tree import ROOT

MOST_WORDS = 65


def test_no_word_of_the_glossary_is_defined_twice() -> None:
    counted = Counter(word.casefold() for word in glossary())
    assert [word for word, times in counted.items() if times > 1] == []


def test_the_glossary_is_short() -> None:
    assert 50 <= len(glossary()) <= MOST_WORDS


def test_every_word_of_the_glossary_is_used() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    pages = " ".join(" ".join(text.split()) for text in texts if not text.startswith("# Glossary")).casefold()
    assert [word for word in glossary() if word.casefold() not in pages] == []
