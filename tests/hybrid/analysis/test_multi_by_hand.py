"""Several objectives: answers worked out by hand, schedulers, what is refused."""

from __future__ import annotations

import csv
import json
import math
import pkgutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.base.errors import PropertyError, UnknownError, UnsupportedError
from mtbdd.build.model import SymbolicModel
from tests.builders.models import build
from tests.exploring import each
from tests.oracles.several import occupation_program

# From 0 choices lead to 1, where a holds, or to 2, where b does, or to either; from 1 and 2 one may go back.
WALK = """mdp
module walk
  s : [0..2];
  [left] s=0 -> (s'=1);
  [right] s=0 -> (s'=2);
  [back] s>0 -> (s'=0);
  [stay] s>0 -> true;
endmodule
rewards "moves" [left] true : 1; [right] true : 2; [back] true : 1; endrewards
"""

# A gamble: 1 is lost, 2 is won; waiting costs, and may be done for ever.
GAMBLE = """mdp
module gamble
  s : [0..2];
  [bold] s=0 -> 1/3 : (s'=2) + 2/3 : (s'=1);
  [shy] s=0 -> 1/2 : (s'=2) + 1/2 : (s'=0);
  [give] s=0 -> (s'=1);
  [wait] s=0 -> true;
  [end] s>0 -> true;
endmodule
rewards "cost" [bold] true : 1; [shy] true : 3; [wait] true : 1/2; endrewards
rewards "prize" [bold] true : 4; endrewards
"""


@pytest.fixture
def gamble() -> SymbolicModel:
    return build(GAMBLE)


@pytest.fixture
def walk() -> SymbolicModel:
    return build(WALK)


def value(model: SymbolicModel, text: str) -> float:
    answer = hybrid.check(model, text)
    assert answer.kind in ("certified", "exact")
    assert answer.upper - answer.lower <= 1e-7 * max(1.0, answer.upper)
    return 0.5 * (answer.lower + answer.upper)


def test_values_of_a_gamble(gamble: SymbolicModel) -> None:
    # Bold wins with 1/3 for 1, shy wins surely for 6, giving up is free; mixtures lie on the lines between.
    assert value(gamble, 'multi(Pmax=? [ F s=2 ], R{"cost"}<=1 [ C ])') == pytest.approx(1 / 3, abs=1e-7)
    assert value(gamble, 'multi(R{"cost"}min=? [ C ], P>=0.5 [ F s=2 ])') == pytest.approx(2.25, rel=1e-7)
    assert value(gamble, 'multi(R{"cost"}min=? [ C ], P>=1 [ F s=2 ])') == pytest.approx(6, rel=1e-7)
    assert value(gamble, 'multi(Pmin=? [ F s=1 ], R{"cost"}<=3.5 [ C ])') == pytest.approx(1 / 3, abs=1e-7)
    prize = 'multi(R{"prize"}max=? [ C ], P>=0.5 [ F s=2 ])'
    assert value(gamble, prize) == pytest.approx(3.0, rel=1e-7)
    assert value(gamble, 'multi(Pmax=? [ F s=2 ], R{"cost"}<=3 [ C<=1 ])') == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ('multi(P>=1 [ F s=2 ], R{"cost"}<=6.001 [ C ])', True),
        ('multi(P>=1 [ F s=2 ], R{"cost"}<=5.999 [ C ])', False),
        ('multi(P<=0 [ F s=2 ], R{"cost"}<=0 [ C ])', True),
        ('multi(P>=0.34 [ F s=2 ], R{"prize"}>=4 [ C ])', False),
        ("multi(P>=1 [ G s=0 ], P>=0.1 [ F s=2 ])", False),
        ("multi(P>=0.5 [ G s=0 ], P>=0.5 [ F s=2 ])", True),
        ('multi(P>=0.01 [ G s=0 ], R{"cost"}<=1000 [ C ])', False),
        ("multi(P>=0.75 [ F<=1 s=1 ], P>=0.2 [ s=0 U<=2 s=2 ])", True),
    ],
)
def test_bounds_of_a_gamble(gamble: SymbolicModel, text: str, truth: bool) -> None:
    answer = hybrid.check(gamble, text)
    assert answer.value is truth
    assert answer.lower is truth


def test_the_border_is_unknown_and_other_bounds_have_no_value(gamble: SymbolicModel) -> None:
    with pytest.raises(UnknownError, match="border"):
        hybrid.check(gamble, 'multi(Pmax=? [ F s=1 ], P>=0.5 [ F s=2 ], R{"cost"}<=2.25 [ C ])')
    with pytest.raises(PropertyError, match="no scheduler meets the bounds"):
        hybrid.check(gamble, 'multi(Pmax=? [ F s=1 ], P>=0.5 [ F s=2 ], R{"cost"}<=2 [ C ])')


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ('multi(P>=0.5 [ F s=2 ], R{"cost"}<=2.25 [ C ])', True),
        ('multi(P>=1/3 [ F s=2 ], R{"cost"}<=1 [ C ])', True),
        ('multi(P>=1/3 [ F s=2 ], R{"cost"}<=0.9999 [ C ])', False),
        ('multi(P<=1/3 [ F s=1 ], R{"cost"}<=3.5 [ C ], P>=2/3 [ s=0 U s=2 ])', True),
        ('multi(P>=0.5 [ F<=1 s=2 ], R{"cost"}<=3 [ C<=1 ])', True),
        ('multi(R{"prize"}>=4 [ C ], P>=1/3 [ F s=2 ])', True),
        ("multi(P>=1/2 [ G s=0 ], P>=1/2 [ F s=2 ])", True),
    ],
)
def test_bounds_on_the_border_in_rational_numbers(gamble: SymbolicModel, text: str, truth: bool) -> None:
    answer = hybrid.check(gamble, text)
    assert answer.value is truth
    assert answer.several is not None
    assert sum(answer.several.found.found.shares.values()) == int(truth)


# ------------------------------------------------------------------ again and again


def test_what_happens_again_and_again_together(walk: SymbolicModel) -> None:
    assert hybrid.check(walk, "multi(P>=1 [ G F s=1 ], P>=1 [ G F s=2 ])").value is True
    assert hybrid.check(walk, "multi(P>=0.6 [ F G s=1 ], P>=0.5 [ F G s=2 ])").value is False
    assert value(walk, "multi(Pmax=? [ F G s=1 ], P>=0.3 [ G F s=2 ])") == pytest.approx(0.7, abs=1e-7)
    # To go on costs something for ever.
    assert hybrid.check(walk, 'multi(P>=0.1 [ G F s=0 ], R{"moves"}<=50 [ C ])').value is False
    least = value(walk, 'multi(R{"moves"}min=? [ C ], P>=0.5 [ F G s=2 ])')
    assert least == pytest.approx(1.5, rel=1e-7)
    assert value(walk, "multi(Pmin=? [ G F s=1 ], P>=0.25 [ F (s=1 & (X s=0)) ])") == pytest.approx(
        0, abs=1e-9
    )


def test_one_objective_is_the_operator(walk: SymbolicModel) -> None:
    for path in ("G F (s=1 & (X s=0))", "(F s=1) & (F G s=2)", "s=0 U (s=1 & (X s=1))"):
        assert value(walk, f"multi(Pmax=? [ {path} ])") == pytest.approx(
            hybrid.check(walk, f"Pmax=? [ {path} ]").value, abs=1e-7
        )


# ------------------------------------------------------------------ schedulers


def test_schedulers_of_the_points_reach_them(examples_folder: Path) -> None:
    model = hybrid.load(examples_folder / "jobs.prism", constants={"N": 2})
    answer = hybrid.check(model, 'multi(R{"time"}min=? [ C ], R{"energy"}min=? [ C ])', scheduler=True)
    assert answer.several is not None
    assert answer.several.schedulers is not None
    points = answer.several.record()["points"]
    for scheduler, point in zip(answer.several.schedulers.schedulers, points, strict=True):
        chain = model.with_scheduler(scheduler)
        for i, name in enumerate(("time", "energy")):
            found = hybrid.check(chain, f'R{{"{name}"}}=? [ C ]').value
            assert point["lower"][i] - 1e-6 <= found <= point["upper"][i] + 1e-6


def test_schedulers_are_written_with_memory_and_shares(gamble: SymbolicModel, tmp_path: Path) -> None:
    answer = hybrid.check(gamble, 'multi(P>=0.5 [ F s=2 ], R{"cost"}<=3 [ C ])', scheduler=True)
    assert answer.several is not None
    made = answer.several.schedulers
    assert made is not None
    assert sum(share for share in made.shares if share is not None) == 1
    made.write(tmp_path / "mix.csv")
    with (tmp_path / "mix.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == ["point", "share", "s", "memory", "action", "layer", "next", "command"]
    first = {row["point"]: row["action"] for row in rows if (row["memory"], row["s"]) == ("0", "0")}
    assert set(first.values()) <= {"shy", "bold", "give"}
    assert "shy" in first.values()
    made.write(tmp_path / "mix.json")
    found = json.loads((tmp_path / "mix.json").read_text())
    assert [own["point"] for own in found] == list(range(1, len(made.schedulers) + 1))
    assert {"state", "memory", "action", "layer", "next", "command"} == set(found[0]["choices"][0])


# ------------------------------------------------------------------ examples


def test_teams(examples_folder: Path) -> None:
    path = examples_folder / "teams.prism"
    program = occupation_program(path, {}, ["first", "second"], 1)
    model = hybrid.load(path)
    best = program.best([0, 1, 0], [(0, ">=", 0.8)])
    assert best == pytest.approx(0.824725)
    assert value(model, 'multi(Pmax=? [ F "second" ], P>=0.8 [ F "first" ])') == pytest.approx(best, abs=1e-7)
    least = -program.best([0, 0, -1], [(0, ">=", 0.5), (1, ">=", 0.5)])
    text = 'multi(R{"effort"}min=? [ C ], P>=0.5 [ F "first" ], P>=0.5 [ F "second" ])'
    assert value(model, text) == pytest.approx(least, rel=1e-7)
    curve = hybrid.check(model, 'multi(Pmax=? [ F "first" ], Pmax=? [ F "second" ])')
    assert curve.several is not None
    record = curve.several.record()
    lower = np.array([point["lower"] for point in record["points"]])
    for weights in ([1.0, 0.3], [1.0, 1.0], [0.2, 1.0]):
        exact = program.best([*weights, 0])
        near = float((lower @ weights).max())
        assert near - 1e-7 <= exact <= near + float(np.dot(weights, record["distances"])) + 1e-7


def test_jobs(examples_folder: Path) -> None:
    path = examples_folder / "jobs.prism"
    program = occupation_program(path, {"N": 3}, [], 2)
    model = hybrid.load(path, constants={"N": 3})
    exact = -program.best([-1, 0], [(1, "<=", 17.0)])
    assert exact == pytest.approx(7.18)
    assert value(model, 'multi(R{"time"}min=? [ C ], R{"energy"}<=17 [ C ])') == pytest.approx(
        exact, rel=1e-7
    )


# ------------------------------------------------------------------ refusals

REFUSED = [
    ('multi(R{"prize"}max=? [ F s=2 ])', UnsupportedError, r"gathered for ever \(C\) or for some steps"),
    (
        'multi(P>=0.1 [ F s=2 ], R{"cost"}>=1 [ C ])',
        PropertyError,
        "can be infinite: there is an end component",
    ),
    ("!multi(P>=0.1 [ F s=2 ])", UnsupportedError, "stands alone"),
    ("filter(max, multi(Pmax=? [ F s=2 ]))", UnsupportedError, "stands alone"),
    (
        "multi(" + ", ".join(["P>=0.1 [ F s=2 ]"] * 13) + ")",
        UnsupportedError,
        "at most 12 objectives, got 13",
    ),
    ('multi(R{"cost"}min=? [ C<=1001 ])', UnsupportedError, "at most 1000 steps"),
]


@pytest.mark.parametrize(("text", "error", "message"), REFUSED, ids=[text[:40] for text, _, _ in REFUSED])
def test_refusals(gamble: SymbolicModel, text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        hybrid.check(gamble, text)


def test_refused_methods_models_and_schedulers(gamble: SymbolicModel, walk: SymbolicModel) -> None:
    text = "multi(P>=0.1 [ F s=2 ])"
    with pytest.raises(UnsupportedError, match="jacobi gives no bounds"):
        hybrid.check(gamble, text, method="jacobi")
    with pytest.raises(UnsupportedError, match="needs an MDP"):
        hybrid.check(build("dtmc module m s : [0..2]; [] true -> true; endmodule"), text)
    with pytest.raises(UnsupportedError, match="the model has several"):
        hybrid.check(build(WALK + "init true endinit"), text)
    rough = (
        "mdp module m s : [0..2]; [] true -> 0.333333:(s'=0) + 0.333333:(s'=1) + 0.333333:(s'=2); endmodule"
    )
    with pytest.raises(UnsupportedError, match="only roughly"):
        hybrid.check(build(rough), text)


ENDLESS = """mdp module m s : [0..2];
  [] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);  [] s=0 -> (s'=2);
  [] s>0 -> true;
endmodule
rewards "c" true : 1; endrewards
rewards "d" s=0 : 3; endrewards
rewards "e" s=1 : 1; endrewards"""


ENDLESS_CASES = [
    ('multi(R{"c"}min=? [ C ])', math.inf),
    ('multi(R{"c"}min=? [ C ], P>=0 [ F s=1 ])', math.inf),
    ('multi(R{"c"}min=? [ C ], P>=0.5 [ F s=1 ])', math.inf),
    ('multi(P>=0.25 [ F s=1 ], R{"c"}min=? [ C ], R{"d"}<=3 [ C ])', math.inf),
    ('multi(R{"c"}min=? [ C ], R{"e"}<=0 [ C ])', math.inf),
    ('multi(R{"c"}min=? [ C ], P>=0.6 [ F s=1 ])', "no scheduler meets the bounds"),
    ('multi(R{"c"}min=? [ C ], R{"d"}<=2.5 [ C ])', "no scheduler meets the bounds"),
    ('multi(R{"c"}min=? [ C ], R{"e"}<=0 [ C ], P>=0.1 [ F s=1 ])', "no scheduler meets the bounds"),
    ('multi(R{"d"}min=? [ C ], R{"c"}<=100 [ C ])', "no scheduler meets the bounds"),
    ('multi(Pmax=? [ F s=1 ], R{"c"}<=100 [ C ])', "no scheduler meets the bounds"),
    ('multi(R{"c"}<=100 [ C ], P>=0 [ F s=1 ])', False),
    ('multi(Pmax=? [ F s=1 ], R{"c"}min=? [ C ])', "there is no curve"),
]
WAYS: list[dict[str, Any]] = [{}, {"engine": "explicit"}, {"backend": "reference"}, {"scheduler": True}]


@pytest.mark.parametrize(("text", "right", "options"), each(ENDLESS_CASES, WAYS))
def test_f20_a_cost_that_is_infinite_under_every_scheduler(
    text: str, right: float | bool | str, options: dict[str, Any]
) -> None:
    model = build(ENDLESS)
    if isinstance(right, str):
        with pytest.raises(PropertyError, match=right):
            hybrid.check(model, text, **options)
        return
    answer = hybrid.check(model, text, **options)
    assert answer.value == right and answer.kind == "exact"
    assert hybrid.check(model, 'R{"c"}min=? [ C ]').value == math.inf


# ------------------------------------------------------------------ layouts


@pytest.mark.parametrize(
    ("engine", "laid_out"),
    [
        ("hybrid", "hybrid.matrix.operators.hybrid_choices.select_level"),
        ("explicit", "hybrid.matrix.operators.explicit_choices.write_choices"),
    ],
)
def test_f9_layouts_are_made_once_for_all_weights(
    gamble: SymbolicModel, monkeypatch: pytest.MonkeyPatch, engine: str, laid_out: str
) -> None:
    # One of the choices that leave end components, and one of all choices.
    made = calls_of(monkeypatch, laid_out)
    solved = calls_of(monkeypatch, "hybrid.analysis.multi.weighted_sum.WeightedSumSolver.solve")
    question = 'multi(Pmax=? [ F s=2 ], R{"prize"}max=? [ C ], R{"prize"}max=? [ C<=1 ])'
    answer = hybrid.check(gamble, question, engine=engine)
    assert answer.several is not None
    assert len(solved) > 2
    assert len(made) == 2


def calls_of(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """A list that grows with every call of a function."""
    original, calls = pkgutil.resolve_name(name), list[str]()

    def called(*arguments: Any, **options: Any) -> Any:
        calls.append(name)
        return original(*arguments, **options)

    monkeypatch.setattr(name, called)
    return calls
