"""Figures in pages come from records: what a marker may ask, and what the check says of other figures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rendering import render
from benchmarks.rendering.figures import FigureError, evaluate, figure_differences, with_figures

ROWS = [
    {"model": "kanban t=5", "states": 2_546_432, "seconds": 2.0, "rival": 8.0, "inner": {"at once": 3.5}},
    {"model": "tandem", "states": 1000, "seconds": 0.5, "rival": 1.0, "inner": {}, "parts": [3, 4]},
    {"model": "fms", "constants": {"n": 7}, "error": "no room"},
]
RECORDS: dict[str, Any] = {"products": {"threads": 2, "rows": ROWS, "environment": {"commit": "abc"}}}


def value(expression: str) -> Any:
    return evaluate(expression, RECORDS.get)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("products.threads", 2),
        ("products.environment.commit", "abc"),
        ("products.rows[0].seconds", 2.0),
        ("products.rows[-2].states", 1000),
        ('products.rows["model=kanban t=5"].states', 2_546_432),
        ('products.rows["states>10000"].rival / products.rows["states>10000"].seconds', 4.0),
        ('products.rows["model=kanban t=5"].inner["at once"]', 3.5),
        ('products.rows["constants=n=7"].error', "no room"),
        ('count(products.rows["model!=tandem"])', 2),
        ("geomean(products.rows.rival / products.rows.seconds)", 8.0**0.5),
        ("max(products.rows.rival - products.rows.seconds * 2)", 4.0),
        ("min(products.rows.seconds) * 1e3", 500.0),
        ("count(products.rows.seconds)", 2),
        ("count(products.rows)", 3),
        ('products.rows["model=tandem"].rival / products.rows["model=kanban t=5"].rival', 1 / 8),
        ('max(products.rows["model=tandem"].parts)', 4),
        ('products.rows["model=tandem"].parts[0]', 3),
        ("sum(products.rows.states)", 2_547_432),
        ("1 - median(products.rows.seconds) / mean(products.rows.rival)", 1 - 1.25 / 4.5),
    ],
)
def test_expressions_say_what_the_records_have(expression: str, expected: Any) -> None:
    assert value(expression) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("44", "expected a field of a record"),
        ("missing.rows[0].seconds", "there is no record missing"),
        ("products.row", "no field row; there are threads, rows, environment"),
        ("products.rows.speed", "no row has a field speed"),
        ("products.rows[7].seconds", "no row 7; there are 3"),
        ('products.rows["model=brp"].seconds', "no row with model=brp"),
        ("products.rows.seconds", "expected one number, got 3 values"),
        ("products.rows", "expected one number, got a list"),
        ("products.threads.more", "no field more of a int"),
        ('products.rows["model!=fms"].rival / products.rows.seconds', "columns of the same rows"),
        ("products.rows[0].seconds / 0", "division by zero"),
        ("__import__('os').system('true')", "expected fields, rows"),
        ("sorted(products.rows.seconds)", "expected fields, rows"),
        ("products.rows[0].seconds ** 9", "expected fields, rows"),
        ("products.rows[", "was never closed"),
    ],
)
def test_what_is_not_a_field_of_a_record_is_refused(expression: str, message: str) -> None:
    with pytest.raises(FigureError) as error:
        value(expression)
    assert message in str(error.value)


PAGE = """# A page

It takes <!-- = products.rows[0].seconds .1f -->9.9<!-- . --> s for
a model of <!-- = products.rows[0].states ,d -->2,546,432<!-- . --> states,
and <!-- = products.rows[1].seconds .2g -->0.5<!-- . --> else.
"""


def test_figures_are_made_anew_and_differences_told_with_their_lines() -> None:
    (found,) = figure_differences(PAGE, RECORDS.get)
    assert str(found) == "3: stands '9.9', products.rows[0].seconds says '2.0'"
    right = with_figures(PAGE, RECORDS.get)
    assert right == PAGE.replace("9.9", "2.0")
    assert not list(figure_differences(right, RECORDS.get))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("<!-- = products.threads d -->2<!-- . --> threads", "begins the line"),
        ("- <!-- = products.threads d -->2<!-- . --> threads", "begins the line"),
        ("with <!-- = products.threads d -->2 threads", "on one line"),
        ("with <!-- = products.threads -->2<!-- . --> threads", "on one line"),
        ("with 2<!-- . --> threads", "on one line"),
        ("with <!-- = products.rows[0].seconds d -->2<!-- . --> s", "format code 'd'"),
    ],
)
def test_broken_comments_are_refused(line: str, message: str) -> None:
    with pytest.raises(FigureError) as error:
        with_figures(f"text\n\n{line}\n", RECORDS.get)
    assert message in str(error.value)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a page, a record and a README, in the place of this one."""
    results, docs = tmp_path / "benchmarks/results", tmp_path / "docs"
    results.mkdir(parents=True)
    docs.mkdir()
    (results / "products.json").write_text(json.dumps(RECORDS["products"]))
    (docs / "a.md").write_text(PAGE)
    (tmp_path / "README.md").write_text("text\n")
    for name, path in (("ROOT", tmp_path), ("RESULTS", results), ("PAGE", docs / "benchmarks.md")):
        monkeypatch.setattr(render, name, path)
    monkeypatch.setattr(render, "SECTIONS", {})
    (docs / "benchmarks.md").write_text(render.page())
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["render", *arguments])
    return render.main()


def test_check_names_page_line_and_both_figures(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--check") == 1
    assert capsys.readouterr().err == "docs/a.md:3: stands '9.9', products.rows[0].seconds says '2.0'\n"
    assert (project / "docs/a.md").read_text() == PAGE
    assert run(monkeypatch) == 0
    assert capsys.readouterr().out == "wrote docs/a.md\n"
    assert run(monkeypatch, "--check") == 0


def test_check_sees_tables_and_broken_markers(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        render, "BLOCKS", {("b.md", "all"): ("products", lambda record: f"{record['threads']} threads")}
    )
    (project / "docs/a.md").unlink()
    (project / "docs/b.md").write_text("# B\n\n<!-- rendered: all -->\n\n3 threads\n\n<!-- end: all -->\n")
    assert run(monkeypatch, "--check") == 1
    assert capsys.readouterr().err == "docs/b.md:5: stands '3 threads', the rendering says '2 threads'\n"
    (project / "docs/c.md").write_text("<!-- = products.threads d -->2<!-- . --> threads\n")
    assert run(monkeypatch) == 1
    told = capsys.readouterr()
    assert "docs/c.md: line 1: a figure begins the line" in told.err and told.out == "wrote docs/b.md\n"
