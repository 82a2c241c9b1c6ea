"""`hybrid automaton`."""

from __future__ import annotations

import pytest

from hybrid.__main__ import main
from hybrid.automata.hoa_reading import parse_hoa


def test_a_formula_becomes_an_automaton(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["automaton", 'G (request => (F "answer"))']) == 0
    automaton = parse_hoa(capsys.readouterr().out)
    assert automaton.propositions == ("request", "answer")
    assert automaton.accepts([1], [2, 1]) and not automaton.accepts([2], [1])


def test_a_formula_becomes_a_drawing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["automaton", "F G x<3", "--dot"]) == 0
    assert capsys.readouterr().out.startswith("digraph automaton {")


@pytest.mark.parametrize(
    ("formula", "status", "message"),
    [
        ("a U", 2, "<formula>:1:5: expected an expression"),
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
