"""Models in files for the tests of faults; interrupts are heard."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.models import SLOW, SMALL


@pytest.fixture(autouse=True)
def heard(interrupts_are_heard: None) -> None:
    """Let every process of these tests hear Ctrl-C."""


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.pm"
    path.write_text(SMALL)
    return str(path)


@pytest.fixture
def slow(tmp_path: Path) -> str:
    """A model with a quick answer (`X`) and one that takes hours (`SLOW_QUESTION`)."""
    path = tmp_path / "slow.pm"
    path.write_text(SLOW)
    return str(path)
