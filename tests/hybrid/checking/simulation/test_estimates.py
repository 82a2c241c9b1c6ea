"""Estimates: the engine's answers lie in their intervals, and intervals cover what they promise."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.base.errors import OptionError, UnknownError, UnsupportedError
from hybrid.checking.simulation import estimate
from hybrid.checking.simulation.estimates import clopper_pearson, student
from mtbdd.language import LanguageError, parse_model, resolve
from mtbdd.language.syntax import ResolvedModel
from tests.builders.models import build

CHAIN = """dtmc
module a
  x : [0..5];
  [] x=0 -> 0.5:(x'=1) + 0.3:(x'=2) + 0.2:(x'=5);
  [go] x=1 -> 0.6:(x'=0) + 0.4:(x'=3);
  [] x=2 -> 0.9:true + 0.1:(x'=4);
  [] x=3 -> (x'=3);
  [] x=4 -> 0.5:(x'=2) + 0.5:(x'=1);
endmodule
rewards "cost" x<3 : x+1; [go] true : 2; endrewards
label "low" = x<2;
"""

RACE = """ctmc
module a
  x : [0..3];
  [] x<3 -> 1.5 : (x'=x+1);
  [down] x>0 & x<3 -> x : (x'=x-1);
  [stay] x=3 -> 2 : true;
endmodule
rewards "cost" x<3 : x+1; [down] true : 2; [stay] true : 0.5; endrewards
label "low" = x<2;
"""

PATHS = [
    'P=? [ F x=3 ]',
    'P=? [ F<=4 x=3 ]',
    'P=? [ F<4 x=3 ]',
    'P=? [ F>=2 x=1 ]',
    'P=? [ F>2 x=1 ]',
    'P=? [ F=3 x=2 ]',
    'P=? [ F[2,5] x=1 ]',
    'P=? [ F>0 x=0 ]',
    'P=? [ F<=0 x=0 ]',
    'P=? [ x=3 U>0 x=0 ]',
    'P=? [ F[1,1] x=1 ]',
    'P=? [ "low" U x=3 ]',
    'P=? [ "low" U<=3 x=2 ]',
    'P=? [ "low" U[1,3] x=1 ]',
    'P=? [ x<3 U>=3 x!=0 ]',
    'P=? [ G x!=3 ]',
    'P=? [ G<=3 "low" ]',
    'P=? [ G[1,2] x>=1 ]',
    'P=? [ "low" W x=3 ]',
    'P=? [ "low" W<=2 x=2 ]',
    'P=? [ x<3 R "low" ]',
    'P=? [ x=1 R<=3 "low" ]',
    'P=? [ X x=1 ]',
    'P=? [ X "init" ]',
    'P=? [ !(F<=4 x=3) ]',
    'P=? [ "low" ]',
    'P=? [ F<=6 "deadlock" ]',
    'P=? [ F[1,4] "init" ]',
    'P=? [ F>=20 "deadlock" ]',
    'P=? [ F[0,20] x=3 & !"deadlock" ]',
]  # fmt: skip
REWARDS = [
    'R{"cost"}=? [ C<=3 ]',
    'R{"cost"}=? [ C<=0 ]',
    'R{"cost"}=? [ C<=12 ]',
    'R{"cost"}=? [ I=3 ]',
    'R{"cost"}=? [ I=0 ]',
    'R{"cost"}=? [ F !"low" ]',
    'R{"cost"}=? [ F x=0 ]',
    'R{"cost"}=? [ F x=3 ]',
]


def resolved(text: str, **constants: Any) -> ResolvedModel:
    return resolve(parse_model(text), constants)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        pytest.param(text, asked, id=f"{text.split()[0]}-{asked}")
        for k, asked in enumerate([*PATHS, *REWARDS])
        for text in [(CHAIN, RACE)[k % 2]]
    ],
)
def test_the_answer_lies_in_the_interval(text: str, asked: str) -> None:
    model = build(text)
    answer = hybrid.check(model, asked).value
    found = estimate(model.source, asked, paths=3000, confidence=1 - 1e-6, seed=2)
    assert found.lower <= answer <= found.upper
    assert found.lower <= found.value <= found.upper
    assert found.unknown == 0
    if asked.startswith("P"):
        # Chernoff's bound: an interval that is right but says nothing would pass otherwise.
        assert found.upper - found.lower < 0.1
    assert found.kind == "estimate"


@pytest.mark.parametrize(
    ("name", "constants", "asked"),
    [
        ("biased_die", {"N": 9, "first": 0}, "P=? [ F d=1 ]"),
        ("biased_die", {"N": 9, "first": 0}, 'P=? [ F "done" ]'),
        ("brp", {"N": 16, "MAX": 2}, "P=? [ F srep!=0 & !recv ]"),
        ("quick_sort", {"limit": 10}, 'P=? [ F "sorted" ]'),
        ("tandem", {"c": 3}, "R=? [ C<=2 ]"),
        ("kanban", {"t": 1}, "R=? [ C<=4 ]"),
        ("cluster", {"N": 2}, 'P=? [ F<=5 !"premium" ]'),
    ],
)
def test_examples(examples_folder: Path, name: str, constants: dict[str, int], asked: str) -> None:
    path = examples_folder / f"{name}.prism"
    model = hybrid.load(path, constants)
    answer = hybrid.check(model, asked).value
    found = estimate(path, asked, paths=3000, confidence=1 - 1e-6, constants=constants)
    assert found.lower <= answer <= found.upper
    assert found.unknown == 0


def test_a_reward_is_infinite_where_the_target_may_be_missed() -> None:
    found = estimate(resolved(CHAIN), 'R{"cost"}=? [ F x=3 ]', paths=500)
    assert (found.value, found.lower, found.upper, found.interval) == (
        math.inf,
        math.inf,
        math.inf,
        "witness",
    )
    assert found.record()["value"] == "Infinity"


def test_paths_that_are_not_decided_widen_the_interval() -> None:
    model = resolved("dtmc module a x : [0..2]; [] x=0 -> 0.9:true + 0.06:(x'=1) + 0.04:(x'=2); endmodule")
    found = estimate(model, "P=? [ F x=1 ]", paths=1000, steps=5, confidence=0.99)
    assert 500 < found.unknown < 700
    hits = round(found.value * (1000 - found.unknown))
    assert (found.lower, found.upper) == clopper_pearson(hits, found.unknown, 1000, 0.99)
    assert found.lower < 0.3 and found.upper > 0.8
    whole = estimate(model, "P=? [ F x=1 ]", paths=1000)
    assert whole.unknown == 0 and whole.lower < 0.6 < whole.upper


def test_rewards_of_paths_that_have_not_ended_are_not_told() -> None:
    text = "dtmc module a x : [0..1]; [] x=0 -> 0.9:true + 0.1:(x'=1); endmodule rewards x=0 : 1; endrewards"
    with pytest.raises(UnknownError, match="of 1000 paths have not come to the end .* more steps"):
        estimate(resolved(text), "R=? [ F x=1 ]", paths=1000, steps=5)
    found = estimate(resolved(text), "R=? [ F x=1 ]", paths=1000)
    assert found.lower < 10 < found.upper


def test_nothing_is_claimed_where_nothing_is_known() -> None:
    model = resolved("dtmc module a x : [0..1]; [] true -> (x'=1-x); endmodule")
    found = estimate(model, "P=? [ G x<2 ]", paths=10, steps=20)
    assert (found.lower, found.upper, found.unknown) == (0.0, 1.0, 10)
    assert math.isnan(found.value) and found.record()["value"] is None


def test_clopper_pearson_covers(rng: np.random.Generator) -> None:
    for n, p in ((5, 0.1), (20, 0.5), (50, 0.03), (50, 0.97)):
        ends = np.array([clopper_pearson(k, 0, n, 0.9) for k in range(n + 1)])
        ks = rng.binomial(n, p, size=4000)
        assert ((ends[ks, 0] <= p) & (p <= ends[ks, 1])).mean() > 0.885
    assert clopper_pearson(0, 0, 10, 0.9)[0] == 0.0 and clopper_pearson(10, 0, 10, 0.9)[1] == 1.0
    # The rule of three, and its exact form.
    assert clopper_pearson(0, 0, 100, 0.9)[1] == pytest.approx(1 - 0.05 ** (1 / 100))


def test_student_covers(rng: np.random.Generator) -> None:
    ends = np.array([student(values, 0.9) for values in rng.normal(3.0, 2.0, size=(2000, 8))])
    share = ((ends[:, 0] <= 3) & (ends[:, 1] >= 3)).mean()
    assert 0.87 < share < 0.93


def test_estimates_repeat_and_seeds_differ() -> None:
    model = resolved(RACE)
    one, same, other = (estimate(model, "P=? [ F<=2 x=3 ]", 2000, seed=seed) for seed in (4, 4, 5))
    assert (one.value, one.steps) == (same.value, same.steps) != (other.value, other.steps)


def test_constants_of_model_and_property(tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_text("dtmc const double p; module a x : [0..1]; [] x=0 -> p:(x'=1) + 1-p:true; endmodule")
    found = estimate(path, "const int k; P=? [ F<=k x=1 ]", 2000, constants={"p": 0.5, "k": 2})
    assert found.lower < 0.75 < found.upper


def test_several_initial_states_want_a_start() -> None:
    model = resolved("dtmc module a x : [0..3]; [] true -> (x'=0); endmodule init x>1 endinit")
    with pytest.raises(OptionError, match="2 initial states"):
        estimate(model, "P=? [ X x=0 ]", 10)
    assert estimate(model, "P=? [ F<=0 x=3 ]", 10, start={"x": 3}).value == 1


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("P>=0.5 [ F x=1 ]", "comparison"),
        ("S=? [ x=1 ]", "got S"),
        ("R=? [ S ]", r"got R \[ S \], which no finite path shows"),
        ("R=? [ LRA ]", r"got R \[ S \], which no finite path shows"),
        ("R=? [ C ]", r"got R \[ C \]"),
        ("P=? [ F P>=1 [ X x=1 ] ]", "inside another"),
        ("P=? [ G F x=1 ]", r"got P \[ G F states \]"),
        ("filter(max, P=? [ F x=1 ])", "filter"),
        ("x=1", "something else"),
    ],
)
def test_other_questions_are_refused(asked: str, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=f"estimates are offered for .*{reason}"):
        estimate(resolved(RACE), asked, 10)


def test_decision_processes_are_refused() -> None:
    model = resolved("mdp module a x : [0..1]; [] true -> (x'=1-x); endmodule")
    with pytest.raises(UnsupportedError, match="scheduler"):
        estimate(model, "Pmax=? [ F x=1 ]", 10)


@pytest.mark.parametrize(
    "wrong", [{"confidence": 0.0}, {"confidence": 1.0}, {"confidence": math.nan}, {"paths": 0}]
)
def test_options_of_estimates(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong))):
        estimate(resolved(RACE), "P=? [ F x=1 ]", **wrong)


def test_faults_of_properties() -> None:
    with pytest.raises(LanguageError, match="unknown"):
        estimate(resolved(RACE), "P=? [ F z=1 ]", 10)
    with pytest.raises(LanguageError, match=r"got none in \(x=2\)"):
        estimate(resolved(RACE), "P=? [ F mod(3,2-x)=7 ]", 100)
    with pytest.raises(OptionError, match="expected one"):
        estimate(resolved(RACE), "P=? [ F x=1 ]; P=? [ F x=2 ]", 10)
