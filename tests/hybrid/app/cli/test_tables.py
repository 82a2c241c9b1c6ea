"""Tables on terminals: levels and the runs of an experiment, in the room that there is; plain elsewhere."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.app.cli.console import Screen
from hybrid.app.cli.run_table import RunTable
from hybrid.properties import parse_properties

pytest.importorskip("rich", reason="tables on terminals are drawn with rich, which is not installed")

COIN = "dtmc\nconst int N;\nmodule m s:[0..N]; [] s<N -> 0.5:(s'=s+1)+0.5:true; [] s=N -> true; endmodule\n"
ASKED = '"early": P=? [ F<=3 s=1 ]; P=? [ F s=N ]; "costs": R=? [ F s=N ]'


class Terminal(io.StringIO):
    """A terminal of 80 columns."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def coin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    path = tmp_path / "coin.pm"
    path.write_text(COIN)
    return str(path)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def on_terminal(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str]:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    return main(list(arguments)), terminal.getvalue()


def test_an_experiment_is_a_row_an_answer(monkeypatch: pytest.MonkeyPatch, coin: str) -> None:
    command = ("check", coin, ASKED, "--const", "N=2:3", "--backend", "cpu")
    status, text = on_terminal(monkeypatch, *command)
    lines = plain(text).splitlines()
    assert status == 1
    assert "coin.pm(dtmc)" in "".join("".join(lines[:2]).split())  # the line may break in the folder's name
    head = next(i for i, line in enumerate(lines) if line.startswith("N  property"))
    assert lines[head].split() == ["N", "property", "states", "value", "error", "time"]
    rows = [line for line in lines[head + 1 :] if re.match(r"[23]  ", line)]
    assert [row.split()[0] for row in rows] == ["2", "2", "2", "3", "3", "3"]
    assert re.search(r"early +3 +0\.875 +± 1\.\de-14 +[\d.]+ .?s$", rows[0])
    assert re.search(r"P=\? \[ F s=N \] +3 +1\.0 +exact", rows[1])
    assert "not answered" in rows[2]
    assert all(len(line) <= 80 for line in lines[head:])
    _, full = on_terminal(monkeypatch, *command, "-v")
    assert "# N=2" in full and "built in" in full


def test_no_colour_and_no_table_where_none_is_wanted(
    monkeypatch: pytest.MonkeyPatch, coin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("check", coin, "P=? [ F<=3 s=1 ]", "--const", "N=2:3", "--backend", "cpu")
    assert main(list(command)) == 0
    found = capsys.readouterr().out
    assert found.count("# N=") == 2 and "\x1b" not in found
    _, record = on_terminal(monkeypatch, *command, "--json")
    assert record.startswith("[{") and "\x1b" not in record
    monkeypatch.setenv("NO_COLOR", "1")
    _, text = on_terminal(monkeypatch, *command)
    assert "± " in text and not re.search(r"\x1b\[[0-9;]*3[0-7]", text)


def test_columns_that_do_not_fit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = parse_properties("P=? [ F<=3 s=1 ]", "<property>").properties
    answer = hybrid.check(hybrid.parse(COIN, {"N": 2}), properties[0].text, backend="cpu")
    for width, names in ((80, 5), (50, 4), (40, 3), (30, 2)):
        screen = Screen(Terminal())
        monkeypatch.setattr(Screen, "width", width)
        table = RunTable(screen, ["N=2", "N=3"], properties)
        head = plain(table.head({"file": "coin.pm", "type": "dtmc", "constants": {"N": 2}})).splitlines()
        assert len(head[-1].split()) == names
        row = plain(table.row({"N": 2}, 3, answer))
        assert "0.875" in row and len(row) <= width


def test_what_a_value_may_be_off_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = parse_properties("P=? [ F<=3 s=1 ]", "<property>").properties
    answer = hybrid.check(hybrid.parse(COIN, {"N": 2}), properties[0].text, backend="cpu")
    table = RunTable(Screen(Terminal()), ["N=2", "N=3"], properties)
    assert isinstance(answer.value, float)
    answer = replace(answer, lower=answer.value - 1e-4, upper=answer.value + 1.101e-3)
    assert "± 1.2e-3" in plain(table.row({"N": 2}, 3, answer))


def test_levels_on_a_terminal(monkeypatch: pytest.MonkeyPatch, coin: str) -> None:
    command = ("levels", coin, "--const", "N=30", "--backend", "cpu")
    _, text = on_terminal(monkeypatch, *command)
    lines = plain(text).splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("level"))
    assert "paths" in lines[head] and "product" not in lines[head]
    assert sum("← " in line and "least time" in line for line in lines) == 1
    assert re.search(r"\x1b\[1;32m[^\n]*least time", text)
    assert "held" not in lines[head]
    monkeypatch.setattr(Screen, "width", 42)
    _, narrow = on_terminal(monkeypatch, *command)
    shown = plain(narrow).splitlines()
    head = next(i for i, line in enumerate(shown) if line.startswith("level"))
    assert shown[head].split() == ["level", "MemR", "≤", "counted"]
    assert all(len(line) <= 42 for line in shown[head : head + 11])
