"""Records: whole after every row, gone on with on the same machine, with what went wrong in them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.library import arguments, records
from benchmarks.library.records import Records
from tests.benchmarks.support import ROOT, options


def test_what_fails_and_what_is_not_begun_stay_in_the_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "record.json"
    record = Records("trial", options(out=out, seconds=100.0))

    def fail(row: dict[str, Any], what: str) -> None:
        row["half"] = 1
        raise ValueError(what)

    record.run({"name": "a"}, fail, "no luck")
    record._end = 0.0
    record.run({"name": "b"}, fail, "")
    first, second = json.loads(out.read_text())["rows"]
    assert (first["error"], first["half"]) == ("ValueError: no luck", 1)
    assert second["error"].startswith("not begun")
    assert record.measured == []
    assert "no luck" in capsys.readouterr().err


def test_a_record_is_gone_on_with_but_not_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, made = tmp_path / "record.json", []
    monkeypatch.setattr(records.traceback, "print_exc", lambda: None)

    def measure(row: dict[str, Any]) -> None:
        # A stop here would lose nothing: the row is in the file already.
        assert json.loads(out.read_text())["rows"][-1]["error"] == "stopped before its end"
        made.append(row["name"])
        row["value"] = 1 / (row["name"] != "fails")

    for names in (("first", "fails"), ("first", "third")):
        record = Records("trial", options(out=out, resume=True), epsilon=1e-6)
        for name in names:
            record.run({"name": name, "sizes": (1, 2)}, measure)
    assert made == ["first", "fails", "third"]
    assert [row["name"] for row in json.loads(out.read_text())["rows"]] == ["first", "third"]
    with pytest.raises(SystemExit, match="measured with another epsilon; write to another file"):
        Records("trial", options(out=out, resume=True), epsilon=1e-8)


def test_every_record_says_what_it_is_and_where_it_was_made() -> None:
    paths = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    assert len(paths) > 20
    programs = {path.stem for path in (ROOT / "benchmarks" / "programs").glob("*.py")}
    programs |= {"overlap", "gauss_seidel"}  # what these measured is gone, by what they measured
    for path in paths:
        record = json.loads(path.read_text())
        if "runs" in record:
            continue  # appended to by tests/runs.py
        assert record["benchmark"] in programs, path.name
        of_field = record["benchmark"] == "field"
        named_by_questions = of_field and path.stem in ("engines", "long_run", "long_run_gpu")
        assert path.stem.startswith(record["benchmark"]) or named_by_questions
        assert {"date", "commit"} <= record["environment"].keys()
        assert record["rows"], path.name
        assert "device" in record


def test_files_that_are_not_in_the_repository_are_asked_for(tmp_path: Path) -> None:
    assert arguments.existing(str(tmp_path)) == tmp_path
    with pytest.raises(
        argparse.ArgumentTypeError, match="no such file .*nothing; it is not in the repository"
    ):
        arguments.existing(str(tmp_path / "nothing"))
