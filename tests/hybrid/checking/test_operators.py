"""Every operator of PCTL and CSL on every engine: values worked out by hand lie between the bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import expm

import hybrid
from tests.builders.chain_texts import DIE, GAMBLER, MANY_STARTS, QUEUE, SPLIT, load_text
from tests.builders.known_answers import OF_CHAINS
from tests.exploring import each

FLIP = """
// on and off with rates 2 and 3
ctmc
module m s : [0..1]; [] s=0 -> 2 : (s'=1); [] s=1 -> 3 : (s'=0); endmodule
rewards "on" s=1 : 10; endrewards
rewards "debt" s=0 : 1; s=1 : -4; endrewards
"""


def wins(start, goal, up=Fraction(2, 5)):
    """Probability that a gambler reaches the goal before 0."""
    r = (1 - up) / up
    return (1 - r**start) / (1 - r**goal)


DISCRETE = [
    *OF_CHAINS,
    (DIE, 'P=? [ F "done" & d=6 ]', Fraction(1, 6)),
    (DIE, "P=? [ s<2 U d=2 ]", 0),
    (DIE, "P=? [ s!=1 U d=6 ]", Fraction(1, 6)),
    (DIE, "P=? [ F s=8-1 ]", 1),
    (DIE, 'R{"sixes"}=? [ F "done" ]', Fraction(2, 3)),
    (DIE, "R=? [ F s=7 ]", Fraction(11, 3)),
    (GAMBLER, "P=? [ x>1 U x=goal ]", wins(2, 4)),
    (QUEUE, 'R{"served"}=? [ S ]', 3 * (1 - 1 / sum(Fraction(2, 3) ** k for k in range(5)))),
    (QUEUE, "P=? [ F n=4 ]", 1),
    (SPLIT, "P=? [ F s=2 ]", Fraction(1, 4)),
    (SPLIT, "S=? [ s=3 ]", Fraction(3, 4)),
    (SPLIT, "R=? [ F s=2 ]", math.inf),
    (DIE, "P=? [ X s=0 ]", 0),
    (DIE, "P=? [ X s<3 ]", 1),
    (DIE, "filter(state, P=? [ X d=1 ], s=3)", Fraction(1, 2)),
    (DIE, "P=? [ F<=2 d=1 ]", 0),
    (DIE, "P=? [ F<3 d=1 ]", 0),
    (DIE, "P=? [ F<=5 d=1 ]", Fraction(5, 32)),
    (DIE, "P=? [ F=3 d=1 ]", Fraction(1, 8)),
    (DIE, "P=? [ F=2 s=3 ]", Fraction(1, 4)),
    (DIE, "P=? [ F[3,4] s=3 ]", Fraction(1, 16)),
    (DIE, "P=? [ F>2 s=3 ]", Fraction(1, 16)),
    (DIE, "P=? [ F>=3 s=3 ]", Fraction(1, 16)),
    (DIE, "P=? [ s<7 U[3,3] d=1 ]", Fraction(1, 8)),
    (DIE, "P=? [ s<7 U>=4 d=1 ]", Fraction(1, 24)),
    (DIE, "P=? [ G<=2 d=0 ]", 1),
    (DIE, "P=? [ G<=3 d=0 ]", Fraction(1, 4)),
    (DIE, "P=? [ G[3,3] d=0 ]", Fraction(1, 4)),
    (DIE, "P=? [ G s<7 ]", 0),
    (DIE, "P=? [ !(F d=1) ]", Fraction(5, 6)),
    (DIE, "P=? [ s=0 ]", 1),
    (GAMBLER, "P=? [ G x>0 ]", wins(3, 5)),
    (GAMBLER, "P=? [ x<4 W x=0 ]", 1 - wins(3, 4)),
    (GAMBLER, "P=? [ x=0 R x<4 ]", 1 - wins(3, 4)),
    (GAMBLER, "P=? [ x<4 W<=1 x=0 ]", Fraction(3, 5)),
    (GAMBLER, "P=? [ x=0 R<=2 x<5 ]", 1 - Fraction(4, 25)),
    (DIE, 'R{"flips"}=? [ C<=0 ]', 0),
    (DIE, 'R{"flips"}=? [ C<=3 ]', 3),
    (DIE, 'R{"sixes"}=? [ C<=3 ]', Fraction(1, 2)),
    (DIE, 'R{"sixes"}=? [ C ]', Fraction(2, 3)),
    (DIE, 'R{"flips"}=? [ I=0 ]', 1),
    (DIE, 'R{"sixes"}=? [ I=2 ]', 0),
    (QUEUE, "filter(state, P=? [ X n=2 ], n=1)", Fraction(2, 5)),
    (QUEUE, 'R{"length"}=? [ C ]', math.inf),
    (SPLIT, 'filter(state, R{"marked"}=? [ C ], s=3)', math.inf),
    (DIE, "P=? [ F P>0.5 [ F d=1 ] ]", Fraction(1, 4)),
    (DIE, "P=? [ F<=2 P>0.6 [ X s=7 ] ]", Fraction(1, 2)),
    (DIE, "P=? [ (P>0.1 [ F d=1 ]) U (P>=1 [ F d=2 | d=3 ]) ]", Fraction(1, 3)),
    (DIE, "S=? [ P>=1 [ X d=3 ] ]", Fraction(1, 6)),
    (DIE, 'R{"flips"}=? [ F R{"flips"}<0.5 [ C ] ]', Fraction(11, 3)),
    (DIE, "P=? [ F d=1 ] + 2 * P=? [ F d=2 ]", Fraction(1, 2)),
    (DIE, "(P=? [ F d=1 ] - 1) / P=? [ F d=2 ]", -5),
    (DIE, "max(P=? [ F d=1 ], P=? [ X s=1 ], 0.25)", Fraction(1, 2)),
    (DIE, "-P=? [ F<=3 d=1 ]", -Fraction(1, 8)),
    (DIE, "P>0.1 [ F d=1 ] ? P=? [ X s=1 ] : 7", Fraction(1, 2)),
    (DIE, "filter(max, P=? [ F d=1 ], s=1) + filter(min, s)", Fraction(1, 3)),
    (DIE, "filter(avg, P=? [ F d=1 ], s=1 | s=3)", Fraction(1, 2)),
    (MANY_STARTS, "filter(sum, filter(max, x, x<4) * P=? [ X x=4 ], x=3)", Fraction(3, 2)),
]


ENGINES = [("hybrid", "cpu"), ("hybrid", "reference"), ("explicit", "cpu")]


@pytest.mark.parametrize(("text", "prop", "expected", "engine", "backend"), each(DISCRETE, ENGINES))
def test_discrete_operators_by_hand(text, prop, expected, engine, backend, tmp_path):
    answer = hybrid.check(load_text(tmp_path, text), prop, engine=engine, backend=backend, throw=False)
    assert answer.error is None
    if expected == math.inf:
        assert (answer.value, answer.lower, answer.upper) == (math.inf,) * 3
        return
    assert answer.value == pytest.approx(float(expected), rel=1e-8, abs=1e-300)
    assert Fraction(answer.lower) <= expected <= Fraction(answer.upper)
    assert answer.upper - answer.lower <= 1e-8 * max(abs(float(expected)), abs(answer.upper))


# A bound inside of another operator needs a method with bounds.
@pytest.mark.parametrize(
    ("text", "prop", "expected", "engine", "backend"),
    each((case for case in OF_CHAINS if "P>=" not in case[1]), ENGINES),
)
def test_gauss_seidel_comes_close(text, prop, expected, engine, backend, tmp_path):
    options = {"engine": engine, "backend": backend, "method": "gauss-seidel", "epsilon": 1e-12}
    answer = hybrid.check(load_text(tmp_path, text), prop, **options)
    assert answer.value == pytest.approx(float(expected), rel=1e-9, abs=1e-15)
    if answer.statistics.method == "gauss-seidel":
        assert (answer.lower, answer.upper) == (None, None)


T = 0.7
ON = 2 / 5 * (1 - math.exp(-5 * T))
CONTINUOUS = [
    (f"P=? [ F<={T} s=1 ]", 1 - math.exp(-2 * T)),
    (f"P=? [ F<{T} s=1 ]", 1 - math.exp(-2 * T)),
    ("P=? [ F<=0 s=1 ]", 0.0),
    ("P=? [ F<=0 s=0 ]", 1.0),
    (f"P=? [ F={T} s=1 ]", ON),
    (f"P=? [ F[{T},{T}] s=1 ]", ON),
    (f"P=? [ F[{T},{2 * T}] s=1 ]", ON + (1 - ON) * (1 - math.exp(-2 * T))),
    (f"P=? [ F>={T} s=1 ]", 1.0),
    (f"P=? [ s=0 U>={T} s=1 ]", math.exp(-2 * T)),
    (f"P=? [ s=0 U[{T},{2 * T}] s=1 ]", math.exp(-2 * T) - math.exp(-4 * T)),
    ("P=? [ s=0 U>0 s=1 ]", 1.0),
    ("P=? [ s=1 U>0 s=0 ]", 0.0),
    ("P=? [ s=1 U>=0 s=0 ]", 1.0),
    (f"P=? [ G<={T} s=0 ]", math.exp(-2 * T)),
    (f"P=? [ G[{T},{2 * T}] s=0 ]", (1 - ON) * math.exp(-2 * T)),
    (f"P=? [ s=0 W<={T} false ]", math.exp(-2 * T)),
    (f"P=? [ false R<={T} s=0 ]", math.exp(-2 * T)),
    (f'R{{"on"}}=? [ I={T} ]', 10 * ON),
    ('R{"on"}=? [ I=0 ]', 0.0),
    (f'R{{"on"}}=? [ C<={T} ]', 4 * T - 4 / 5 * (1 - math.exp(-5 * T))),
    (f'R{{"debt"}}=? [ I={T} ]', 1 - 5 * ON),
    (f'R{{"debt"}}=? [ C<={T} ]', T - 5 * (2 / 5 * T - 2 / 25 * (1 - math.exp(-5 * T)))),
    ('R{"debt"}=? [ S ]', 3 / 5 - 8 / 5),
    ('R{"debt"}=? [ F s=1 ]', 0.5),
    ("P=? [ F<=1000000 s=1 ]", 1.0),
    ("P=? [ F=1000000 s=1 ]", 0.4),
    ('R{"on"}=? [ C<=1000000 ]', 4e6 - 4 / 5),
]


@pytest.mark.parametrize(("prop", "expected", "engine", "backend"), each(CONTINUOUS, ENGINES))
def test_continuous_operators_by_hand(prop, expected, engine, backend, tmp_path):
    answer = hybrid.check(load_text(tmp_path, FLIP), prop, engine=engine, backend=backend, throw=False)
    assert answer.error is None
    assert answer.value == pytest.approx(expected, rel=1e-8, abs=1e-300)
    # The expected values above are rounded themselves.
    room = 1e-14 * abs(expected)
    assert answer.lower - room <= expected <= answer.upper + room
    assert answer.upper - answer.lower <= 1e-7 * abs(expected)


LEAK = """
ctmc
module m s : [0..2];
[] s=0 -> 1 : (s'=1); [] s=1 -> 1 : (s'=0) + 1/leak : (s'=2); [] s=2 -> true;
endmodule
const double leak;
"""


@pytest.mark.parametrize("mean", [1e4, 1e5, 1e6])
def test_uniformisation_over_many_steps_agrees_with_the_matrix_exponential(mean, tmp_path):
    # The leak is so slow that the chain is far from settled at the end: no step may be left out.
    time = mean / 1.02
    model = load_text(tmp_path, LEAK, constants={"leak": time})
    answer = hybrid.check(model, f"P=? [ F<={time!r} s=2 ]")
    generator = np.array([[-1, 1, 0], [1, -1 - 1 / time, 1 / time], [0, 0, 0]])
    expected = expm(generator * time)[0, 2]
    assert answer.value == pytest.approx(expected, rel=1e-8)
    assert answer.lower <= expected <= answer.upper
    assert answer.upper - answer.lower < 1e-8


@pytest.mark.parametrize(
    ("prop", "expected"),
    [
        ("P>=0.1 [ F d=1 ]", True),
        ("P>0.2 [ F d=1 ]", False),
        ("P<0.2 [ F d=1 ]", True),
        ("P<=0.1 [ F d=1 ]", False),
        ("P>=1 [ F s=7 ]", True),
        ("P>0 [ F d=6 & s=0 ]", False),
        ("S<=0.2 [ d=3 ]", True),
        ('R{"flips"}<3 [ F s=7 ]', False),
        ("s=0 & d=0", True),
        ("s>3", False),
        ("P>0.1 [ F d=1 ] & P>0.1 [ F d=2 ]", True),
        ("P>0.1 [ F d=1 ] & P>0.2 [ F d=2 ]", False),
        ("P>0.2 [ F d=1 ] | P>=1 [ F s=7 ]", True),
        ("P>0.2 [ F d=1 ] => false", True),
        ("P>0.2 [ F d=1 ] <=> P>0.3 [ F d=2 ]", True),
        ("!P>0.2 [ F d=1 ]", True),
        ("P>=1 [ G P>0 [ F s=7 ] ]", True),
        ("P>0 [ F s=3 & P<=0.6 [ X d=1 ] ]", True),
        ("P=? [ F d=1 ] < P=? [ X s=1 ]", True),
        ("P=? [ X s=1 ] = 0.25", False),
        ("P=? [ F d=1 ] != 0.25", True),
        ("filter(forall, s=7 => P>=1 [ X s=7 ])", True),
        ("filter(exists, P>0.9 [ F d=6 ], s<7)", False),
        ("filter(forall, filter(argmax, P=? [ F d=1 ]) <=> d=1)", True),
        ("filter(forall, filter(argmin, P=? [ F d=1 ], d>0) <=> d>1)", True),
        ("filter(first, P>0.9 [ F d=6 ], d=6)", True),
        # One operand decides, whatever the other is.
        ("P>=1/6 [ F d=1 ] & false", False),
        ("true | P>=1/6 [ F d=1 ]", True),
    ],
)
def test_truth_values_by_hand(prop, expected, tmp_path):
    answer = hybrid.check(load_text(tmp_path, DIE), prop, throw=False)
    assert answer.error is None
    assert (answer.value, answer.lower, answer.upper) == (expected,) * 3


@pytest.mark.parametrize(
    "prop", ["P>=1/6 [ F d=1 ]", "P=? [ F P>=1/3 [ F d=1 ] ]", "filter(count, P<1/3 [ F d=1 ])"]
)
def test_what_bounds_do_not_decide_is_unknown(prop, tmp_path, monkeypatch):
    monkeypatch.setattr("hybrid.analysis.exact.formulas.MAX_UNKNOWN", 0)
    answer = hybrid.check(load_text(tmp_path, DIE), prop, throw=False)
    assert answer.value is None
    assert "unknown at this precision" in answer.error


def test_sets_from_estimates_leave_no_bounds(tmp_path):
    model = load_text(tmp_path, DIE)
    answer = hybrid.check(model, "P=? [ X P>0.3 [ F d=1 ] ]", method="jacobi")
    assert answer.value == pytest.approx(0.5)
    assert (answer.lower, answer.upper) == (None, None)
    assert hybrid.check(model, "P=? [ X P>0.3 [ F d=1 ] ]").lower == pytest.approx(0.5)


def test_range_and_listings(tmp_path):
    model = load_text(tmp_path, DIE)
    answer = hybrid.check(model, "filter(range, P=? [ F d=1 ], s=1 | s=3)", throw=False)
    assert (answer.value, answer.error) == (None, None)
    assert (answer.lower, answer.upper) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    shown = hybrid.check(model, "filter(print, P=? [ X d=1 ])", throw=False)
    assert dict(shown.listing) == {"(s=3, d=0)": 0.5, "(s=7, d=1)": 1.0}
    assert len(hybrid.check(model, "filter(printall, P=? [ X d=1 ])", throw=False).listing) == model.n_states
    most = hybrid.check(model, "filter(argmax, P=? [ F d=1 ], s<7)", throw=False)
    assert [name for name, _ in most.listing] == ["(s=3, d=0)"]
    assert most.value == pytest.approx(2 / 3)


def test_total_rewards_of_both_signs_need_not_exist(tmp_path):
    answer = hybrid.check(load_text(tmp_path, FLIP), 'R{"debt"}=? [ C ]', throw=False)
    assert answer.value is None
    assert "below zero" in answer.error


@pytest.mark.parametrize(
    ("text", "prop"),
    [
        (QUEUE, "P=? [ n<2 U[0.5,2] n=3 ]"),
        (QUEUE, 'R{"length"}=? [ F n=2 ]'),
    ],
)
def test_engines_agree(text, prop, tmp_path):
    model = load_text(tmp_path, text)
    one, other = (hybrid.check(model, prop, engine=engine, throw=False) for engine in ("hybrid", "explicit"))
    assert other.error is None
    assert other.record()["engine"] == "explicit"
    assert other.record()["level"] is None
    assert other.value == pytest.approx(one.value, rel=2e-8)
    assert one.lower <= other.upper
    assert other.lower <= one.upper


def test_nearly_absorbing_states_keep_their_digits(backend, tmp_path):
    text = """
        dtmc module m s : [0..2];
        [] s=0 -> 0.999999999 : (s'=0) + 3e-10 : (s'=1) + 7e-10 : (s'=2); [] s>0 -> true;
        endmodule
    """
    answer = hybrid.check(load_text(tmp_path, text), "P=? [ F s=1 ]", backend=backend)
    assert answer.lower <= 0.3 <= answer.upper
    assert answer.upper - answer.lower < 1e-8
