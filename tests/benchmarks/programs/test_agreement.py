"""Values and counts beside those of other checkers: what counts as agreement, and small runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from benchmarks.library import mdp_counts
from benchmarks.programs import agreement, mdp_agreement
from benchmarks.published.decision_processes import Case
from tests.benchmarks.support import ROOT, rendered

RecordOf = Callable[..., dict[str, Any]]

COIN = """mdp module m x : [0..3]; [a] x=0 -> 0.25:(x'=1) + 0.75:(x'=2); [b] x=0 -> 0.5:(x'=1) + 0.5:(x'=3);
    [] x>0 -> true; endmodule
    rewards "tries" x=0 : 1; endrewards"""
PROPERTIES = """const int k;
    Pmax=? [ F x=1 ]
    Pmin=? [ F<=k x=1 {x=0}{max} ]
    P>=1 [ F x>0 ]
    fiter(forall, x<4)
"""


def answer(value: Any, width: float = 1e-9, error: str | None = None) -> dict[str, Any]:
    if value is None or isinstance(value, bool):
        return {"value": value, "lower": value, "upper": value, "error": error}
    return {"value": value, "lower": value - width, "upper": value + width, "error": None}


@pytest.mark.parametrize(
    ("runs", "known", "agrees", "inside"),
    [
        ([answer(0.5), answer(0.5 + 1e-9)], Fraction(1, 2), True, True),
        ([answer(0.5), answer(0.5 + 1e-9)], None, True, None),
        # Bounds that do not hold the exact value, however close the value is.
        ([answer(0.5), answer(0.5 + 3e-9)], Fraction(1, 2), False, False),
        # Bounds that do not meet.
        ([answer(0.5), answer(0.5 + 3e-9)], None, False, None),
        # Bounds that hold it, around a value that is off.
        ([answer(0.5), answer(0.51, 0.1)], Fraction(1, 2), False, True),
        ([answer(0.5), answer(0.51, 0.1)], None, False, None),
        ([answer(1e-12, 1e-19), answer(1.01e-12, 1e-13)], Fraction(1, 10**12), False, True),
        ([answer(True), answer(True)], True, True, None),
        ([answer(True), answer(True)], False, False, None),
        ([answer(True), answer(False)], None, False, None),
        ([answer(0.5), answer(None, error="too large")], Fraction(1, 2), False, True),
        ([answer(None, error="no such function")] * 2, None, True, None),
        ([answer(None, error="no such function"), answer(None, error="too large")], None, False, None),
    ],
)
def test_agreement_needs_close_values_and_bounds_that_hold(
    runs: list[dict[str, Any]], known: Any, agrees: bool, inside: bool | None
) -> None:
    verdict = mdp_agreement.judge(runs, known)
    assert (verdict["agrees"], verdict["inside"]) == (agrees, inside)


@pytest.mark.nightly
def test_values_and_counts_of_a_small_process(
    record_of: RecordOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, table = tmp_path / "coins", tmp_path / "counts.csv"
    folder.mkdir()
    (folder / "coin.nm").write_text(COIN)
    (folder / "coin.pctl").write_text(PROPERTIES)
    head = "model,const,status,states,choices,transitions,mecs,mec_states,sccs\n"
    table.write_text(head + "other/coins/coin.nm,,ok,4,5,7,3,3,4\nother/coins/gone.nm,,ok,1,1,1,1,1,1\n")
    case = Case("coins/coin.nm", "k=1", ("coin.pctl",), ('R{"tries"}max=? [ F x>0 ]',))
    monkeypatch.setattr(mdp_agreement, "CASES", (case,))
    arguments = ("--models", str(tmp_path), "--counts", str(table), "--backends", "cpu")
    record = record_of(mdp_agreement, *arguments)
    row, counts = record["rows"]
    found = [(p["known"], p["source"], p["answered"], p["agrees"]) for p in row["properties"]]
    assert found == [
        ("1/2", "rational", 2, True),
        ("1/4", "rational", 2, True),
        (None, None, 2, True),
        (None, None, 0, True),
        ("1", "rational", 2, True),
    ]
    assert counts["equal"] == dict.fromkeys(mdp_counts.COUNTS, True)
    text = rendered("mdp_agreement", record)
    assert "| coins | 4 | 4 of 4 | 0 | 3 |" in text
    assert "`fiter(forall, x<4)` (coins): unknown function 'fiter'" in text
    assert "| coin.nm | 4 | 5 | 7 | 4 | 3 | 3 | 6 of 6 |" in text
    table.write_text(head + "other/coins/coin.nm,,ok,4,5,7,3,3,5\n")
    monkeypatch.setattr(sys, "argv", ["mdp_agreement", *arguments])
    assert mdp_agreement.main() == 1


def test_values_of_chains(record_of: RecordOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "values.csv"
    head = "set,model,property,const,index,value,rel,quick\n"
    line = 'thesis,tandem.prism,"P=? [ F<=1 sc=c ]",c=2,0,{},1e-6,1\n'
    table.write_text(head + line.format(0.5) + line.format(0.5).replace("thesis", "other"))
    arguments = ["--models", str(ROOT / "examples"), "--values", str(table), "--engines", "hybrid,explicit"]
    record = record_of(agreement, *arguments, "--backends", "cpu")
    assert [row["policy"] for row in record["rows"]] == ["min-memory", "min-time", "auto"]
    assert not any(row["agrees"] or row["inside"] for row in record["rows"])
    table.write_text(head + line.format(record["rows"][0]["value"]))
    record = record_of(agreement, *arguments, "--backends", "cpu")
    assert all(row["agrees"] and row["inside"] for row in record["rows"])
    assert "| tandem.prism | explicit | 1 of 1 |" in rendered("agreement", record)
    monkeypatch.setattr(sys, "argv", ["agreement", *arguments, "--quick", "--epsilon", "1e-6"])
    assert agreement.main() == 0
