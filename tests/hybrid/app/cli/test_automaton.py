"""`hybrid automaton`."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.__main__ import main
from hybrid.properties.automata.hoa import parse_hoa


def test_a_formula_becomes_an_automaton(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["automaton", 'G (request => (F "answer"))']) == 0
    automaton = parse_hoa(capsys.readouterr().out)
    assert automaton.propositions == ("request", "answer")
    assert automaton.accepts([1], [2, 1]) and not automaton.accepts([2], [1])


def test_a_formula_becomes_a_drawing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["automaton", "F G x<3", "--dot"]) == 0
    assert capsys.readouterr().out.startswith("digraph {")


@pytest.mark.parametrize("ending", ["dot", "svg"])
def test_a_formula_becomes_a_picture(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / f"until.{ending}"
    assert main(["automaton", "a U b", "--plot", str(file)]) == 0
    assert capsys.readouterr().out.startswith("HOA: v1")
    text = file.read_text(encoding="utf-8")
    assert ("a&!b" in text and "peripheries=2" in text) if ending == "dot" else "<svg" in text


def test_pictures_that_are_none_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["automaton", "a U b", "--plot", str(tmp_path / "until.gif")]) == 2
    assert "gif" in capsys.readouterr().err
    large = " & ".join(f"(F a{i})" for i in range(6))
    assert main(["automaton", large, "--plot", str(tmp_path / "large.svg")]) == 2
    assert "at most 60 states, got 64" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("formula", "status", "message"),
    [
        (
            "a U",
            2,
            "1:4: expected an expression, got the end of the text\n    1 | a U\n      |    ^\n",
        ),
        ("F P>0.5 [ F a ]", 1, "which needs a model"),
        ("F<=2000 a", 1, "at most 1000 steps"),
    ],
)
def test_faults_are_told(formula: str, status: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["automaton", formula]) == status
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err


def test_a_spent_budget_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["automaton", " & ".join(f"(F (a{i} & (X b{i})))" for i in range(6)), "--timeout", "0.05"]) == 2
    )
    assert "time limit" in capfd.readouterr().err
