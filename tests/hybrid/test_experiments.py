"""Experiments as a function: one record a run, and runs that fail hide no others."""

from __future__ import annotations

import builtins
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import hybrid
from hybrid.app import experiments

TEXT = """
dtmc
const int n;
const double p = 0.5;
module m
  x : [0..n];
  [] x < n -> p : (x' = x + 1) + 1 - p : true;
  [] x = n -> true;
endmodule
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "line.prism"
    file.write_text(TEXT)
    return file


def test_one_record_a_run(path: Path) -> None:
    table = hybrid.experiment(str(path), "const int T; P=? [ F<=T x=n ]", {"n": [1, 2], "T": range(1, 3)})
    assert [(r["n"], r["T"]) for r in table] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert [r["value"] for r in table] == pytest.approx([0.5, 0.75, 0.0, 0.25])
    assert all(r["lower"] <= r["value"] <= r["upper"] and r["error"] is None for r in table)
    assert [r["states"] for r in table] == [2, 2, 3, 3]
    assert [r["kind"] for r in table][2] == "exact"


def test_values_of_many_kinds(path: Path) -> None:
    prop = "const int T; P=? [ F<=T x=n ]"
    runs = [hybrid.experiment(path, prop, {"n": 1, "T": given}) for given in ("1:2", [1, 2], np.arange(1, 3))]
    assert [[r["value"] for r in table] for table in runs] == [[0.5, 0.75]] * 3
    path.write_text(TEXT.replace("p = 0.5;", "p;"))
    halves = hybrid.experiment(path, "P=? [ X x=n ]", {"n": 1, "p": "0.25:0.25:0.75"})
    assert [r["p"] for r in halves] == [0.25, 0.5, 0.75] == [r["value"] for r in halves]


def test_a_run_that_fails_hides_no_other(path: Path) -> None:
    late = hybrid.experiment(path, "P=? [ F x=n ]; T=? [ G x=n ]", {"n": 2})
    path.write_text(TEXT.replace("p = 0.5;", "p;"))
    table = hybrid.experiment(path, "P=? [ F x=n ]", {"n": [1, -1, 2], "p": [0.5, 2.5]})
    assert [r["value"] for r in table] == [1.0, None, None, None, 1.0, None]
    assert all(bool(r["error"]) == (r["value"] is None) for r in table)
    assert [r["value"] for r in late] == [1.0, None]
    assert "T=?" in late[1]["property"] and late[1]["error"]


def test_no_run_at_all_is_a_fault(path: Path) -> None:
    with pytest.raises(hybrid.LanguageError):
        hybrid.experiment(path, "P=? [ F x=n ]", {"n": [-1, -2]})
    with pytest.raises(hybrid.LanguageError):
        hybrid.experiment(path.with_name("nothing.prism"), "P=? [ F x=n ]", {"n": [1]})


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"n": []}, "got none"),
        ({"n": ["a"]}, "true or false for .n., got .a."),
        ({"n": [None]}, "numbers or truth values"),
        ({"n": Decimal("NaN")}, "got .NaN."),
        ({"n": Decimal("1e100000000")}, "got .1E.100000000."),
        ({"n": "3:1"}, "FROM not above TO"),
        ({"n": range(1000), "m": range(1000)}, "more than 100000"),
    ],
)
def test_constants_that_are_none(path: Path, constants: dict, message: str) -> None:
    with pytest.raises(hybrid.HybridError, match=message):
        hybrid.experiment(path, "P=? [ F x=n ]", constants)


def test_a_model_is_built_once_for_constants_of_properties(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []
    load = experiments.load
    monkeypatch.setattr(experiments, "load", lambda *a, **k: built.append(a) or load(*a, **k))
    hybrid.experiment(path, "const int T; P=? [ F<=T x=n ]", {"n": [1, 2], "T": [1, 2, 3]}, order="model")
    assert len(built) == 2


def test_a_built_model_is_taken_as_it_is(path: Path) -> None:
    model = hybrid.load(path, {"n": 2})
    table = hybrid.experiment(model, "const int T; P=? [ F<=T x=n ]", {"T": [2, 3]}, backend="cpu")
    assert [r["value"] for r in table] == pytest.approx([0.25, 0.5])
    with pytest.raises(hybrid.HybridError, match="built already"):
        hybrid.experiment(model, "P=? [ F x=n ]", {"n": 3})


def test_tables_become_files_and_frames(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = hybrid.experiment(path, "P=? [ F x=n ]", {"n": [1, 2]})
    table.write_csv(tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[0] == "n,property,value,lower,upper,kind,error,states,seconds"
    assert lines[2].startswith("2,P=? [ F x=n ],1.0,1.0,1.0,exact,,3,")
    taken = builtins.__import__

    def without_pandas(name: str, *rest: object) -> object:
        if name == "pandas":
            raise ImportError("No module named 'pandas'")
        return taken(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match="pandas"):
        table.to_pandas()


def test_frames(path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = hybrid.experiment(path, "P=? [ F x=n ]", {"n": [1, 2]}).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["value"].tolist() == [1.0, 1.0]


def test_a_table_draws_itself(path: Path, tmp_path: Path) -> None:
    table = hybrid.experiment(path, "const int T; P=? [ F<=T x=n ]", {"n": [1, -1, 2], "T": range(1, 4)})
    assert table.plot(tmp_path / "e.svg", "T", "a line") == [
        "P=? [ F<=T x=n ]: left out: 3 without an answer"
    ]
    text = (tmp_path / "e.svg").read_text(encoding="utf-8")
    assert all(f">{word}<" in text for word in ("T", "n=1", "n=2", "a line"))
    with pytest.raises(hybrid.HybridError, match="expected one of the constants n, T, got 'x'"):
        table.plot(tmp_path / "e.svg", "x")
