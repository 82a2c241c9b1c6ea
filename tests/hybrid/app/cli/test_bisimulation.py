"""`hybrid check --bisimulation`: text, JSON, values, experiments, and what does not go with it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.builders.command_lines import run
from tests.source_tree import ROOT

HERMAN = str(ROOT / "examples/herman.prism")
ASKED = (HERMAN, 'R=? [ F "stable" ]')


def test_text_tells_states_and_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "check", *ASKED, "--bisimulation")
    assert status == 0, err
    (line,) = [line for line in out.splitlines() if line.startswith("  bisimulation")]
    assert line.startswith("  bisimulation 32 states in 4 blocks, 2 rounds in ")


def test_text_tells_that_the_model_itself_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    polling = str(ROOT / "examples/polling.prism")
    _, out, _ = run(capsys, "check", polling, "S=? [ s1=1 & !(s=1 & a=1) ]", "--bisimulation")
    assert "240 states in 240 blocks" in out
    assert "; the model itself is checked" in out


def test_json_has_the_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    results = []
    for more in ([], ["--bisimulation"]):
        status, out, _ = run(capsys, "check", *ASKED, "--json", *more)
        assert status == 0
        record = json.loads(out)
        assert record["model"]["states"] == 32
        results.append(record["results"][0])
    plain, lumped = results
    assert "bisimulation" not in plain
    found = lumped["bisimulation"]
    assert (found["states"], found["transitions"], found["blocks"], found["rounds"]) == (32, 234, 4, 2)
    assert 0 < found["block_transitions"] <= 16 and found["seconds"] > 0
    assert lumped["lower"] <= plain["upper"] and plain["lower"] <= lumped["upper"]
    assert lumped["kind"] == "certified"
    assert found["made_from"] == "list"


def test_a_quotient_on_diagrams_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.models.lumping.checker.LISTED", 0)
    _, out, _ = run(capsys, "check", *ASKED, "--bisimulation")
    assert "  bisimulation 32 states in 4 blocks, 2 rounds on diagrams in " in out
    _, out, _ = run(capsys, "check", *ASKED, "--bisimulation", "--json")
    found = json.loads(out)["results"][0]["bisimulation"]
    assert (found["blocks"], found["rounds"], found["made_from"]) == (4, 2, "diagrams")
    polling = str(ROOT / "examples/polling.prism")
    _, out, _ = run(capsys, "check", polling, "S=? [ s1=1 & !(s=1 & a=1) ]", "--bisimulation")
    (line,) = [line for line in out.splitlines() if line.startswith("  bisimulation")]
    assert "240 states in " in line and " blocks or more, " in line
    assert line.endswith("; the model itself is checked")


def test_values_are_those_of_all_states(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tables = []
    for name, more in (("plain.csv", []), ("lumped.csv", ["--bisimulation"])):
        path = tmp_path / name
        assert run(capsys, "check", *ASKED, "--values", str(path), *more)[0] == 0
        tables.append(list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())))
    plain, lumped = tables
    assert len(lumped) == 32
    for one, other in zip(plain, lumped, strict=True):
        assert [one[f"x{k}"] for k in range(1, 6)] == [other[f"x{k}"] for k in range(1, 6)]
        assert float(other["lower"]) <= float(one["upper"])
        assert float(one["lower"]) <= float(other["upper"])


def test_experiments_make_a_quotient_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = str(ROOT / "examples/jobs.prism")
    arguments = ("check", jobs, 'Rmin=? [ F "done" ]', "--const", "N=2:3", "--json")
    plain, lumped = (json.loads(run(capsys, *arguments, *more)[1]) for more in ([], ["--bisimulation"]))
    for one, other in zip(plain, lumped, strict=True):
        assert one["results"][0]["value"] == pytest.approx(other["results"][0]["value"])
        assert other["results"][0]["bisimulation"]["states"] == other["model"]["states"]


@pytest.mark.parametrize(
    "more",
    [["--exact"], ["--witness"], ["--scheduler", "s.csv"], ["--certificate", "c.cert"]],
)
def test_options_that_speak_of_states_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = run(capsys, "check", *ASKED, "--bisimulation", *more)
    assert status == 2
    assert "--bisimulation: " in err and f"leave it or {more[0]} out" in err
    assert not list(tmp_path.iterdir())
