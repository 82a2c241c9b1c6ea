"""A model and its properties in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.command_lines import PROPERTIES, WALK


@pytest.fixture
def walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the model, in the working directory, beside `walk.props`."""
    monkeypatch.chdir(tmp_path)
    Path("walk.pm").write_text(WALK)
    Path("walk.props").write_text(PROPERTIES)
    return "walk.pm"
