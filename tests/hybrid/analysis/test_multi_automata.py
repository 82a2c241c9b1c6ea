"""Several objectives whose automata come from files and from other programs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import hybrid
from hybrid.base.errors import InterchangeError, PropertyError, UnsupportedError
from hybrid.properties.automata.choosing import automaton_of
from hybrid.properties.automata.hoa import hoa_text
from tests.builders.labelled import LABELS, random_labelled
from tests.builders.models import build
from tests.exploring import rounds
from tests.oracles.lasso_words import random_tree, tree_text

GAMBLE = """
mdp
module m
  s : [0..2];
  [bold] s=0 -> 1/3 : (s'=2) + 2/3 : (s'=1);
  [shy] s=0 -> 1/2 : (s'=2) + 1/2 : (s'=0);
  [end] s>0 -> true;
endmodule
label "won" = s=2;
rewards "cost" [bold] true : 1; [shy] true : 3; endrewards
"""


def written(folder: Path, name: str, formula: str) -> Path:
    path = folder / name
    path.write_text(hoa_text(automaton_of(formula)), encoding="utf-8")
    return path


def printing(folder: Path, formula: str) -> str:
    """Return a command that prints our automaton of a formula over p0, p1, ..., whatever it is asked for."""
    path = folder / "tool.py"
    path.write_text(f"print({hoa_text(automaton_of(formula))!r})", encoding="utf-8")
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


def test_files_say_what_formulas_say(tmp_path: Path, rng: np.random.Generator) -> None:
    compared = 0
    for number in range(rounds(9)):
        model = build(random_labelled(rng, "mdp").text().replace("init true endinit", ""))
        formulas = [tree_text(random_tree(rng, int(rng.integers(3, 8)), 3), LABELS) for _ in range(2)]
        paths = []
        for i, formula in enumerate(formulas):
            file = written(tmp_path, f"{number}-{i}.hoa", formula)
            known = automaton_of(formula).propositions[: number % 3]
            bound = "".join(f', "{name}" <- !!"{name}"' for name in known)
            paths.append(f'HOA: {{"{file}"{bound}}}')
        for ask in ("multi(Pmax=? [ {} ], P>=0.25 [ {} ])", "multi(Pmin=? [ {} ], P<=0.5 [ {} ])"):
            asked = [
                hybrid.check(model, ask.format(*pair), throw=False)
                for pair in (formulas, paths, (formulas[0], paths[1]))
            ]
            first = asked[0]
            for other in asked[1:]:
                assert (first.error is None) == (other.error is None)
                if first.error is None:
                    compared += 1
                    assert first.upper - first.lower < 1e-6
                    assert first.lower <= other.upper and other.lower <= first.upper
    assert compared > 5


def test_propositions_of_files_are_labels_or_bound(tmp_path: Path) -> None:
    model = build(GAMBLE)
    won = written(tmp_path, "won.hoa", 'F "won"')
    for states in ("", ', "won" <- s=2', ', "won" <- P>=1 [ F s=2 ] & s>0'):
        text = f'multi(P>=0.5 [ HOA: {{"{won}"{states}}} ], R{{"cost"}}<=2.25 [ C ])'
        assert hybrid.check(model, text).value is True
        assert hybrid.check(model, text.replace("2.25", "2.2")).value is False
    # Sets that are those of a formula, their complements, all states and none.
    for states, value in (("s<2", 1.0), ("true", 1.0), ("false", 0.0), ("s!=1", 1.0)):
        text = f'multi(Pmax=? [ HOA: {{"{won}", "won" <- {states}}} ], P>=0.1 [ F s=2 ], P<=0.9 [ F s=1 ])'
        answer = hybrid.check(model, text)
        assert answer.lower <= value <= answer.upper
    with pytest.raises(PropertyError, match='to have the proposition "lost"'):
        hybrid.check(model, f'multi(P>=0.5 [ HOA: {{"{won}", "lost" <- s=1}} ])')


def test_more_propositions_than_automata_read(tmp_path: Path) -> None:
    names = [f"x{i}" for i in range(7)]
    wide = written(tmp_path, "wide.hoa", "F (" + " & ".join(names) + ")")
    both = []
    for first in (0, 7):
        states = ", ".join(f'"x{i}" <- s!={first + i}' for i in range(7))
        both.append(f'P>=0.5 [ HOA: {{"{wide}", {states}}} ]')
    model = build("mdp module m s : [0..20]; [] s<20 -> (s'=s+1); [] true -> true; endmodule")
    assert hybrid.check(model, f"multi({both[0]})").value is True
    with pytest.raises(UnsupportedError, match="at most 12 propositions of all objectives together, got 14"):
        hybrid.check(model, f"multi({', '.join(both)})")


def test_automata_of_a_program_are_taken_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(GAMBLE)
    # The formula has one proposition, s=2, and so has the tool's automaton, with states to spare.
    text = 'multi(Pmax=? [ X (X (s=2)) ], R{"cost"}<=2.5 [ C ])'
    own = hybrid.check(model, text, automaton_tool="own")
    command = printing(tmp_path, "(X (X p0)) & ((F p0) | (G !p0))")
    answer = hybrid.check(model, text, automaton_tool=command)
    assert answer.kind == "certified"
    assert answer.lower <= own.upper and own.lower <= answer.upper
    with pytest.raises(InterchangeError, match="differs on the word"):
        hybrid.check(model, text, automaton_tool=printing(tmp_path, "X p0"))
    # Nobody can check it: no certified answer, so none.
    command = printing(tmp_path, "X (X p0)")
    monkeypatch.setattr("hybrid.properties.automata.translation.MOST_STATES", 2)
    with pytest.raises(UnsupportedError, match="cannot be checked, and nothing could be certified"):
        hybrid.check(model, text, automaton_tool=command)
