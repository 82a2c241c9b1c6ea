"""No figure of README and docs without its record: it comes from one by a marker, is computed, or goes."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import pytest

from benchmarks.rendering import render
from benchmarks.rendering.figures import MARKER, figure_differences
from tests.figures import COMPUTED, GIVEN, figures_without_record, wrong_figures
from tests.source_tree import ROOT

TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in render.pages()}
RENDERED = str(render.PAGE.relative_to(render.ROOT))
# Made from the parser: tests/hybrid/app/cli/test_manual.py.
MANUAL = "docs/command_line.md"
PROSE = [page for page in TEXTS if page not in (RENDERED, MANUAL)]
MARKED = [page for page in PROSE if MARKER.search(TEXTS[page])]
LOAD = functools.cache(render.load)


def changed_digits(text: str) -> Iterator[str]:
    """A text with each of its digits changed, one at a time."""
    for digit in re.finditer(r"\d", text):
        other = str((int(digit[0]) + 1) % 10)
        yield text[: digit.start()] + other + text[digit.end() :]


@pytest.mark.parametrize("page", PROSE)
def test_every_figure_has_a_record_or_is_computed(page: str) -> None:
    found = list(figures_without_record(page, TEXTS[page]))
    assert not found, "\n".join(
        [*found, "give it a marker (benchmarks/README.md), compute it (tests/figures.py), or leave it out"]
    )


def test_stated_figures_are_those_of_pages() -> None:
    assert {*COMPUTED, *GIVEN} <= {*PROSE}


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow) if "gallery" in page else page for page in COMPUTED]
)
def test_figures_that_the_sources_say_are_theirs(page: str) -> None:
    assert not list(wrong_figures(page, TEXTS[page]))


@pytest.mark.parametrize("page", MARKED)
def test_a_marker_that_is_taken_away_is_missed(page: str) -> None:
    for found in MARKER.finditer(TEXTS[page]):
        text = TEXTS[page][: found.start()] + found["text"] + TEXTS[page][found.end() :]
        assert list(figures_without_record(page, text)), found[0]


@pytest.mark.parametrize("page", MARKED)
def test_a_digit_of_a_figure_that_is_changed_is_told(page: str) -> None:
    for found in MARKER.finditer(TEXTS[page]):
        for wrong in changed_digits(found["text"]):
            text = found[0].replace(f" -->{found['text']}<!", f" -->{wrong}<!")
            (difference,) = figure_differences(text, LOAD)
            assert (difference.stands, difference.right) == (wrong, found["text"])


@pytest.mark.parametrize("page", [page for page in PROSE if page in GIVEN])
def test_a_digit_of_a_given_figure_that_is_changed_is_told(page: str) -> None:
    for phrase in GIVEN[page]:
        words = r"\s+".join(re.escape(word) for word in phrase.split())
        (there, *_) = re.finditer(words, TEXTS[page])
        for wrong in changed_digits(there[0]):
            text = TEXTS[page].replace(there[0], wrong)
            assert list(figures_without_record(page, text)), wrong


@pytest.mark.parametrize("page", [page for page in COMPUTED if "gallery" not in page])
def test_a_digit_of_a_computed_figure_that_is_changed_is_told(page: str) -> None:
    spoilt = 0
    for found in re.finditer(r"\d", TEXTS[page]):
        digit = str((int(found[0]) + 1) % 10)
        text = TEXTS[page][max(found.start() - 200, 0) : found.start()] + digit
        text += TEXTS[page][found.end() : found.end() + 200]
        spoilt += bool(list(wrong_figures(page, text)))
    assert spoilt >= len(COMPUTED[page])


def test_a_digit_of_a_rendered_table_that_is_changed_is_told() -> None:
    for page, block in render.BLOCKS:
        name = f"docs/{page}"
        begin = TEXTS[name].index(f"<!-- rendered: {block} -->")
        begin = TEXTS[name].find("| ---", begin, TEXTS[name].index(f"<!-- end: {block} -->"))
        if begin < 0:
            continue  # no runs yet
        digit = re.compile(r"\d").search(TEXTS[name], begin)
        assert digit is not None
        text = TEXTS[name][: digit.start()] + str((int(digit[0]) + 1) % 10) + TEXTS[name][digit.end() :]
        assert list(render.differences(ROOT / name, text)), block


@pytest.mark.parametrize(
    ("line", "figures"),
    [
        ("It takes 3.5 s.", ["3.5 s"]),
        ("It takes 3 to\n4.5 s, at 12 % of the bytes.", ["3 to 4.5 s", "12 %"]),
        ("1.5, 2.5 and 3 times as fast", ["1.5, 2.5 and 3 times"]),
        (
            "11,818,956,800 states and 150 billion transitions",
            ["11,818,956,800 states", "150 billion transitions"],
        ),
        ("up to five times as long, in ten seconds", ["five times", "ten seconds"]),
        ("33 CPU times", ["33 CPU times"]),
        ("a prefetch of 128-byte lines, 10⁹ states, 2·10⁵ rows", ["128-byte", "10⁹ states", "2·10⁵ rows"]),
        ("from <!-- = cards.cards d -->2<!-- . --> to 4 s", ["¤ to 4 s"]),
        ("from <!-- = cards.cards d -->2<!-- . --> to <!-- = cards.cards d -->2<!-- . --> s", []),
        ("| kanban | 2,299 | 1.5 |", ["2,299", "1.5"]),
        ("`3 s` and [more](a.md#3-s) of [WB13] §4.4.1, table 5, Python 3.11, level 3", []),
        ("```text\n3 s\n```\n\n<!-- rendered: a -->\n\n3 s\n\n<!-- end: a -->", []),
    ],
)
def test_what_a_figure_is(line: str, figures: list[str]) -> None:
    found = [told.partition(": ")[2] for told in figures_without_record("a.md", line)]
    assert found == figures
