"""`hybrid check --values`, and the states that filters list: in text, in JSON and in CSV."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.analysis.run import state_files
from hybrid.app.cli import check as answer_text
from hybrid.app.cli import report as table

TEXT = """
dtmc
module one
  x : [0..3];
  up : bool;
  [] x < 3 -> 0.5 : (x' = x + 1) + 0.5 : (up' = !up);
  [] x = 3 -> true;
endmodule
module two
  y : [0..2];
  [] y < 2 & up -> (y' = y + 1);
endmodule
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "climb.prism"
    path.write_text(TEXT)
    return path


def run(*arguments: object) -> int:
    return main(["check", *map(str, arguments), "--quiet", "--backend", "cpu"])


@pytest.mark.parametrize("order", ["model", "reversed", "force"])
def test_files_hold_the_values_of_the_library(
    model: Path, tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_files, "_PART", 5)
    prop = "P=? [ F<=6 y=2 & x<3 ]"
    known = hybrid.load(model)
    answer = hybrid.check(known, prop, backend="cpu")
    for suffix in (".csv", ".npz"):
        assert run(model, prop, "--order", order, "--values", tmp_path / f"all{suffix}") == 0
    with np.load(tmp_path / "all.npz") as found:
        assert sorted(found) == ["lower", "states", "upper", "value"]
        np.testing.assert_allclose(found["value"], answer.values, rtol=1e-12, atol=0)
        assert (found["lower"] <= answer.values).all() and (answer.values <= found["upper"]).all()
        assert found["states"].dtype == known.state_table().dtype
        np.testing.assert_array_equal(found["states"], known.state_table())
        arrays = {name: found[name] for name in ("value", "lower", "upper")}
    with (tmp_path / "all.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == ["x", "up", "y", "value", "lower", "upper"]
    spelt = [(int(r["x"]), r["up"] == "true", int(r["y"])) for r in rows]
    assert spelt == known.state_table().tolist()
    for name, array in arrays.items():
        np.testing.assert_array_equal([float(r[name]) for r in rows], array)


def test_truth_values_and_values_without_bounds(model: Path, tmp_path: Path) -> None:
    assert run(model, "P>0.3 [ F<=6 y=2 ]", "--values", tmp_path / "truth.npz") == 0
    known = hybrid.load(model)
    with np.load(tmp_path / "truth.npz") as found:
        assert found["value"].dtype == np.bool_
        np.testing.assert_array_equal(found["value"], hybrid.check(known, "P>0.3 [ F<=6 y=2 ]").values)
        np.testing.assert_array_equal(found["lower"], found["upper"])
    assert run(model, "P=? [ F y=2 ]", "--method", "jacobi", "--values", tmp_path / "loose.csv") == 0
    with (tmp_path / "loose.csv").open(newline="") as lines:
        unknown = [r for r in csv.DictReader(lines) if 0 < float(r["value"]) < 1]
    assert unknown and all(r["lower"] == r["upper"] == "" for r in unknown)


def test_infinite_values_are_spelt_out(model: Path, tmp_path: Path) -> None:
    text = TEXT + "rewards true : 1; endrewards"
    model.write_text(text)
    assert run(model, "R=? [ F y=2 ]", "--values", tmp_path / "r.csv") == 0
    with (tmp_path / "r.csv").open(newline="") as lines:
        cells = [r["value"] for r in csv.DictReader(lines)]
    assert "Infinity" in cells and "0.0" in cells
    assert run(model, "R=? [ F y=2 ]", "--values", tmp_path / "r.npz") == 0
    with np.load(tmp_path / "r.npz") as found:
        np.testing.assert_array_equal(found["value"], [float(c) for c in cells])


def test_what_cannot_be_written(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prop, file = "P=? [ F y=2 ]", tmp_path / "all.npz"
    cases = [
        ((model, prop, "--values", tmp_path / "all.txt"), ".csv or .npz"),
        ((model, f"{prop}; {prop}", "--values", file), "one property"),
        ((model, prop, "--const", "a=1:2", "--values", file), "one run"),
        ((model, prop, "--values", file, "--certificate", tmp_path / "c"), "one after the other"),
        ((model, prop, "--values", file, "--csv", file), "all.npz"),
        ((model, prop, "--values", tmp_path / "nowhere" / "all.npz"), "cannot write"),
    ]
    for arguments, message in cases:
        assert run(*arguments) == 2
        assert message in capsys.readouterr().err
        assert not file.exists()
    assert run(model, "T=? [ G y=2 ]", "--values", file) == 1  # not answered: nothing is written
    assert not file.exists()
    # A formula that has no value in some state: the answer stays, the file is not written.
    assert run(model, "filter(max, mod(5, x), x>0)", "--values", file) == 2
    told = capsys.readouterr()
    assert "result" in told.out and not file.exists()


# ------------------------------------------------------------------ listings


@pytest.mark.parametrize("order", ["model", "reversed"])
def test_listings_are_whole(
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    order: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answer_text, "MAX_LISTED", 3)
    monkeypatch.setattr(table, "_PART", 4)
    file, prop = tmp_path / "t.csv", "filter(printall, P=? [ F<=6 y=2 ], x>0); P=? [ F y=2 ]"
    assert run(model, prop, "--order", order, "--csv", file) == 0
    text = capsys.readouterr().out
    known = hybrid.load(model)
    chosen = np.flatnonzero(known.states("x>0"))
    values = hybrid.check(known, "P=? [ F<=6 y=2 ]", backend="cpu").values[chosen]
    states = known.state_table()[chosen].tolist()
    assert text.count("(x=") == 3
    assert f"... and {len(chosen) - 3} more: --json and --csv have them all" in text
    assert run(model, prop, "--order", order, "--json") == 0
    listed, plain = json.loads(capsys.readouterr().out)["results"]
    assert "listing" not in plain
    records = listed["listing"]
    assert [tuple(r["state"].values()) for r in records] == states
    assert list(records[0]["state"]) == ["x", "up", "y"]
    np.testing.assert_allclose([r["value"] for r in records], values, rtol=1e-12)
    assert all(r["lower"] <= r["value"] <= r["upper"] for r in records)
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == ["name", "property", "x", "up", "y", "value", "lower", "upper", "error"]
    assert [r["x"] for r in (rows[0], rows[-1])] == ["", ""]
    assert [(int(r["x"]), r["up"] == "true", int(r["y"])) for r in rows[1:-1]] == states
    assert [float(r["value"]) for r in rows[1:-1]] == [r["value"] for r in records]
    assert all(r["property"] == rows[0]["property"] for r in rows[:-1])


def test_the_table_of_answers_without_listings_is_what_it_was(model: Path, tmp_path: Path) -> None:
    assert run(model, "P=? [ F y=2 ]", "--csv", tmp_path / "t.csv") == 0
    assert (tmp_path / "t.csv").read_text().splitlines()[0] == "name,property,value,lower,upper,error"


def test_a_listing_of_estimates_and_of_truths(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prop = "filter(print, P=? [ F y=2 ], x=1)"
    assert run(model, prop, "--method", "jacobi", "--json") == 0
    (answer,) = json.loads(capsys.readouterr().out)["results"]
    assert any(r["lower"] is None and r["upper"] is None for r in answer["listing"])
    assert run(model, "filter(print, P>0.3 [ F<=6 y=2 ])", "--json") == 0
    (answer,) = json.loads(capsys.readouterr().out)["results"]
    assert {r["value"] for r in answer["listing"]} == {True}
    assert run(model, "filter(print, x>9)", "--json") == 0
    (answer,) = json.loads(capsys.readouterr().out)["results"]
    assert answer["listing"] == []
