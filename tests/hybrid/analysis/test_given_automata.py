"""Automata of files in place of path formulas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.properties.automata.choosing import automaton_of
from hybrid.properties.automata.hoa import hoa_text
from mtbdd.language import LanguageError
from tests.builders.labelled import LABELS, random_labelled
from tests.builders.models import build
from tests.exploring import rounds
from tests.oracles.lasso_words import random_tree, tree_text
from tests.oracles.optima import checked

WALK = """
dtmc
module m
  x : [0..3] init 0;
  [] x=0 -> 0.5:(x'=1) + 0.5:(x'=2);
  [] x=1 -> 0.25:(x'=0) + 0.75:(x'=3);
  [] x>=2 -> true;
endmodule
label "end" = x>=2;
"""


@pytest.fixture
def until(tmp_path: Path) -> Path:
    """`start U end`."""
    path = tmp_path / "until.hoa"
    path.write_text(hoa_text(automaton_of('start U "end"')), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["dtmc", "mdp"])
def test_a_file_says_what_its_formula_says(kind: str, tmp_path: Path, rng: np.random.Generator) -> None:
    for number in range(rounds(15)):
        labelled = random_labelled(rng, kind)
        tree = random_tree(rng, int(rng.integers(3, 9)), 3)
        automaton = automaton_of(tree_text(tree, LABELS))
        file = tmp_path / f"{number}.hoa"
        file.write_text(hoa_text(automaton), encoding="utf-8")
        model = build(labelled.text())
        bound = "".join(f', "{name}" <- "{name}"' for name in automaton.propositions[: number % 3])
        for optimum in ("min", "max") if kind == "mdp" else ("",):
            given = checked(model, f'P{optimum}=? [ HOA: {{"{file}"{bound}}} ]', backend="cpu")
            written = checked(model, f"P{optimum}=? [ {tree_text(tree, LABELS)} ]", backend="cpu")
            assert (given.lower <= written.upper).all() and (written.lower <= given.upper).all()
            assert (given.upper - given.lower <= 1e-7).all()


def test_propositions_are_bound_or_labels(until: Path) -> None:
    model = build(WALK)
    answer = hybrid.check(model, f'P=? [ HOA: {{"{until}", "start" <- x=0}} ]', backend="cpu")
    assert answer.lower <= 0.5 <= answer.upper
    nested = f'P=? [ F (P>=0.5 [ HOA: {{"{until}", "start" <- P>0 [ X x=1 ] | x=1, "end" <- x=3}} ] & x=1) ]'
    assert hybrid.check(model, nested, backend="cpu").value == 0.5
    assert hybrid.check(model, f'P>=1 [ HOA: {{"{until}", "start" <- x<2}} ]', backend="cpu").value is True


def test_a_file_is_looked_for_beside_the_properties(until: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (until.parent / "walk.prism").write_text(WALK, encoding="utf-8")
    asked = until.parent / "walk.props"
    asked.write_text('P>=0.4 [ HOA: {"until.hoa", "start" <- x=0} ]', encoding="utf-8")
    assert main(["check", str(until.parent / "walk.prism"), str(asked)]) == 0
    assert "true" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        ("", 'expected the proposition "start" to be a label of the model, or to be bound'),
        (', "begin" <- x=0', 'expected the automaton to have the proposition "begin", got "start", "end"'),
    ],
)
def test_what_does_not_fit_is_told(binding: str, message: str, until: Path) -> None:
    answer = hybrid.check(build(WALK), f'P=? [ HOA: {{"{until}"{binding}}} ]', throw=False)
    assert answer.value is None and message in str(answer.error)


def test_bad_files_are_told_with_line_and_column(tmp_path: Path) -> None:
    bad = tmp_path / "bad.hoa"
    bad.write_text("HOA: v1\nStates: many\n", encoding="utf-8")
    answer = hybrid.check(build(WALK), f'P=? [ HOA: {{"{bad}"}} ]', throw=False)
    assert "bad.hoa:2:9: expected the number of states" in str(answer.error)
    answer = hybrid.check(build(WALK), f'P=? [ HOA: {{"{tmp_path / "none.hoa"}"}} ]', throw=False)
    assert "there is no such file" in str(answer.error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("P=? [ HOA: until ]", "1:12: expected '{' after 'HOA:'"),
        ("P=? [ HOA: {} ]", "1:13: expected the name of a file in double quotes"),
        ('P=? [ HOA: {"a.hoa", b <- x=0} ]', "a proposition of the automaton in double quotes"),
        ('P=? [ HOA: {"a.hoa", "b" = x=0} ]', "1:26: expected '<' after a proposition"),
        ('P=? [ HOA: {"a.hoa", "b" <- x=0, "b" <- x=1} ]', "every proposition once"),
        ('P=? [ HOA: {"a.hoa", "b" <- x+0} ]', 'what the proposition "b" stands for must be a bool'),
        ('P=? [ HOA: {"a.hoa"} & x=0 ]', "expected ']'"),
        ('P=? [ !(HOA: {"a.hoa"}) ]', "expected"),
    ],
)
def test_what_does_not_parse_is_told(text: str, message: str) -> None:
    with pytest.raises(LanguageError) as error:
        hybrid.check(build(WALK), text)
    assert message in str(error.value)


def test_what_automata_do_not_have_is_refused(
    until: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = f'P=? [ HOA: {{"{until}", "start" <- x=0}} ]'
    (tmp_path / "walk.prism").write_text(WALK, encoding="utf-8")
    walk = str(tmp_path / "walk.prism")
    assert main(["simulate", walk, asked]) == 1
    assert "got P [ HOA: ... ]" in capsys.readouterr().err
    assert main(["check", walk, asked, "--certificate", str(tmp_path / "certificate")]) == 2
    assert "P [ HOA: ... ] has no certificate, only one path operator has" in capsys.readouterr().err
