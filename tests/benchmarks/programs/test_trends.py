"""Figures of records over commits: from a history made for the test."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.programs import trends
from benchmarks.rendering import trends as pages
from tests.source_tree import ROOT

RATIO = "mean(products.rows.ratio)"
NOBODY = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"} | {
    f"GIT_{who}_{what}": "nobody@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with four versions of a record, one of them without the figure."""
    monkeypatch.setattr(trends, "ROOT", tmp_path)
    path = tmp_path / trends.RESULTS / "products.json"
    path.parent.mkdir(parents=True)

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, env={**os.environ, **NOBODY})

    git("init", "--quiet")
    for commit, row in (
        ("a", {"other": 1}),
        ("b", {"ratio": 4.0}),
        ("b", {"ratio": 3.0}),
        ("c", {"ratio": 1.0}),
    ):
        made = {"date": "2026-11-28T10:00:00", "commit": commit, "processor": "one"}
        path.write_text(json.dumps({"environment": made, "rows": [row, row]}), encoding="utf-8")
        git("add", "--all")
        git("commit", "--quiet", "--message", "a record")
    return path


def test_a_figure_has_a_point_for_every_commit_that_measured_it(history: Path) -> None:
    found = trends.points("products", RATIO)
    assert [(point["commit"], point["value"]) for point in found] == [("b", 3.0), ("c", 1.0)]


def test_the_page_shows_points_with_bars_and_runs_with_faults(history: Path) -> None:
    rows = [{"name": "ratio", "record": "products", "points": trends.points("products", RATIO)}]
    made = {"date": "2026-11-28T10:00:00", "commit": "d"}
    text = pages.figures({"benchmark": "trends", "environment": made, "rows": rows})
    assert (
        "| ratio (`products`) | █ | 3 | 2026-11-28 | b | one |\n|  | ▃ | 1 | 2026-11-28 | c | one |" in text
    )
    run = {"date": "2026-11-28T10:00:00", "commit": "e"}
    attack = [{**run, "cases": 1000, "verdicts": {"wrong": 1, "crash": 2}}, {**run, "date": None}]
    lane = [{**run, "passed": 5, "failed": 0, "error": 1}] * 2
    text = pages.lanes({"attack": {"runs": attack}, "device_lane": {"runs": lane}, "mutants": None})
    assert "| 2026-11-28 | attack | e | 1,000 | 3 |\n| 2026-11-28 | device lane | e | 10 | 2 |" in text


def test_figures_of_today_are_read_from_the_records() -> None:
    for _, record, expression in trends.FIGURES:
        stored = json.loads((ROOT / trends.RESULTS / f"{record}.json").read_text(encoding="utf-8"))
        assert trends.evaluate(expression, {record: stored}.get) > 0
