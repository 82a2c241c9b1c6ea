"""The command line on MDPs: the record, a scheduler's file, exit statuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from hybrid.__main__ import main
from tests.builders.mdp_texts import SLOW_WAY


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "slow.nm"
    path.write_text(SLOW_WAY)
    return path


def test_record(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    properties = "Pmax=? [ F x=2 ]; P=? [ F x=2 ]"
    assert main(["check", str(model), properties, "--json", "--quiet", "--backend", "cpu"]) == 2
    record = json.loads(capsys.readouterr().out)
    assert record["model"]["type"] == "mdp"
    assert record["model"]["choices"] == 5
    found, refused = record["results"]
    assert found["lower"] <= 0.6 <= found["upper"]
    assert found["method"] == "optimistic"
    assert found["error"] is None
    assert "Pmin=?" in refused["error"]


@pytest.mark.parametrize("options", [[], ["--exact"], ["--bisimulation"], ["--engine", "explicit"]], ids=str)
@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("P=? [ F x=2 ]", "write Pmin=? or Pmax=?"),
        ("P=? [ F<=3 x=2 ]", "write Pmin=? or Pmax=?"),
        ("P=? [ (G F x=2) & (F x=1) ]", "write Pmin=? or Pmax=?"),
        ("P=? [ F x=2 || F x=1 ]", "write Pmin=? or Pmax=?"),
        ("T=? [ F x=2 ]", "write Tmin=? or Tmax=?"),
        ("S=? [ x=2 ]", "write Smin=? or Smax=?"),
        ("1 - P=? [ F x=2 ]", "write Pmin=? or Pmax=?"),
        ("filter(max, P=? [ F x=2 ])", "write Pmin=? or Pmax=?"),
        ("Pmax=? [ F P=? [ X x=2 ] > 0.5 ]", "write Pmin=? or Pmax=?"),
        ("multi(P=? [ F x=2 ], P>=0 [ F x=1 ])", "says min or max: Pmax=?"),
    ],
)
def test_f21_a_question_without_min_or_max_is_wrong_usage(
    model: Path, capsys: pytest.CaptureFixture[str], asked: str, names: str, options: list[str]
) -> None:
    others = "Pmax>=0.1 [ F x=2 ]"
    command = ["check", str(model), f"{asked}; {others}", "--json", "--quiet", "--backend", "cpu", *options]
    assert main(command) == 2
    refused, answered = json.loads(capsys.readouterr().out)["results"]
    assert names in refused["error"] and refused["error"].startswith("<property>:1:")
    assert answered["value"] is True


def test_scheduler_file(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scheduler.csv"
    options = ["--scheduler", str(file), "--quiet", "--backend", "cpu"]
    assert main(["check", str(model), "Pmax=? [ F x=2 ]", *options]) == 0
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["x"], row["action"]) for row in rows] == [
        ("0", "slow"),
        ("1", "again"),
        ("2", "done"),
        ("3", "done"),
    ]
    capsys.readouterr()
    assert main(["check", str(model), "Pmax=? [ F x=2 ]; Pmin=? [ F x=2 ]", *options]) == 2
    assert "one property" in capsys.readouterr().err
    assert main(["check", str(model), "Pmax=? [ F x=2 ]", "--const", "a=1:3", *options]) == 2
    assert "one run" in capsys.readouterr().err
    missing = str(tmp_path / "nowhere" / "file.csv")
    assert main(["check", str(model), "Pmax=? [ F x=2 ]", "--scheduler", missing, "--quiet"]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_experiments(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "const int k; Pmax=? [ F<=k x=2 ]"
    assert main(["check", str(model), text, "--const", "k=1:3", "--json", "--quiet"]) == 0
    values = [run["results"][0]["value"] for run in json.loads(capsys.readouterr().out)]
    assert values == pytest.approx([0.3, 0.3, 0.45], rel=1e-12)
