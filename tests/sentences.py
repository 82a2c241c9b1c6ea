"""Sentences of pages and docstrings: their openings, their lengths, words that are none of the field."""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.figures import prose
from tests.pages import pages
from tests.source_tree import PACKAGES, ROOT, source_files

__all__ = [
    "code_texts",
    "docstrings",
    "is_riddle",
    "long_sentences",
    "opening_of",
    "page_text",
    "sentences",
    "written_pages",
]

MOST_WORDS = 25
_MADE = ("docs/command_line.md", "docs/benchmarks.md")
"""Pages that are made: from the parser (tests/hybrid/app/cli/test_manual.py), and from records."""
_OPENING = re.compile(r"(?:What|How|Who|Whoever|Whose|Where|Whether|Why)\b")
_RIDDLE = re.compile(r"\b(?:told|tells|whoever|anew|asked for|looked at|at looks)\b", re.IGNORECASE)
_BLOCK = re.compile(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s+|\n#+ |\n?(?<!\\)\|(?!\|)")
_END = re.compile(r"(?<=[.?!])[)\]*\"”]*\s+(?=[A-Z`\[*\"(“])")


@functools.cache
def page_text(page: str) -> str:
    """A page without code, tables that are rendered, comments and figures' markers."""
    text = prose((ROOT / page).read_text(encoding="utf-8"))
    return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text in Markdown; items of lists and cells of tables are texts of their own."""
    for block in _BLOCK.split("\n" + text):
        yield from (found for found in _END.split(" ".join(block.split())) if re.search(r"\w", found))


def long_sentences(text: str) -> list[str]:
    """Sentences of more than 25 words."""
    return [
        one for one in sentences(text) if sum(bool(re.search(r"\w", w)) for w in one.split()) > MOST_WORDS
    ]


def opening_of(text: str) -> str | None:
    """The word that a text begins with, if it asks instead of naming the thing."""
    found = _OPENING.match(text)
    return found[0] if found else None


def is_riddle(sentence: str) -> bool:
    """Whether a sentence has one of the words that are none of the field."""
    return _RIDDLE.search(sentence) is not None


@functools.cache
def _docstrings() -> tuple[tuple[str, Path, str], ...]:
    found = []
    for path in (path for package in PACKAGES for path in source_files(package)):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef)) and (text := ast.get_docstring(node)):
                found.append((type(node).__name__, path, text))
    return tuple(found)


def docstrings(kind: str) -> list[tuple[str, str]]:
    """File and docstring of every ``Module`` or ``ClassDef`` that has one."""
    return [(str(path.relative_to(ROOT)), text) for named, path, text in _docstrings() if named == kind]


@functools.cache
def code_texts() -> tuple[tuple[str, str], ...]:
    """File and text of every docstring, also of constants, and of every run of comments."""
    found = []
    for path in (path for package in PACKAGES for path in source_files(package)):
        source, name = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                if isinstance(node.value.value, str):
                    found.append((name, node.value.value.strip()))
        runs: list[list[str]] = []
        last = -1
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                if token.start[0] != last + 1:
                    runs.append([])
                runs[-1].append(token.string.lstrip("# "))
                last = token.start[0]
        found += [(name, " ".join(run)) for run in runs]
    return tuple(found)


def written_pages() -> list[str]:
    """README and the pages that people write."""
    return [page for page in pages() if page not in _MADE and "docs/api/" not in page]
