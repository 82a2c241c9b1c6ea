"""`hybrid simulate`: paths as CSV, estimates, exit statuses, interrupts."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hybrid.__main__ import main
from hybrid.checking.simulation import Estimate, simulate
from hybrid.checking.simulation.estimates import estimate_property
from mtbdd.base.budget import BudgetError

CHAIN = """ctmc
const int n;
module m
  x : [0..n];
  b : bool;
  [up] x<n -> 2 : (x'=x+1) & (b'=!b);
  [] x=n -> 1 : (x'=0);
endmodule
rewards "ups" [up] true : 1; endrewards
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "up.prism"
    path.write_text(CHAIN)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["simulate", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_paths_go_to_standard_output(capsys: pytest.CaptureFixture[str], model: str) -> None:
    status, out, err = run(capsys, model, "--const", "n=3", "--steps", "7", "--paths", "2", "--rewards")
    assert (status, err) == (0, "")
    header, *rows = csv.reader(out.splitlines())
    assert header == ["path", "step", "time", "action", "x", "b", "reward ups"]
    paths = simulate(model, 7, 2, constants={"n": 3}, rewards=True)
    assert paths.times is not None
    assert len(rows) == 16
    for path, step, when, action, x, b, earned in rows:
        i, k = int(path), int(step)
        assert float(when) == paths.times[i, k]
        assert action == (paths.action_names[paths.actions[i, k - 1]] if k else "")
        assert int(x) == paths.states["x"][i, k]
        assert b == str(bool(paths.states["b"][i, k])).lower()
        assert float(earned) == paths.rewards["ups"][i, k]


def test_paths_go_to_a_file(capsys: pytest.CaptureFixture[str], model: str, tmp_path: Path) -> None:
    file = tmp_path / "paths.csv"
    arguments = [model, "--const", "n=3", "--to", str(file), "--paths", "3", "--seed", "4", "--until", "2"]
    status, out, err = run(capsys, *arguments, "--json")
    assert (status, err) == (0, "")
    record = json.loads(out)
    rows = file.read_text().splitlines()
    assert record == {
        "model": {"file": model, "type": "ctmc", "constants": {"n": 3}},
        "paths": 3,
        "steps": 100,
        "seed": 4,
        "states": len(rows) - 1,
        "file": str(file),
    }
    assert all(float(row.split(",")[2]) <= 2 for row in rows[1:])
    status, out, err = run(capsys, *arguments)
    assert out == f"3 paths, {len(rows) - 1} states written to {file}\n"


def test_estimates(capsys: pytest.CaptureFixture[str], model: str) -> None:
    asked = [model, "P=? [ F<=1 x=1 ]", "--const", "n=3", "--paths", "2000", "--confidence", "0.999"]
    status, out, err = run(capsys, *asked, "--json")
    assert (status, err) == (0, "")
    record = json.loads(out)
    assert record["kind"] == "estimate" and record["confidence"] == 0.999
    assert record["lower"] < 1 - 2.718281828**-2 < record["upper"]
    assert (record["paths"], record["unknown"], record["interval"]) == (2000, 0, "Clopper-Pearson")
    status, out, err = run(capsys, *asked)
    assert status == 0 and "estimate" in out and "confidence 0.999 (Clopper-Pearson)" in out
    status, out, err = run(capsys, model, "R=? [ C<=1 ]", "--const", "n=3", "--paths", "500")
    assert status == 0 and "Student" in out and "normally" in out


def test_what_cannot_be_estimated_has_status_1(capsys: pytest.CaptureFixture[str], model: str) -> None:
    status, out, err = run(capsys, model, "S=? [ x=1 ]", "--const", "n=3", "--json")
    assert status == 1 and "estimates are offered" in err
    assert json.loads(out)["value"] is None and "estimates are offered" in json.loads(out)["error"]
    assert run(capsys, model, "R=? [ F x=3 ]", "--const", "n=3", "--steps", "2")[0] == 1


def test_properties_of_a_file_are_estimated_one_by_one(
    capsys: pytest.CaptureFixture[str], model: str, tmp_path: Path
) -> None:
    file = tmp_path / "up.props"
    file.write_text('"a": P=? [ F<=1 x=1 ];\nP=? [ F z=1 ];\nP=? [ F x= ];\nP=? [ F x=2 ]\n')
    given = [model, str(file), "--const", "n=3", "--paths", "200", "--quiet"]
    status, out, err = run(capsys, *given, "--json")
    records = json.loads(out)["results"]
    assert status == 1 and [r["name"] for r in records] == ["a", None, None, None]
    alone = json.loads(run(capsys, model, "P=? [ F<=1 x=1 ]", *given[2:], "--json")[1])
    assert [r["value"] for r in records] == [alone["value"], None, None, 1.0]
    assert "    2 | P=? [ F z=1 ];\n      |         ^\n" in err and "up.props:3:12: " in err
    status, out, err = run(capsys, *given, "--prop", "4,a")
    assert (status, err) == (0, "")
    assert out.startswith("P=? [ F x=2 ]\nestimate     1\n") and "\n\na: P=? [ F<=1 x=1 ]\n" in out
    assert run(capsys, *given, "--list")[1].splitlines()[3] == "4  P=? [ F x=2 ]"


@pytest.mark.parametrize(("end", "expected"), [(KeyboardInterrupt(), 130), (BudgetError("no time"), 1)])
def test_estimates_found_before_an_end_are_written(
    capsys: pytest.CaptureFixture[str],
    model: str,
    monkeypatch: pytest.MonkeyPatch,
    end: BaseException,
    expected: int,
) -> None:
    left = []

    def ending(*arguments: Any, **options: Any) -> Estimate:
        if not left:
            raise end
        return left.pop()(*arguments, **options)

    monkeypatch.setattr("hybrid.app.cli.simulate.estimate_property", ending)
    left.append(estimate_property)
    status, out, _ = run(capsys, model, "P=? [ F x=1 ]; P=? [ F x=2 ]", "--const", "n=3", "--json")
    record = json.loads(out)
    assert status == expected and record["interrupted"]
    assert [r["value"] for r in record["results"]] == [1.0, None]
    assert record["results"][1]["interrupted"] and record["results"][1]["error"] == (
        str(end) or "interrupted"
    )
    status, out, _ = run(capsys, model, "P=? [ F x=1 ]", "--const", "n=3", "--json")
    assert status == expected and json.loads(out)["interrupted"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--const", "n=3", "--steps", "-1"], "steps: expected an integer from 0"),
        (["--const", "n=3", "--paths", "0"], "paths: expected an integer from 1"),
        (["--const", "n=3", "--seed", "-4"], "seed: expected an integer from 0"),
        (["--const", "n=3", "--until", "nan"], "until: expected a finite time"),
        (["--const", "n=3", "--start", "y=2"], "start: expected a variable"),
        (["--const", "n=3", "--confidence", "0.9"], "give a property"),
        (["--const", "n=3", "--json"], "give their file with --to"),
        (["P=? [ F x=1 ]", "--const", "n=3", "--to", "x.csv"], "--to is for paths"),
        (["P=? [ F x=1 ]", "--const", "n=3", "--confidence", "2"], "confidence: expected a number between"),
        (["P=? [ F z= ]", "--const", "n=3"], "<property>:1:12: expected an expression"),
        (["x.props", "--const", "n=3"], "a properties file, but there is no such file"),
        (["--prop", "1", "--const", "n=3"], "choose from the properties of a file"),
        ([], "constant"),
        (["--const", "n=3", "--to", "no/such/folder.csv"], "--to: cannot write"),
    ],
)
def test_wrong_usage(
    capsys: pytest.CaptureFixture[str], model: str, arguments: list[str], message: str
) -> None:
    status, out, err = run(capsys, model, *arguments)
    assert (status, out) == (2, "")
    assert message in err and "Traceback" not in err


def test_the_model_is_not_overwritten(capsys: pytest.CaptureFixture[str], model: str) -> None:
    status, _, err = run(capsys, model, "--const", "n=3", "--to", model)
    assert status == 2 and "is the model as well" in err
    assert Path(model).read_text() == CHAIN


def test_a_model_at_fault_leaves_an_older_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, file = tmp_path / "m.prism", tmp_path / "paths.csv"
    path.write_text("dtmc module m x : [0..2]; [] true -> (x'=x+1); endmodule")
    file.write_text("before")
    status, _, err = run(capsys, str(path), "--to", str(file))
    assert status == 2 and "sets x to 3" in err
    assert file.read_text() == "before" and len(list(tmp_path.iterdir())) == 2


def test_choices_of_decision_processes_are_said_to_be_drawn(
    capsys: pytest.CaptureFixture[str], examples_folder: Path
) -> None:
    status, out, err = run(capsys, str(examples_folder / "jobs.prism"), "--const", "N=2", "--steps", "3")
    assert status == 0 and "each as likely as any other" in err
    assert out.splitlines()[0] == "path,step,action,waiting,busy1,busy2"


def test_an_interrupt_keeps_what_is_written(model: str, tmp_path: Path) -> None:
    file = tmp_path / "paths.csv"
    command = [sys.executable, "-m", "hybrid", "simulate", model, "--const", "n=3", "--to", str(file)]
    # A shell may have told its background jobs, and so this process and its children, to ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [*command, "--paths", "1000000", "--steps", "1000"], stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if any(os.path.getsize(found) > 100_000 for found in tmp_path.glob(".paths*.csv")):
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 130, err
    assert "states are written" in err and "interrupted" in err
    header, *rows = csv.reader(file.read_text().splitlines())
    assert len(rows) > 1000 and all(len(row) == len(header) for row in rows)
    assert list(tmp_path.glob(".paths*.csv")) == []


def test_a_spent_budget_keeps_what_is_written(
    capsys: pytest.CaptureFixture[str], model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def check() -> None:
        calls.append(0)
        if len(calls) == 3:
            raise BudgetError("spent")

    monkeypatch.setattr("hybrid.checking.simulation.paths.check_budget", check)
    monkeypatch.setattr("hybrid.checking.simulation.paths._ROWS", 100)
    file = tmp_path / "paths.csv"
    with pytest.raises(BudgetError):
        main(["simulate", model, "--const", "n=3", "--to", str(file), "--steps", "49", "--paths", "99"])
    assert "200 states are written" in capsys.readouterr().err
    assert len(file.read_text().splitlines()) == 201
