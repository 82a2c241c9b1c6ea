"""The engines and the methods that only some of them have, against values known by hand."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

import hybrid
from hybrid.errors import OptionError
from hybrid.run.options import CheckOptions
from tests.hybrid.checking.models import DIE, GAMBLER, MANY_STARTS, QUEUE, SPLIT, load_text

# Forward and back in pairs, pairs in a row: components of two states, and single ones between them.
STAIRS = """
dtmc
module m
  s : [0..9];
  [] mod(s,3)=0 & s<9 -> 0.5 : (s'=s+1) + 0.25 : (s'=s+2) + 0.25 : (s'=9);
  [] mod(s,3)=1 -> 0.5 : (s'=s+1) + 0.5 : (s'=min(s+2,8));
  [] mod(s,3)=2 & s<8 -> 0.5 : (s'=s-1) + 0.5 : (s'=s+1);
  [] s>=8 -> true;
endmodule
rewards s<8 : 1; endrewards
"""

WEIGHTS = [Fraction(2, 3) ** k for k in range(5)]
EXACT = [
    (DIE, "P=? [ F d=1 ]", Fraction(1, 6)),
    (DIE, "P=? [ G d!=1 ]", Fraction(5, 6)),
    (DIE, "P=? [ X s=1 ]", Fraction(1, 2)),
    (DIE, "P=? [ F<=3 d=1 ]", Fraction(1, 8)),
    (DIE, "P=? [ s<3 U[2,2] s=3 ]", Fraction(1, 4)),
    (DIE, "P=? [ s<2 W s=3 ]", Fraction(1, 4)),
    (DIE, "P=? [ d=1 R s<7 ]", Fraction(0)),
    (DIE, "S=? [ d=3 ]", Fraction(1, 6)),
    (DIE, 'R{"flips"}=? [ F s=7 ]', Fraction(11, 3)),
    (DIE, 'R{"flips"}=? [ C ]', Fraction(11, 3)),
    (DIE, 'R{"flips"}=? [ C<=4 ]', 3 + Fraction(1, 4)),
    (DIE, 'R{"flips"}=? [ I=3 ]', Fraction(1, 4)),
    (DIE, 'R{"flips"}=? [ F d=1 ]', math.inf),
    (DIE, "P=? [ F P>=1/3 [ F d=1 ] ]", Fraction(1, 2)),
    (GAMBLER, "P=? [ F x=goal ]", Fraction(76, 211)),
    (QUEUE, "S=? [ n=0 ]", 1 / sum(WEIGHTS)),
    (QUEUE, 'R{"length"}=? [ S ]', sum(k * w for k, w in enumerate(WEIGHTS)) / sum(WEIGHTS)),
    (QUEUE, 'R{"length"}=? [ F n=2 ]', Fraction(1, 2)),
    (SPLIT, "S=? [ s=2 ]", Fraction(5, 24)),
    (SPLIT, 'R{"marked"}=? [ S ]', Fraction(2)),
    (MANY_STARTS, 'filter(max, R=? [ F x=0 | x=4 ], "init")', Fraction(4)),
    (STAIRS, "P=? [ F s=8 ]", None),
    (STAIRS, "R=? [ F s>=8 ]", None),
]


def stairs():
    """Solve the stairs by hand: from the top down, the pairs two equations at a time."""
    win, time = {8: Fraction(1), 9: Fraction(0)}, {8: Fraction(0), 9: Fraction(0)}
    for values, gain in ((win, Fraction(0)), (time, Fraction(1))):
        values[7] = gain + values[8]
        for low in (6, 3, 0):
            if low < 6:
                # a = g + b/2 + up/2 and b = g + a/2 + up/2 with up = the value of low + 3.
                values[low + 1] = values[low + 2] = 2 * gain + values[low + 3]
            values[low] = gain + values[low + 1] / 2 + values[low + 2] / 4 + values[9] / 4
    return {"P=? [ F s=8 ]": win[0], "R=? [ F s>=8 ]": time[0]}


@pytest.mark.parametrize(("text", "prop", "expected"), EXACT)
@pytest.mark.parametrize(
    ("engine", "backend"), [("hybrid", "cpu"), ("hybrid", "reference"), ("explicit", "cpu")]
)
def test_bounds_contain_the_exact_value(text, prop, expected, engine, backend, tmp_path):
    expected = stairs()[prop] if expected is None else expected
    answer = hybrid.check(load_text(tmp_path, text), prop, engine=engine, backend=backend, throw=False)
    assert answer.error is None
    if expected == math.inf:
        assert (answer.lower, answer.value, answer.upper) == (math.inf,) * 3
        return
    assert Fraction(answer.lower) <= expected <= Fraction(answer.upper)
    assert answer.value == pytest.approx(float(expected), rel=1e-8, abs=1e-15)
    assert answer.upper - answer.lower <= 1e-8 * answer.upper


# A bound inside of another operator needs a method with bounds.
@pytest.mark.parametrize(("text", "prop", "expected"), [case for case in EXACT if "P>=" not in case[1]])
@pytest.mark.parametrize(
    ("engine", "backend"), [("hybrid", "cpu"), ("hybrid", "reference"), ("explicit", "cpu")]
)
def test_gauss_seidel_comes_close(text, prop, expected, engine, backend, tmp_path):
    expected = stairs()[prop] if expected is None else expected
    answer = hybrid.check(
        load_text(tmp_path, text),
        prop,
        engine=engine,
        backend=backend,
        method="gauss-seidel",
        epsilon=1e-12,
        throw=False,
    )
    assert answer.error is None
    assert answer.value == pytest.approx(float(expected), rel=1e-9, abs=1e-15)
    if answer.statistics.method == "gauss-seidel":
        assert (answer.lower, answer.upper) == (None, None)


def test_components_are_solved_one_after_another_where_that_pays(tmp_path):
    model = load_text(tmp_path, STAIRS)
    answer = hybrid.check(model, "P=? [ F s=8 ]", engine="explicit")
    assert answer.statistics.method == "topological"
    assert answer.record()["engine"] == "explicit"
    for other in ("optimistic", "interval"):
        chosen = hybrid.check(model, "P=? [ F s=8 ]", engine="explicit", method=other)
        assert chosen.statistics.method == other
        assert chosen.lower <= answer.upper
        assert answer.lower <= chosen.upper
    ring = hybrid.check(load_text(tmp_path, GAMBLER), "P=? [ F x=goal ]", engine="explicit")
    assert ring.statistics.method == "optimistic"


def test_rewards_of_both_signs_by_components(tmp_path):
    text = STAIRS.replace("s<8 : 1;", "s<3 : 1; s>=3 & s<6 : -1;")
    model = load_text(tmp_path, text)
    one, other = (hybrid.check(model, "R=? [ F s>=8 ]", engine=e) for e in ("explicit", "hybrid"))
    assert one.statistics.method == "topological"
    assert max(one.lower, other.lower) <= min(one.upper, other.upper)
    assert one.value == pytest.approx(other.value, rel=1e-7)


@pytest.mark.parametrize("omega", [0.5, 1.3])
def test_relaxed_sweeps_reach_the_same_value(omega, tmp_path):
    model = load_text(tmp_path, GAMBLER)
    options = {"engine": "explicit", "method": "gauss-seidel", "epsilon": 1e-12}
    answer = hybrid.check(model, "P=? [ F x=goal ]", omega=omega, **options)
    assert answer.value == pytest.approx(76 / 211, rel=1e-10)


def test_sweeps_stay_on_the_cpu():
    options = CheckOptions(method="gauss-seidel")
    assert options.matrix_backend() == "cpu"
    assert CheckOptions(method="gauss-seidel", backend="reference").matrix_backend() == "reference"
    assert CheckOptions().matrix_backend() == "auto"


def test_sweeps_on_a_device_are_refused(monkeypatch):
    monkeypatch.setattr("hybrid.run.options.choose_backend", lambda name: None)
    with pytest.raises(OptionError, match="does not run on the gpu"):
        CheckOptions(method="gauss-seidel", backend="gpu")


def test_symbolic_vectors_are_refused_with_advice():
    with pytest.raises(OptionError, match="choose hybrid or explicit"):
        CheckOptions(engine="symbolic")


def test_records_are_plain_json(tmp_path):
    answer = hybrid.check(load_text(tmp_path, STAIRS), "P=? [ F s=8 ]", engine="explicit")
    assert json.loads(json.dumps(answer.record()))["method"] == "topological"
