"""The site as a reader walks it: the front page, its links, the glossary, the README."""

from __future__ import annotations

import re
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from tests.pages import glossary
from tests.source_tree import ROOT

DOCS = ROOT / "docs"
FRONT = DOCS / "index.md"
MOST_WORDS = 65
MOST_CLICKS = 3
READERS = ("PRISM", "Storm", "SciPy or CuPy", "dd", "cluster", "papers")
KINDS = ("Tutorials", "How-to guides", "Reference", "Explanation")
QUESTIONS = 11


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def pages() -> set[Path]:
    """The pages and notebooks of the site; those of the reference that Sphinx writes are left out."""
    return {
        path for kind in ("md", "ipynb") for path in DOCS.rglob(f"*.{kind}") if "generated" not in path.parts
    }


def linked(page: Path) -> set[Path]:
    """The pages that the text of a page links to; entries of the sidebar do not count."""
    links = re.findall(r"\]\(([^)#:\s\\]+\.(?:md|ipynb))", read(page))
    return {(page.parent / link).resolve() for link in links} & pages()


def clicks() -> dict[Path, int]:
    """How many links of texts lead from the front page to each page that can be reached."""
    found, ends = {FRONT: 0}, {FRONT}
    while ends:
        reached = {there for page in ends for there in linked(page)} - found.keys()
        steps = 1 + max(found.values())
        found |= dict.fromkeys(reached, steps)
        ends = reached
    return found


def test_every_page_is_three_clicks_from_the_front() -> None:
    found = clicks()
    assert {str(page.relative_to(DOCS)) for page in pages() - found.keys()} == set()
    assert max(found.values()) <= MOST_CLICKS


def test_the_front_page_leads_by_reader_and_by_kind() -> None:
    text = read(FRONT)
    begin, end = text.index("## Who you are"), text.index("## Tutorials")
    assert all(f"**{reader}**" in text[begin:end] for reader in READERS)
    assert re.findall(r"^:caption: (.*)$", text, flags=re.MULTILINE) == list(KINDS)
    assert tuple(re.findall(r"^## (.*)$", text, flags=re.MULTILINE)) == ("Who you are", *KINDS)


def test_the_sidebar_and_the_front_page_have_the_same_pages_in_each_kind() -> None:
    text = read(FRONT)
    for kind in KINDS:
        listed = text.partition(f"\n## {kind}\n")[2].partition("\n## ")[0].partition("\n```{toctree}")[0]
        named = text.partition(f":caption: {kind}\n")[2].partition("```")[0].split()
        links = {Path(link).with_suffix("") for link in re.findall(r"\]\(([^)#:\s]+\.(?:md|ipynb))", listed)}
        assert {Path(name) for name in named} <= links, kind


def test_questions_asked_elsewhere_have_answers_that_run() -> None:
    parts = re.split(r"^## ", read(DOCS / "questions.md"), flags=re.MULTILINE)[1:]
    assert len(parts) >= QUESTIONS
    for part in parts:
        title = part.partition("\n")[0]
        assert title.endswith("?") and "https://github.com/" in part, title
        assert re.search(r"^```(?:bash|python|pycon)$", part, flags=re.MULTILINE), title


def test_the_readme_is_short() -> None:
    text = read(ROOT / "README.md")
    assert len(text.split()) <= 900
    assert text.count("![") == 1
    assert len(re.findall(r"benchmarks/results/\w+\.json\) \|$", text, flags=re.MULTILINE)) == 5


def test_the_demo_ends_with_the_answer() -> None:
    recipe = read(ROOT / "Makefile").partition("\ndemo:")[2].partition("\n\n")[0]
    assert re.findall(r"hybrid (\w+)", recipe)[-1] == "check"


def test_versions_of_the_pages_are_listed_the_newest_first(tmp_path: Path) -> None:
    spec = spec_from_file_location("versions", DOCS / "versions.py")
    assert spec is not None and spec.loader is not None
    versions = module_from_spec(spec)
    spec.loader.exec_module(versions)
    assert f'version = "{versions.version()}"' in read(ROOT / "pyproject.toml")
    for name in ("0.9.0", "0.10.0", "0.2.1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    (tmp_path / "images").mkdir()
    versions.write_list(tmp_path)
    text = read(tmp_path / "index.html")
    assert re.findall(r'<li><a href="(.*?)/index', text) == ["0.10.0", "0.9.0", "0.2.1"]
    assert '<a href="0.10.0/index.html">0.10.0</a>.' in text


def test_no_word_of_the_glossary_is_defined_twice() -> None:
    counted = Counter(word.casefold() for word in glossary())
    assert [word for word, times in counted.items() if times > 1] == []


def test_the_glossary_is_short() -> None:
    assert 50 <= len(glossary()) <= MOST_WORDS


def test_every_word_of_the_glossary_is_used() -> None:
    texts = [read(path) for path in DOCS.rglob("*.md") if path.name != "glossary.md"]
    written = " ".join(" ".join(text.split()) for text in texts).casefold()
    assert [word for word in glossary() if word.casefold() not in written] == []
