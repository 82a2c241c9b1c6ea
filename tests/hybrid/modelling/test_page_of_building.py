"""The examples of docs/building.md run as they stand."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "building.md"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```pycon\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 7
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "building.md", str(PAGE), 0)
    lines: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=lines.append)
    assert result.attempted > 40
    assert not result.failed, "".join(lines)
