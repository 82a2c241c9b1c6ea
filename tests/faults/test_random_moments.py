"""Signals at moments spread over a run: no finished answer is lost, and every file is whole."""

from __future__ import annotations

import csv
import json
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from tests.exploring import is_seeded
from tests.faults.processes import started, stopped, wait_for

ANSWERS = 10
WALK = """
dtmc
module walk
  s : [0..60] init 30;
  [] s>0 & s<60 -> 0.5 : (s'=s+1) + 0.5 : (s'=s-1);
  [] s=0 | s=60 -> true;
endmodule
"""
QUESTIONS = [f"P=? [ F<={2000 + k} s=60 ]" for k in range(ANSWERS)]
MOMENTS = 12


def exact(steps: int) -> float:
    """Return the probability that the walk has reached 60 within some steps."""
    matrix = np.diag(np.full(60, 0.5), 1) + np.diag(np.full(60, 0.5), -1)
    matrix[0], matrix[60] = np.eye(61)[0], np.eye(61)[60]
    return float(np.linalg.matrix_power(matrix, steps)[30, 60])


@pytest.mark.slow
# In an order in which the first two have both signals, both forms and answers early and late.
@pytest.mark.parametrize("moment", [11 * k % MOMENTS for k in range(MOMENTS if is_seeded() else 2)])
def test_nothing_finished_is_lost(tmp_path: Path, moment: int) -> None:
    rng = np.random.default_rng([20261123, moment])
    awaited, delay = moment * (ANSWERS - 1) // MOMENTS, 0.25 * rng.random()
    number = signal.SIGINT if moment % 2 else signal.SIGTERM
    model, table, out = tmp_path / "walk.pm", tmp_path / "table.csv", tmp_path / "out"
    model.write_text(WALK)
    form = "--json" if moment % 3 == 2 else "--json-lines"
    options = ("--backend", "reference", "--quiet", "--csv", str(table), form)
    process = started("check", str(model), "; ".join(QUESTIONS), *options, out=out)

    def found() -> bool:
        return table.exists() and table.read_text().count("P=?") >= awaited

    wait_for((lambda: bool(list(tmp_path.glob(".table*")))) if awaited == 0 else found, process)
    time.sleep(delay)
    done = stopped(process, number, out)
    word = "terminated" if number == signal.SIGTERM else "interrupted"
    if done.returncode != 0:
        assert (done.returncode, done.stderr) == (128 + number, f"error: {word}\n")
    # No temporary file is left, and rows are whole.
    assert {p.name for p in tmp_path.iterdir()} <= {"walk.pm", "table.csv", "out"}
    rows = []
    if table.exists():
        assert table.read_text().endswith("\n")
        with table.open(newline="") as lines:
            rows = list(csv.DictReader(lines))
    if form == "--json":
        record = json.loads(done.stdout)
        assert record.get("interrupted", False) == (done.returncode != 0)
        results = record["results"]
    else:
        results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["property"] for r in results] == QUESTIONS[: len(results)]
    assert len(results) == ANSWERS
    answered = [r for r in results if r["error"] is None]
    assert [r["property"] for r in answered] == [row["property"] for row in rows if not row["error"]]
    assert len(answered) >= awaited
    for steps, result in enumerate(results, start=2000):
        if result["lower"] is not None:
            assert result["lower"] <= exact(steps) * (1 + 1e-12)
            assert result["upper"] >= exact(steps) * (1 - 1e-12)
        assert (result["value"] is None) == (result["error"] is not None)
        assert result.get("interrupted", False) == (result["error"] == word)
