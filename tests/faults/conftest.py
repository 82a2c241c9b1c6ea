"""Models in files for the tests of faults; interrupts are heard."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.models import SLOW, SMALL


@pytest.fixture(autouse=True)
def interrupts_are_heard() -> Iterator[None]:
    """Let processes hear Ctrl-C: where a shell runs the tests in the background, all below ignore it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
