"""Progress on terminals: stages and iterations on one line, out of the way of results, off elsewhere."""

from __future__ import annotations

import io
import logging
import re
import sys
from pathlib import Path

import pytest

from hybrid.__main__ import main
from hybrid.app.cli.console import Console
from tests.builders.chain_texts import QUEUE

pytest.importorskip("rich", reason="progress on terminals is drawn with rich, which is not installed")

LOGGERS = ("mtbdd", "gpu_kernels", "hybrid")


class Screen(io.StringIO):
    """A terminal that results and progress share."""

    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        """What stands on each line in the end, later text over earlier."""
        shown = []
        for line in re.sub(r"\x1b\[[0-9;]*m", "", self.getvalue()).split("\n"):
            cells: list[str] = []
            for text in line.split("\r"):
                cells = [] if text.startswith("\x1b[2K") else cells
                text = text.removeprefix("\x1b[2K")
                cells[: len(text)] = text
            shown.append("".join(cells).rstrip())
        return shown


def shared_screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Put both streams on one screen; called by tests, for between phases pytest replaces the streams."""
    monkeypatch.setenv("TERM", "xterm-256color")
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "stdout", screen)
    return screen


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    path = tmp_path / "queue.sm"
    path.write_text(QUEUE)
    return ["check", str(path), "S=? [ n=0 ]", "--backend", "cpu"]


def test_stages_are_shown_and_results_are_whole(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    screen = shared_screen(monkeypatch)
    assert main(arguments) == 0
    text = screen.getvalue()
    shown = [text.find(stage) for stage in ("checking S=? [ n=0 ]", "counting paths", "laying out level")]
    assert shown == sorted(shown)
    assert shown[0] >= 0
    assert screen.lines[0].startswith("model  ")
    assert not any(stage in line for line in screen.lines for stage in ("checking", "laying out"))


@pytest.mark.parametrize("others", [["--quiet"], []], ids=["quiet", "no terminal"])
def test_no_progress_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], others: list[str]
) -> None:
    screen = shared_screen(monkeypatch)
    if not others:
        monkeypatch.setattr(Screen, "isatty", lambda self: False)
    assert main([*arguments, *others]) == 0
    assert "\r" not in screen.getvalue()
    assert "laying out" not in screen.getvalue()


def test_loggers_are_left_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = shared_screen(monkeypatch)
    before = [(logging.getLogger(n).level, list(logging.getLogger(n).handlers)) for n in LOGGERS]
    logging.getLogger("mtbdd").setLevel(logging.DEBUG)
    try:
        with Console(quiet=False) as console:
            assert logging.getLogger("mtbdd").level == logging.DEBUG
            assert logging.getLogger("hybrid.matrix.levels.probe").isEnabledFor(logging.INFO)
            logging.getLogger("hybrid.matrix.levels.probe").info("timing level %d", 7)
            logging.getLogger("hybrid").debug("a detail")
            console.print("a result")
        assert logging.getLogger("mtbdd").level == logging.DEBUG
    finally:
        logging.getLogger("mtbdd").setLevel(before[0][0])
    assert [(logging.getLogger(n).level, list(logging.getLogger(n).handlers)) for n in LOGGERS] == before
    assert "timing level 7" in screen.getvalue()
    assert "a detail" not in screen.getvalue()
    assert screen.lines[0] == "a result"


def test_long_stages_and_several_lines_stay_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = shared_screen(monkeypatch)
    with Console(quiet=False) as console:
        console.stage("first line\nsecond line")
        console.stage("x" * 500)
        console.stage("")
    assert "second line" not in screen.getvalue()
    assert all(len(part) <= 110 for part in screen.getvalue().split("\r"))
    assert screen.lines == [""]


@pytest.mark.parametrize(
    ("encoding", "errors", "written"),
    [
        ("ascii", "backslashreplace", "warning: * <= \\xe9\n"),
        ("ascii", "strict", "warning: * <= \\xe9\n"),
        ("latin-1", "backslashreplace", "warning: * <= é\n"),
        ("utf-8", "strict", "warning: ✓ ≤ é\n"),
    ],
)
def test_signs_are_spelt_where_the_encoding_has_none(
    monkeypatch: pytest.MonkeyPatch, encoding: str, errors: str, written: str
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(raw, encoding=encoding, errors=errors))
    Console(quiet=False).warn("✓ ≤ é")
    assert raw.getvalue().decode(encoding) == written
