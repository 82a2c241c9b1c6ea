"""Schedulers with memory, applied to their model: the chain that is left has the value that they attain."""

from __future__ import annotations

import csv
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.properties.automata.choosing import automaton_of
from hybrid.properties.automata.hoa import hoa_text
from tests.builders.labelled import LABELS, LabelledModel, random_labelled
from tests.exploring import rounds
from tests.logic.values import expected_values
from tests.oracles.cosafe import random_cosafe
from tests.oracles.lasso_words import Tree, random_tree, tree_text, without_windows

AGAIN: list[Tree] = [
    ("&", ("G", ("F", ("p", 0))), ("G", ("F", ("p", 1)))),
    ("&", ("&", ("G", ("F", ("p", 0))), ("G", ("F", ("p", 1)))), ("G", ("F", ("p", 2)))),
    ("|", ("&", ("G", ("F", ("p", 0))), ("G", ("F", ("p", 1)))), ("F", ("G", ("p", 2)))),
    ("&", ("=>", ("G", ("F", ("p", 0))), ("G", ("F", ("p", 1)))), ("G", ("F", ("p", 2)))),
    ("X", ("X", ("p", 0))),
    ("in", 0, 2, ("F", ("p", 0))),
    ("in", 1, 2, ("U", ("p", 0), ("p", 1))),
    ("!", ("in", 2, 3, ("F", ("p", 2)))),
    ("F", ("G", ("p", 0))),
]


def assert_attained(labelled: LabelledModel, tree: Tree) -> None:
    """The chains of the schedulers for least and greatest probabilities have them in all states."""
    model = hybrid.parse(labelled.text())
    text = tree_text(tree, LABELS)
    for operator, exact in expected_values(labelled, without_windows(tree)).items():
        answer = hybrid.check(model, f"{operator} [ {text} ]", backend="cpu", scheduler=True)
        chain = model.with_scheduler(answer.scheduler)
        assert chain.type.value == "dtmc"
        found = hybrid.check(chain, f"P=? [ {text} ]", backend="cpu", values=True)
        attained = found.values[chain.labels["init"]]
        np.testing.assert_allclose(attained, np.array(exact, float), atol=1e-6, err_msg=f"{operator} {text}")
        np.testing.assert_allclose(answer.values, np.array(exact, float), atol=1e-6)


def test_random_formulas(rng: np.random.Generator) -> None:
    for number in range(rounds(15)):
        tree = random_tree(rng, int(rng.integers(3, 8)), 3, windows=number % 3 == 0)
        assert_attained(random_labelled(rng, "mdp"), tree)


@pytest.mark.parametrize("tree", AGAIN, ids=str)
def test_what_is_met_again_and_again_and_windows(tree: Tree, rng: np.random.Generator) -> None:
    for _ in range(rounds(3)):
        assert_attained(random_labelled(rng, "mdp"), tree)


def test_random_rewards(rng: np.random.Generator) -> None:
    finite = 0
    for _ in range(rounds(15)):
        labelled = random_labelled(rng, "mdp")
        most = max(map(len, labelled.choices))
        items = [f"s={s} : {int(rng.integers(0, 4))};" for s in range(labelled.n_states)]
        items += [f"[c{k}] true : {Fraction(int(rng.integers(0, 4)), 2)};" for k in range(most)]
        structure = "\n".join(['rewards "other" true : 1; endrewards', 'rewards "r"', *items, "endrewards"])
        model = hybrid.parse(labelled.text(structure))
        text = tree_text(random_cosafe(rng, int(rng.integers(2, 7))), LABELS)
        for optimum in ("min", "max"):
            asked = f'R{{"r"}}{optimum}=? [ {text} ]'
            answer = hybrid.check(model, asked, backend="cpu", scheduler=True)
            chain = model.with_scheduler(answer.scheduler)
            found = hybrid.check(chain, f'R{{"r"}}=? [ {text} ]', backend="cpu", values=True)
            np.testing.assert_allclose(found.values[chain.labels["init"]], answer.values, rtol=1e-6)
            finite += any(0 < v < math.inf for v in answer.values)
    assert finite >= 2


# To meet a and b again and again the choice in the middle has to change.
MIDDLE = """
mdp
module m
  x : [0..2] init 1;
  [left] x=1 -> (x'=0);
  [right] x=1 -> (x'=2);
  [] x!=1 -> 0.5:(x'=1) + 0.5:true;
endmodule
label "a" = x=0;
label "b" = x=2;
rewards "steps" true : 1; endrewards
"""
BOTH = '(G F "a") & (G F "b")'


def test_a_scheduler_that_takes_turns_is_written_and_applied(tmp_path: Path) -> None:
    model = hybrid.parse(MIDDLE)
    answer = hybrid.check(model, f"Pmax=? [ {BOTH} ]", scheduler=True)
    answer.scheduler.write(tmp_path / "turns.csv")
    answer.scheduler.write(tmp_path / "turns.json")
    rows = list(csv.DictReader((tmp_path / "turns.csv").read_text(encoding="utf-8").splitlines()))
    records = json.loads((tmp_path / "turns.json").read_text(encoding="utf-8"))
    assert [int(row["memory"]) for row in rows] == [record["memory"] for record in records]
    # Followed as it is told, it meets both.
    rules = {(int(row["x"]), int(row["memory"])): (row["action"], int(row["next"])) for row in rows}
    x, memory, met = 1, 0, []
    for _ in range(12):
        action, memory = rules[x, memory]
        x = {"left": 0, "right": 2, "": 1}[action]
        met.append(x)
    assert met.count(0) == met.count(2) == 3
    chain = model.with_scheduler(answer.scheduler)
    assert hybrid.check(chain, f"P=? [ {BOTH} ]").value == 1.0
    assert hybrid.check(chain, 'R{"steps"}=? [ F ("a" & (F "b")) ]').value == pytest.approx(4)
    assert {"x"} <= set(chain.state_table().dtype.names)
    other = hybrid.parse(MIDDLE)
    with pytest.raises(ValueError, match="one of another"):
        other.with_scheduler(answer.scheduler)


# Two ways to be accepted share states: a and b without c, or all of the others; b is two steps from a.
SHARED = """
mdp
module m
  x : [0..3] init 0;
  [stay] x=0 -> true;
  [go] x=0 -> (x'=3);
  [far] x=0 -> (x'=2);
  [back] x=3 -> (x'=0);
  [on] x=3 -> (x'=1);
  [] x=1 | x=2 -> (x'=0);
endmodule
"""
EITHER = (
    "((G F x=0) & (G F x=1) & (F G x!=2)) | "
    "((G F x=2) & (G F (x=0 | x=1)) & (G F (x=0 | x=2)) & (G F (x=0 | x=3)))"
)


def test_parts_that_share_states_take_no_turns_from_each_other() -> None:
    model = hybrid.parse(SHARED)
    answer = hybrid.check(model, f"Pmax=? [ {EITHER} ]", scheduler=True)
    chain = model.with_scheduler(answer.scheduler)
    assert hybrid.check(chain, f"P=? [ {EITHER} ]", values=True).values[chain.labels["init"]].tolist() == [
        1.0
    ]
    assert (
        hybrid.check(chain, f"P=? [ {EITHER} ]", values=True).values[answer.scheduler.memory == 0] == 1
    ).all()


def test_the_command_line_writes_it(tmp_path: Path) -> None:
    (tmp_path / "middle.prism").write_text(MIDDLE, encoding="utf-8")
    file = tmp_path / "scheduler.csv"
    assert (
        main(["check", str(tmp_path / "middle.prism"), f"Pmax=? [ {BOTH} ]", "--scheduler", str(file)]) == 0
    )
    assert file.read_text(encoding="utf-8").splitlines()[0] == "x,memory,action,layer,next,command"


def test_an_automaton_of_a_file_has_one_too(tmp_path: Path) -> None:
    file = tmp_path / "both.hoa"
    file.write_text(hoa_text(automaton_of("(G F a) & (G F b)")), encoding="utf-8")
    model = hybrid.parse(MIDDLE)
    answer = hybrid.check(model, f'Pmax=? [ HOA: {{"{file}"}} ]', scheduler=True)
    assert answer.value == 1.0
    assert hybrid.check(model.with_scheduler(answer.scheduler), f"P=? [ {BOTH} ]").value == 1.0
