"""Quantiles of two bounds on rewards: the least pairs, against those of a text that counts."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.__main__ import main
from tests.builders.two_rewards import TwoRewards
from tests.exploring import rounds

_MOST = 4  # the greatest number that the text's counters tell
OPTIONS: list[dict[str, Any]] = [{}, {"engine": "explicit"}, {"backend": "reference", "method": "interval"}]
UNITS = Fraction(1, 2), Fraction(3)


def least_pairs(enough: dict[tuple[int, int], bool]) -> list[tuple[int, int]]:
    """Return the least pairs of those that are enough."""
    return [
        (a, b) for (a, b), holds in enough.items()
        if holds and not enough.get((a - 1, b)) and not enough.get((a, b - 1))
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["dtmc", "mdp", "ctmc"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_random_models(kind: str, options: dict[str, Any], rng: np.random.Generator) -> None:
    stairs = single = 0
    while stairs < rounds(2):
        drawn = TwoRewards(rng, kind, UNITS)
        word, target = str(rng.choice(["min", "max"])) if kind == "mdp" else "", f"s={drawn.n - 1}"
        threshold = Fraction(int(rng.integers(1, 1009)), 1009)
        asked = f'quantile(min M, min N, P{word}>={threshold} [ F{{"x"}}<=M,{{"y"}}<=N {target} ])'
        model = hybrid.parse(drawn.text + "\ninit s=0 endinit")
        answer = hybrid.check(model, asked, throw=False, max_iterations=300, **options)
        if answer.error is not None:
            assert "iterations are allowed" in answer.error or "iteration limit" in answer.error
            continue
        is_stair = len(answer.pairs) > 1
        single += not is_stair
        if not is_stair and single > 2:
            continue
        stairs += is_stair
        counting = hybrid.parse(drawn.counting + "\ninit s=0&c0=0&c1=0 endinit")
        reached = f"P{word}=? [ F ({target} & c0<={{}} & c1<={{}}) ]"
        enough = {
            (a, b): hybrid.check(counting, reached.format(a, b), exact=True).exact >= threshold
            for a in range(_MOST + 1)
            for b in range(_MOST + 1)
        }
        pairs = [(a / UNITS[0], b / UNITS[1]) for a, b in answer.pairs]
        assert [pair for pair in pairs if max(pair) <= _MOST] == least_pairs(enough)


TWO_WAYS = """mdp module m s : [0..1];
  [slow] s=0 -> 2/3:(s'=1) + 1/3:true;
  [fast] s=0 -> 2/3:(s'=1) + 1/3:true;
  [] s=1 -> true;
endmodule
rewards "time" [slow] true : 3; [fast] true : 1; endrewards
rewards "cost" [slow] true : 1; [fast] true : 0.3; endrewards
rewards "work" [slow] true : 0; [fast] true : 2; endrewards"""
# Each of two tries may be slow, for 3 of time, or fast, for 1 of time and 2 of work.
STAIRS = ((2, 4), (4, 2), (6, 0))


@pytest.mark.parametrize(
    ("asked", "pairs"),
    [
        ('min M, min N, Pmax>=0.8 [ F{"time"}<=M,{"work"}<=N s=1 ]', STAIRS),
        ('M, N, Pmax>0.8 [ F{rew{"time"}<=M,rew{"work"}<=N} s=1 ]', STAIRS),
        ('min N, min M, Pmax>=0.8 [ F{"time"}<=M,{"work"}<=N s=1 ]', tuple((b, a) for a, b in STAIRS[::-1])),
        ('min M, min N, Pmin<=0.2 [ G{"time"}<=M,{"work"}<=N s!=1 ]', STAIRS),
        ('min M, min N, Pmax>=0 [ F{"time"}<=M,{"work"}<=N s=1 ]', ((0, 0),)),
        ('min M, min N, Pmax>=8/9 [ F{"time"}<=M,{"work"}<=N s=1 ]', STAIRS),
        ('min M, min N, Pmax>=26/27 [ F{"time"}<=M,{"work"}<=N s=1 ]', ((3, 6), (5, 4), (7, 2), (9, 0))),
        ('min M, min N, Pmax>=1 [ F{"time"}<=M,{"work"}<=N s=1 ]', ()),
        ('min M, min N, Pmin>=0.6 [ F{"time"}<=M,{"cost"}<=N s=1 ]', ((3, 1),)),
        ('min M, min N, Pmax>=0.8 [ F{"time"}<=M,{"cost"}<=N s=1 ]', ((2, Fraction(3, 5)),)),
    ],
)
def test_answers_by_hand(asked: str, pairs: tuple[tuple[int, int], ...]) -> None:
    answer = hybrid.check(hybrid.parse(TWO_WAYS), f"quantile({asked})")
    assert answer.pairs == pairs and answer.kind == "exact" and answer.value is None


@pytest.mark.parametrize(
    ("prop", "options", "message"),
    [
        ('quantile(max M, max N, Pmax<0.8 [ F{"time"}<=M,{"work"}<=N s=1 ])', {}, "both with min"),
        ('quantile(min M, max N, Pmax<0.8 [ F{"time"}<=M,{"work"}<=N s=1 ])', {}, "both with min"),
        ('quantile(M, N, K, P>0.8 [ F{"time"}<=M,{"work"}<=N,{"cost"}<=K s=1 ])', {}, "expected two"),
        ('quantile(M, N, Pmax>0.8 [ F{"time"}<=M s=1 ])', {}, "is the one asked for"),
        ('quantile(M, N, Pmax>0.8 [ F{"time"}<=M,{"work"}<=3 s=1 ])', {}, "is the one asked for"),
        ('quantile(M, N, Pmax>0.8 [ F{"time"}<=M,{"work"}<=M s=1 ])', {}, "is the one asked for"),
        ('quantile(M, Pmax>0.8 [ F{"time"}<=M,{"work"}<=M s=1 ])', {}, "is the one asked for"),
        ('quantile(M, N, Pmax<0.8 [ F{"time"}<=M,{"work"}<=N s=1 ])', {}, "ask with max"),
        ('quantile(M, N, Pmax>0.8 [ F{"time"}<=M,{"work"}<=N s=1 ])', {"ranks": 2}, "not found in parts"),
        ('quantile(M, N, Pmax>0.8 [ F{"time"}<=M,{"work"}<=N s=1 ])', {"max_iterations": 6}, "limit"),
    ],
)  # fmt: skip
def test_refusals(prop: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(hybrid.HybridError, match=message):
        hybrid.check(hybrid.parse(TWO_WAYS), prop, **options)


# One stage behind the other, each done with probability 1/2 in a unit of its own.
STAGES = """{} module m s : [0..2];
  [a] s=0 -> 1/2:(s'=1) + 1/2:true;
  [b] s=1 -> 1/2:(s'=2) + 1/2:true;
  [] s=2 -> true;
endmodule
rewards "a" [a] true : 1; endrewards
rewards "b" [b] true : 1; endrewards"""


def test_what_is_not_decided_is_told() -> None:
    asked = 'quantile(min M, min N, P>={} [ F{{"a"}}<=M,{{"b"}}<=N s=2 ])'
    discrete, continuous = (hybrid.parse(STAGES.format(kind)) for kind in ("dtmc", "ctmc"))
    for model in (discrete, continuous):
        assert hybrid.check(model, asked.format("0.36")).pairs == ((1, 2), (2, 1))
        assert hybrid.check(model, asked.format("0.4")).pairs == ((1, 3), (2, 2), (3, 1))
    # A process in continuous time has no exact numbers.
    assert hybrid.check(discrete, asked.format("3/8")).pairs == ((1, 2), (2, 1))
    with pytest.raises(hybrid.HybridError, match=r"of \(1, 2\), \(2, 1\), certain of none: "):
        hybrid.check(continuous, asked.format("3/8"))
    with pytest.raises(hybrid.HybridError, match=r"of \(1, 4\), \(4, 1\), certain of \(2, 2\): "):
        hybrid.check(continuous, asked.format("15/32"))


# For nothing of b more and more of a comes as near to 1/2 as one likes, and never there.
LIMIT = """dtmc module m s : [0..3];
  [] s=0 -> 1/2:(s'=1) + 1/2:(s'=2);
  [] s=1 -> 1/2:(s'=3) + 1/2:true;
  [] s>1 -> (s'=3);
endmodule
rewards "a" s=1 : 1; endrewards
rewards "b" s=2 : 1; endrewards"""


def test_a_search_ends_with_how_far_it_came() -> None:
    model, asked = hybrid.parse(LIMIT), 'quantile(min M, min N, P>={} [ F{{"a"}}<=M,{{"b"}}<=N s=3 ])'
    with pytest.raises(hybrid.HybridError, match="of more than 100 units, as many"):
        hybrid.check(model, asked.format(0.5), max_iterations=100)
    assert hybrid.check(model, asked.format(0.50001)).pairs == ((1, 1),)
    assert hybrid.check(model, asked.format(0.49)).pairs == ((0, 1), (6, 0))


def test_the_command_tells_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ways.prism").write_text(TWO_WAYS)
    asked = 'quantile(min M, min N, Pmax>=0.8 [ F{"time"}<=M,{"cost"}<=N s=1 ])'
    assert main(["check", str(tmp_path / "ways.prism"), asked]) == 0
    assert "result       (2, 3/5)  (exact)" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "ways.prism"), asked, "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)["results"]
    assert record["pairs"] == [["2", "3/5"]] and record["value"] is None and record["kind"] == "exact"
    table = tmp_path / "pairs.csv"
    assert main(["check", str(tmp_path / "ways.prism"), asked, "--csv", str(table)]) == 0
    with table.open(newline="") as lines:
        whole, *bounds = csv.DictReader(lines)
    assert whole["point"] == whole["value"] == ""
    assert [(b["point"], b["objective"], b["value"]) for b in bounds] == [
        ("1", "first bound", "2.0"),
        ("1", "second bound", "0.6"),
    ]
    for found, exact in zip(bounds, (2, Fraction(3, 5)), strict=True):
        assert Fraction(float(found["lower"])) <= exact <= Fraction(float(found["upper"]))


def test_an_experiment_has_pairs() -> None:
    asked = 'quantile(min M, min N, Pmax>=p [ F{"time"}<=M,{"cost"}<=N s=1 ])'
    runs = hybrid.experiment(hybrid.parse(TWO_WAYS), asked, {"p": [0.8, 1]})
    assert [run["pairs"] for run in runs] == ["(2, 3/5)", "no pair"] and "(2, 3/5)" in repr(runs)
