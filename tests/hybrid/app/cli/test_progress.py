"""Progress on pseudo-terminals of several widths, on dumb ones, as plain lines; nothing is left over."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from hybrid.__main__ import main
from hybrid.app.cli.console import LEAST_WIDTH, Advance, ProgressLine, Snapshot, duration
from tests.builders.processes import ROOT, run_python

pytest.importorskip("rich", reason="progress on terminals is drawn with rich, which is not installed")

# The terminal becomes the process's own, so that Ctrl-C reaches it.
IN_FRONT = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGINT, signal.SIG_DFL)  # as in a shell, whatever runs the tests
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "hybrid", *sys.argv[1:]])
"""
ERASE = "\r\x1b[2K"
WALK = """
dtmc
module walk
  s : [0..5000] init 4975;
  [] s>0 & s<5000 -> 0.5 : (s'=s+1) + 0.5 : (s'=s-1);
  [] s=0 | s=5000 -> true;
endmodule
"""


@pytest.fixture
def walk(tmp_path: Path) -> str:
    path = tmp_path / "walk.pm"
    path.write_text(WALK)
    return str(path)


def on_terminal(walk: str, prop: str, columns: int, *more: str, **environment: str) -> tuple[str, int]:
    """Run a check on a terminal until bars are shown, press Ctrl-C; return what was written and status."""
    surroundings = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "COLORTERM")}
    surroundings |= {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **environment}
    terminal, own = pty.openpty()
    fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", IN_FRONT, "check", walk, prop, "--backend", "reference", *more],
        stdin=own, stdout=own, stderr=own, env=surroundings, start_new_session=True,
    )  # fmt: skip
    os.close(own)
    written, is_pressed, end = b"", False, time.monotonic() + 120
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                data = os.read(terminal, 1 << 16)
            except OSError:
                break
            if not data:
                break
            written += data
        shown = written.count(b"%") > 2 or (environment and b"built in" in written)
        if shown and not is_pressed:
            time.sleep(1.5 if environment else 0.0)
            is_pressed = True
            os.write(terminal, b"\x03")
    status = process.wait(timeout=60)
    os.close(terminal)
    return written.decode(), status


def plain(text: str) -> str:
    """Return a text without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.slow
def test_a_bar_fits_and_leaves_nothing(walk: str) -> None:
    text, status = on_terminal(walk, "P=? [ F s=5000 ]", 100, "--method", "interval")
    assert status == 130
    pictures = [plain(part.split("\r")[0]) for part in text.split(ERASE)[1:]]
    bars = [p for p in pictures if "━" in p and "%" in p]
    assert bars
    assert all(len(p.split("\n")[0]) < 100 for p in pictures if "iterate" in p)
    assert all("✓ parse ✓ build" in p for p in bars)
    # What stands after the line was wiped: results and the message, and no picture.
    last = plain(text.split(ERASE)[-1])
    assert "iterate" not in last
    assert last.endswith("error: interrupted\r\n")
    assert "so far" in plain(text)
    assert "\x1b[?25l" not in text  # the cursor was never hidden


@pytest.mark.slow
def test_known_steps_have_a_share_and_no_colours_are_shown_where_none_are_wanted(walk: str) -> None:
    text, _ = on_terminal(walk, "P=? [ F<=10000000 s=5000 ]", 80, NO_COLOR="1")
    assert "iterate" in text and "%" in text
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", text)


@pytest.mark.slow
def test_a_dumb_terminal_has_no_line(walk: str) -> None:
    text, status = on_terminal(walk, "P=? [ F<=10000000 s=5000 ]", 80, TERM="dumb")
    assert status == 130
    assert "\x1b" not in text
    assert "iterate" not in text


@pytest.mark.parametrize(("options", "shown"), [((), False), (("-v",), True), (("-v", "--quiet"), False)])
def test_plain_lines_where_they_are_asked_for(
    tmp_path: Path, options: tuple[str, ...], shown: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "coin.pm"
    path.write_text("dtmc module m s:[0..1]; [] s=0 -> 0.5:(s'=1)+0.5:true; [] s=1 -> true; endmodule")
    assert main(["check", str(path), "P=? [ F<=3 s=1 ]", *options]) == 0
    out, told = capfd.readouterr()
    assert "\x1b" not in out + told
    if not shown:
        assert told == ""
    else:
        assert re.search(r"^ +\d+\.\d s  checking P=\? \[ F<=3 s=1 \]$", told, re.MULTILINE)


@pytest.mark.parametrize("words", ["check FILE P=?[F(s=1)] --const N=1:2", "levels FILE --const N=1 -v"])
def test_nothing_of_rich_is_loaded_where_there_is_no_terminal(tmp_path: Path, words: str) -> None:
    path = tmp_path / "coin.pm"
    path.write_text("dtmc const int N; module m s:[0..N]; [] s=0 -> 0.5:(s'=1)+0.5:true; endmodule")
    done = run_python("-X", "importtime", "-m", "hybrid", *words.replace("FILE", str(path)).split())
    assert done.returncode == 0, done.stderr
    loaded = re.findall(r"^import time:.*\|\s+(\S+)$", done.stderr, re.MULTILINE)
    assert "hybrid.app.cli.console" in loaded
    assert not [name for name in loaded if name.split(".")[0] == "rich" or name == "hybrid.app.cli.run_table"]


@contextmanager
def terminal_of(columns: int) -> Iterator[TextIO]:
    """A stream to a terminal of a width, which nobody reads."""
    other, own = pty.openpty()
    fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with open(own, "w", encoding="utf-8") as stream:
        yield stream
    os.close(other)


LONG = "chain with 21,345,567 states: reaching, round 12 of the search, 3,456 nodes in the set"


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_a_message_is_cut_before_seconds_run_and_stages(columns: int) -> None:
    written: list[str] = []
    with terminal_of(columns) as stream:
        line = ProgressLine(stream, written.append)
        line.begin_run("10/12")
        for stage in ("build", "level", "set-up"):
            line.enter(stage)
        line.show(LONG)
        line.enter("iterate")
        line.show("iteration 7", Snapshot(7, 0.5, 0.3, 200.0))
        line.show("iteration 7", Snapshot(7, 0.5, None, None))
    shown = [plain(text).removeprefix("\r\x1b[2K") for text in written]
    assert all(len(text) < columns for text in shown)
    ticks = "✓ build ✓ level" if columns >= 60 else "✓✓"
    message, bar, count = shown
    found = re.fullmatch(rf"\d+\.\d s 10/12 {ticks} set-up (.*)", message)
    assert found and len(found[1]) >= 10
    assert found[1] == LONG or found[1].endswith("…") and LONG.startswith(found[1][:-1])
    assert found[1] == LONG or len(message) == columns - 4  # as much of it as there is room for
    assert re.fullmatch(r"\d+\.\d s 10/12 [✓ a-z-]+ iterate .*30 %.*", bar)
    assert count.endswith(" iterate iteration 7")


@pytest.mark.parametrize("columns", [1, 12, 20, 30])
def test_a_narrow_line_keeps_the_seconds(columns: int) -> None:
    written: list[str] = []
    with terminal_of(columns) as stream:
        line = ProgressLine(stream, written.append)
        line.begin_run("10/12")
        line.enter("build")
        line.enter("iterate")
        line.show(LONG)
        line.show(LONG, Snapshot(7, 0.5, 0.3, 200.0))
    for text in map(plain, written):
        assert re.match(r"\r\x1b\[2K\d+\.\d s( 10/12|$)", text)
        assert len(text.removeprefix("\r\x1b[2K")) < max(columns, LEAST_WIDTH)


def test_a_line_says_which_run_it_is_and_begins_its_stages_anew() -> None:
    written: list[str] = []
    line = ProgressLine(sys.stderr, written.append)
    line.enter("parse")
    line.enter("build")
    line.show("reaching")
    line.begin_run("2/7")
    line.enter("build")
    line.show("reaching")
    line.enter("iterate")
    line.begin_run("3/7")
    line.show("run 3 of 7")
    first, second, third = (plain(text) for text in written)
    assert "✓ parse build reaching" in first
    assert " s 2/7 build reaching" in second
    assert third.endswith(" s 3/7 run 3 of 7")


@pytest.mark.slow
def test_every_line_of_an_experiment_tells_its_run(tmp_path: Path) -> None:
    slow = tmp_path / "slow.pm"
    slow.write_text(WALK.replace("5000", "N").replace("4975", "N-100").replace("dtmc", "dtmc const int N;"))
    text, status = on_terminal(str(slow), "P=? [ F<=10000000 s=N ]", 40, "--const", "N=19000:500:20000")
    assert status == 130
    pictures = [plain(part.split("\r")[0]) for part in text.split(ERASE)[1:]]
    told = [p for p in pictures if re.match(r"\d+\.\d s", p)]
    assert any("iterate" in p for p in told)
    begun = False
    for picture in told:
        begun |= "1/3" in picture
        assert not begun or re.match(r"\d+\.\d s [123]/3 ", picture), picture


def test_the_way_of_steps_and_of_widths() -> None:
    steps = Advance(1e-8, 200)
    assert steps.at(50, 0.1).share == 0.25
    assert steps.at(20, 0.1).share == 0.25  # never back
    widths = Advance(1e-8, None)
    assert widths.at(1, float("inf")).share is None
    shares = [widths.at(k, difference).share for k, difference in enumerate((1.0, 1e-2, 1e-4, 1e-9))]
    assert shares == [0.0, pytest.approx(0.25), pytest.approx(0.5), 1.0]
    assert Advance(None, None).at(3, 0.5).share is None
    assert widths.at(9, 1e-9).text.startswith("iteration 9, difference 1e-09, 100 %, about 0 s left")
    assert [duration(s) for s in (4.2, 184, 7800)] == ["4 s", "3:04 min", "2:10 h"]
