"""Figures in the prose of README and docs: where they stand, and which need no record.

A figure is a number with a unit or a word of measure. One that was measured comes from a record by a marker
(`benchmarks/rendering/figures.py`); what the sources say is computed in `COMPUTED`; what defines, sets an example or
quotes a paper is in `GIVEN`. Code, tables that are rendered, links' addresses and the page of results are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from benchmarks.rendering.figures import MARKER

__all__ = ["COMPUTED", "GIVEN", "figures_without_record", "stated"]

# What stands for a figure from a record: part of a range, but no number.
_RECORDED = "¤"
_NUMBER = r"(?:\d+(?:[,.]\d+)*(?:e[-+]?\d+)?(?:·10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)?|10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+|2\^\d+|" + _RECORDED + ")"
_WORD = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty"
    r"|(?:a |one |two |three |some )?(?:hundred|thousand|million|billion))"
)
_MEASURE = r"(?:[nµm]?s|min|h|[kMGT]?i?B|[KMGT]iB|%|per cent|percent|×)"
_COUNTED = (
    r"(?:nano|micro|milli)?seconds?|minutes?|hours?|days?|(?:kilo|mega|giga|tera)?bytes?|times|products?"
    r"|iterations?|steps?|sweeps?|states?|transitions?|entries|choices|models?|questions?|cases?|values?|answers?"
    r"|passed|skipped|failed|mutants?|mutations?|tests?|cores?|threads?|processes|cards?|rows?|nodes?|blocks?|levels?"
    r"|formulas?|words|files?|points|runs?|paths?|million|billion"
)
_JOINED = r"\s*(?:,|–|-|/|to|and|or|of)\s*"
FIGURE = re.compile(
    rf"(?<![\w.,§^·-]){_NUMBER}(?:{_JOINED}{_NUMBER})*(?:\s*{_MEASURE}(?![\w-])|(?:\s+[a-z]+)?[\s-](?:{_COUNTED})\b)"
    rf"|\b{_WORD}(?:{_JOINED}{_WORD})*\s(?:(?:nano|micro|milli)?seconds|minutes|hours|times|gigabytes|megabytes|per cent)\b",
    re.IGNORECASE,
)
"""A number with what it counts or measures; words for numbers only with times and durations."""

COMPUTED: dict[tuple[str, str], Callable[[], tuple[object, ...]]] = {}
"""Texts with figures that the sources say, by page; each with what fills its braces."""

GIVEN: dict[str, tuple[str, ...]] = {}
"""Texts with figures that define, set an example or quote a paper, by page."""


def _blank(found: re.Match[str]) -> str:
    """Return the lines of a match without what stands on them."""
    return "\n" * found[0].count("\n")


def prose(text: str) -> str:
    """Return a page's prose, line for line, with a sign in the place of every figure from a record."""
    text = re.sub(r"^( *)```.*?^\1```", _blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!-- rendered: ([^>]*) -->.*?<!-- end: \1 -->", _blank, text, flags=re.DOTALL)
    text = MARKER.sub(_RECORDED, text)
    text = re.sub(r"`[^`]*`", lambda found: "`" + _blank(found), text)
    return re.sub(r"\]\([^()\s]*\)", "]", text)


def stated(page: str) -> list[str]:
    """Return the texts of a page whose figures need no record."""
    computed = [text.format(*values()) for (name, text), values in COMPUTED.items() if name == page]
    return [*computed, *GIVEN.get(page, ())]


def figures_without_record(page: str, text: str) -> Iterator[str]:
    """Yield the figures of a page that neither come from a record nor are stated; place and text."""
    for phrase in stated(page):
        pattern = r"\s+".join(re.escape(word) for word in phrase.split())
        text, count = re.subn(pattern, lambda found: "`" + _blank(found), text)
        if not count:
            yield f"{page}: no longer there: {phrase}"
    text = prose(text)
    for found in FIGURE.finditer(text):
        if re.search(r"\d", found[0]) or _RECORDED not in found[0]:
            line = text.count("\n", 0, found.start()) + 1
            yield f"{page}:{line}: {' '.join(found[0].split())}"
