"""What pages show happens: their Python runs, and so do the commands of some.

Blocks with prompts are doctests; plain ones run one after another.
"""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from hybrid.__main__ import main
from tests.source_tree import ROOT

# Pages whose Python runs, and the fewest examples or statements that it has to have.
PYTHON = {"building": 40, "dd": 20, "explorer": 10, "formats": 5, "library": 40, "scipy": 10, "simulation": 8}

# Pages whose commands run, and how many there are.
COMMANDS = {"explorer": 1, "formats": 7, "pictures": 6, "simulation": 2}


@pytest.fixture(autouse=True)
def beside_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pages read the examples and write where they stand."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PYTHON)
def test_python_of_a_page_runs(page: str) -> None:
    found = blocks(page, "(?:python|pycon)")
    prompts = [block for block in found if ">>> " in block]
    plain = [block for block in found if ">>> " not in block]
    test = doctest.DocTestParser().get_doctest("\n".join(prompts), {}, f"{page}.md", f"docs/{page}.md", 0)
    told: list[str] = []
    result = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(test, out=told.append)
    assert not result.failed, "".join(told)
    exec(compile("\n".join(plain), f"docs/{page}.md", "exec"), {})
    assert result.attempted + sum(len(block.splitlines()) for block in plain) >= PYTHON[page]


@pytest.mark.parametrize("page", COMMANDS)
def test_commands_of_a_page_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [
        line for block in blocks(page, "") for line in block.splitlines() if line.startswith("hybrid ")
    ]
    assert len(commands) == COMMANDS[page]
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    pages = {p.stem for p in (ROOT / "docs").glob("*.md")} - {"index"}
    listed = set(index[index.index("toctree") :].split())
    assert pages <= listed
    assert all(f"({page}.md)" in index for page in pages)
