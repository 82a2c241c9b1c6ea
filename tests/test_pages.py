"""What pages show happens: every block of code runs, or says why it does not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.pages import Session, blocks_of, pages
from tests.source_tree import ROOT

LANGUAGES = {"bash", "console", "ebnf", "json", "prism", "pycon", "python", "text"}

# The blocks that do not run, by reason. A new one is counted here.
NOT_RUN = {
    "builds images": 2,
    "has tests of its own": 3,
    "installs packages": 2,
    "measurements": 1,
    "needs several processes": 6,
    "on a GPU": 6,
    "reads the history of the repository": 1,
    "takes half a minute": 1,
    "targets of the Makefile": 3,
    "without a GPU": 1,
}


@pytest.fixture
def beside_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pages read the examples and write where they stand."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


RUNNING = [page for page in pages() if any(block.language != "text" for block in blocks_of(page))]


@pytest.mark.usefixtures("beside_the_examples")
@pytest.mark.parametrize("page", RUNNING)
def test_blocks_of_a_page_run(page: str) -> None:
    session = Session()
    for block in blocks_of(page):
        session.run(block)


def test_every_block_says_what_it_is_and_why_it_does_not_run() -> None:
    blocks = [block for page in pages() for block in blocks_of(page)]
    assert {block.language for block in blocks} <= LANGUAGES
    assert Counter(block.reason for block in blocks if block.reason) == NOT_RUN
    assert len(blocks) > 80


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    names = {p.stem for p in (ROOT / "docs").glob("*.md")} - {"index"}
    listed = Counter(index[index.index("toctree") :].split())
    assert all(listed[page] == 1 for page in names)
    assert all(f"({page}.md)" in index for page in names)
